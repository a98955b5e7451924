"""Tiny models with experts."""
from tiny_gemma4 import Gemma4
from tiny_shapes import (
    AXES,
    EXPERT_FF,
    LONG,
    LONGROPE_FACTORS,
    QKVO,
    SIGMOID,
    gemma4,
    granite,
    layer_norms,
    llama,
    longrope,
    mistral3,
    rope,
    window,
)
from tiny_writer import Experts, Shape


def llama4(keys=None, experts_of=8, ff_dim=40, **fields):
    keys = {"interleave_moe_layer_step": 2, "rope.dimension_count": 16} | (keys or {})
    layers = tuple(i for i in range(8) if (i + 1) % keys["interleave_moe_layer_step"] == 0)
    experts = Experts(*(experts_of, 1, ff_dim, EXPERT_FF), shared_ff_dim=ff_dim, shared_key=False, layers=layers)
    return Shape("llama4", **{"n_layers": 4, "tied": False} | fields, experts=experts, keys=keys)


def afmoe(keys=None, **fields):
    keys = {"leading_dense_block_count": 2, "expert_shared_count": 1, "expert_weights_scale": 2.0} | (keys or {})
    keys |= {"expert_weights_norm": True, "attention.sliding_window": 9}
    layers = tuple(range(keys["leading_dense_block_count"], 8))
    experts = Experts(*(8, 3, 40, EXPERT_FF), shared_ff_dim=40, shared_key=False, selection_bias=0.2, layers=layers)
    fields = {"n_layers": 6, "qk_norm": "head", "post_norms": True, "embedding_std": 0.12} | fields
    return Shape("afmoe", **fields, attn_gate="values", experts=experts, keys=keys)


def step35(keys=None, **fields):
    """Layers that slide, by the list, have other heads."""
    experts = Experts(*(8, 3, 40, EXPERT_FF), shared_ff_dim=56, selection_bias=0.2, layers=(1, 2, 3, 4))
    keys = window(9) | {"attention.sliding_window_pattern": [False, True, True, False, True]} | (keys or {})
    keys |= {"leading_dense_block_count": 1, "expert_weights_norm": True, "expert_weights_scale": 3.0}
    fields = {"n_layers": 5, "head_dim": 24, "swa_heads": (8, 4), "attn_gate": "heads", "tied": False} | fields
    return Shape("step35", **fields, qk_norm="head", experts=experts, keys=keys)


def laguna(keys=None, **fields):
    experts = Experts(*(8, 3, 40, EXPERT_FF), shared_ff_dim=56, selection_bias=0.2, layers=tuple(range(1, 7)))
    keys = {"leading_dense_block_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5} | (keys or {})
    fields = {"n_layers": 6, "head_dim": 32, "attn_gate": "heads", "rope_base": 5e5} | fields
    return Shape("laguna", **fields, qk_norm="head", experts=experts, keys=keys)


def gpt_oss(**fields):
    return Shape(
        "gpt-oss",
        head_dim=32,
        biases=("q", "k", "v", "output"),
        sinks=True,
        tied=False,
        rope_base=150000.0,
        ffn_norm="post_attention_norm",
        experts=Experts(8, used=4, ff_dim=64, ff_key=EXPERT_FF, biases=True),
        keys=window(8) | rope("yarn", 32, original=64),
        **fields,
    )


def glm4moe(groups=(1, 1), **fields):
    """Half of each head is turned; the first layer is dense; the last is no part of the model. Two shared experts."""
    experts = Experts(
        *(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False, selection_bias=0.15, layers=(1, 2, 3, 4)
    )
    keys = {"leading_dense_block_count": 1, "expert_shared_count": 2, "expert_weights_scale": 2.5}
    keys |= {"rope.dimension_count": 16, "expert_weights_norm": True, "expert_gating_func": 2}
    keys |= {"expert_group_count": groups[0], "expert_group_used_count": groups[1]}
    fields = {"biases": ("q", "k", "v"), "tied": False, "keys": keys, "experts": experts} | fields
    return Shape("glm4moe", head_dim=32, n_draft_layers=1, ffn_norm="post_attention_norm", rope_base=1e6, **fields)


def ernie45_moe(step, layers):
    return Shape(
        "ernie4_5-moe",
        head_dim=24,
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=80, selection_bias=0.1, layers=layers),
        keys={"leading_dense_block_count": 1, "interleave_moe_layer_step": step},
    )


def cohere2moe(keys=None, **fields):
    keys = window(9) | {"logit_scale": 0.4, "leading_dense_block_count": 1} | (keys or {})
    return Shape("cohere2moe", **{"n_layers": 6, "layer_norm": True} | fields, parallel=True, keys=keys)


def smallthinker(keys, n_layers=5):
    experts = Experts(8, used=3, ff_dim=64, ff_key=EXPERT_FF)
    return Shape("smallthinker", n_layers=n_layers, head_dim=24, ff_dim=64, experts=experts, keys=keys)


MOE = {
    # Layers with experts and dense ones, chunks of the published size, which so short a text does not leave; and small ones.
    "llama4": llama4(),
    "llama4-chunks": llama4(keys={"attention.sliding_window": 24}, n_layers=5, n_tokens=150),
    "llama4-whole": llama4(keys={"attention.sliding_window": 0, "interleave_moe_layer_step": 1}, n_layers=2),
    # Gates of heads, other heads in layers that slide; limits that cut off.
    "step35": step35(
        {"rope.freq_base_swa": 500.0, "swiglu_clamp_exp": [0.0, 0.0, 0.7, 0.0, 0.4]}
        | {"swiglu_clamp_shexp": [0.5, 0.0, 0.0, 1.5, 0.6]},
        vectors={"rope_freqs.weight": [1, 1.2, 1.9, 2.6, 3.7, 5.2, 1, 1, 1, 1, 1, 1]},
    ),
    "step35-plain": step35(swa_heads=(0, 0), n_layers=3),
    # Gates of heads; then no window and gates of values; and keys that llama.cpp does not read.
    "laguna": laguna(
        window(9)
        | {"rope.freq_base_swa": 500.0, "rope.dimension_count": 16, "rope.dimension_count_swa": 24}
        | rope("yarn", 4, original=32),
        n_tokens=LONG,
    ),
    "laguna-whole": laguna(rope("yarn", 4, original=32), n_layers=3, attn_gate="values", tied=False),
    "laguna-original": laguna(
        rope("yarn", 8, original=32)
        | {"rope.scaling.yarn_beta_fast": 16.0, "rope.scaling.yarn_beta_slow": 2.0, "rope.scaling.yarn_attn_factor": 0.9},
        n_layers=2,
        attn_gate="values",
    ),
    # The first of four layers sees everything and turns where it is dense; two shared experts, averaged with the others.
    "cohere2moe": cohere2moe(
        {"expert_shared_count": 2, "expert_weights_norm": False},
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=80, layers=(1, 2, 3, 4, 5)),
    ),
    "cohere2moe-rms": cohere2moe(
        {"attention.sliding_window_pattern": [False, True, True, False], "expert_weights_norm": True}
        | {"leading_dense_block_count": 2, "expert_gating_func": 1, "expert_weights_scale": 1.5},
        n_layers=4,
        layer_norm=False,
        tied=False,
        experts=Experts(*(8, 3, 48, EXPERT_FF), layers=(2, 3)),
    ),
    "dbrx": Shape(
        "dbrx",
        fused_qkv=True,
        layer_norm=True,
        ffn_norm="attn_output_norm",
        tied=False,
        experts=Experts(8, used=3, ff_dim=160, ff_key="feed_forward_length"),
        keys={"attention.clamp_kqv": 1.2},
    ),
    "granite_swa-experts": granite(
        window(9) | {"attention.sliding_window_pattern": [True, False, True, True]},
        arch="granite_swa",
        sinks=True,
        experts=Experts(8, used=3, ff_dim=160, ff_key="feed_forward_length"),
    ),
    "mellum": Shape(
        "mellum",
        n_layers=5,
        head_dim=24,
        qk_norm="head",
        tied=False,
        experts=Experts(8, used=3, ff_dim=48, ff_key=EXPERT_FF),
        keys=window(9) | rope("yarn", 4, original=32),
    ),
    # The window of published files, which so short a text does not leave; a small one; none.
    "smallthinker": smallthinker(window(4096) | {"expert_gating_func": 1}),
    "smallthinker-window": smallthinker(window(9) | {"expert_gating_func": 2}),
    "smallthinker-whole": smallthinker({"expert_gating_func": 2}, n_layers=3),
    "mixtral": llama(experts=Experts(8, used=2, ff_dim=160, ff_key="feed_forward_length"), tied=False),
    "qwen2moe": Shape(
        "qwen2moe",
        biases=("q", "k", "v"),
        rope_base=1e6,
        tied=False,
        experts=Experts(8, used=3, ff_dim=48, ff_key=EXPERT_FF, shared_ff_dim=112, shared_weight=True),
    ),
    "qwen3moe": Shape(
        "qwen3moe",
        head_dim=32,
        qk_norm="head",
        rope_base=1e6,
        tied=False,
        experts=Experts(8, used=3, ff_dim=32, ff_key=EXPERT_FF),
    ),
    "olmoe": Shape(
        "olmoe",
        n_heads=4,
        n_kv_heads=4,
        head_dim=24,
        qk_norm="full",
        tied=False,
        experts=Experts(8, used=3, ff_dim=64, ff_key="feed_forward_length"),
    ),
    "gpt-oss": gpt_oss(n_tokens=LONG),  # three times the original context of its YaRN
    "mistral3-experts": mistral3(experts=Experts(8, used=2, ff_dim=160, ff_key="feed_forward_length"), tied=False),
    "qwen3vlmoe": Shape(
        "qwen3vlmoe", head_dim=32, qk_norm="head", keys=AXES, experts=Experts(8, used=3, ff_dim=32, ff_key=EXPERT_FF)
    ),
    "exaone-moe": Shape(
        "exaone-moe",
        n_layers=5,
        head_dim=24,
        qk_norm="head",
        tied=False,
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=80, selection_bias=0.2, layers=(1, 2, 3, 4)),
        keys=SIGMOID | window(9) | {"expert_shared_count": 1},
    ),
    "mimo2": Shape(
        "mimo2",
        n_layers=5,
        head_dim=24,
        value_dim=16,
        swa_heads=(4, 1),
        sinks=True,
        tied=False,
        experts=Experts(*(8, 3, 48, EXPERT_FF), selection_bias=0.2, layers=(1, 2, 3, 4)),
        keys=window(9)
        | {"attention.sliding_window_pattern": [False, True, True, False, True], "attention.value_scale": 0.7}
        | {"rope.freq_base_swa": 500.0, "rope.dimension_count": 16, "leading_dense_block_count": 1},
    ),
    "hunyuan-moe": Shape(
        "hunyuan-moe",
        head_dim=24,
        ff_dim=48,
        qk_norm="head",
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=80),
    ),
    "hy_v3": Shape(
        "hy_v3",
        head_dim=24,
        qk_norm="head",
        tied=False,
        n_draft_layers=1,
        experts=Experts(
            *(8, 3, 48, EXPERT_FF),
            shared_ff_dim=80,
            selection_bias=0.2,
            selection_name="exp_probs_b",
            layers=(1, 2, 3, 4),
        ),
        keys=SIGMOID,
    ),
    "phimoe": layer_norms(
        "phimoe",
        biases=(*QKVO, "head"),
        experts=Experts(8, used=2, ff_dim=160, ff_key="feed_forward_length"),
        keys=longrope(original=64),
        vectors=LONGROPE_FACTORS,
        epsilon_key="attention.layer_norm_rms_epsilon",
    ),
    # Two dense layers; a layer that sees all and does not rotate.
    "afmoe": afmoe(),
    "bailingmoe": Shape(
        "bailingmoe",
        tied=False,
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False),
        keys={"expert_shared_count": 2, "expert_weights_norm": True},
    ),
    "bailingmoe2": Shape(
        "bailingmoe2",
        fused_qkv=True,
        qk_norm="head",
        tied=False,
        experts=Experts(*(16, 3, 32, EXPERT_FF), shared_ff_dim=40, selection_bias=0.2, layers=(1, 2, 3)),
        keys=SIGMOID
        | {"expert_shared_count": 1, "expert_group_count": 4, "expert_group_used_count": 2, "rope.dimension_count": 8},
    ),
    "dots1": Shape(
        "dots1",
        n_kv_heads=6,
        qk_norm="head",
        tied=False,
        experts=Experts(
            *(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False, selection_bias=0.15, layers=(1, 2, 3)
        ),
        keys=SIGMOID | {"expert_shared_count": 2},
    ),
    "minimax-m2": Shape(
        "minimax-m2",
        head_dim=24,
        ff_dim=64,
        qk_norm="full",
        tied=False,
        experts=Experts(8, used=3, ff_dim=64, ff_key=EXPERT_FF, selection_bias=0.15),
        keys={"rope.dimension_count": 12, "expert_gating_func": 2},
    ),
    "deepseek": Shape(
        "deepseek",
        n_kv_heads=6,
        tied=False,
        experts=Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False, layers=(2, 3)),
        keys={"leading_dense_block_count": 2, "expert_shared_count": 2, "expert_weights_scale": 1.7},
    ),
    "gemma4-moe": gemma4(
        Gemma4((True, True, False, True, True, False), values_of_keys=True),
        experts=Experts(8, used=3, ff_dim=48, ff_key=EXPERT_FF),
        keys={"final_logit_softcapping": 12.0},
        n_tokens=LONG,
    ),
    "gemma4-moe-split": gemma4(
        Gemma4((True, False), fused_experts=False, expert_scale=False, layer_scale=False),
        experts=Experts(8, used=3, ff_dim=48, ff_key=EXPERT_FF),
        keys={"final_logit_softcapping": 0.0},
        tied=False,
    ),
    "ernie4_5-moe": ernie45_moe(1, layers=(1, 2, 3)),
    "ernie4_5-moe-step": ernie45_moe(2, layers=(1, 3)),
    "granitemoe": granite(
        arch="granitemoe",
        head_dim=24,
        experts=Experts(8, used=3, ff_dim=160, ff_key="feed_forward_length", shared_ff_dim=80),
    ),
    "glm4moe": glm4moe(qk_norm="head"),
    "glm4moe-groups": glm4moe(
        groups=(4, 2),
        biases=(),
        experts=Experts(
            *(16, 3, 32, EXPERT_FF), shared_ff_dim=64, shared_key=False, selection_bias=0.3, layers=(1, 2, 3, 4)
        ),
    ),
}
