"""Latent attention in float64 for reference_model.py, in its plain form: keys and values of every head.

Source: DeepSeek-V2 (arXiv:2405.04434); how YaRN enters: the authors' code, and for Mistral 4 llama.cpp's. The indexer:
DeepSeek-V3.2-Exp.
"""
import math

import numpy as np


class Indexer:
    """Which positions a query sees: the best by a score of its own, for all heads. pairs: how its heads are turned."""

    norm_eps = 1e-6

    def __init__(self, model, pairs):
        get = model.file.get
        self.model, self.file, self.pairs = model, model.file, pairs
        self.n_heads, self.dim, self.most_seen = (
            get("attention.indexer." + key) for key in ("head_count", "key_length", "top_k")
        )
        self.layers = get("attention.indexer.types", None)
        if self.layers is None:
            some = pairs == "neighbours" and get("context_length") >= 1 << 20  # GLM-5.2
            self.layers = [not some or i <= 1 or i % 4 == 2 for i in range(model.n_layers)]
        self.seen = None

    def key(self, x, block, positions):
        key = self.file.linear(x, block + "attn_k")
        key = key - key.mean(-1, keepdims=True)
        key = key / np.sqrt(np.mean(key * key, -1, keepdims=True) + self.norm_eps)
        key = key * self.file.tensor(block + "k_norm.weight") + self.file.tensor(block + "k_norm.bias")
        return self.model.rope.turn(key[:, None], positions, self.pairs)[:, 0]

    def __call__(self, x, q_latent, layer, positions):
        """[query, position]; in a layer without an indexer what the last one has said."""
        if not self.layers[layer]:
            return self.seen
        block, cached = f"blk.{layer}.indexer.", self.model.kv
        key = self.key(x, block, positions)
        if (layer, "index") in cached:
            key = np.concatenate([cached[layer, "index"], key])
        cached[layer, "index"] = key
        q = self.file.linear(q_latent, block + "attn_q_b").reshape(len(x), self.n_heads, self.dim)
        q = self.model.rope.turn(q, positions, self.pairs)
        weight = self.file.linear(x, block + "proj") / math.sqrt(self.n_heads * self.dim)
        scores = np.einsum("th,thj->tj", weight, np.maximum(np.einsum("thd,jd->thj", q, key), 0))
        self.seen = np.zeros(scores.shape, bool)
        for row, position in enumerate(positions):
            self.seen[row, self.best(scores[row, : position + 1])] = True
        return self.seen

    def best(self, scores):
        order = np.argsort(-scores, kind="stable")
        if self.most_seen < len(scores):
            gap = scores[order[self.most_seen - 1]] - scores[order[self.most_seen]]
            self.model.router_margin = min(self.model.router_margin, float(gap / scores.std()))
        return order[: self.most_seen]


class LatentAttention:
    """kind: as Family.latent; with "own scale" that of scores follows DeepSeek's mscale_all_dim, of which a key has a
    tenth. indexer: the pairs that its heads turn, if there is one."""

    def __init__(self, model, kind, indexer=""):
        get = model.file.get
        self.model, self.file, self.n_heads = model, model.file, model.n_heads[0]
        self.latent, self.rope = get("attention.kv_lora_rank"), get("rope.dimension_count")
        get("attention.q_lora_rank", 0), get("attention.head_count_kv", 0)
        head, self.value = get("attention.key_length_mla", 0), get("attention.value_length_mla", 0)
        if not head or not self.value:
            head, self.value = get("attention.key_length"), get("attention.value_length")
        get("attention.key_length", 0), get("attention.value_length", 0)
        self.plain = head - self.rope
        self.temperature = get("attention.temperature_scale", 0.0)
        self.temperature_length = get("attention.temperature_length", 0)
        self.magnitude, score = self.yarn(kind == "own scale")
        self.turns = kind != "still"
        attn_factor = float(get("rope.scaling.attn_factor", 1.0))
        self.scale = score**2 * attn_factor**2 / math.sqrt(head)
        self.indexer = Indexer(model, indexer) if indexer else None

    def yarn(self, own_scale):
        """What cos and sin are multiplied by, and the root of what scores are."""
        get = self.file.get
        factor = float(get("rope.scaling.factor", 0.0)) or 1.0
        all_dim = get("rope.scaling.yarn_log_multiplier", 0.0) / 0.1
        if self.file.architecture == "glm-dsa":
            all_dim = 0.0
        if get("rope.scaling.type", "none") != "yarn" or factor <= 1:
            return 1.0, 1.0

        def growth(m):
            return 1 + 0.1 * m * math.log(factor)

        if not all_dim:
            return growth(1), growth(1)
        return (1.0, growth(all_dim)) if own_scale else (growth(1) / growth(all_dim), growth(1))

    def queries(self, x, block):
        """Of all heads, and the latent that they come out of."""
        down = block + "attn_q_a"
        if down + ".weight" in self.file.tensors:
            latent = self.model.norm(self.file.linear(x, down), block + "attn_q_a_norm")
            q = self.file.linear(latent, block + "attn_q_b")
        else:
            latent, q = None, self.file.linear(x, block + "attn_q")
        return q.reshape(len(x), self.n_heads, self.plain + self.rope), latent

    def keys_values(self, latent, block):
        """Of all heads, [n, heads, plain] and [n, heads, value]."""
        if block + "attn_kv_b.weight" in self.file.tensors:
            both = self.file.linear(latent, block + "attn_kv_b").reshape(len(latent), self.n_heads, -1)
            return both[..., : self.plain], both[..., self.plain :]
        k_up, v_up = self.file.tensor(block + "attn_k_b.weight"), self.file.tensor(block + "attn_v_b.weight")
        return np.einsum("tj,hji->thi", latent, k_up), np.einsum("tj,hmj->thm", latent, v_up)

    def __call__(self, x, layer, positions):
        block, rope, seen = f"blk.{layer}.", self.model.rope, self.model.kv
        q, q_latent = self.queries(x, block)
        if self.turns:
            q[..., self.plain :] = rope.turn(q[..., self.plain :], positions, "neighbours")
        if self.temperature:
            steps = np.floor(positions / self.temperature_length) + 1
            q = q * (1 + self.temperature * np.log(steps))[:, None, None]
        down = self.file.linear(x, block + "attn_kv_a_mqa")
        latent = self.model.norm(down[:, : self.latent], block + "attn_kv_a_norm")
        turned = down[:, self.latent :]
        if self.turns:
            turned = rope.turn(turned[:, None], positions, "neighbours")[:, 0]
        if layer in seen:
            latent, turned = (np.concatenate([old, new]) for old, new in zip(seen[layer], (latent, turned)))
        seen[layer] = latent, turned
        k, v = self.keys_values(latent, block)
        hidden = positions[:, None] < np.arange(len(latent))[None]
        if self.indexer:
            hidden = hidden | ~self.indexer(x, q_latent, layer, positions)
        out = np.empty((len(x), self.n_heads, self.value))
        for head in range(self.n_heads):
            scores = q[:, head, : self.plain] @ k[:, head].T + q[:, head, self.plain :] @ turned.T
            scores = np.where(hidden, -np.inf, self.scale * scores)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, head]
        out = out.reshape(len(x), -1)
        if block + "attn_gate.weight" in self.file.tensors:
            out = out / (1 + np.exp(-self.file.linear(x, block + "attn_gate")))
        return self.file.linear(out, block + "attn_output")
