"""What distinguishes the families that reference_model.py computes."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """What distinguishes a family from: pre-norm, grouped-query attention, SwiGLU, RMS norms."""

    rope: str = "halves"  # pairs (i, i + R/2); "neighbours": (2i, 2i + 1)
    qk_norm: str = ""  # "head" or "full"; "late": of heads, after the rotation; "present": of heads, where the file has it
    post_norms: bool = False
    ffn_norm: str = "ffn_norm"
    activation: str = "silu"
    scaled_embedding: bool = False  # times sqrt(dim)
    window_period: int = 0  # 0: no windows; n: every n-th layer sees everything
    all_windows: bool = False  # all layers have it, where the file has one
    default_window: int = 0
    swa_rope_base: float = 0.0  # of sliding layers when the key is missing; 0: that of the others
    swa_rope_plain: bool = False  # sliding layers do not scale their angles
    attn_cap: float | None = None  # soft cap when the key is missing; None: the family has none, 0: off
    final_cap: float | None = None
    wide_layers: int = 0  # the model with so many layers scales scores by sqrt(heads / dim)
    sinks: bool = False  # where the file has them
    value_scale: bool = False
    gating: str = "softmax"  # or "sigmoid"; "selected": softmax over the selected only; "near": over those near each of
    # the selected and not selected before it; a key may say otherwise
    renormalized: bool = False  # routing weights; a key may say otherwise
    keyed_routing: bool = False  # there are keys of gating, renormalization, scale and groups
    sparse_layers: bool = False  # keys say which layers have experts
    layer_norm: bool = False
    norm_by_key: bool = False  # where the file has the epsilon of RMS norms it has these
    early_router: bool = False  # reads what enters the layer
    averages_shared: bool = False  # what shared experts and the others give is averaged
    qkv_limit: bool = False  # a key cuts q, k and v off
    turned_by_key: bool = False  # a list says which layers turn
    epsilon_key: str = ""  # when it is not the usual one of such norms
    positions: bool = False  # a table of them, and no rotation
    multiplier_defaults: bool = False  # MiniCPM's, where the keys are missing
    pre_norms: bool = True
    parallel: bool = False  # attention and feed-forward read the same; "key": one says so
    gated: bool = True
    turned_layers: str = "all"  # or "none", "sliding", "sliding and dense", or "three of four"
    turned_without_windows: bool = False  # "sliding": where no layer slides, all turn
    yarn_keys: bool = False  # of its bounds and magnitude
    temperature: bool = False
    logit_factor: bool = False  # logit_scale multiplies
    multipliers: bool = False  # Granite's, of embeddings, branches, scores and logits
    rope_switch: bool = False  # a key says whether there is any rotation
    indexer: str = ""  # of latent attention: queries see what one chooses, whose heads turn such pairs
    gemma4: bool = False  # its layers are in a file of their own
    missing_parts: bool = False  # of layers: attention, or a matrix is in its place; a feed-forward block
    gemma3n: bool = False  # so are these
    deepseek4: bool = False  # all of it is
    one_block: bool = False  # a layer is a recurrence, attention, or a feed-forward block
    beside: bool = False  # a recurrence beside attention in each layer
    llama4: bool = False  # windows are chunks, norms of q and k have no gain, experts read what is weighed
    attn_gate: str = ""  # a matrix gives the gates of heads, or of their values: through a "sigmoid" or a "softplus"
    whole_first: bool = False  # of a period of layers with a window the first sees everything, not the last
    own_turns: bool = False  # a key says how much of a head turns in layers that slide
    half_turned: bool = False  # layers that see everything turn half of what the key says
    late_limits: bool = False  # keys limit what the activation gives
    alibi_layers: int = 0  # the model with so many layers has ALiBi in place of rotation; -1: all have
    alibi_key: bool = False  # one says by how much the last head's scores fall; 0: there is none
    plain_norms: bool = False  # without gains
    embedding_norm: str = ""
    inverse_scale: bool = False  # scores are divided by the dimension, not by its root
    kimi_k3: bool = False  # what it has beyond Kimi Linear is
    output_norm: str = "output_norm"
    gated_output: bool = False  # behind each query stands the gate of its head's output
    axes: bool = False  # positions have several, and their sections need not reach all pairs
    recurrent: str = ""  # layers without attention; "grouped" or "tiled": gated delta rule; "kimi", "scan", "short"
    latent: str = ""  # attention through latents; "own scale": DeepSeek's way to scale scores, "yarn": Mistral's;
    # "still": no rotation


FAMILIES = {
    "llama": Family(rope="neighbours", renormalized=True),
    "llama4": Family(
        rope="neighbours",
        window_period=4,
        default_window=8192,
        turned_layers="sliding",
        turned_without_windows=True,
        gating="sigmoid",
        sparse_layers=True,
        llama4=True,
    ),
    "qwen2": Family(),
    "qwen2moe": Family(),
    "qwen3": Family(qk_norm="head"),
    "qwen3moe": Family(qk_norm="head", renormalized=True),
    "olmoe": Family(qk_norm="full"),
    "gemma2": Family(
        post_norms=True,
        activation="gelu",
        scaled_embedding=True,
        window_period=2,
        default_window=4096,
        attn_cap=50.0,
        final_cap=30.0,
        wide_layers=46,
    ),
    "gemma3": Family(
        qk_norm="head",
        post_norms=True,
        activation="gelu",
        scaled_embedding=True,
        window_period=6,
        swa_rope_base=10000.0,
        swa_rope_plain=True,
        final_cap=0.0,
        wide_layers=62,
    ),
    "gemma3n": Family(
        gemma3n=True, scaled_embedding=True, window_period=5, swa_rope_base=10000.0, final_cap=30.0
    ),
    "gemma4": Family(
        gemma4=True,
        activation="gelu",
        scaled_embedding=True,
        window_period=1,
        swa_rope_base=10000.0,
        swa_rope_plain=True,
        final_cap=30.0,
        renormalized=True,
    ),
    "gpt-oss": Family(
        ffn_norm="post_attention_norm", activation="clamped", window_period=2, sinks=True, gating="selected"
    ),
    "afmoe": Family(
        qk_norm="head",
        attn_gate="sigmoid",
        post_norms=True,
        scaled_embedding=True,
        window_period=4,
        turned_layers="sliding",
        gating="sigmoid",
        keyed_routing=True,
        sparse_layers=True,
    ),
    "apertus": Family(qk_norm="head", gated=False, activation="xielu"),
    "arcee": Family(rope="neighbours", gated=False, activation="relu2"),
    "baichuan": Family(rope="neighbours", alibi_layers=40),
    "chatglm": Family(rope="neighbours"),
    "codeshell": Family(layer_norm=True, gated=False, activation="gelu"),
    "exaone": Family(),
    "exaone4": Family(
        qk_norm="head",
        pre_norms=False,
        post_norms=True,
        window_period=4,
        turned_layers="sliding",
        turned_without_windows=True,
    ),
    "exaone-moe": Family(
        qk_norm="head",
        window_period=4,
        turned_layers="sliding",
        gating="sigmoid",
        keyed_routing=True,
        sparse_layers=True,
    ),
    "mimo2": Family(
        window_period=1,
        swa_rope_base=10000.0,
        sinks=True,
        value_scale=True,
        gating="sigmoid",
        renormalized=True,
        sparse_layers=True,
    ),
    "qwen2vl": Family(),
    "qwen3vl": Family(qk_norm="head"),
    "qwen3vlmoe": Family(qk_norm="head", renormalized=True),
    "falcon": Family(layer_norm=True, gated=False, activation="gelu", parallel=True),
    "gemma": Family(activation="gelu", scaled_embedding=True),
    "gpt2": Family(layer_norm=True, gated=False, activation="gelu", positions=True),
    "gptneox": Family(layer_norm=True, gated=False, activation="gelu", parallel="key"),
    "hunyuan-dense": Family(qk_norm="late"),
    "hunyuan-moe": Family(qk_norm="late", renormalized=True),
    "hy_v3": Family(qk_norm="head", gating="sigmoid", keyed_routing=True, sparse_layers=True),
    "internlm2": Family(rope="neighbours"),
    "minicpm": Family(rope="neighbours", multipliers=True, multiplier_defaults=True, renormalized=True),
    "nemotron": Family(layer_norm=True, gated=False, activation="relu2"),
    "orion": Family(layer_norm=True),
    "phi2": Family(layer_norm=True, gated=False, activation="gelu", parallel=True),
    "phimoe": Family(layer_norm=True, epsilon_key="attention.layer_norm_rms_epsilon", gating="near"),
    "qwen": Family(),
    "seed_oss": Family(ffn_norm="post_attention_norm"),
    "stablelm": Family(layer_norm=True, qk_norm="present", parallel="without ffn_norm"),
    "starcoder": Family(layer_norm=True, gated=False, activation="gelu", positions=True),
    "xverse": Family(rope="neighbours"),
    "cohere2": Family(
        rope="neighbours",
        layer_norm=True,
        parallel=True,
        window_period=4,
        default_window=4096,
        turned_layers="sliding",
        logit_factor=True,
    ),
    "command-r": Family(
        rope="neighbours", qk_norm="present", layer_norm=True, parallel=True, logit_factor=True
    ),
    "glm4": Family(rope="neighbours", post_norms=True),
    "mistral3": Family(rope="neighbours", renormalized=True, yarn_keys=True, temperature=True),
    "olmo2": Family(qk_norm="full", pre_norms=False, post_norms=True, window_period=4, swa_rope_plain=True),
    "phi3": Family(all_windows=True),
    "smollm3": Family(rope="neighbours", turned_layers="three of four"),
    "starcoder2": Family(layer_norm=True, gated=False, activation="gelu"),
    "bailingmoe": Family(rope="neighbours", keyed_routing=True),
    "bailingmoe2": Family(qk_norm="head", gating="sigmoid", keyed_routing=True, sparse_layers=True),
    "dots1": Family(qk_norm="head", gating="sigmoid", keyed_routing=True, sparse_layers=True),
    "minimax-m2": Family(qk_norm="full", gating="sigmoid", renormalized=True, keyed_routing=True),
    "deepseek": Family(rope="neighbours", keyed_routing=True, sparse_layers=True),
    "deepseek2": Family(latent="own scale", yarn_keys=True, keyed_routing=True, sparse_layers=True),
    "deepseek4": Family(deepseek4=True, rope="neighbours"),
    "deepseek32": Family(
        latent="yarn", indexer="halves", yarn_keys=True, keyed_routing=True, sparse_layers=True
    ),
    "glm-dsa": Family(
        latent="yarn", indexer="neighbours", gating="sigmoid", yarn_keys=True, keyed_routing=True, sparse_layers=True
    ),
    "mistral4": Family(latent="yarn", yarn_keys=True, keyed_routing=True, sparse_layers=True),
    "qwen3next": Family(
        qk_norm="head", gated_output=True, ffn_norm="post_attention_norm", renormalized=True, recurrent="grouped"
    ),
    "qwen35": Family(
        qk_norm="head", gated_output=True, ffn_norm="post_attention_norm", axes=True, recurrent="tiled"
    ),
    "qwen35moe": Family(
        qk_norm="head",
        gated_output=True,
        ffn_norm="post_attention_norm",
        renormalized=True,
        axes=True,
        recurrent="tiled",
    ),
    "lfm2": Family(qk_norm="head", recurrent="short", output_norm="token_embd_norm"),
    "lfm2moe": Family(
        qk_norm="head",
        gating="sigmoid",
        renormalized=True,
        keyed_routing=True,
        sparse_layers=True,
        recurrent="short",
        output_norm="token_embd_norm",
    ),
    "nemotron_h": Family(
        recurrent="scan",
        turned_layers="none",
        gated=False,
        activation="relu2",
        one_block=True,
        epsilon_key="attention.layer_norm_epsilon",
    ),
    "nemotron_h_moe": Family(
        recurrent="scan",
        turned_layers="none",
        gated=False,
        activation="relu2",
        gating="sigmoid",
        keyed_routing=True,
        one_block=True,
        epsilon_key="attention.layer_norm_epsilon",
    ),
    "falcon-h1": Family(recurrent="scan", beside=True),
    "granitehybrid": Family(
        rope="neighbours", multipliers=True, rope_switch=True, renormalized=True, recurrent="scan"
    ),
    "kimi-k3": Family(
        latent="still", gating="sigmoid", keyed_routing=True, sparse_layers=True, recurrent="kimi", kimi_k3=True
    ),
    "kimi-linear": Family(
        latent="still",
        gating="sigmoid",
        renormalized=True,
        keyed_routing=True,
        sparse_layers=True,
        recurrent="kimi",
    ),
    "laguna": Family(
        qk_norm="head",
        attn_gate="softplus",
        window_period=4,
        whole_first=True,
        own_turns=True,
        swa_rope_plain=True,
        gating="sigmoid",
        yarn_keys=True,
        keyed_routing=True,
        sparse_layers=True,
    ),
    "step35": Family(
        qk_norm="head",
        attn_gate="sigmoid",
        window_period=1,
        own_turns=True,
        half_turned=True,
        swa_rope_base=10000.0,
        swa_rope_plain=True,
        gating="sigmoid",
        keyed_routing=True,
        sparse_layers=True,
        late_limits=True,
    ),
    "cohere2moe": Family(
        rope="neighbours",
        layer_norm=True,
        norm_by_key=True,
        parallel=True,
        window_period=4,
        whole_first=True,
        turned_layers="sliding and dense",
        logit_factor=True,
        gating="sigmoid",
        keyed_routing=True,
        sparse_layers=True,
        averages_shared=True,
    ),
    "dbrx": Family(layer_norm=True, ffn_norm="attn_output_norm", renormalized=True, qkv_limit=True),
    "granite_swa": Family(
        rope="neighbours", multipliers=True, renormalized=True, window_period=1, sinks=True, turned_by_key=True
    ),
    "mellum": Family(qk_norm="head", window_period=4, swa_rope_plain=True, renormalized=True),
    "smallthinker": Family(
        activation="relu",
        early_router=True,
        window_period=4,
        whole_first=True,
        turned_layers="sliding",
        turned_without_windows=True,
        renormalized=True,
        keyed_routing=True,
    ),
    "bloom": Family(
        layer_norm=True, gated=False, activation="gelu", alibi_layers=-1, embedding_norm="token_embd_norm"
    ),
    "deci": Family(rope="neighbours", missing_parts=True),
    "jais": Family(layer_norm=True, alibi_layers=-1, alibi_key=True, inverse_scale=True),
    "jais2": Family(layer_norm=True, gated=False, activation="relu2"),
    "maincoder": Family(rope="neighbours", qk_norm="late"),
    "mpt": Family(
        layer_norm=True, gated=False, activation="gelu_erf", alibi_layers=-1, alibi_key=True, qkv_limit=True
    ),
    "olmo": Family(rope="neighbours", layer_norm=True, plain_norms=True, qkv_limit=True),
    "pangu-embedded": Family(),
    "refact": Family(alibi_layers=-1),
    "ernie4_5": Family(rope="neighbours"),
    "ernie4_5-moe": Family(rope="neighbours", renormalized=True, sparse_layers=True),
    "glm4moe": Family(
        qk_norm="present", ffn_norm="post_attention_norm", gating="sigmoid", keyed_routing=True, sparse_layers=True
    ),
    "granite": Family(rope="neighbours", multipliers=True, rope_switch=True, renormalized=True),
    "granitemoe": Family(rope="neighbours", multipliers=True, renormalized=True),
}
