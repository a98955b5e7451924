"""Tiny models with layers that have a state of fixed size."""
from dataclasses import replace

from tiny_kimi_k3 import KimiK3
from tiny_shapes import EXPERT_FF, granite
from tiny_writer import Delta, Experts, Kda, Latent, Scan, Shape, ShortConvolution


def qwen_next(arch, delta, keys=None, **fields):
    """A quarter of each head is turned; sections, where the family has them, that reach all pairs."""
    keys = {"rope.dimension_count": 8} | ({} if arch == "qwen3next" else {"rope.dimension_sections": [2, 1, 1, 0]}) | (keys or {})
    fields = {"n_layers": 4, "n_tokens": 150, "tied": False, "rope_base": 1e4} | fields
    fields |= {"head_dim": 32, "qk_norm": "head", "gated_output": True, "ffn_norm": "post_attention_norm"}
    return Shape(arch, delta=delta, keys=keys, **fields)


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

HYBRID = {
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
