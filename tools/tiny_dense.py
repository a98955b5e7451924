"""Tiny models whose layers all have attention and a dense feed-forward block."""
from tiny_deci import Deci
from tiny_gemma3n import Gemma3n
from tiny_gemma4 import Gemma4
from tiny_shapes import (
    AXES,
    LONG,
    LONGROPE_FACTORS,
    QKVO,
    gemma4,
    granite,
    layer_norms,
    llama,
    longrope,
    mistral3,
    rope,
    window,
)
from tiny_writer import Shape

# Divisors of the rotation frequencies as Llama 3.1 has them: none, a transition, a constant.
LLAMA3_FACTORS = {"rope_freqs.weight": [1, 1, 1, 1.2, 2, 3.7, 8, 8]}


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


def gemma3n(spec, keys=None, **fields):
    keys = window(9) | {"rope.freq_base_swa": 500.0} | (keys or {})
    sizes = {"n_layers": len(spec.sparsity), "dim": 64, "n_heads": 4, "n_kv_heads": 1, "head_dim": 24}
    return Shape("gemma3n", gemma3n=spec, **sizes | {"embedding_std": 0.12, "rope_base": 2e4} | fields, keys=keys)


def cohere(arch, keys=None, **fields):
    fields = {"layer_norm": True, "parallel": True, "keys": {"logit_scale": 0.4} | (keys or {})} | fields
    return Shape(arch, **fields)


def phi3(keys=None, **fields):
    keys = {"rope.dimension_count": 12} | (keys or {})
    return Shape("phi3", fused_qkv=True, fused_gate_up=True, keys=keys, **fields)


def phi3_longrope(original):
    keys = {k: v for k, v in longrope(original).items() if k != "rope.scaling.type"}  # its files do not say so
    return phi3(keys, vectors={name: values[:6] for name, values in LONGROPE_FACTORS.items()}, tied=False)


def olmo2(keys=None, **fields):
    return Shape("olmo2", qk_norm="full", pre_norms=False, post_norms=True, tied=False, keys=keys or {}, **fields)


def plain_mlp(arch, **fields):
    biases = ("q", "k", "v", "output", "up", "down")
    return layer_norms(arch, **{"gated": False, "biases": biases, "tied": True} | fields)


def fused_plain_mlp(arch, **fields):
    return plain_mlp(arch, **{"fused_qkv": True, "biases": ("qkv", "output", "up", "down")} | fields)


def exaone4(**fields):
    return Shape("exaone4", qk_norm="head", pre_norms=False, post_norms=True, **fields)


# Where a family asks for many layers.
DEEP = {"n_layers": 64, "dim": 48, "n_heads": 3, "n_kv_heads": 1, "ff_dim": 64}
PARALLEL = {"use_parallel_residual": True}
TIGHT_CAPS = {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 9.0}

NEVER = float("-inf")

DENSE = {
    "llama": llama(),
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
    "gemma": Shape("gemma", head_dim=32, n_kv_heads=1, embedding_std=0.12),
    "qwen": Shape("qwen", n_kv_heads=6, fused_qkv=True, biases=("qkv",), tied=False, ff_key_factor=2),
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
    # Both kinds of donors; layers of either kind behind the last one with keys of its own.
    # Three streams, both kinds of donors; and as llama.cpp has the published sizes built in.
    "gemma3n": gemma3n(
        Gemma3n((0.5, NEVER, 1.2, NEVER, NEVER, 0.8), n_shared=3, streams=3),
        {"attention.sliding_window_pattern": [True, True, False, True, False, True], "final_logit_softcapping": 9.0},
        tied=False,
    ),
    "gemma3n-published": gemma3n(Gemma3n((1.6448533535003662,) * 10 + (NEVER,) * 15, n_shared=5, width=256), n_tokens=150, ff_dim=256),
    "gemma4": gemma4(
        Gemma4((True, True, True, False, True, True, False), n_shared=3, shared_ff_dim=208, width=12)
    ),
    "ernie4_5": Shape("ernie4_5", head_dim=24, n_heads=4),
    "granite": granite(biases=("q", "k", "v", "output", "gate", "up", "down")),
    # Norms of embeddings; ALiBi by a key of its own, or a table of positions in its place.
    "bloom": fused_plain_mlp("bloom", n_kv_heads=6, embedding_norm=True, n_tokens=150),
    "mpt": Shape(
        "mpt",
        n_kv_heads=6,
        fused_qkv=True,
        layer_norm=True,
        gated=False,
        n_tokens=150,
        keys={"attention.max_alibi_bias": 6.0, "attention.clamp_kqv": 1.2},
    ),
    "mpt-positions": fused_plain_mlp("mpt", n_kv_heads=6, position_rows=200, keys={"context_length": 200}),
    "jais": layer_norms(
        "jais",
        n_kv_heads=6,
        fused_qkv=True,
        biases=("qkv", "output", "gate", "up", "down"),
        keys={"attention.max_alibi_bias": 8.0},
    ),
    "jais2": plain_mlp("jais2", tied=False),
    # Attention, a matrix in its place, neither; the last two layers have no keys. Then attention alone.
    "deci": Shape(
        "deci",
        n_layers=6,
        deci=Deci(((6, 2, 160), (6, 0, 96), (0, 0, 160), (6, 6, 96), (0, 0, 0), (6, 0, 160))),
        vectors=LLAMA3_FACTORS,
        tied=False,
    ),
    "deci-attention": Shape("deci", n_layers=3, deci=Deci(((6, 2, 160), (6, 3, 0), (6, 2, 96)))),
    "maincoder": Shape("maincoder", head_dim=24, qk_norm="head"),
    "olmo": Shape("olmo", layer_norm=True, pre_norms=False, output_norm="", keys={"attention.clamp_kqv": 1.0}),
    "olmo-free": Shape("olmo", layer_norm=True, pre_norms=False, output_norm="", tied=False),
    "pangu-embedded": Shape("pangu-embedded", biases=QKVO, tied=False),
    "refact": Shape("refact", n_kv_heads=1, tied=False),
    "granite_swa": granite(
        window(9) | {"attention.sliding_window_pattern": [True, True, True, False, True], "attention.rope_pattern": [1, 1, 0, 0, 1]},
        arch="granite_swa",
        n_layers=5,
        sinks=True,
        biases=("output", "gate", "up", "down"),
        tied=False,
        embedding_std=1.0,
    ),
    "granite-no-rope": granite({"rope.scaling.finetuned": False}, tied=False, embedding_std=1.0),
}
