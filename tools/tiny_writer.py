"""Writes a tiny model with random weights as GGUF: shapes, vocabulary. tiny_model.py has the list of models."""
import math
from dataclasses import dataclass, field

import gguf
import numpy as np

from tiny_random import Random, Type, random_weights

N_BYTE_TOKENS = 256
MERGES = (
    "t h,th e,a n,i n,e r,o n,r e,Ġ t,Ġ a,e n,o r,e s,i s,t i,a t,an d,Ġ s,in g,Ġ w,o u,Ġt h,Ġth e,l l,Ġ o,Ġ b,e d,i t,"
    "Ġ f,Ġ c,Ġ m,a r"
).split(",")
SMALLEST_VOCAB = N_BYTE_TOKENS + len(MERGES) + 1


@dataclass(frozen=True)
class Experts:
    count: int
    used: int
    ff_dim: int
    ff_key: str  # the metadata key that holds ff_dim
    biases: bool = False
    shared_ff_dim: int = 0  # of all shared experts together
    shared_weight: bool = False  # the shared expert has a weight of its own
    shared_key: bool = True  # a metadata key holds shared_ff_dim
    selection_bias: float = 0.0  # its spread, above 0
    selection_name: str = "exp_probs_b.bias"
    layers: tuple[int, ...] | None = None  # that have experts, when not all do


@dataclass(frozen=True)
class Latent:
    """Of latent attention. joined: keys and values come out of one matrix, and the keys are those of old files."""

    dim: int
    plain: int  # of a head's key what is not rotated
    rope: int
    value: int
    q_dim: int = 0  # 0: queries have none
    joined: bool = False
    indexer: "Indexer | None" = None


@dataclass(frozen=True)
class Indexer:
    """Of latent attention."""

    heads: int
    dim: int
    top_k: int
    layers: tuple[bool, ...] = ()  # that have one: a key says so; (): all, and no key


@dataclass(frozen=True)
class Delta:
    """Of layers with the gated delta rule. joined: all of them out of one matrix, key head by key head."""

    key_heads: int = 2
    heads: int = 6
    dim: int = 16
    taps: int = 4
    interval: int = 4  # of each so many layers the last has attention
    layers: tuple[int, ...] = ()  # 1: without attention; in place of the interval
    joined: bool = False


@dataclass(frozen=True)
class Kda:
    """Of layers with Kimi Delta Attention, one head for each of the others' attention heads."""

    layers: tuple[int, ...]  # 1: without attention
    dim: int = 16
    taps: int = 4
    joined: bool = False  # q, k and v out of one matrix


@dataclass(frozen=True)
class Scan:
    """Of layers with Mamba-2."""

    layers: tuple[int, ...]  # 1: without attention
    rows: int = 24
    groups: int = 2
    heads: int = 6
    inner: int = 96
    taps: int = 4
    normed: bool = True


@dataclass(frozen=True)
class ShortConvolution:
    layers: tuple[int, ...]  # 1: without attention
    taps: int = 3


@dataclass(frozen=True)
class Shape:
    """A model. Sizes are unequal on purpose: a swapped dimension does not go unnoticed."""

    arch: str
    n_layers: int = 4
    dim: int = 96
    n_heads: int = 6
    n_kv_heads: int = 2
    head_dim: int = 16
    ff_dim: int = 160
    n_vocab: int = SMALLEST_VOCAB
    norm_eps: float = 2e-3
    rope_base: float = 10000.0
    tied: bool = True
    biases: tuple[str, ...] = ()  # of: q k v qkv output, gate up down, head
    fused_qkv: bool = False
    swa_heads: tuple[int, int] = (0, 0)  # heads and key-value heads of layers that slide by the key's list; 0: as others
    value_dim: int = 0  # 0: as head_dim
    qk_norm: str = ""  # "head": over each head; "heads": with gains of their own; "full": over the whole vector
    post_norms: bool = False
    pre_norms: bool = True
    layer_norm: bool = False  # decides which key holds norm_eps, unless that is given
    epsilon_key: str = ""
    norm_biases: bool = False
    parallel: bool = False  # the feed-forward has no norm of its own
    gated: bool = True
    fused_gate_up: bool = False
    ff_key_factor: int = 1  # feed_forward_length over ff_dim
    second_norm: bool = False  # Falcon 40B's
    position_rows: int = 0
    embedding_norm: bool = False
    ffn_norm: str = "ffn_norm"
    n_draft_layers: int = 0  # behind the n_layers that run
    sinks: bool = False
    embedding_std: float = 0.0  # 0: 0.25 when tied, else 1
    gate_gain: float = 1.0
    experts: Experts | None = None
    latent: Latent | None = None
    deci: "tiny_deci.Deci | None" = None
    gemma3n: "tiny_gemma3n.Gemma3n | None" = None
    gemma4: "tiny_gemma4.Gemma4 | None" = None
    kimi_k3: "tiny_kimi_k3.KimiK3 | None" = None
    deepseek4: "tiny_deepseek4.DeepSeek4 | None" = None
    delta: Delta | None = None
    kda: Kda | None = None
    scan: Scan | None = None
    short: ShortConvolution | None = None
    output_norm: str = "output_norm"
    gated_output: bool = False  # of attention
    attn_gate: str = ""  # the same by a matrix of its own: of "values" or of "heads"
    keys: dict = field(default_factory=dict)  # further metadata below "{arch}."
    bare_keys: dict = field(default_factory=dict)  # without it
    vectors: dict = field(default_factory=dict)  # further global F32 tensors
    types: tuple[tuple[str, str], ...] = ()  # (part of a tensor's name, type): the first that matches; else F32
    n_tokens: int = 72  # of its golden: beyond every small window, in two attention tiles

    def type_of(self, name):
        return next((Type[t] for part, t in self.types if part in name), Type.F32)


def write_model(name, shape, path):
    ModelWriter(name, shape, path).write()


class ModelWriter:
    def __init__(self, name, shape, path):
        self.shape, self.random = shape, Random(name)
        self.file = gguf.GGUFWriter(path, shape.arch)
        # llama.cpp takes a model of the name phi3 for one with a vocabulary of that family.
        self.file.add_name("tiny " + name.replace("phi3", "phi 3"))

    def write(self):
        self.keys()
        self.vocabulary()
        self.tensors()
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()

    def vocabulary(self):
        add_vocabulary(self.file, self.shape.n_vocab)

    def tensors(self):
        self.global_tensors()
        s = self.shape
        for layer in range(s.n_layers + s.n_draft_layers):
            if s.delta and layer < s.n_layers and self.is_recurrent(layer):
                self.gated_delta(f"blk.{layer}.", s.delta)
            elif s.kda and s.kda.layers[layer]:
                self.kimi_delta(f"blk.{layer}.", s.kda)
            elif s.scan and s.scan.layers[layer]:
                self.mamba(f"blk.{layer}.", s.scan)
            elif s.short and s.short.layers[layer]:
                self.short_convolution(f"blk.{layer}.", s.short)
            else:
                self.attention(f"blk.{layer}.", *self.heads(layer))
            sparse = s.experts and (s.experts.layers is None or layer in s.experts.layers)
            self.feed_forward(f"blk.{layer}.", s.experts if sparse else None)
            if layer >= s.n_layers:
                self.draft(f"blk.{layer}.nextn.")

    def keys(self):
        s = self.shape
        keys = {
            "context_length": 4096,
            "embedding_length": s.dim,
            "block_count": s.n_layers + s.n_draft_layers,
            "feed_forward_length": s.ff_dim * s.ff_key_factor,
            "attention.head_count": self.per_layer(0),
            "attention.head_count_kv": self.per_layer(1),
            "attention.key_length": s.head_dim,
            "attention.value_length": s.value_dim or s.head_dim,
            s.epsilon_key or f"attention.layer_norm_{'' if s.layer_norm else 'rms_'}epsilon": s.norm_eps,
            "rope.freq_base": s.rope_base,
            "vocab_size": s.n_vocab,
        }
        if s.arch == "llama":
            keys["rope.dimension_count"] = s.head_dim
        if s.latent:
            keys |= self.latent_keys(s.latent)
        if s.kda:
            keys |= {"ssm.conv_kernel": s.kda.taps, "kda.head_dim": s.kda.dim}
            keys["attention.head_count_kv"] = [1 - without for without in s.kda.layers]
        if s.scan:
            keys |= {"ssm.conv_kernel": s.scan.taps, "ssm.state_size": s.scan.rows, "ssm.group_count": s.scan.groups}
            keys |= {"ssm.time_step_rank": s.scan.heads, "ssm.inner_size": s.scan.inner}
        if s.short:
            keys["shortconv.l_cache"] = s.short.taps
        if s.scan or s.short:
            without = (s.scan or s.short).layers
            keys["attention.head_count_kv"] = [0 if none else s.n_kv_heads for none in without]
        if s.delta:
            keys |= self.delta_keys(s.delta)
        if s.n_draft_layers:
            keys["nextn_predict_layers"] = s.n_draft_layers
        if s.experts:
            keys |= {"expert_count": s.experts.count, "expert_used_count": s.experts.used}
            keys[s.experts.ff_key] = s.experts.ff_dim
            if s.experts.shared_ff_dim and s.experts.shared_key:
                keys["expert_shared_feed_forward_length"] = s.experts.shared_ff_dim
        for key, value in (keys | s.keys).items():
            self.key(f"{s.arch}.{key}", value)
        for key, value in s.bare_keys.items():
            self.key(key, value)

    def heads(self, layer):
        """(heads, key-value heads)"""
        s = self.shape
        slides = s.swa_heads[0] and s.keys["attention.sliding_window_pattern"][layer]
        return s.swa_heads if slides else (s.n_heads, s.n_kv_heads)

    def per_layer(self, which):
        s = self.shape
        all_layers = [self.heads(layer)[which] for layer in range(s.n_layers + s.n_draft_layers)]
        return all_layers if s.swa_heads[0] else all_layers[0]

    def is_recurrent(self, layer):
        d = self.shape.delta
        return bool(d.layers[layer]) if d.layers else (layer + 1) % d.interval != 0

    def delta_keys(self, d):
        keys = {"ssm.conv_kernel": d.taps, "ssm.state_size": d.dim, "ssm.group_count": d.key_heads}
        keys |= {"ssm.time_step_rank": d.heads, "ssm.inner_size": d.heads * d.dim}
        if d.layers:
            return keys | {"attention.recurrent_layers": list(d.layers)}
        return keys | ({"full_attention_interval": d.interval} if d.interval != 4 else {})

    def mamba(self, block, scan):
        dim, channels = self.shape.dim, scan.inner + 2 * scan.groups * scan.rows
        self.block_norm(block + "attn_norm")
        self.linear(block + "ssm_in", scan.inner + channels + scan.heads, dim)
        self.random_f32(block + "ssm_conv1d.weight", channels, scan.taps, std=0.6)
        self.vector(block + "ssm_conv1d.bias", channels, std=0.3)
        self.vector(block + "ssm_dt.bias", scan.heads, std=1.0, mean=-1.0)
        self.file.add_tensor(block + "ssm_a", self.random.uniform((scan.heads, 1), 0.5, -1.5))
        self.file.add_tensor(block + "ssm_d", self.random.uniform((scan.heads, 1), 0.5, 0.5))
        if scan.normed:
            gains = self.random.uniform((scan.groups, scan.inner // scan.groups), 0.2, 1.0)
            self.file.add_tensor(block + "ssm_norm.weight", gains)
        self.linear(block + "ssm_out", dim, scan.inner)

    def short_convolution(self, block, short):
        dim = self.shape.dim
        self.block_norm(block + "attn_norm")
        self.linear(block + "shortconv.in_proj", 3 * dim, dim)
        self.random_f32(block + "shortconv.conv.weight", dim, short.taps, std=0.7)
        self.linear(block + "shortconv.out_proj", dim, dim)

    def kimi_delta(self, block, kda):
        s, inner = self.shape, self.shape.n_heads * kda.dim
        self.block_norm(block + "attn_norm")
        if kda.joined:
            self.linear(block + "attn_qkv", 3 * inner, s.dim)
        for name in "qkv":
            if not kda.joined:
                self.linear(block + "attn_" + name, inner, s.dim)
            self.random_f32(f"{block}ssm_conv1d_{name}.weight", inner, 1, kda.taps, std=0.6)
        self.delta_gates(block, kda)
        self.vector(block + "ssm_dt.bias", inner, std=0.8)
        self.linear(block + "ssm_beta", s.n_heads, s.dim)
        self.norm(block + "ssm_norm", kda.dim)
        self.linear(block + "attn_output", s.dim, inner)

    def delta_gates(self, block, kda):
        for name in ("f", "g"):
            self.linear(f"{block}ssm_{name}_a", kda.dim, self.shape.dim)
            self.linear(f"{block}ssm_{name}_b", self.shape.n_heads * kda.dim, kda.dim)
        self.file.add_tensor(block + "ssm_a", self.random.uniform((self.shape.n_heads, 1), 0.25, -0.66))

    def gated_delta(self, block, d):
        s, inner = self.shape, d.heads * d.dim
        channels = 2 * d.key_heads * d.dim + inner
        self.block_norm(block + "attn_norm")
        if d.joined:
            self.linear(block + "ssm_in", channels + inner, s.dim)
        else:
            self.linear(block + "attn_qkv", channels, s.dim)
            self.linear(block + "attn_gate", inner, s.dim)
        if s.arch == "qwen3next":
            self.linear(block + "ssm_ba", 2 * d.heads, s.dim)
        else:
            self.linear(block + "ssm_beta", d.heads, s.dim)
            self.linear(block + "ssm_alpha", d.heads, s.dim)
        self.random_f32(block + "ssm_conv1d.weight", channels, d.taps, std=0.6)
        self.vector(block + "ssm_dt.bias", d.heads, std=0.7)
        self.vector(block + "ssm_a", d.heads, std=0.33, mean=-0.62)
        self.norm(block + "ssm_norm", d.dim)
        self.linear(block + "ssm_out", s.dim, inner)

    def latent_keys(self, latent):
        head = latent.plain + latent.rope
        keys = {"attention.kv_lora_rank": latent.dim, "rope.dimension_count": latent.rope}
        if latent.q_dim:
            keys["attention.q_lora_rank"] = latent.q_dim
        if latent.joined:
            kv_heads = self.shape.n_heads
            sizes = {"attention.key_length": head, "attention.value_length": latent.value}
        else:
            kv_heads = 1
            sizes = {"attention.key_length": latent.dim + latent.rope, "attention.value_length": latent.dim}
            sizes |= {"attention.key_length_mla": head, "attention.value_length_mla": latent.value}
        if latent.indexer:
            for key, value in (("head_count", latent.indexer.heads), ("key_length", latent.indexer.dim)):
                keys["attention.indexer." + key] = value
            keys["attention.indexer.top_k"] = latent.indexer.top_k
            if latent.indexer.layers:
                keys["attention.indexer.types"] = list(latent.indexer.layers)
        return keys | sizes | {"attention.head_count_kv": kv_heads}

    def key(self, key, value):
        add = {bool: self.file.add_bool, int: self.file.add_uint32, float: self.file.add_float32}
        add |= {str: self.file.add_string, list: self.file.add_array}
        add[type(value)](key, value)

    def vector(self, name, n, std, mean=0.0):
        self.file.add_tensor(name, self.random.uniform((n,), std, mean))

    def norm(self, name, n):
        self.vector(name + ".weight", n, std=0.2, mean=1.0)

    def block_norm(self, name):
        self.norm(name, self.shape.dim)
        if self.shape.norm_biases:
            self.vector(name + ".bias", self.shape.dim, std=0.3)

    def random_f32(self, name, *shape, std):
        self.file.add_tensor(name, self.random.uniform(shape, std))

    def weight(self, name, *shape):
        """A matrix, or a stack of them, in the type that the shape names; outermost dimension first."""
        t = self.shape.type_of(name)
        data = random_weights(self.random, t, math.prod(shape[:-1]), shape[-1])
        plain = t in (Type.F32, Type.F16)
        self.file.add_tensor(name, data.reshape(*shape[:-1], -1), raw_dtype=None if plain else t)

    def linear(self, name, n_out, n_in, bias=None):
        self.weight(name + ".weight", n_out, n_in)
        if bias in self.shape.biases:
            self.vector(name + ".bias", n_out, std=0.3)

    def table(self, name, std):
        """Of the size of the vocabulary."""
        s = self.shape
        if s.type_of(name) == Type.F32:
            self.random_f32(name, s.n_vocab, s.dim, std=std)
        else:
            self.weight(name, s.n_vocab, s.dim)

    def global_tensors(self):
        s = self.shape
        self.table("token_embd.weight", s.embedding_std or (0.25 if s.tied else 1.0))
        if s.position_rows:
            self.random_f32("position_embd.weight", s.position_rows, s.dim, std=0.5)
        if s.embedding_norm:
            self.block_norm("token_embd_norm")
        if s.output_norm:
            self.block_norm(s.output_norm)
        if not s.tied:
            self.table("output.weight", 2 / math.sqrt(s.dim))
        if "head" in s.biases:
            self.vector("output.bias", s.n_vocab, std=0.5)
        for name, values in s.vectors.items():
            self.file.add_tensor(name, np.array(values, np.float32))

    def latent_attention(self, block, latent):
        s, heads = self.shape, self.shape.n_heads
        q_in, head = latent.q_dim or s.dim, latent.plain + latent.rope
        self.block_norm(block + "attn_norm")
        if latent.q_dim:
            self.linear(block + "attn_q_a", latent.q_dim, s.dim)
            self.norm(block + "attn_q_a_norm", latent.q_dim)
        self.linear(block + ("attn_q_b" if latent.q_dim else "attn_q"), heads * head, q_in)
        self.linear(block + "attn_kv_a_mqa", latent.dim + latent.rope, s.dim)
        self.norm(block + "attn_kv_a_norm", latent.dim)
        if latent.joined:
            self.linear(block + "attn_kv_b", heads * (latent.plain + latent.value), latent.dim)
        else:
            self.weight(block + "attn_k_b.weight", heads, latent.dim, latent.plain)
            self.weight(block + "attn_v_b.weight", heads, latent.value, latent.dim)
        self.linear(block + "attn_output", s.dim, heads * latent.value)
        if latent.indexer:
            self.indexer(block, latent)

    def indexer(self, block, latent):
        index, layer = latent.indexer, int(block.split(".")[1])
        if index.layers and not index.layers[layer]:
            return
        self.linear(block + "indexer.attn_q_b", index.heads * index.dim, latent.q_dim)
        self.linear(block + "indexer.attn_k", index.dim, self.shape.dim)
        self.norm(block + "indexer.k_norm", index.dim)
        self.vector(block + "indexer.k_norm.bias", index.dim, std=0.3)
        self.linear(block + "indexer.proj", index.heads, self.shape.dim)

    def attention(self, block, n_heads, n_kv_heads):
        s = self.shape
        if s.latent:
            self.latent_attention(block, s.latent)
            return
        value_dim = s.value_dim or s.head_dim
        q_dim, kv_dim = n_heads * s.head_dim, n_kv_heads * s.head_dim
        if s.pre_norms:
            self.block_norm(block + "attn_norm")
        if s.second_norm:
            self.block_norm(block + "attn_norm_2")
        if s.fused_qkv:
            self.linear(block + "attn_qkv", q_dim + 2 * kv_dim, s.dim, bias="qkv")
        else:
            self.linear(block + "attn_q", q_dim * (2 if s.gated_output else 1), s.dim, bias="q")
            self.linear(block + "attn_k", kv_dim, s.dim, bias="k")
            self.linear(block + "attn_v", n_kv_heads * value_dim, s.dim, bias="v")
        if s.attn_gate:
            self.linear(block + "attn_gate", n_heads * (value_dim if s.attn_gate == "values" else 1), s.dim)
        self.linear(block + "attn_output", s.dim, n_heads * value_dim, bias="output")
        if s.qk_norm == "heads":
            for name, n in (("q", n_heads), ("k", n_kv_heads)):
                gains = self.random.uniform((n, s.head_dim), std=0.2, mean=1.0)
                self.file.add_tensor(f"{block}attn_{name}_norm.weight", gains)
        elif s.qk_norm:
            self.norm(block + "attn_q_norm", s.head_dim if s.qk_norm == "head" else q_dim)
            self.norm(block + "attn_k_norm", s.head_dim if s.qk_norm == "head" else kv_dim)
        if s.sinks:
            self.vector(block + "attn_sinks.weight", n_heads, std=1.5)

    def draft(self, block):
        """What makes a layer one that predicts a further token; engines may leave it unread."""
        dim = self.shape.dim
        self.linear(block + "eh_proj", dim, 2 * dim)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            self.norm(block + name, dim)

    def feed_forward(self, block, experts):
        s = self.shape
        if s.pre_norms and not s.parallel:
            self.block_norm(block + s.ffn_norm)
        if s.post_norms:
            self.norm(block + "post_attention_norm", s.dim)
            self.norm(block + "post_ffw_norm", s.dim)
        if experts:
            self.expert_tensors(block + "ffn_")
            if experts.selection_bias:
                self.vector(block + experts.selection_name, experts.count, std=experts.selection_bias)
            return
        if s.gate_gain == 1.0:
            if s.gated and not s.fused_gate_up:
                self.linear(block + "ffn_gate", s.ff_dim, s.dim, bias="gate")
        else:
            self.random_f32(block + "ffn_gate.weight", s.ff_dim, s.dim, std=s.gate_gain * 1.2 / math.sqrt(s.dim))
        self.linear(block + "ffn_up", s.ff_dim * (2 if s.fused_gate_up else 1), s.dim, bias="up")
        self.linear(block + "ffn_down", s.dim, s.ff_dim, bias="down")

    def expert_dim(self):
        """Of what routed experts read and give."""
        return self.shape.dim

    def expert_tensors(self, prefix):
        s, e, dim = self.shape, self.shape.experts, self.expert_dim()
        self.random_f32(prefix + "gate_inp.weight", e.count, s.dim, std=0.25)
        if e.biases:
            self.vector(prefix + "gate_inp.bias", e.count, std=0.5)
        for name, n_out, n_in in (("gate", e.ff_dim, dim), ("up", e.ff_dim, dim), ("down", dim, e.ff_dim)):
            self.weight(prefix + name + "_exps.weight", e.count, n_out, n_in)
            if e.biases:  # large ones, so that gpt-oss's clamps at 7 take part
                self.random_f32(prefix + name + "_exps.bias", e.count, n_out, std=0.3 if name == "down" else 4.0)
        if e.shared_weight:
            self.vector(prefix + "gate_inp_shexp.weight", s.dim, std=0.25)
        if e.shared_ff_dim:
            self.linear(prefix + "gate_shexp", e.shared_ff_dim, s.dim)
            self.linear(prefix + "up_shexp", e.shared_ff_dim, s.dim)
            self.linear(prefix + "down_shexp", s.dim, e.shared_ff_dim)


def add_vocabulary(file, n_vocab):
    """Byte-level BPE: 256 byte tokens, 31 merges, control tokens up to n_vocab. The last one is BOS and EOS."""
    plain = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    rest = [byte for byte in range(N_BYTE_TOKENS) if byte not in plain]
    letter = {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(rest)}
    tokens = [letter[byte] for byte in range(N_BYTE_TOKENS)] + [pair.replace(" ", "") for pair in MERGES]
    n_plain = len(tokens)
    tokens += [f"<|extra_{i}|>" for i in range(n_vocab - n_plain - 1)] + ["<|end|>"]
    assert len(tokens) == n_vocab
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(tokens)
    file.add_token_types([gguf.TokenType.NORMAL] * n_plain + [gguf.TokenType.CONTROL] * (n_vocab - n_plain))
    file.add_token_merges(MERGES)
    file.add_bos_token_id(n_vocab - 1)
    file.add_eos_token_id(n_vocab - 1)
    file.add_add_bos_token(False)
