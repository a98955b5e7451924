"""Forward pass of GGUF language models in float64, written from the papers and file formats, to judge an engine with.

Weights are what gguf.quants.dequantize says; everything else is float64: activations are not quantized, softmax and
rotation angles are exact, keys and values are kept as they are. Nothing is shared with the engine.
What is not handled is an error: an architecture, a metadata key, a tensor that was never read.
"""
import math
from dataclasses import dataclass

import gguf
import numpy as np
from gguf.quants import dequantize

from reference_deepseek4 import DeepSeek4
from reference_gemma4 import Gemma4
from reference_kimi_k3 import KimiK3
from reference_latent import LatentAttention
from reference_recurrent import GatedDelta, KimiDelta, Scan, ShortConvolution

YARN_BETA_FAST, YARN_BETA_SLOW = 32.0, 1.0
SMALLEST_WEIGHT_SUM = 6.103515625e-5  # of routing weights before they are renormalized: the smallest normal f16
ROWS_AT_ONCE = 4096  # of a weight matrix in float64
KEEP_BELOW = 50_000_000  # weights: smaller models keep theirs in float64


class Unsupported(Exception):
    """The file has something that this reference does not compute."""


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
    epsilon_key: str = ""  # when it is not the usual one of such norms
    positions: bool = False  # a table of them, and no rotation
    multiplier_defaults: bool = False  # MiniCPM's, where the keys are missing
    pre_norms: bool = True
    parallel: bool = False  # attention and feed-forward read the same; "key": one says so
    gated: bool = True
    turned_layers: str = "all"  # or "none", "sliding", or "three of four"
    turned_without_windows: bool = False  # "sliding": where no layer slides, all turn
    yarn_keys: bool = False  # of its bounds and magnitude
    temperature: bool = False
    logit_factor: bool = False  # logit_scale multiplies
    multipliers: bool = False  # Granite's, of embeddings, branches, scores and logits
    rope_switch: bool = False  # a key says whether there is any rotation
    indexer: str = ""  # of latent attention: queries see what one chooses, whose heads turn such pairs
    gemma4: bool = False  # its layers are in a file of their own
    deepseek4: bool = False  # all of it is
    one_block: bool = False  # a layer is a recurrence, attention, or a feed-forward block
    beside: bool = False  # a recurrence beside attention in each layer
    llama4: bool = False  # windows are chunks, norms of q and k have no gain, experts read what is weighed
    attn_gate: bool = False  # a matrix gives the gates of heads
    alibi_layers: int = 0  # the model with so many layers has ALiBi in place of rotation
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
        attn_gate=True,
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
    "ernie4_5": Family(rope="neighbours"),
    "ernie4_5-moe": Family(rope="neighbours", renormalized=True, sparse_layers=True),
    "glm4moe": Family(
        qk_norm="present", ffn_norm="post_attention_norm", gating="sigmoid", keyed_routing=True, sparse_layers=True
    ),
    "granite": Family(rope="neighbours", multipliers=True, rope_switch=True, renormalized=True),
    "granitemoe": Family(rope="neighbours", multipliers=True, renormalized=True),
}
# Read elsewhere, or without influence on the result.
IGNORED_KEYS = {"vocab_size", "embedding_length", "block_count", "feed_forward_length", "expert_feed_forward_length"}
IGNORED_KEYS |= {"expert_shared_feed_forward_length", "expert_shared_count", "moe_latent_size"}
IGNORED_KEYS |= {"rope.dimension_sections", "n_deepstack_layers"}  # text has the same position on all axes
GATINGS = {1: "softmax", 2: "sigmoid", 3: "selected"}


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def soft_cap(x, cap):
    return cap * np.tanh(x / cap) if cap else x


class File:
    """Metadata below "{architecture}." and tensors, remembering what was read."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        keys = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("tokenizer.")}
        self.architecture = keys["general.architecture"]
        prefix = self.architecture + "."
        self.bare_keys = keys
        self.keys = {k.removeprefix(prefix): v for k, v in keys.items() if k.startswith(prefix)}
        self.tensors = {t.name: t for t in reader.tensors}
        self.n_weights = sum(int(t.n_elements) for t in reader.tensors)
        self.n_vocab = int(self.tensors["token_embd.weight"].shape[1])
        self.keys_read, self.tensors_read, self.kept = set(IGNORED_KEYS), set(), {}

    def get(self, key, *default):
        self.keys_read.add(key)
        if key not in self.keys and not default:
            raise Unsupported(f"the file lacks the key {self.architecture}.{key}")
        return self.keys.get(key, *default)

    def rows(self, name, which):
        """Rows of a matrix, dequantized to float64; which: a slice or indices."""
        self.tensors_read.add(name)
        tensor = self.tensors[name]
        data = np.ascontiguousarray(tensor.data[which])
        return dequantize(data, tensor.tensor_type).astype(np.float64)

    def tensor(self, name):
        """A whole tensor in float64, outermost dimension first; None when absent."""
        if name not in self.tensors:
            return None
        if name not in self.kept:
            shape = [int(n) for n in reversed(self.tensors[name].shape)]
            values = self.rows(name, slice(None)).reshape(shape)
            if self.n_weights > KEEP_BELOW and values.ndim > 1:
                return values
            self.kept[name] = values
        return self.kept[name]

    def linear(self, x, name):
        """x W^T + b."""
        weight, bias = name + ".weight", self.tensor(name + ".bias")
        if weight not in self.tensors:
            raise Unsupported(f"the file lacks the tensor {weight}")
        if self.n_weights <= KEEP_BELOW:
            y = x @ self.tensor(weight).T
        else:
            n_out = int(self.tensors[weight].shape[1])
            starts = range(0, n_out, ROWS_AT_ONCE)
            y = np.concatenate([x @ self.rows(weight, slice(i, i + ROWS_AT_ONCE)).T for i in starts], axis=1)
        return y if bias is None else y + bias

    def check_all_read(self, n_layers):
        """Layers from n_layers on predict further tokens and take no part."""
        drafts = {name for name in self.tensors if name.startswith("blk.") and int(name.split(".")[1]) >= n_layers}
        keys, tensors = set(self.keys) - self.keys_read, set(self.tensors) - self.tensors_read - drafts
        if keys or tensors:
            raise Unsupported(f"not computed: keys {sorted(keys)}, tensors {sorted(tensors)}")


def slopes(n_heads):
    """ALiBi: the powers of 2^(-8/n), and between them for heads beyond a power of two."""
    n = 2 ** int(math.log2(n_heads))
    first = [2 ** (-8 / n * (h + 1)) for h in range(n)]
    return np.array(first + [2 ** (-4 / n * (2 * h + 1)) for h in range(n_heads - n)])


class Rope:
    """Angle per position and pair, and the factor on sine and cosine."""

    def __init__(self, file, base, scaled, n_ctx, yarn_truncate, yarn_keys=False):
        self.yarn_keys = file.get if yarn_keys else lambda key, default: default
        self.n_dims = file.get("rope.dimension_count", file.get("attention.key_length"))
        self.magnitude = float(file.get("rope.scaling.attn_factor", 1.0))
        pair = np.arange(self.n_dims // 2)
        self.frequency = float(base) ** (-2.0 * pair / self.n_dims)
        kind, factor = file.get("rope.scaling.type", "linear"), float(file.get("rope.scaling.factor", 0.0)) or 1.0
        original = file.get("rope.scaling.original_context_length", file.get("context_length"))
        divisors = self.divisors(file, kind, n_ctx > original)
        if divisors is not None:
            self.frequency = self.frequency / divisors
        if not scaled or kind in ("none", "longrope") or factor == 1.0:
            return
        if kind == "linear":
            self.frequency = self.frequency / factor
        elif kind == "yarn":
            self.yarn(pair, base, factor, original, yarn_truncate)
        else:
            raise Unsupported(f"rope scaling {kind}")

    @staticmethod
    def divisors(file, kind, is_long):
        """Llama 3's factors, or for LongRoPE the set that belongs to the allocated context."""
        chosen = file.tensor("rope_freqs.weight")
        if kind == "longrope" or "rope_factors_long.weight" in file.tensors:
            pair = file.tensor("rope_factors_long.weight"), file.tensor("rope_factors_short.weight")
            chosen = pair[0 if is_long else 1] if chosen is None else chosen
        return chosen

    def yarn(self, pair, base, factor, original, truncate):
        def pair_that_turns(times):
            return self.n_dims * math.log(original / (2 * math.pi * times)) / (2 * math.log(base))

        get = self.yarn_keys
        low = pair_that_turns(get("rope.scaling.yarn_beta_fast", YARN_BETA_FAST))
        high = pair_that_turns(get("rope.scaling.yarn_beta_slow", YARN_BETA_SLOW))
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(0, low), min(self.n_dims - 1, high)
        keep = 1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)
        self.frequency = self.frequency * (keep + (1 - keep) / factor)
        back = get("rope.scaling.yarn_log_multiplier", 0.0)
        self.magnitude *= (0.1 * math.log(factor) + 1) / (0.1 * back * math.log(factor) + 1)

    def turn(self, x, positions, pairs):
        """x: [n, heads, D]; the first n_dims of a head are turned."""
        angle = positions[:, None, None] * self.frequency
        cos, sin = self.magnitude * np.cos(angle), self.magnitude * np.sin(angle)
        if pairs == "neighbours":
            a, b = np.s_[..., 0 : self.n_dims : 2], np.s_[..., 1 : self.n_dims : 2]
        else:
            a, b = np.s_[..., : self.n_dims // 2], np.s_[..., self.n_dims // 2 : self.n_dims]
        y = x.copy()
        y[a], y[b] = x[a] * cos - x[b] * sin, x[a] * sin + x[b] * cos
        return y


class Model:
    """n_ctx: the context that a runtime would allocate (only LongRoPE asks); yarn_truncate: whole-numbered YaRN bounds,
    which all families but gpt-oss have by default."""

    def __init__(self, path, n_ctx=None, yarn_truncate=None):
        self.file = file = File(path)
        if file.architecture not in FAMILIES:
            raise Unsupported(f"architecture {file.architecture}")
        self.family = family = FAMILIES[file.architecture]
        get = file.get
        self.n_layers, self.dim = get("block_count") - get("nextn_predict_layers", 0), get("embedding_length")
        self.n_heads = self.per_layer("attention.head_count")
        self.n_kv_heads = self.per_layer("attention.head_count_kv", self.n_heads)
        self.head_dim = get("attention.key_length", self.dim // self.n_heads[0])
        self.value_dim = get("attention.value_length", self.dim // self.n_heads[0])
        self.value_scale = get("attention.value_scale", 1.0) if family.value_scale else 1.0
        file.keys.setdefault("attention.key_length", self.head_dim)
        usual = "attention.layer_norm_epsilon" if family.layer_norm else "attention.layer_norm_rms_epsilon"
        self.eps = get(family.epsilon_key or usual)
        self.set_routing()
        self.set_multipliers()
        self.set_windows()
        self.parallel = {
            "key": lambda: get("use_parallel_residual"),
            "without ffn_norm": lambda: "blk.0.ffn_norm.weight" not in file.tensors,
        }.get(family.parallel, lambda: family.parallel)()
        self.attn_cap = 0.0 if family.attn_cap is None else get("attn_logit_softcapping", family.attn_cap)
        self.final_cap = 0.0 if family.final_cap is None else get("final_logit_softcapping", family.final_cap)
        wide = family.wide_layers and self.n_layers == family.wide_layers
        self.scale = self.scale or 1 / math.sqrt(self.dim // self.n_heads[0] if wide else self.head_dim)
        n_ctx = n_ctx or get("context_length")
        truncate = file.architecture != "gpt-oss" if yarn_truncate is None else yarn_truncate
        base = get("rope.freq_base", 10000.0)
        self.make_rope = lambda base, scaled: Rope(file, base, scaled, n_ctx, truncate)
        self.rope = self.swa_rope = Rope(file, base, True, n_ctx, truncate, family.yarn_keys)
        if self.window:
            base = get("rope.freq_base_swa", family.swa_rope_base or base)
            self.swa_rope = Rope(file, base, not family.swa_rope_plain, n_ctx, truncate)
        self.recurrent = None
        if family.axes:
            self.rope.frequency = self.rope.frequency * self.turned_axes(len(self.rope.frequency))
        if family.recurrent:
            kinds = {"kimi": KimiDelta, "scan": Scan, "short": ShortConvolution}
            kinds |= {kind: (lambda m, k=kind: GatedDelta(m, k == "tiled")) for kind in ("grouped", "tiled")}
            self.recurrent = kinds[family.recurrent](self)
        self.latent = None
        if family.latent:
            self.latent = LatentAttention(self, family.latent, family.indexer)
        if self.latent:
            self.rope.magnitude = self.latent.magnitude * get("rope.scaling.attn_factor", 1.0)
        self.alibi = slopes(self.n_heads[0]) if family.alibi_layers == self.n_layers else None
        self.widths = self.per_layer("feed_forward_length") if family.one_block else None
        self.gemma4 = Gemma4(self) if family.gemma4 else None
        self.kimi_k3 = KimiK3(self) if family.kimi_k3 else None
        self.deepseek4 = DeepSeek4(self) if family.deepseek4 else None
        self.reset()

    def per_layer(self, key, *default):
        value = self.file.get(key, *default)
        return value if isinstance(value, list) else [value] * self.n_layers

    def turned_axes(self, n_pairs):
        """Which pairs belong to time, height or width, in turns as far as each has some; in text these are the same."""
        sections = self.file.get("rope.dimension_sections")
        turn = np.arange(n_pairs) % sum(sections)
        return turn < 3 * np.array(sections)[turn % 3]

    def set_routing(self):
        get, family = self.file.get, self.family
        self.n_used_experts = get("expert_used_count", 0) if get("expert_count", 0) else 0
        self.gating, self.renormalized, self.expert_scale = family.gating, family.renormalized, 1.0
        self.n_groups = self.n_used_groups = self.interval = 1
        self.n_dense_layers = 0
        if family.keyed_routing:
            self.gating = GATINGS[get("expert_gating_func", 0)] if get("expert_gating_func", 0) else self.gating
            self.renormalized = get("expert_weights_norm", self.renormalized)
            self.expert_scale = get("expert_weights_scale", 0.0) or 1.0
            self.n_groups, self.n_used_groups = get("expert_group_count", 1), get("expert_group_used_count", 1)
        if family.sparse_layers:
            self.n_dense_layers, self.interval = get("leading_dense_block_count", 0), get("interleave_moe_layer_step", 1)

    def has_experts(self, layer):
        return self.n_used_experts > 0 and layer >= self.n_dense_layers and (layer + 1) % self.interval == 0

    def set_multipliers(self):
        get = self.file.get if self.family.multipliers else lambda key, default: default
        embedding, residual, logits = 0.0, 0.0, 1.0
        if self.family.multiplier_defaults:
            embedding, residual, logits = 12.0, 1.4 / math.sqrt(self.n_layers), self.dim / 256
        self.embedding_scale = get("embedding_scale", embedding) or 1.0
        self.residual_scale = get("residual_scale", residual) or 1.0
        self.scale, self.logit_scale = get("attention.scale", 0.0), get("logit_scale", logits)
        if self.family.scaled_embedding:
            self.embedding_scale = math.sqrt(self.dim)
        if self.family.logit_factor:
            self.logit_scale = 1 / self.file.get("logit_scale")
        self.temperature = self.file.get("attention.temperature_scale", 0.0) if self.family.temperature else 0.0
        self.rotates = self.file.get("rope.scaling.finetuned", True) if self.family.rope_switch else True

    def set_windows(self):
        period, all_windows = self.family.window_period, self.family.all_windows
        windowed = period or all_windows
        self.window = self.file.get("attention.sliding_window", self.family.default_window) if windowed else 0
        pattern = self.file.get("attention.sliding_window_pattern", period) if windowed else 1
        if not isinstance(pattern, list):
            pattern = [pattern == 0 or layer % pattern < pattern - 1 for layer in range(self.n_layers)]
        self.sliding = [bool(self.window and pattern[layer]) for layer in range(self.n_layers)]

    def reset(self):
        """Forgets what was seen."""
        self.kv, self.n_seen = {}, 0
        self.router_margin = math.inf  # between the last expert that was chosen and the first that was not

    def norm(self, x, name):
        gain, bias = self.file.tensor(name + ".weight"), self.file.tensor(name + ".bias")
        if self.family.layer_norm:
            x = x - x.mean(axis=-1, keepdims=True)
        y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * gain
        return y if bias is None else y + bias

    def turns(self, layer):
        if self.family.turned_layers == "none" or self.alibi is not None:
            return False
        if self.family.turned_layers == "sliding":
            return self.sliding[layer] or not any(self.sliding) and self.family.turned_without_windows
        return self.rotates and not self.family.positions and (self.family.turned_layers == "all" or (layer + 1) % 4 != 0)

    def head_norms(self, q, k, block):
        return self.norm(q, block + "attn_q_norm"), self.norm(k, block + "attn_k_norm")

    def llama4_queries_keys(self, q, k, layer, positions):
        if not self.turns(layer):
            return q * (1 + 0.1 * np.log((positions + 1) // 8192 + 1))[:, None, None], k
        if self.file.get("expert_count") == 128:
            return q, k
        return (t / np.sqrt(np.mean(t * t, -1, keepdims=True) + self.eps) for t in (q, k))

    def grow(self, q, positions):
        if not self.temperature:
            return q
        original = self.file.get("rope.scaling.original_context_length", self.file.get("context_length"))
        return q * (1 + self.temperature * np.log(positions // original + 1))[:, None, None]

    def queries_keys_values(self, x, layer):
        block, n_heads, n_kv_heads = f"blk.{layer}.", self.n_heads[layer], self.n_kv_heads[layer]
        q_dim, kv_dim = n_heads * self.head_dim, n_kv_heads * self.head_dim
        if block + "attn_qkv.weight" in self.file.tensors:
            q, k, v = np.split(self.file.linear(x, block + "attn_qkv"), [q_dim, q_dim + kv_dim], axis=1)
        else:
            q, k, v = (self.file.linear(x, f"{block}attn_{name}") for name in "qkv")
        if self.family.qk_norm == "full":
            q, k = self.head_norms(q, k, block)
        if self.family.gated_output:
            q, self.gate = np.split(q.reshape(len(x), n_heads, -1), 2, axis=2)
        q, k = q.reshape(len(x), n_heads, self.head_dim), k.reshape(len(x), n_kv_heads, self.head_dim)
        v = self.value_scale * v.reshape(len(x), n_kv_heads, self.value_dim)
        present = block + "attn_q_norm.weight" in self.file.tensors
        if self.family.qk_norm == "head" or self.family.qk_norm == "present" and present:
            q, k = self.head_norms(q, k, block)
        return q, k, v

    def attention(self, x, layer, positions):
        if self.recurrent and layer in self.recurrent.layers:
            return self.recurrent(x, layer)
        if self.latent:
            return self.latent(x, layer, positions)
        block = f"blk.{layer}."
        q, k, v = self.queries_keys_values(x, layer)
        rope = self.swa_rope if self.sliding[layer] else self.rope
        if self.turns(layer):
            q, k = (rope.turn(t, positions, self.family.rope) for t in (q, k))
        if self.family.qk_norm == "late":
            q, k = self.head_norms(q, k, block)
        if self.family.llama4:
            q, k = self.llama4_queries_keys(q, k, layer, positions)
        q = self.grow(q, positions)
        if layer in self.kv:
            k, v = (np.concatenate([old, new]) for old, new in zip(self.kv[layer], (k, v)))
        self.kv[layer] = k, v
        distance = positions[:, None] - np.arange(len(k))[None]
        hidden = distance < 0
        if self.sliding[layer]:
            n = self.window
            hidden |= positions[:, None] // n != np.arange(len(k)) // n if self.family.llama4 else distance >= n
        sinks = self.file.tensor(block + "attn_sinks.weight") if self.family.sinks else None
        out = np.empty((*q.shape[:2], self.value_dim))
        for head in range(q.shape[1]):
            group = head // (q.shape[1] // k.shape[1])
            biased = self.alibi[head] * distance if self.alibi is not None else 0
            scores = np.where(hidden, -np.inf, -biased + soft_cap(self.scale * (q[:, head] @ k[:, group].T), self.attn_cap))
            if sinks is not None:  # takes part in the denominator only
                scores = np.concatenate([scores, np.full((len(x), 1), sinks[head])], axis=1)
            out[:, head] = softmax(scores)[:, : len(k)] @ v[:, group]
        if self.family.gated_output:
            out = out * sigmoid(self.gate)
        if self.family.attn_gate:
            out = out * sigmoid(self.file.linear(x, block + "attn_gate")).reshape(out.shape)
        return self.file.linear(out.reshape(len(x), -1), block + "attn_output")

    def gated(self, gate, up):
        if self.kimi_k3:
            return self.kimi_k3.gated(gate, up)
        if self.family.activation == "clamped":
            gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
            return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
        return (gelu if self.family.activation == "gelu" else silu)(gate) * up

    def xielu(self, x, layer):
        values = [self.file.bare_keys["xielu." + name] for name in ("alpha_p", "alpha_n", "beta", "eps")]
        alpha_p, alpha_n, beta, eps = (v[layer] if isinstance(v, list) else v for v in values)
        alpha_p, alpha_n = np.logaddexp(0, alpha_p), beta + np.logaddexp(0, alpha_n)
        below = (np.expm1(np.minimum(x, eps)) - x) * alpha_n
        return np.where(x > 0, alpha_p * x * x, below) + beta * x

    def feed_forward(self, x, layer):
        prefix = f"blk.{layer}.ffn_"
        if self.has_experts(layer):
            experts = (self.kimi_k3 or self).experts
            return experts(x, layer, prefix) + self.shared_experts(x, prefix)
        if not self.family.gated:
            act = {"gelu": gelu, "relu2": lambda z: np.maximum(z, 0) ** 2}.get(self.family.activation)
            act = act or (lambda z: self.xielu(z, layer))
            return self.file.linear(act(self.file.linear(x, prefix + "up")), prefix + "down")
        if prefix + "gate.weight" in self.file.tensors:
            gate, up = self.file.linear(x, prefix + "gate"), self.file.linear(x, prefix + "up")
        else:  # one matrix
            gate, up = np.split(self.file.linear(x, prefix + "up"), 2, axis=1)
        return self.file.linear(self.gated(gate, up), prefix + "down")

    def route(self, x, layer, prefix):
        """(experts [n, used], their weights): the best first, the lower index where two are equal."""
        logits, bias = self.file.linear(x, prefix + "gate_inp"), self.file.tensor(f"blk.{layer}.exp_probs_b.bias")
        bias = self.file.tensor(f"blk.{layer}.exp_probs_b") if bias is None else bias
        if self.gating == "near":
            best = self.largest(logits, self.n_used_experts)
            return best, self.near_weights(logits, best)
        share = {"softmax": softmax, "sigmoid": sigmoid, "selected": lambda z: z}[self.gating](logits)
        if bias is None and self.n_groups == 1:
            best = self.largest(logits, self.n_used_experts)  # as of the scores, with margins that do not shrink
        else:
            score = share if bias is None else share + bias
            best = self.largest(self.in_best_groups(score), self.n_used_experts)
        weight = np.take_along_axis(share, best, -1)
        if self.gating == "selected":
            weight = softmax(weight)
        if self.renormalized:
            weight = weight / np.maximum(weight.sum(-1, keepdims=True), SMALLEST_WEIGHT_SUM)
        return best, weight * self.expert_scale

    def near_weights(self, logits, best):
        """Each of the best shares with those within 2 % of it that are not better."""
        left, weight = logits.copy(), np.empty(best.shape)
        for i in range(best.shape[1]):
            top = np.take_along_axis(logits, best[:, i : i + 1], -1)
            distance = (top - logits) / np.maximum(np.abs(logits), top)
            self.router_margin = min(self.router_margin, float(np.abs(distance - 0.02).min()))
            weight[:, i] = 1 / np.exp(np.where(distance > 0.02, -np.inf, left) - top).sum(-1)
            np.put_along_axis(left, best[:, i : i + 1], -np.inf, -1)
        return weight

    def largest(self, values, n):
        """Where the n largest of each row are."""
        order = np.argsort(-values, axis=-1, kind="stable")
        if n < values.shape[-1]:
            last, next_best = (np.take_along_axis(values, order[:, i : i + 1], -1) for i in (n - 1, n))
            self.router_margin = min(self.router_margin, float((last - next_best).min()))
        return order[:, :n]

    def in_best_groups(self, score):
        """Scores, minus infinity outside of the groups whose two best are the largest together."""
        grouped = score.reshape(len(score), self.n_groups, -1)
        if self.n_groups == 1:
            return score
        n_best = 1 if self.latent and self.gating == "softmax" else 2  # DeepSeek V2 and V3
        best = self.largest(np.sort(grouped, -1)[:, :, -n_best:].sum(-1), self.n_used_groups)
        out = np.full_like(grouped, -np.inf)
        rows = np.arange(len(score))[:, None]
        out[rows, best] = grouped[rows, best]
        return out.reshape(score.shape)

    def experts(self, x, layer, prefix, routed=None):
        """routed: what the router reads, where that is something else."""
        best, weight = self.route(x if routed is None else routed, layer, prefix)
        matrix = {name: self.file.tensor(f"{prefix}{name}_exps.weight") for name in ("gate", "up", "down")}
        if matrix["gate"] is None and self.family.gated:  # one matrix
            matrix["gate"], matrix["up"] = np.split(self.file.tensor(f"{prefix}gate_up_exps.weight"), 2, axis=1)
        scale = self.file.tensor(f"{prefix}down_exps.scale")
        if scale is not None:
            weight = weight * scale[best]
        bias = {name: self.file.tensor(f"{prefix}{name}_exps.bias") for name in matrix}

        def inner(expert, h):
            if matrix["gate"] is None:
                return np.maximum(project("up", expert, h), 0) ** 2
            return self.gated(project("gate", expert, h), project("up", expert, h))

        def project(name, expert, h):
            y = h @ matrix[name][expert].T
            return y if bias[name] is None else y + bias[name][expert]

        out = np.zeros_like(x)
        for expert in np.unique(best):
            rows, slot = np.nonzero(best == expert)
            weights = weight[rows, slot][:, None]
            if self.family.llama4:
                out[rows] += project("down", expert, inner(expert, weights * x[rows]))
            else:
                out[rows] += weights * project("down", expert, inner(expert, x[rows]))
        return out

    def shared_experts(self, x, prefix):
        """What all tokens get, in some families times a weight of its own; 0 where there is none."""
        if prefix + "down_shexp.weight" not in self.file.tensors:
            return 0
        h = self.file.linear(x, prefix + "up_shexp")
        h = self.gated(self.file.linear(x, prefix + "gate_shexp"), h) if self.family.gated else np.maximum(h, 0) ** 2
        out, gate = self.file.linear(h, prefix + "down_shexp"), self.file.tensor(prefix + "gate_inp_shexp.weight")
        return out if gate is None else out * sigmoid(x @ gate)[:, None]

    def only_block(self, x, layer, positions):
        h = self.norm(x, f"blk.{layer}.attn_norm")
        if self.widths[layer] == 0:
            return x + self.attention(h, layer, positions)
        prefix = f"blk.{layer}.ffn_"
        if prefix + "gate_inp.weight" not in self.file.tensors:
            return x + self.feed_forward(h, layer)
        latent = prefix + "latent_down.weight" in self.file.tensors
        y = self.experts(self.file.linear(h, prefix + "latent_down") if latent else h, layer, prefix, routed=h)
        return x + (self.file.linear(y, prefix + "latent_up") if latent else y) + self.shared_experts(h, prefix)

    def both_blocks(self, x, layer, positions):
        block = f"blk.{layer}."
        h = self.norm(x, block + "attn_norm")
        x = x + self.recurrent(h, layer) + self.attention(h, layer, positions)
        h = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.eps) * self.file.tensor(block + "ffn_norm")
        return x + self.feed_forward(h, layer)

    def layer(self, x, layer, positions):
        if self.family.one_block:
            return self.only_block(x, layer, positions)
        if self.family.beside:
            return self.both_blocks(x, layer, positions)
        if self.gemma4:
            return self.gemma4.layer(x, layer, positions)
        block = f"blk.{layer}."
        h = self.norm(x, block + "attn_norm") if self.family.pre_norms else x
        own = block + "attn_norm_2.weight" in self.file.tensors
        a = self.attention(self.norm(x, block + "attn_norm_2") if own else h, layer, positions)
        if self.parallel:
            if block + "ffn_norm.weight" in self.file.tensors:
                h = self.norm(x, block + "ffn_norm")
            return x + self.residual_scale * (a + self.feed_forward(h, layer))
        x = x + self.residual_scale * (self.norm(a, block + "post_attention_norm") if self.family.post_norms else a)
        f = self.feed_forward(self.norm(x, block + self.family.ffn_norm) if self.family.pre_norms else x, layer)
        return x + self.residual_scale * (self.norm(f, block + "post_ffw_norm") if self.family.post_norms else f)

    def hidden(self, ids):
        """Rows after output_norm [n, dim] of ids that follow what was seen since reset()."""
        if self.deepseek4:
            return self.deepseek4.hidden(ids)
        positions = np.arange(self.n_seen, self.n_seen + len(ids))
        self.n_seen += len(ids)
        x = self.embedding_scale * self.file.rows("token_embd.weight", np.asarray(ids))
        if self.family.positions:
            x = x + self.file.rows("position_embd.weight", positions)
        if self.gemma4:
            self.gemma4.start(x, ids)
        if self.kimi_k3:
            return self.norm(self.kimi_k3.run(x, positions), self.family.output_norm)
        for layer in range(self.n_layers):
            x = self.layer(x, layer, positions)
        return self.norm(x, self.family.output_norm)

    def logits_of(self, hidden):
        output = "output" if "output.weight" in self.file.tensors else "token_embd"
        logits = soft_cap(self.file.linear(hidden, output) / self.logit_scale, self.final_cap)
        self.file.check_all_read(self.n_layers)
        return logits

    def logits(self, ids, rows=64):
        """Yields float64 [up to `rows`, n_vocab], so that memory stays small."""
        hidden = self.hidden(ids)
        for start in range(0, len(hidden), rows):
            yield self.logits_of(hidden[start : start + rows])
