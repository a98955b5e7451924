"""Forward pass of GGUF language models in float64, written from the papers and file formats, to judge an engine with.

Weights are what gguf.quants.dequantize says; everything else is float64: activations are not quantized, softmax and
rotation angles are exact, keys and values are kept as they are. Nothing is shared with the engine.
What is not handled is an error: an architecture, a metadata key, a tensor that was never read.
"""
import math

import numpy as np

from reference_deepseek4 import DeepSeek4
from reference_families import FAMILIES
from reference_ffn import FeedForward
from reference_file import File, Unsupported
from reference_gemma3n import Gemma3n
from reference_gemma4 import Gemma4
from reference_kimi_k3 import KimiK3
from reference_latent import LatentAttention
from reference_math import sigmoid, soft_cap, softmax
from reference_recurrent import GatedDelta, KimiDelta, Scan, ShortConvolution
from reference_rope import Rope, slopes

GATINGS = {1: "softmax", 2: "sigmoid", 3: "selected"}


class Model(FeedForward):
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
        self.turned = self.per_layer("attention.rope_pattern", 1) if family.turned_by_key else None
        file.keys.setdefault("attention.key_length", self.head_dim)
        of_rms = "attention.layer_norm_rms_epsilon"
        self.layer_norm = family.layer_norm and not (family.norm_by_key and of_rms in file.keys)
        usual = "attention.layer_norm_epsilon" if self.layer_norm else of_rms
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
        if family.inverse_scale:
            self.scale = 1 / self.head_dim
        self.scale = self.scale or 1 / math.sqrt(self.dim // self.n_heads[0] if wide else self.head_dim)
        n_ctx = n_ctx or get("context_length")
        truncate = file.architecture != "gpt-oss" if yarn_truncate is None else yarn_truncate
        base = get("rope.freq_base", 10000.0)
        self.make_rope = lambda base, scaled: Rope(file, base, scaled, n_ctx, truncate)
        n_dims = get("rope.dimension_count", self.head_dim)
        of_whole = n_dims // 2 if family.half_turned else n_dims
        self.rope = self.swa_rope = Rope(file, base, True, n_ctx, truncate, family.yarn_keys, of_whole)
        if self.window:
            base = get("rope.freq_base_swa", family.swa_rope_base or base)
            n_dims = get("rope.dimension_count_swa", n_dims) if family.own_turns else n_dims
            self.swa_rope = Rope(file, base, not family.swa_rope_plain, n_ctx, truncate, n_dims=n_dims)
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
        most = get("attention.max_alibi_bias", 0.0) if family.alibi_key else 8.0
        has_alibi = most > 0 and family.alibi_layers in (self.n_layers, -1)
        self.alibi = slopes(self.n_heads[0], most) if has_alibi else None
        self.positions = family.positions or family.alibi_key and "position_embd.weight" in file.tensors
        self.widths = self.per_layer("feed_forward_length") if family.one_block else None
        self.gemma4 = Gemma4(self) if family.gemma4 else None
        self.gemma3n = Gemma3n(self) if family.gemma3n else None
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
            whole = 0 if self.family.whole_first else pattern - 1
            pattern = [pattern == 0 or layer % pattern != whole for layer in range(self.n_layers)]
        self.sliding = [bool(self.window and pattern[layer]) for layer in range(self.n_layers)]

    def reset(self):
        """Forgets what was seen."""
        self.kv, self.n_seen, self.routed = {}, 0, None
        self.router_margin = math.inf  # between the last expert that was chosen and the first that was not

    def norm(self, x, name):
        gain, bias = self.file.tensor(name + ".weight"), self.file.tensor(name + ".bias")
        gain = np.ones(1) if self.family.plain_norms else gain
        if self.layer_norm:
            x = x - x.mean(axis=-1, keepdims=True)
        y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * gain
        return y if bias is None else y + bias

    def turns(self, layer):
        if self.family.turned_layers == "none" or self.family.alibi_key or self.alibi is not None:
            return False
        if self.family.turned_by_key:
            return bool(self.turned[layer])
        if self.family.turned_layers == "sliding and dense":
            return self.sliding[layer] or layer < self.n_dense_layers
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
        if self.family.qkv_limit:
            limit = self.file.get("attention.clamp_kqv", 0.0) or math.inf
            q, k, v = (np.clip(t, -limit, limit) for t in (q, k, v))
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
            gate = self.file.linear(x, block + "attn_gate").reshape(*out.shape[:2], -1)  # of heads, or of values
            out = out * (sigmoid(gate) if self.family.attn_gate == "sigmoid" else np.logaddexp(0, gate))
        return self.file.linear(out.reshape(len(x), -1), block + "attn_output")

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

    def present_parts(self, x, layer, positions):
        block = f"blk.{layer}."
        if self.n_heads[layer]:
            h = self.norm(x, block + "attn_norm")
            linear = self.n_kv_heads[layer] == 0
            x = x + (self.file.linear(h, block + "attn_output") if linear else self.attention(h, layer, positions))
        if block + "ffn_down.weight" in self.file.tensors:
            x = x + self.feed_forward(self.norm(x, block + "ffn_norm"), layer)
        return x

    def layer(self, x, layer, positions):
        if self.family.missing_parts:
            return self.present_parts(x, layer, positions)
        if self.family.one_block:
            return self.only_block(x, layer, positions)
        if self.family.beside:
            return self.both_blocks(x, layer, positions)
        if self.gemma4:
            return self.gemma4.layer(x, layer, positions)
        block = f"blk.{layer}."
        self.routed = x if self.family.early_router else None
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
        if self.positions:
            x = x + self.file.rows("position_embd.weight", positions)
        if self.family.embedding_norm:
            x = self.norm(x, self.family.embedding_norm)
        if self.gemma4:
            self.gemma4.start(x, ids)
        if self.gemma3n:
            self.gemma3n.start(x, ids)
            return self.norm(self.gemma3n.run(x, positions), self.family.output_norm)
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
