"""What several kinds of tiny models have in common; tiny_model.py has the list of models."""
from tiny_gemma4 import divisors
from tiny_writer import Shape

EXPERT_FF = "expert_feed_forward_length"
LONG = 200  # tokens: three attention tiles and a part of the fourth
LONGROPE_FACTORS = {
    "rope_factors_long.weight": [1, 1.3, 2.1, 4.5, 9, 17, 28, 40],
    "rope_factors_short.weight": [1, 1, 1.05, 1.1, 1.2, 1.35, 1.6, 1.8],
}


def rope(kind, factor, original=0):
    keys = {"rope.scaling.type": kind, "rope.scaling.factor": float(factor)}
    return keys | ({"rope.scaling.original_context_length": original} if original else {})


def longrope(original):
    """Above the original context the long factors hold."""
    return {
        "rope.scaling.type": "longrope",
        "rope.scaling.attn_factor": 1.19,
        "rope.scaling.original_context_length": original,
    }


def llama(**fields):
    return Shape("llama", **fields)


def window(n):
    return {"attention.sliding_window": n}


def granite(keys=None, arch="granite", **fields):
    multipliers = {"embedding_scale": 3.0, "residual_scale": 0.6, "attention.scale": 0.4, "logit_scale": 0.4}
    return Shape(arch, **{"embedding_std": 0.12, "keys": multipliers | (keys or {})} | fields)


def mistral3(keys=None, **fields):
    keys = rope("yarn", 4, original=48) | {"attention.temperature_scale": 0.3} | (keys or {})
    keys |= {"rope.scaling.yarn_beta_fast": 16.0, "rope.scaling.yarn_beta_slow": 2.0}
    return Shape("mistral3", head_dim=32, keys=keys | {"rope.scaling.yarn_log_multiplier": 0.7}, **fields)


def layer_norms(arch, **fields):
    return Shape(arch, **{"layer_norm": True, "norm_biases": True, "tied": False} | fields)


# Positions of three axes, for pictures, and features of pictures that the first layers get.
AXES = {"rope.dimension_count": 32, "rope.dimension_sections": [6, 5, 5, 0], "n_deepstack_layers": 2}
QKVO = ("q", "k", "v", "output")


def gemma4(layers, **fields):
    """layers: what is beyond a Shape."""
    sizes = {"n_layers": len(layers.pattern), "n_heads": 4, "n_kv_heads": 1, "head_dim": 24}
    keys = {"attention.sliding_window": 9, "rope.freq_base_swa": 500.0, "final_logit_softcapping": 8.0}
    fields = sizes | {"embedding_std": 0.12, "rope_base": 20000.0} | fields
    vectors = {"rope_freqs.weight": divisors(fields["head_dim"])}
    return Shape("gemma4", **fields | {"gemma4": layers, "vectors": vectors, "keys": keys | fields.get("keys", {})})


SIGMOID = {"expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5}
SIGMOID |= {"leading_dense_block_count": 1}
