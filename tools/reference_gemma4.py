"""Layers of Gemma 4 in float64 for reference_model.py: heads of two sizes, layers that attend to keys and values of an
earlier one, a dense branch beside the experts, and inputs of each layer's own looked up by token.

Source: the format's description; llama.cpp where that says nothing.
"""
import math

import numpy as np


class Gemma4:
    def __init__(self, model):
        get = model.file.get
        self.model, self.file = model, model.file
        model.scale = 1.0
        sizes = {kind: get("attention.key_length" + kind) for kind in ("", "_swa")}
        assert all(get("attention.value_length" + kind) == size for kind, size in sizes.items())
        self.head_dim = [sizes["_swa" if slides else ""] for slides in model.sliding]
        self.n_own = model.n_layers - get("attention.shared_kv_layers", 0)
        # Layers that slide have no divisors.
        rope = model.swa_rope
        rope.n_dims = get("rope.dimension_count_swa", rope.n_dims)
        rope.frequency = float(get("rope.freq_base_swa", 10000.0)) ** (-2.0 * np.arange(rope.n_dims // 2) / rope.n_dims)
        self.width = get("embedding_length_per_layer_input")
        self.inputs = None

    def start(self, x, ids):
        """What each layer adds at its end: [n, layers, width]."""
        if not self.width:
            return
        shape = (len(x), self.model.n_layers, self.width)
        projected = self.file.linear(x, "per_layer_model_proj") / math.sqrt(self.model.dim)
        projected = self.model.norm(projected.reshape(shape), "per_layer_proj_norm")
        looked_up = self.file.rows("per_layer_token_embd.weight", np.asarray(ids)).reshape(shape)
        self.inputs = (projected + looked_up * math.sqrt(self.width)) / math.sqrt(2)

    def donor(self, layer):
        """The last layer of the same kind with keys and values of its own."""
        if layer < self.n_own:
            return layer
        return max(i for i in range(self.n_own) if self.model.sliding[i] == self.model.sliding[layer])

    def keys_values(self, x, layer, positions, rope):
        block, seen = f"blk.{layer}.", self.model.kv
        k = self.file.linear(x, block + "attn_k").reshape(len(x), -1, self.head_dim[layer])
        v = k
        if block + "attn_v.weight" in self.file.tensors:
            v = self.file.linear(x, block + "attn_v").reshape(k.shape)
        v = v / np.sqrt(np.mean(v * v, -1, keepdims=True) + self.model.eps)
        k = rope.turn(self.model.norm(k, block + "attn_k_norm"), positions, "halves")
        if layer in seen:
            k, v = (np.concatenate([old, new]) for old, new in zip(seen[layer], (k, v)))
        seen[layer] = k, v

    def attention(self, x, layer, positions):
        model, block, n_heads = self.model, f"blk.{layer}.", self.model.n_heads[layer]
        rope = model.swa_rope if model.sliding[layer] else model.rope
        q = self.file.linear(x, block + "attn_q").reshape(len(x), n_heads, self.head_dim[layer])
        q = rope.turn(model.norm(q, block + "attn_q_norm"), positions, "halves")
        if layer < self.n_own:
            self.keys_values(x, layer, positions, rope)
        k, v = model.kv[self.donor(layer)]
        distance = positions[:, None] - np.arange(len(k))[None]
        hidden = (distance < 0) | (distance >= model.window if model.sliding[layer] else False)
        out = np.empty(q.shape)
        for head in range(n_heads):
            group = head // (n_heads // k.shape[1])
            scores = np.where(hidden, -np.inf, q[:, head] @ k[:, group].T)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, group]
        return self.file.linear(out.reshape(len(x), -1), block + "attn_output")

    def dense(self, x, prefix):
        gate, up = self.file.linear(x, prefix + "gate"), self.file.linear(x, prefix + "up")
        return self.file.linear(self.model.gated(gate, up), prefix + "down")

    def experts(self, x, layer, prefix):
        norm, block = self.model.norm, f"blk.{layer}."
        routed = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.model.eps) / math.sqrt(self.model.dim)
        routed = routed * self.file.tensor(prefix + "gate_inp.scale")
        f = self.model.experts(norm(x, block + "pre_ffw_norm_2"), layer, prefix, routed)
        return norm(f, block + "post_ffw_norm_2")

    def layer(self, x, layer, positions):
        norm, block, prefix = self.model.norm, f"blk.{layer}.", f"blk.{layer}.ffn_"
        x = x + norm(self.attention(norm(x, block + "attn_norm"), layer, positions), block + "post_attention_norm")
        f = self.dense(norm(x, block + "ffn_norm"), prefix)
        if self.model.has_experts(layer):
            f = norm(f, block + "post_ffw_norm_1") + self.experts(x, layer, prefix)
        x = x + norm(f, block + "post_ffw_norm")
        if self.width:
            h = self.model.gated(self.file.linear(x, block + "inp_gate"), self.inputs[:, layer])
            x = x + norm(self.file.linear(h, block + "proj"), block + "post_norm")
        scale = self.file.tensor(block + "layer_output_scale.weight")
        return x if scale is None else x * scale
