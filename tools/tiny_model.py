#!/usr/bin/env python3
"""Tiny models with random weights, one for each thing that an engine can get wrong, as GGUF.

usage: tiny_model.py list                  their names
       tiny_model.py make DIR [NAME...]    writes DIR/NAME.gguf (all of them by default), the same bytes everywhere

F32 models leave no room for quantization noise: an engine that computes in f32 agrees with tools/reference.py to about
1e-5, so these find wrong formulas. The others have one tensor type each, or the mixtures of real files.
A file that this very program wrote is left as it is.
Run it with the interpreter that tools/venv prints.
"""
import argparse
import hashlib
import json
import os
import pathlib
import sys
from dataclasses import replace

import gguf

from tiny_deepseek4 import DeepSeek4, DeepSeek4Writer
from tiny_encoders import ENCODERS, EncoderWriter
from tiny_gemma4 import Gemma4, Gemma4Writer, divisors
from tiny_mamba import FalconH1Writer, NemotronHWriter
from tiny_kimi_k3 import KimiK3, KimiK3Writer
from tiny_writer import Delta, Experts, Indexer, Kda, Latent, ModelWriter, Scan, Shape, ShortConvolution

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "tiny"
VECTORS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "vectors"
EXPERT_FF = "expert_feed_forward_length"
LONG = 200  # tokens: three attention tiles and a part of the fourth

# Divisors of the rotation frequencies as Llama 3.1 has them: none, a transition, a constant.
LLAMA3_FACTORS = {"rope_freqs.weight": [1, 1, 1, 1.2, 2, 3.7, 8, 8]}
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
    return Shape("afmoe", **fields, attn_gate=True, experts=experts, keys=keys)


def qwen2(**fields):
    fields = {"biases": ("q", "k", "v"), "rope_base": 1e6} | fields
    return Shape("qwen2", **fields)


def qwen3(**fields):
    return Shape("qwen3", **{"head_dim": 32, "qk_norm": "head", "rope_base": 1e6} | fields)


def gemma2(keys, **fields):
    return Shape("gemma2", **{"head_dim": 32, "post_norms": True, "embedding_std": 0.12, "keys": keys} | fields)


def gemma3(keys, **fields):
    fields = {"n_layers": 8, "rope_base": 200.0, "norm_eps": 1e-3, "qk_norm": "head"} | fields
    return Shape("gemma3", **{"head_dim": 32, "post_norms": True, "embedding_std": 0.12, "keys": keys} | fields)


def window(n):
    return {"attention.sliding_window": n}


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


def granite(keys=None, arch="granite", **fields):
    multipliers = {"embedding_scale": 3.0, "residual_scale": 0.6, "attention.scale": 0.4, "logit_scale": 0.4}
    return Shape(arch, **{"embedding_std": 0.12, "keys": multipliers | (keys or {})} | fields)


def cohere(arch, keys=None, **fields):
    fields = {"layer_norm": True, "parallel": True, "keys": {"logit_scale": 0.4} | (keys or {})} | fields
    return Shape(arch, **fields)


def phi3(keys=None, **fields):
    keys = {"rope.dimension_count": 12} | (keys or {})
    return Shape("phi3", fused_qkv=True, fused_gate_up=True, keys=keys, **fields)


def phi3_longrope(original):
    keys = {k: v for k, v in longrope(original).items() if k != "rope.scaling.type"}  # its files do not say so
    return phi3(keys, vectors={name: values[:6] for name, values in LONGROPE_FACTORS.items()}, tied=False)


def mistral3(keys=None, **fields):
    keys = rope("yarn", 4, original=48) | {"attention.temperature_scale": 0.3} | (keys or {})
    keys |= {"rope.scaling.yarn_beta_fast": 16.0, "rope.scaling.yarn_beta_slow": 2.0}
    return Shape("mistral3", head_dim=32, keys=keys | {"rope.scaling.yarn_log_multiplier": 0.7}, **fields)


def olmo2(keys=None, **fields):
    return Shape("olmo2", qk_norm="full", pre_norms=False, post_norms=True, tied=False, keys=keys or {}, **fields)


def layer_norms(arch, **fields):
    return Shape(arch, **{"layer_norm": True, "norm_biases": True, "tied": False} | fields)


def plain_mlp(arch, **fields):
    biases = ("q", "k", "v", "output", "up", "down")
    return layer_norms(arch, **{"gated": False, "biases": biases, "tied": True} | fields)


def fused_plain_mlp(arch, **fields):
    return plain_mlp(arch, **{"fused_qkv": True, "biases": ("qkv", "output", "up", "down")} | fields)


def exaone4(**fields):
    return Shape("exaone4", qk_norm="head", pre_norms=False, post_norms=True, **fields)


# Positions of three axes, for pictures, and features of pictures that the first layers get.
AXES = {"rope.dimension_count": 32, "rope.dimension_sections": [6, 5, 5, 0], "n_deepstack_layers": 2}
# Where a family asks for many layers.
DEEP = {"n_layers": 64, "dim": 48, "n_heads": 3, "n_kv_heads": 1, "ff_dim": 64}
PARALLEL = {"use_parallel_residual": True}
QKVO = ("q", "k", "v", "output")


def deepseek2(latent, experts, keys, **fields):
    """Latent attention; keys: of the scaling of angles and of routing."""
    return Shape("deepseek2", **{"tied": False, "latent": latent, "experts": experts, "keys": keys} | fields)


def gemma4(layers, **fields):
    """layers: what is beyond a Shape."""
    sizes = {"n_layers": len(layers.pattern), "n_heads": 4, "n_kv_heads": 1, "head_dim": 24}
    keys = {"attention.sliding_window": 9, "rope.freq_base_swa": 500.0, "final_logit_softcapping": 8.0}
    fields = sizes | {"embedding_std": 0.12, "rope_base": 20000.0} | fields
    vectors = {"rope_freqs.weight": divisors(fields["head_dim"])}
    return Shape("gemma4", **fields | {"gemma4": layers, "vectors": vectors, "keys": keys | fields.get("keys", {})})


SIGMOID = {"expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5}
SIGMOID |= {"leading_dense_block_count": 1}
TIGHT_CAPS = {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 9.0}

V3_LATENT = Latent(dim=48, plain=32, rope=8, value=16, q_dim=40)
V3_EXPERTS = Experts(*(16, 3, 32, EXPERT_FF), shared_ff_dim=32, shared_key=False, selection_bias=0.2, layers=(1, 2, 3))
V3_KEYS = SIGMOID | {"expert_shared_count": 1, "expert_group_count": 4, "expert_group_used_count": 2}
V2_EXPERTS = Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=96, shared_key=False)
V2_KEYS = {"expert_shared_count": 2, "expert_gating_func": 1, "expert_weights_scale": 1.5}


def yarn(log_multiplier=None):
    keys = rope("yarn", 4, original=32)
    return keys | ({"rope.scaling.yarn_log_multiplier": log_multiplier} if log_multiplier else {})


def qwen_next(arch, delta, keys=None, **fields):
    """A quarter of each head is turned; sections, where the family has them, that reach all pairs."""
    keys = {"rope.dimension_count": 8} | ({} if arch == "qwen3next" else {"rope.dimension_sections": [2, 1, 1, 0]}) | (keys or {})
    fields = {"n_layers": 4, "n_tokens": 150, "tied": False, "rope_base": 1e4} | fields
    fields |= {"head_dim": 32, "qk_norm": "head", "gated_output": True, "ffn_norm": "post_attention_norm"}
    return Shape(arch, delta=delta, keys=keys, **fields)


def deepseek4(spec, **fields):
    experts = Experts(8, 3, 32, EXPERT_FF, shared_ff_dim=32, shared_key=False, selection_bias=0.2)
    fields = {"dim": 64, "n_heads": 4, "head_dim": 48, "norm_eps": 1e-4, "tied": False, "n_tokens": 300} | fields
    return Shape("deepseek4", deepseek4=spec, experts=experts, **fields)


def kimi_linear(kda, experts, keys=None, **fields):
    keys = {"expert_gating_func": 2, "expert_weights_scale": 2.4, "leading_dense_block_count": 1} | (keys or {})
    keys |= {"expert_shared_count": 1}
    fields = {"latent": Latent(dim=48, plain=32, rope=8, value=16), "tied": False, "n_heads": 5} | fields
    return Shape("kimi-linear", **{"n_tokens": 150, "norm_eps": 1e-3} | fields, kda=kda, experts=experts, keys=keys)


def kimi_k3(layers, spec=KimiK3(), keys=None, kda_dim=16, **fields):
    keys = {"leading_dense_block_count": 1, "expert_weights_norm": True, "expert_weights_scale": 0.0} | (keys or {})
    fields = {"latent": Latent(dim=48, plain=32, rope=8, value=16, q_dim=56), "experts": V3_EXPERTS_BEHIND_ONE} | fields
    kda, experts = Kda(layers, dim=kda_dim), fields.pop("experts")
    return replace(kimi_linear(kda, experts, keys, n_layers=len(layers), **fields), arch="kimi-k3", kimi_k3=spec)


def nemotron_h(arch, scan, widths, keys=None, **fields):
    keys = {"feed_forward_length": list(widths)} | (keys or {})
    fields = {"n_tokens": 150, "epsilon_key": "attention.layer_norm_epsilon", "norm_eps": 1e-3, "tied": False} | fields
    return Shape(arch, n_layers=len(widths), scan=Scan(scan, inner=192), keys=keys, **fields)


def falcon_h1(n_layers, keys=None, **fields):
    """Both kinds of state in each layer."""
    scan = Scan((0,) * n_layers, inner=192, **fields)
    return Shape("falcon-h1", n_layers=n_layers, scan=scan, n_tokens=150, norm_eps=1e-3, tied=False, rope_base=1e5, keys=keys or {})


def granite_hybrid(scan, **fields):
    return granite(arch="granitehybrid", scan=scan, **{"n_tokens": 150, "norm_eps": 1e-3} | fields)


def lfm2(layers, arch="lfm2", **fields):
    fields = {"qk_norm": "head", "output_norm": "token_embd_norm", "short": ShortConvolution(layers)} | fields
    return Shape(arch, n_layers=len(layers), **fields)


V3_EXPERTS_BEHIND_ONE = Experts(
    *(8, 3, 32, EXPERT_FF), shared_ff_dim=32, shared_key=False, selection_bias=0.2, layers=(1, 2, 3)
)
NEXT_EXPERTS = Experts(*(8, 3, 48, EXPERT_FF), shared_ff_dim=56, shared_weight=True)

FAMILIES = {
    "llama": llama(),
    # Layers with experts and dense ones, chunks of the published size, which so short a text does not leave; and small ones.
    "llama4": llama4(),
    "llama4-chunks": llama4(keys={"attention.sliding_window": 24}, n_layers=5, n_tokens=150),
    "llama4-whole": llama4(keys={"attention.sliding_window": 0, "interleave_moe_layer_step": 1}, n_layers=2),
    "llama-bias": llama(biases=("q", "k", "v", "output", "gate", "up", "down"), tied=False),
    "llama-fused-qkv": llama(fused_qkv=True, biases=("qkv",)),
    "llama3-rope": llama(rope_base=500000.0, vectors=LLAMA3_FACTORS, tied=False),
    "llama-linear": llama(keys=rope("linear", 4)),
    "llama-yarn": llama(keys=rope("yarn", 4, original=32)),
    "llama-longrope-long": llama(keys=longrope(original=64), vectors=LONGROPE_FACTORS),
    "llama-longrope-short": llama(keys=longrope(original=4096), vectors=LONGROPE_FACTORS),
    "llama-d64-mqa": llama(head_dim=64, n_heads=4, n_kv_heads=1, n_layers=2, n_tokens=LONG),
    "llama-d80-mha": llama(head_dim=80, n_heads=3, n_kv_heads=3, n_layers=2, n_tokens=LONG),
    "llama-none": llama(keys=rope("none", 4)),
    "llama-rows-1": llama(ff_dim=161, n_vocab=289, tied=False),  # one row more than groups of 16
    "llama-rows-15": llama(ff_dim=175, n_vocab=303, n_tokens=LONG),
    "qwen2": qwen2(),
    "qwen2-output-bias": qwen2(biases=("qkv", "head"), fused_qkv=True, tied=False),
    "qwen3": qwen3(),
    "qwen3-yarn": qwen3(keys=rope("yarn", 4, original=40)),
    "qwen3-d128": qwen3(head_dim=128, n_heads=4, n_layers=2, tied=False, n_tokens=LONG),
    "gemma2": gemma2(window(9) | TIGHT_CAPS),
    "gemma2-steep": gemma2(window(9) | TIGHT_CAPS, gate_gain=64.0),  # nearly every GELU input lies outside of +-10
    # Soft caps 50 and 30 by default; a window that ends inside an attention tile.
    "gemma2-d256": gemma2(window(100), head_dim=256, n_heads=2, n_kv_heads=1, n_tokens=LONG),
    "gemma3": gemma3(window(8) | rope("linear", 8)),
    "gemma3-steep": gemma3(window(8), gate_gain=64.0),
    "gemma3-no-window": gemma3({}, n_layers=3),
    "gemma3-pattern": gemma3(
        window(20)
        | {"attention.sliding_window_pattern": [True, False, False, True, True], "rope.freq_base_swa": 500.0}
        | {"final_logit_softcapping": 7.0},
        n_layers=5,
    ),
    "gemma3-d256": gemma3(window(70), head_dim=256, n_heads=2, n_kv_heads=1, n_layers=6, n_tokens=LONG),
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
    "cohere2": cohere("cohere2", window(9), n_layers=5),
    "command-r": cohere("command-r", biases=("q", "k", "v")),
    "glm4": Shape(
        "glm4",
        head_dim=24,
        post_norms=True,
        fused_gate_up=True,
        biases=("q", "k", "v"),
        tied=False,
        n_draft_layers=1,
        keys={"rope.dimension_count": 12},
    ),
    "mistral3": mistral3(n_tokens=LONG),  # positions beyond four times the original context
    "mistral3-experts": mistral3(experts=Experts(8, used=2, ff_dim=160, ff_key="feed_forward_length"), tied=False),
    "olmo2": olmo2(),
    "olmo2-window": olmo2(window(9) | rope("yarn", 4, original=32), n_layers=5),
    "phi3": phi3_longrope(original=64),
    "phi3-short": phi3_longrope(original=4096),
    "phi3-window": phi3(window(9)),
    "smollm3": Shape("smollm3", n_layers=5, n_tokens=LONG),
    "starcoder2": plain_mlp("starcoder2"),
    "command-r-plus": cohere("command-r", qk_norm="heads", **DEEP),
    "qwen2vl": Shape(
        "qwen2vl",
        biases=("q", "k", "v"),
        rope_base=1e6,
        keys={"rope.dimension_count": 16, "rope.dimension_sections": [2, 3, 3, 0]},
    ),
    "qwen3vl": Shape("qwen3vl", head_dim=32, qk_norm="head", keys=AXES),
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
    "internlm2": Shape("internlm2", tied=False),
    "xverse": Shape("xverse", n_kv_heads=6, tied=False),
    "baichuan-13b": Shape("baichuan", n_layers=40, dim=48, n_heads=3, n_kv_heads=3, ff_dim=64, tied=False, n_tokens=150),
    "baichuan": Shape("baichuan", tied=False, **DEEP | {"n_layers": 32}),  # as many as the 7B: others do not rotate
    "exaone": Shape("exaone", vectors=LLAMA3_FACTORS, tied=False),
    "exaone4": exaone4(),
    "exaone4-window": exaone4(keys=window(9), tied=False, **DEEP),
    "minicpm": Shape("minicpm", head_dim=24, keys={"embedding_scale": 1.5, "residual_scale": 0.7, "logit_scale": 2.0}),
    "minicpm-defaults": Shape("minicpm", embedding_std=0.05, keys=longrope(original=64), vectors=LONGROPE_FACTORS),
    "seed_oss": Shape("seed_oss", head_dim=24, biases=("q", "k", "v"), ffn_norm="post_attention_norm"),
    "hunyuan-dense": Shape("hunyuan-dense", head_dim=24, qk_norm="head"),
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
    "gemma": Shape("gemma", head_dim=32, n_kv_heads=1, embedding_std=0.12),
    "qwen": Shape("qwen", n_kv_heads=6, fused_qkv=True, biases=("qkv",), tied=False, ff_key_factor=2),
    # Two dense layers; a layer that sees all and does not rotate.
    "afmoe": afmoe(),
    "apertus": Shape(
        "apertus",
        head_dim=24,
        qk_norm="head",
        gated=False,
        tied=False,
        vectors={"rope_freqs.weight": [1, 1, 1, 1, 1.2, 1.9, 2.6, 3.7, 5.2, 8, 8, 8]},
        bare_keys={"xielu.alpha_n": [0.8, 0.9, 1.1, 0.7], "xielu.alpha_p": [0.5, 0.9, 0.4, 0.6]}
        | {"xielu.beta": 0.5, "xielu.eps": -1e-6},
    ),
    "arcee": Shape("arcee", gated=False, vectors=LLAMA3_FACTORS),
    "chatglm": Shape(
        "chatglm",
        fused_qkv=True,
        biases=("qkv",),
        fused_gate_up=True,
        tied=False,
        keys={"rope.dimension_count": 8},
    ),
    "stablelm": layer_norms("stablelm", biases=("q", "k", "v"), keys={"rope.dimension_count": 4}),
    "stablelm-12b": layer_norms("stablelm", qk_norm="heads", parallel=True, keys={"rope.dimension_count": 4}),
    "orion": layer_norms("orion", n_kv_heads=6),
    "gptneox": fused_plain_mlp("gptneox", tied=False, keys=PARALLEL | {"rope.dimension_count": 4}),
    "gptneox-serial": fused_plain_mlp("gptneox", tied=False, keys={"use_parallel_residual": False}),
    "phi2": plain_mlp(
        "phi2",
        parallel=True,
        tied=False,
        biases=(*QKVO, "up", "down", "head"),
        keys={"rope.dimension_count": 8},
    ),
    "falcon": plain_mlp("falcon", n_kv_heads=1, fused_qkv=True, biases=(), parallel=True),
    "falcon-40b": plain_mlp("falcon", fused_qkv=True, biases=(), parallel=True, second_norm=True, tied=False),
    "codeshell": plain_mlp("codeshell", tied=False),
    "nemotron": layer_norms("nemotron", gated=False, keys={"rope.dimension_count": 8}),
    "gpt2": fused_plain_mlp("gpt2", n_kv_heads=6, position_rows=200, keys={"context_length": 200}),
    "starcoder": fused_plain_mlp("starcoder", n_kv_heads=1, position_rows=200, keys={"context_length": 200}),
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
    # Both kinds of donors; layers of either kind behind the last one with keys of its own.
    "gemma4": gemma4(
        Gemma4((True, True, True, False, True, True, False), n_shared=3, shared_ff_dim=208, width=12)
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
    "ernie4_5": Shape("ernie4_5", head_dim=24, n_heads=4),
    "ernie4_5-moe": ernie45_moe(1, layers=(1, 2, 3)),
    "ernie4_5-moe-step": ernie45_moe(2, layers=(1, 3)),
    "granite": granite(biases=("q", "k", "v", "output", "gate", "up", "down")),
    "granite-no-rope": granite({"rope.scaling.finetuned": False}, tied=False, embedding_std=1.0),
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


def float_type(name):
    """Rows of 175 weights in the down projection: an odd number."""
    return llama(n_layers=2, ff_dim=175, n_vocab=303, tied=False, types=(("", name),))


def block_32(name):
    """Rows of 288, 576 and 2880 weights: 9, 18 and 90 blocks."""
    sizes = {"dim": 288, "head_dim": 64, "n_heads": 9, "n_kv_heads": 3, "ff_dim": 2880, "n_vocab": 289}
    return llama(n_layers=2, **sizes, tied=False, types=(("", name),))


def block_256(name):
    sizes = {"dim": 256, "head_dim": 64, "n_heads": 8, "n_kv_heads": 2, "ff_dim": 768, "n_vocab": 303}
    return llama(n_layers=2, **sizes, tied=False, types=(("", name),))


FAMILIES |= {
    "qwen3next": qwen_next("qwen3next", Delta(), experts=NEXT_EXPERTS),
    "qwen3next-joined": qwen_next("qwen3next", Delta(key_heads=3, joined=True), experts=NEXT_EXPERTS),
    "qwen35": qwen_next("qwen35", Delta()),
    # The last layer has no attention, and two have.
    "qwen35-layers": qwen_next("qwen35", Delta(dim=48, taps=3, layers=(1, 0, 1, 0, 1)), n_layers=5, tied=True),
    "qwen35-axes": qwen_next(
        "qwen35", Delta(interval=2), {"rope.dimension_count": 16, "rope.dimension_sections": [2, 3, 1, 2]}, n_layers=3
    ),
    # inner_size must be twice the model dimension in llama.cpp.
    # The last layers have no state.
    "nemotron_h": nemotron_h("nemotron_h", (1, 0, 0, 1, 0, 0, 0), (0, 80, 0, 0, 96, 160, 80)),
    "nemotron_h_moe": nemotron_h(
        "nemotron_h_moe",
        (1, 0, 0, 1, 0, 0, 0),
        (0, 32, 0, 0, 32, 0, 32),
        {"moe_latent_size": 40, "expert_shared_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5},
        experts=Experts(8, 3, 32, EXPERT_FF, shared_ff_dim=48, selection_bias=0.2),
    ),
    "nemotron_h_moe-groups": nemotron_h(
        "nemotron_h_moe",
        (1, 0, 0, 0),
        (0, 32, 0, 32),
        {"expert_shared_count": 1, "expert_weights_scale": 1.5, "expert_group_count": 4, "expert_group_used_count": 2},
        experts=Experts(8, 3, 32, EXPERT_FF, shared_ff_dim=48, selection_bias=0.2),
    ),
    "falcon-h1": falcon_h1(4, normed=False),
    "falcon-h1-norm": falcon_h1(3, heads=12, groups=3),
    "granitehybrid": granite_hybrid(Scan((1, 0, 1, 1), inner=192)),
    "granitehybrid-experts": granite_hybrid(
        Scan((1, 1, 0), inner=192, heads=12, groups=3),
        n_layers=3,
        experts=Experts(*(8, 3, 160, "feed_forward_length"), shared_ff_dim=56),
        keys={"rope.scaling.finetuned": False},
    ),
    "lfm2": lfm2((1, 1, 0, 1, 0, 1)),
    "lfm2moe": lfm2(
        (1, 1, 0, 1, 0),
        arch="lfm2moe",
        experts=Experts(8, 3, 48, EXPERT_FF, selection_bias=0.2, layers=(2, 3, 4)),
        keys={"leading_dense_block_count": 2, "expert_gating_func": 2},
    ),
    "kimi-linear": kimi_linear(Kda((1, 1, 1, 0)), V3_EXPERTS_BEHIND_ONE),
    # The last layer has no attention.
    "kimi-linear-joined": kimi_linear(Kda((1, 0, 1), dim=32, taps=3, joined=True), V3_EXPERTS_BEHIND_ONE, n_layers=3),
    # A residual begun in every second layer, and the last layer with attention.
    "kimi-k3": kimi_k3((1, 1, 1, 0)),
    # One residual, no latent of queries or experts, nothing gated or bounded on both sides.
    "kimi-k3-plain": kimi_k3(
        (1, 0, 1),
        KimiK3(block_size=0, beta=4.0, linear_beta=0.0, expert_dim=0, gated=False),
        {"expert_weights_scale": 1.7},
        latent=Latent(dim=48, plain=32, rope=8, value=16),
    ),
    # Residuals of unequal length, two dense layers, weights that are not normed.
    "kimi-k3-layers": kimi_k3(
        (1, 1, 0, 1, 1, 0, 1),
        KimiK3(block_size=3, bound=-2.5, expert_norm=False, expert_dim=40),
        {"expert_weights_norm": False, "expert_weights_scale": 1.7, "leading_dense_block_count": 2},
        experts=replace(V3_EXPERTS_BEHIND_ONE, layers=(2, 3, 4, 5, 6)),
    ),
    "qwen35moe": qwen_next("qwen35moe", Delta(), experts=NEXT_EXPERTS, n_draft_layers=1),
}

TYPES = {f"type-{name.lower()}": float_type(name) for name in ("F16", "BF16")}
for _name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4"):
    TYPES[f"type-{_name.lower()}"] = block_32(_name)
for _name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"):
    TYPES[f"type-{_name.lower()}"] = block_256(_name)

WIDE = {"dim": 256, "head_dim": 64, "n_heads": 4, "ff_dim": 512}

def all_experts(shape):
    """Of the experts so few that each token uses all."""
    few = min(4, shape.experts.count)
    return replace(shape, experts=replace(shape.experts, count=few, used=few))


MIXTURES = {
    # Tied tables: rows for look-up and the output matrix are the same bytes.
    "tied-f16": llama(n_layers=2, n_vocab=303, types=(("", "F16"),)),
    "tied-q8_0": llama(n_layers=2, dim=288, n_vocab=289, types=(("token_embd", "Q8_0"),)),
    "tied-q4_1": llama(n_layers=2, dim=288, n_vocab=303, types=(("", "Q4_1"),), ff_dim=192),
    "tied-q6_k": llama(n_layers=2, **WIDE, n_vocab=303, types=(("token_embd", "Q6_K"), ("", "Q4_K"))),
    # As quantizers mix the types: the value and down projections finer.
    "mix-qwen2": qwen2(
        n_layers=2, **WIDE, types=(("attn_v", "Q6_K"), ("ffn_down", "Q6_K"), ("embd", "Q6_K"), ("", "Q4_K"))
    ),
    "mix-gemma3": gemma3(
        window(20),
        n_layers=7,
        dim=288,
        head_dim=64,
        n_heads=4,
        n_kv_heads=1,
        ff_dim=512,
        types=(("attn_v", "Q8_0"), ("attn_output", "Q4_K"), ("ffn_down", "Q6_K"), ("embd", "Q8_0"), ("", "Q5_0")),
    ),
    "deepseek2-q8_0": deepseek2(
        Latent(dim=256, plain=32, rope=32, value=32, q_dim=64),
        None,  # no experts, of which rounding would choose others
        yarn(0.1) | {"leading_dense_block_count": 3, EXPERT_FF: 32, "expert_shared_count": 0},
        n_layers=3,
        types=(("attn_v_b", "Q4_K"), ("", "Q8_0")),
    ),
    "deepseek2-joined-q8_0": deepseek2(
        Latent(dim=64, plain=32, rope=32, value=32, q_dim=64, joined=True),
        None,  # no experts, of which rounding would choose others
        yarn(0.1) | {"leading_dense_block_count": 3, EXPERT_FF: 32, "expert_shared_count": 0},
        n_layers=3,
        types=(("", "Q8_0"),),
    ),
    # No experts, of which rounding would choose others.
    "qwen35-q8_0": qwen_next("qwen35", Delta(interval=2), n_layers=2, n_tokens=72, types=(("", "Q8_0"),)),
    "kimi-linear-q8_0": kimi_linear(
        Kda((1, 1, 0), dim=32),
        None,
        {"leading_dense_block_count": 3, "expert_count": 8, "expert_used_count": 3, EXPERT_FF: 32},
        latent=Latent(dim=64, plain=32, rope=32, value=32),
        n_heads=4,
        n_layers=3,
        n_tokens=72,
        types=(("", "Q8_0"),),
    ),
    # All experts of a layer are used, so rounding chooses nothing: each is handed what it should be, and so is a shared one.
    "qwen2moe-q8_0": all_experts(Shape(
        "qwen2moe",
        biases=("q", "k", "v"),
        rope_base=1e6,
        tied=False,
        experts=Experts(4, used=4, ff_dim=64, ff_key=EXPERT_FF, shared_ff_dim=96, shared_weight=True),
        types=(("", "Q8_0"),),
    )),
    "qwen2moe-q4_k": all_experts(Shape(
        "qwen2moe",
        n_layers=2,
        dim=256,
        n_heads=8,
        head_dim=32,
        ff_dim=256,
        biases=("q", "k", "v"),
        rope_base=1e6,
        tied=False,
        experts=Experts(3, used=3, ff_dim=256, ff_key=EXPERT_FF, shared_ff_dim=512, shared_weight=True),
        types=(("", "Q4_K"),),
    )),
    # One of two, which rounding seldom decides about.
    "llama4-q8_0": llama4({"interleave_moe_layer_step": 1}, experts_of=2, ff_dim=64, n_tokens=LONG, types=(("", "Q8_0"),)),
    "deepseek-q8_0": all_experts(replace(
        FAMILIES["deepseek"], experts=replace(FAMILIES["deepseek"].experts, ff_dim=64, shared_ff_dim=128), types=(("", "Q8_0"),)
    )),
    "gemma4-moe-q8_0": all_experts(replace(
        FAMILIES["gemma4-moe-split"],
        experts=replace(FAMILIES["gemma4-moe-split"].experts, ff_dim=64),
        types=(("", "Q8_0"),),
    )),
    "kimi-k3-q8_0": all_experts(kimi_k3(
        (1, 0),
        KimiK3(expert_dim=64),
        kda_dim=32,
        latent=Latent(dim=64, plain=32, rope=32, value=32, q_dim=64),
        n_heads=4,
        n_tokens=72,
        types=(("", "Q8_0"),),
    )),
    "nemotron_h_moe-q8_0": all_experts(replace(
        FAMILIES["nemotron_h_moe"],
        keys=FAMILIES["nemotron_h_moe"].keys | {"moe_latent_size": 64},
        experts=replace(FAMILIES["nemotron_h_moe"].experts, shared_ff_dim=64),
        n_tokens=72,
        types=(("", "Q8_0"),),
    )),
    # All experts by token and all rows seen: rounding chooses nothing. Groups of heads of two super-blocks.
    "deepseek4-q8_0": deepseek4(
        DeepSeek4(ratios=(4, 128), n_hashed=2, q_dim=64, out_dim=32, index=(8, 64, 512)),
        n_layers=2,
        dim=256,
        head_dim=256,
        n_tokens=LONG,
        types=(("", "Q8_0"),),
    ),
    "gpt-oss-mxfp4": gpt_oss(types=(("_exps.weight", "MXFP4"),)),
}

MODELS = FAMILIES | TYPES | MIXTURES  # those that continue texts; ENCODERS give vectors of them


def source_version():
    """Changes when a file written now could differ from one written before."""
    digest = hashlib.sha256(getattr(gguf, "__version__", "").encode())
    for name in ("tiny_deepseek4.py", "tiny_encoders.py", "tiny_gemma4.py", "tiny_kimi_k3.py", "tiny_mamba.py", "tiny_model.py", "tiny_writer.py"):
        digest.update(pathlib.Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()


def make(name, folder):
    """Writes folder/name.gguf unless it is up to date; others may read or write it at the same time."""
    path, stamp = folder / f"{name}.gguf", folder / f".{name}.version"
    if path.exists() and stamp.exists() and stamp.read_text() == source_version():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.{os.getpid()}.partial"
    try:
        shape = (MODELS | ENCODERS)[name]
        writers = (Gemma4Writer, shape.gemma4), (DeepSeek4Writer, shape.deepseek4), (KimiK3Writer, shape.kimi_k3)
        of_arch = {"nemotron_h": NemotronHWriter, "nemotron_h_moe": NemotronHWriter, "falcon-h1": FalconH1Writer}
        writer = next((writer for writer, spec in writers if spec), of_arch.get(shape.arch, ModelWriter))
        writer = EncoderWriter if name in ENCODERS else writer
        writer(name, shape, partial).write()
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    stamp.write_text(source_version())
    return path


def differs_from_golden(name, path):
    """Whether the recorded scores belong to another file: the program changed, or its numbers depend on the machine."""
    golden = (VECTORS if name in ENCODERS else GOLDEN) / f"{name}.json"
    if not golden.exists():
        return False
    return json.loads(golden.read_text("utf-8"))["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print the names")
    making = verbs.add_parser("make", help="write models")
    making.add_argument("folder", metavar="DIR", type=pathlib.Path)
    making.add_argument("names", metavar="NAME", nargs="*")
    args = parser.parse_args()
    if args.verb == "list":
        print("\n".join(MODELS | ENCODERS))
        return 0
    everything = MODELS | ENCODERS
    unknown = [name for name in args.names if name not in everything]
    if unknown:
        print(f"tiny_model.py: no model {', '.join(unknown)}; `tiny_model.py list` prints the names", file=sys.stderr)
        return 2
    stale = [name for name in args.names or everything if differs_from_golden(name, make(name, args.folder))]
    if stale:
        print(f"tiny_model.py: not the models that {GOLDEN} describes: {', '.join(stale)}; see golden.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
