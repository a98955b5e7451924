"""Tiny models for each tensor type, and for the mixtures of real files."""
from dataclasses import replace

from tiny_deepseek4 import DeepSeek4
from tiny_dense import gemma3, qwen2
from tiny_hybrid import HYBRID, kimi_k3, kimi_linear, qwen_next
from tiny_kimi_k3 import KimiK3
from tiny_latent import deepseek2, deepseek4, yarn
from tiny_moe import MOE, gpt_oss, llama4
from tiny_shapes import EXPERT_FF, LONG, llama, window
from tiny_writer import Delta, Experts, Kda, Latent, Shape


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


WIDE = {"dim": 256, "head_dim": 64, "n_heads": 4, "ff_dim": 512}


def all_experts(shape):
    """Of the experts so few that each token uses all."""
    few = min(4, shape.experts.count)
    return replace(shape, experts=replace(shape.experts, count=few, used=few))


TYPES = {f"type-{name.lower()}": float_type(name) for name in ("F16", "BF16")}
for _name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4"):
    TYPES[f"type-{_name.lower()}"] = block_32(_name)
for _name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"):
    TYPES[f"type-{_name.lower()}"] = block_256(_name)

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
        MOE["deepseek"], experts=replace(MOE["deepseek"].experts, ff_dim=64, shared_ff_dim=128), types=(("", "Q8_0"),)
    )),
    "gemma4-moe-q8_0": all_experts(replace(
        MOE["gemma4-moe-split"],
        experts=replace(MOE["gemma4-moe-split"].experts, ff_dim=64),
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
        HYBRID["nemotron_h_moe"],
        keys=HYBRID["nemotron_h_moe"].keys | {"moe_latent_size": 64},
        experts=replace(HYBRID["nemotron_h_moe"].experts, shared_ff_dim=64),
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
