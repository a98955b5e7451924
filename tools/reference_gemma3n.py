"""Gemma 3n in float64 for reference_model.py: residual streams of which a layer computes one and predicts the others
(arXiv:2301.13310), a low-rank branch beside attention (arXiv:2411.07501), gates of which the largest go through.

Source: Gemma 3n as its authors published it; names of keys and tensors: llama.cpp.
"""
import math

import numpy as np

from reference_gemma4 import Gemma4
from reference_math import gelu


def mean_square(x):
    return np.mean(x * x, -1, keepdims=True)


def matched(x, to):
    return x * np.sqrt(mean_square(to)) / np.sqrt(np.maximum(mean_square(x), 1e-5))


class Gemma3n(Gemma4):
    def __init__(self, model):
        get = model.file.get
        self.model, self.file = model, model.file
        model.scale = 1.0
        self.head_dim = [model.head_dim] * model.n_layers
        self.n_own = model.n_layers - get("attention.shared_kv_layers", 0)
        self.width, self.n = get("embedding_length_per_layer_input"), get("altup.num_inputs")
        self.sparsity = get("activation_sparsity_scale", [-math.inf] * model.n_layers)
        assert get("altup.active_idx", 0) == 0
        for layer in range(self.n_own, model.n_layers):  # in files, and read by nobody
            names = (f"blk.{layer}.attn_{name}.weight" for name in ("k", "v", "k_norm"))
            self.file.tensors_read.update(names)

    def coefficients(self, x, block, name, *shape):
        logits = self.model.norm(x, block + "altup_router_norm") @ self.file.tensor(block + "altup_router.weight").T
        shares = np.tanh(logits / self.model.dim)
        return (shares @ self.file.tensor(f"{block}altup_{name}_coef.weight").T).reshape(len(x), *shape)

    def sparse(self, gate, layer):
        times = self.sparsity[layer]
        if not math.isfinite(times):
            return gate
        return np.maximum(gate - gate.mean(-1, keepdims=True) - times * gate.std(-1, keepdims=True), 0)

    def computed(self, x, layer, positions):
        norm, block = self.model.norm, f"blk.{layer}."
        h = norm(x, block + "attn_norm")
        beside = h + norm(self.file.linear(self.file.linear(h, block + "laurel_l"), block + "laurel_r"), block + "laurel_post_norm")
        a = x + norm(self.attention(h, layer, positions), block + "post_attention_norm")
        x = (a + beside) / math.sqrt(2)
        h = norm(x, block + "ffn_norm")
        gate, up = self.file.linear(h, block + "ffn_gate"), self.file.linear(h, block + "ffn_up")
        return x + norm(self.file.linear(gelu(self.sparse(gate, layer)) * up, block + "ffn_down"), block + "post_ffw_norm")

    def layer(self, streams, layer, positions):
        """streams: [n, tokens, dim]"""
        block = f"blk.{layer}."
        c = self.coefficients(streams[0], block, "predict", self.n, self.n)
        streams = streams + np.einsum("tok,ktd->otd", c, streams)
        x = self.computed(streams[0], layer, positions)
        c = 1 + self.coefficients(x, block, "correct", self.n)
        streams = streams + (x - streams[0]) * c.T[:, :, None]
        h = self.file.linear(streams[0] * self.file.tensor(block + "altup_correct_scale.weight"), block + "inp_gate")
        f = self.file.linear(gelu(h) * self.inputs[:, layer], block + "proj")
        streams[1:] += self.model.norm(f, block + "post_norm")
        return streams

    def run(self, x, positions):
        """The rows behind the last layer, of embeddings."""
        others = [matched(x @ w.T, x) for w in self.file.tensor("altup_proj.weight")]
        streams = np.stack([x, *others])
        for layer in range(self.model.n_layers):
            streams = self.layer(streams, layer, positions)
        back = zip(streams[1:], self.file.tensor("altup_unembd_proj.weight"))
        return np.mean([streams[0], *(matched(s @ w.T, streams[0]) for s, w in back)], 0)
