"""Tiny models whose keys and values come out of one latent row."""
from tiny_deepseek4 import DeepSeek4
from tiny_shapes import EXPERT_FF, LONG, SIGMOID, rope
from tiny_writer import Experts, Indexer, Latent, Shape


def deepseek2(latent, experts, keys, **fields):
    """Latent attention; keys: of the scaling of angles and of routing."""
    return Shape("deepseek2", **{"tied": False, "latent": latent, "experts": experts, "keys": keys} | fields)


V3_LATENT = Latent(dim=48, plain=32, rope=8, value=16, q_dim=40)
V3_EXPERTS = Experts(*(16, 3, 32, EXPERT_FF), shared_ff_dim=32, shared_key=False, selection_bias=0.2, layers=(1, 2, 3))
V3_KEYS = SIGMOID | {"expert_shared_count": 1, "expert_group_count": 4, "expert_group_used_count": 2}
V2_KEYS = {"expert_shared_count": 2, "expert_gating_func": 1, "expert_weights_scale": 1.5}


def yarn(log_multiplier=None):
    keys = rope("yarn", 4, original=32)
    return keys | ({"rope.scaling.yarn_log_multiplier": log_multiplier} if log_multiplier else {})


def deepseek4(spec, **fields):
    experts = Experts(8, 3, 32, EXPERT_FF, shared_ff_dim=32, shared_key=False, selection_bias=0.2)
    fields = {"dim": 64, "n_heads": 4, "head_dim": 48, "norm_eps": 1e-4, "tied": False, "n_tokens": 300} | fields
    return Shape("deepseek4", deepseek4=spec, experts=experts, **fields)


LATENT = {
    "deepseek2": deepseek2(V3_LATENT, V3_EXPERTS, V3_KEYS | yarn(0.1), n_tokens=LONG),
    # As V2-Lite: queries without a latent, which llama.cpp takes from files of 27 layers only.
    "deepseek2-lite": deepseek2(
        Latent(dim=32, plain=16, rope=8, value=32, joined=True),
        Experts(*(8, 2, 24, EXPERT_FF), shared_ff_dim=48, shared_key=False, layers=tuple(range(1, 27))),
        V2_KEYS | yarn(0.0707) | {"leading_dense_block_count": 1},
        n_layers=27,
        dim=64,
        n_heads=5,
        ff_dim=96,
    ),
    "deepseek2-joined": deepseek2(
        Latent(dim=48, plain=16, rope=8, value=32, q_dim=40, joined=True),
        Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False, layers=(2, 3)),
        V2_KEYS | yarn() | {"rope.scaling.attn_factor": 0.8, "leading_dense_block_count": 2},
        n_tokens=LONG,
    ),
    # Heads as large as they are in published models.
    "deepseek2-wide": deepseek2(
        Latent(dim=512, plain=128, rope=64, value=128, q_dim=64),
        Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False, layers=(1,)),
        V2_KEYS | {"leading_dense_block_count": 1, "expert_weights_norm": True},
        n_layers=2,
        n_heads=3,
        n_tokens=LONG,
    ),
    # What the originals do and llama.cpp does not: groups by their best (V2), bounds of YaRN out of the file (Kimi K2).
    "deepseek2-original": deepseek2(
        V3_LATENT,
        Experts(*(16, 3, 32, EXPERT_FF), shared_ff_dim=64, shared_key=False, layers=(1, 2, 3)),
        V2_KEYS
        | yarn(0.1)
        | {"rope.scaling.yarn_beta_fast": 1.0, "rope.scaling.yarn_beta_slow": 1.0, "leading_dense_block_count": 1}
        | {"expert_group_count": 4, "expert_group_used_count": 2},
    ),
    # Fewer positions than the context, chosen in some layers for others too; beyond a tile of what was chosen.
    "glm-dsa": Shape(
        "glm-dsa",
        n_layers=7,
        rope_base=1e6,
        tied=False,
        latent=Latent(
            *(48, 16, 8, 16, 40), indexer=Indexer(heads=8, dim=64, top_k=9, layers=(True,) * 3 + (False,) * 3 + (True,))
        ),
        experts=Experts(
            *(8, 3, 48, EXPERT_FF), shared_ff_dim=48, shared_key=False, selection_bias=0.2, layers=tuple(range(1, 7))
        ),
        keys={"leading_dense_block_count": 1, "expert_shared_count": 1}
        | {"expert_weights_norm": True, "expert_weights_scale": 2.5},
    ),
    "deepseek32": Shape(
        "deepseek32",
        tied=False,
        latent=Latent(*(64, 32, 16, 16, 40), indexer=Indexer(heads=8, dim=64, top_k=70)),
        experts=V3_EXPERTS,
        keys=V3_KEYS | yarn(0.07),
        n_tokens=LONG,
    ),
    # Windows, both kinds of compressed rows, fewer chosen than there are; experts by token.
    "deepseek4": deepseek4(DeepSeek4()),
    "deepseek4-layers": deepseek4(
        DeepSeek4(
            ratios=(4, 0, 4, 128, 4),
            n_hashed=2,
            index=(8, 64, 5),
            mixings=3,
            limit=(2.0, 1.5, 1.0, 3.0, 0.7),
            shared_limit=(1.0, 2.0, 0.8, 1.5, 1.0),
        ),
        n_layers=5,
        n_tokens=LONG,
    ),
    "mistral4": Shape(
        "mistral4",
        tied=False,
        latent=Latent(dim=32, plain=16, rope=16, value=48, q_dim=56),
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=48, shared_key=False),
        keys=yarn(0.05)
        | {"attention.temperature_scale": 0.1, "attention.temperature_length": 16, "leading_dense_block_count": 0}
        | {"expert_shared_count": 1, "expert_weights_norm": True, "expert_weights_scale": 1.0},
        n_tokens=LONG,
    ),
}
