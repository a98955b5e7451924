"""What Kimi K3 has beyond Kimi Linear, in float64 for reference_model.py: blocks that read several residuals, experts of
a dimension of their own, bounded activations.

Source: Kimi K3 as its authors published it; names of keys and tensors: llama.cpp.
"""
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class KimiK3:
    def __init__(self, model):
        self.model, self.file = model, model.file
        get = model.file.get
        self.beta, self.linear_beta = get("activation.situ_beta"), get("activation.situ_linear_beta")
        self.block_size = get("attn_res.block_size")
        get("expert_shared_count", 0), get("expert_latent_length", 0)

    def gated(self, gate, up):
        if self.linear_beta > 0:
            up = self.linear_beta * np.tanh(up / self.linear_beta)
        return self.beta * np.tanh(gate / self.beta) * sigmoid(gate) * up

    def experts(self, x, layer, prefix, routed):
        if prefix + "routed_down.weight" not in self.file.tensors:
            return self.model.experts(x, layer, prefix)
        out = self.model.experts(self.file.linear(x, prefix + "routed_down"), layer, prefix, routed=x)
        if prefix + "routed_norm.weight" in self.file.tensors:
            out = self.model.norm(out, prefix + "routed_norm")
        return self.file.linear(out, prefix + "routed_up")

    def read(self, kept, residual, name):
        """Of all residuals the mean, each weighed by the softmax of its score."""
        if not kept:
            self.file.tensor(name + ".weight")  # that of the first layer scores nothing
            return residual
        rows = np.stack([*kept, residual])
        normed = rows / np.sqrt(np.mean(rows * rows, -1, keepdims=True) + self.model.eps)
        scores = normed @ self.file.tensor(name + ".weight")
        weights = np.exp(scores - scores.max(0))
        return np.einsum("ct,ctd->td", weights / weights.sum(0), rows)

    def run(self, x, positions):
        """The rows behind the last layer, of embeddings."""
        model, kept = self.model, []
        for layer in range(model.n_layers):
            block = f"blk.{layer}."
            h = model.norm(self.read(kept, x, block + "attn_res_score"), block + "attn_norm")
            begins = self.block_size and layer % self.block_size == 0
            if begins:
                kept = [*kept, x]
            a = model.attention(h, layer, positions)
            x = a if begins else x + a
            h = model.norm(self.read(kept, x, block + "ffn_res_score"), block + "ffn_norm")
            x = x + model.feed_forward(h, layer)
        return self.read(kept, x, "output_res_score")
