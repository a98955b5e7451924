"""DeepSeek V4 in float64 for reference_model.py: four residual streams that each block mixes, attention over the last
rows and over rows that stand for several positions each, experts looked up by token in the first layers.

All positions are computed anew at each call, so that no cache can be wrong.
Source: DeepSeek-V4 technical report (2026); names of keys and tensors: llama.cpp.
"""
import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


class DeepSeek4:
    def __init__(self, model):
        self.model, self.file = model, model.file
        get = model.file.get
        assert get("hyper_connection.count") == 4 and get("expert_gating_func") == 4
        assert get("attention.head_count_kv") == 1 and get("expert_shared_count") == 1
        self.mixings, self.mixing_eps = get("hyper_connection.sinkhorn_iterations"), get("hyper_connection.epsilon")
        self.dim, self.window = get("attention.key_length"), get("attention.sliding_window")
        self.n_groups = get("attention.output_group_count")
        self.ratio = get("attention.compress_ratios")
        self.index = {key: get("attention.indexer." + key) for key in ("head_count", "key_length", "top_k")}
        self.n_hashed, self.n_used = get("hash_layer_count"), get("expert_used_count")
        self.scale, self.normed = get("expert_weights_scale"), get("expert_weights_norm")
        self.limit = model.per_layer("swiglu_clamp_exp")
        self.shared_limit = model.per_layer("swiglu_clamp_shexp", self.limit)
        # Layers with compressed rows turn by a base of their own, stretched by YaRN, whose magnitude is left out.
        base = get("attention.compress_rope_freq_base")
        self.plain, self.far = (model.make_rope(b, scaled) for b, scaled in ((get("rope.freq_base"), False), (base, True)))
        self.plain.magnitude = self.far.magnitude = 1.0
        for informative in ("attention.q_lora_rank", "attention.output_lora_rank", "embedding_length_out", "expert_count",
                            "expert_feed_forward_length", "feed_forward_length", "attention.value_length"):
            get(informative, 0)

    def unit(self, x):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.model.eps)

    def turn(self, x, positions, rope, back=False):
        """The last dimensions of the heads x: [n, heads, D]."""
        first, y = x.shape[-1] - rope.n_dims, x.copy()
        y[..., first:] = rope.turn(x[..., first:], -positions if back else positions, "neighbours")
        return y

    def logits_of_streams(self, streams, name):
        """What decides how streams are mixed, and its factors and offsets."""
        logits = self.unit(streams.reshape(len(streams), -1)) @ self.file.tensor(name + "_fn.weight").T
        return logits, self.file.tensor(name + "_scale.weight"), self.file.tensor(name + "_base.weight")

    def block(self, streams, name, norm, f):
        """streams: [n, 4, dim]; f is computed of one mixture of them, and added to another of each."""
        m, scale, base = self.logits_of_streams(streams, name)
        into = sigmoid(m[:, :4] * scale[0] + base[:4]) + self.mixing_eps
        back = 2 * sigmoid(m[:, 4:8] * scale[1] + base[4:8])
        mixing = softmax((m[:, 8:] * scale[2] + base[8:]).reshape(-1, 4, 4)) + self.mixing_eps
        for i in range(self.mixings):  # towards rows and columns that add up to 1
            if i > 0:
                mixing = mixing / (mixing.sum(2, keepdims=True) + self.mixing_eps)
            mixing = mixing / (mixing.sum(1, keepdims=True) + self.mixing_eps)
        out = f(self.model.norm(np.einsum("ti,tie->te", into, streams), norm))
        return back[:, :, None] * out[:, None] + np.einsum("tij,tie->tje", mixing, streams)

    def compressed(self, x, prefix, ratio, dim):
        """One row for `ratio` positions each: [len(x) // ratio, dim]. Of ratio 4 a row is also made of the positions
        before its own."""
        n = len(x) // ratio
        k, z = (self.file.linear(x, prefix + name)[: n * ratio].reshape(n, ratio, -1) for name in ("kv", "gate"))
        z = z + self.file.tensor(prefix + "ape.weight")
        if ratio == 4:
            before = [np.concatenate([np.full((1, 4, dim), fill), y[:-1, :, :dim]]) for y, fill in ((k, 0.0), (z, -np.inf))]
            k, z = (np.concatenate([b, y[..., dim:]], axis=1) for b, y in zip(before, (k, z)))
        rows = self.model.norm((softmax(z, axis=1) * k).sum(1), prefix + "norm") if n else np.zeros((0, dim))
        return self.turn(rows[:, None], np.arange(n) * ratio, self.far)[:, 0]

    def selected(self, x, latent, block, positions, visible):
        """[query, row]: those of the visible rows that an indexer finds best."""
        n_heads, dim, most = self.index["head_count"], self.index["key_length"], self.index["top_k"]
        keys = self.compressed(x, block + "indexer_compressor_", 4, dim)
        q = self.file.linear(latent, block + "indexer.attn_q_b").reshape(len(x), n_heads, dim)
        q = self.turn(q, positions, self.far)
        weight = self.file.linear(x, block + "indexer.proj") / math.sqrt(dim * n_heads)
        scores = np.einsum("th,thj->tj", weight, np.maximum(np.einsum("thd,jd->thj", q, keys), 0))
        chosen = np.zeros_like(visible)
        for row, sees in enumerate(visible):
            n = int(sees.sum())
            order = np.argsort(-scores[row, :n], kind="stable")
            if most < n:
                gap = scores[row, order[most - 1]] - scores[row, order[most]]
                self.model.router_margin = min(self.model.router_margin, float(gap / scores[row, :n].std()))
            chosen[row, order[:most]] = True
        return chosen

    def attention(self, x, layer):
        block, n, ratio, n_heads = f"blk.{layer}.", len(x), self.ratio[layer], self.model.n_heads[layer]
        positions, rope = np.arange(n), self.far if ratio else self.plain
        latent = self.model.norm(self.file.linear(x, block + "attn_q_a"), block + "attn_q_a_norm")
        q = self.unit(self.file.linear(latent, block + "attn_q_b").reshape(n, n_heads, self.dim))
        q = self.turn(q, positions, rope)
        rows = self.model.norm(self.file.linear(x, block + "attn_kv"), block + "attn_kv_a_norm")
        rows = self.turn(rows[:, None], positions, rope)[:, 0]
        distance = positions[:, None] - positions
        seen = (distance >= 0) & (distance < self.window)
        if ratio:
            more = self.compressed(x, block + "attn_compressor_", ratio, self.dim)
            visible = np.arange(len(more)) < ((positions + 1) // ratio)[:, None]
            if ratio == 4:
                visible = self.selected(x, latent, block, positions, visible)
            rows, seen = np.concatenate([rows, more]), np.concatenate([seen, visible], axis=1)
        sinks = self.file.tensor(block + "attn_sinks.weight")
        out = np.empty_like(q)
        for head in range(n_heads):
            scores = np.where(seen, q[:, head] @ rows.T / math.sqrt(self.dim), -np.inf)
            scores = np.concatenate([scores, np.full((n, 1), sinks[head])], axis=1)  # in the denominator only
            out[:, head] = softmax(scores)[:, :-1] @ rows
        out = self.turn(out, positions, rope, back=True).reshape(n, self.n_groups, -1)
        down = self.file.tensor(block + "attn_output_a.weight")
        down = down.reshape(self.n_groups, -1, down.shape[-1])
        return self.file.linear(np.einsum("tgi,goi->tgo", out, down).reshape(n, -1), block + "attn_output_b")

    def gated(self, x, gate, up, down, limit):
        """gate, up, down: functions."""
        gate, up = gate(x), up(x)
        if limit > 1e-6:
            gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        return down(gate * sigmoid(gate) * up)

    def experts(self, x, layer, ids):
        prefix = f"blk.{layer}.ffn_"
        share = np.sqrt(np.logaddexp(0, self.file.linear(x, prefix + "gate_inp")))
        if layer < self.n_hashed:
            name = prefix + "gate_tid2eid.weight"
            self.file.tensors_read.add(name)
            best = np.asarray(self.file.tensors[name].data).reshape(-1, self.n_used)[ids].astype(int)
        else:
            best = self.model.largest(share + self.file.tensor(f"blk.{layer}.exp_probs_b.bias"), self.n_used)
        weight = np.take_along_axis(share, best, -1)
        if self.normed:
            weight = weight / np.maximum(weight.sum(-1, keepdims=True), 6.103515625e-5)
        matrix = [self.file.tensor(f"{prefix}{name}_exps.weight") for name in ("gate", "up", "down")]
        shared = [lambda y, n=name: self.file.linear(y, f"{prefix}{n}_shexp") for name in ("gate", "up", "down")]
        out = self.gated(x, *shared, self.shared_limit[layer])
        for expert in np.unique(best):
            rows, slot = np.nonzero(best == expert)
            y = self.gated(x[rows], *(lambda y, m=m[expert]: y @ m.T for m in matrix), self.limit[layer])
            np.add.at(out, rows, self.scale * weight[rows, slot][:, None] * y)
        return out

    def hidden(self, new_ids):
        """Of ids that follow those seen since the last reset."""
        seen = self.model.kv.setdefault("ids", [])
        seen.extend(new_ids)
        ids = np.asarray(seen)
        streams = np.repeat(self.file.rows("token_embd.weight", ids)[:, None], 4, axis=1)
        for layer in range(self.model.n_layers):
            name = f"blk.{layer}."
            streams = self.block(streams, name + "hc_attn", name + "attn_norm", lambda x, i=layer: self.attention(x, i))
            streams = self.block(streams, name + "hc_ffn", name + "ffn_norm", lambda x, i=layer: self.experts(x, i, ids))
        m, scale, base = self.logits_of_streams(streams, "output_hc")
        into = sigmoid(m * scale[0] + base) + self.mixing_eps
        return self.model.norm(np.einsum("ti,tie->te", into, streams)[len(ids) - len(new_ids) :], "output_norm")
