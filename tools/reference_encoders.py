"""Vectors of texts in float64, of families whose tokens all see each other; written from the papers, as
reference_model.py, and like it shares nothing with the engine.

usage: reference_encoders.py MODEL --tokens IDS.json     prints {"mean": [..], "cls": [..], "last": [..]} per list of ids
"""
import argparse
import json
import math
import sys

import numpy as np

from reference_file import File, Unsupported
from reference_math import silu, softmax
from reference_rope import Rope, slopes


def gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_table(x):
    """As llama.cpp has it: the tanh form from f16 to f16, and itself beyond 10."""
    inside = gelu_tanh(x.astype(np.float16).astype(np.float64)).astype(np.float16).astype(np.float64)
    return np.where(x <= -10, 0.0, np.where(x >= 10, x, inside))


POST_NORM = ("bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2")
POOLS = {"mean": lambda h: h.mean(0), "cls": lambda h: h[0], "last": lambda h: h[-1]}
BY_NUMBER = {1: "mean", 2: "cls", 3: "last"}


class Encoder:
    """table: GELU as llama.cpp has it."""

    def __init__(self, path, table=False):
        self.file = file = File(path)
        get, arch = file.get, file.architecture
        if arch not in (*POST_NORM, "modern-bert", "gemma-embedding"):
            raise Unsupported(f"architecture {arch}")
        self.arch, self.post, self.gemma = arch, arch in POST_NORM, arch == "gemma-embedding"
        self.n_layers, self.dim, self.n_heads = get("block_count"), get("embedding_length"), get("attention.head_count")
        self.n_kv_heads = get("attention.head_count_kv", self.n_heads)
        self.head_dim = get("attention.key_length", self.dim // self.n_heads)
        file.keys.setdefault("attention.key_length", self.head_dim)
        self.eps = get("attention.layer_norm_rms_epsilon" if self.gemma else "attention.layer_norm_epsilon")
        if get("attention.causal", False):
            raise Unsupported("causal attention")
        self.pooling = BY_NUMBER.get(get("pooling_type", 1), "mean")
        for key in ("feed_forward_length", "attention.value_length", "context_length", "hidden_activation"):
            get(key, None)
        for n in (2, 3):
            get(f"dense_{n}_feat_in", None), get(f"dense_{n}_feat_out", None)
        self.n_experts, self.n_used, self.every = (get(key, 0) for key in ("expert_count", "expert_used_count", "moe_every_n_layers"))
        self.router_margin = float("inf")  # the closest choice of experts so far
        self.window = get("attention.sliding_window", 0)
        self.set_ropes()
        erf = gelu_table if table else gelu_erf
        if arch == "nomic-bert" or file.keys.get("hidden_activation") == "silu":
            self.activation = silu
        elif self.gemma:
            self.activation = gelu_table if table else gelu_tanh
        else:
            self.activation = gelu_erf if arch == "modern-bert" else erf
        self.slopes = slopes(self.n_heads) if arch == "jina-bert-v2" else np.zeros(self.n_heads)

    def set_ropes(self):
        if self.arch in ("bert", "jina-bert-v2"):
            self.ropes = None
            return
        base = self.file.get("rope.freq_base", 10000.0)
        local = self.file.get("rope.freq_base_swa", 10000.0) if not self.post else base
        self.ropes = [Rope(self.file, b, True, 0, False) for b in (base, local)]

    def slides(self, layer):
        if not self.window:
            return False
        return layer % 6 != 5 if self.gemma else layer % 3 != 0

    def norm(self, x, name):
        gain, bias = self.file.tensor(name + ".weight"), self.file.tensor(name + ".bias")
        if not self.gemma:
            x = x - x.mean(-1, keepdims=True)
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * gain
        return y if bias is None else y + bias

    def qkv(self, x, block):
        sizes = np.array([self.n_heads, self.n_kv_heads, self.n_kv_heads]) * self.head_dim
        if block + "attn_qkv.weight" in self.file.tensors:
            parts = np.split(self.file.linear(x, block + "attn_qkv"), np.cumsum(sizes)[:2], axis=1)
        else:
            parts = [self.file.linear(x, block + "attn_" + name) for name in "qkv"]
        return [part.reshape(len(x), -1, self.head_dim) for part in parts]

    def attention(self, x, layer):
        block, at = f"blk.{layer}.", np.arange(len(x))
        q, k, v = self.qkv(x, block)
        if self.gemma:
            q, k = self.norm(q, block + "attn_q_norm"), self.norm(k, block + "attn_k_norm")
        if self.ropes:
            rope = self.ropes[self.slides(layer)]
            q, k = rope.turn(q, at, "halves"), rope.turn(k, at, "halves")
        away = np.abs(at[:, None] - at[None])
        hidden = away > self.window // 2 if self.slides(layer) else np.zeros_like(away, bool)
        out, group = np.empty_like(q), self.n_heads // self.n_kv_heads
        for head in range(self.n_heads):
            z = q[:, head] @ k[:, head // group].T / math.sqrt(self.head_dim) - self.slopes[head] * away
            out[:, head] = softmax(np.where(hidden, -np.inf, z)) @ v[:, head // group]
        return self.file.linear(out.reshape(len(x), -1), block + "attn_output")

    def experts(self, x, block):
        """Weighed by the softmax over all; two matrices each."""
        p, y = softmax(self.file.linear(x, block + "gate_inp")), np.zeros_like(x)
        best = np.argsort(-p, axis=1, kind="stable")
        ranked = np.take_along_axis(p, best, 1)
        self.router_margin = min(self.router_margin, (ranked[:, self.n_used - 1] - ranked[:, self.n_used]).min())
        up, down = self.file.tensor(block + "up_exps.weight"), self.file.tensor(block + "down_exps.weight")
        for row, chosen in enumerate(best[:, : self.n_used]):
            for e in chosen:
                y[row] += p[row, e] * (down[e] @ self.activation(up[e] @ x[row]))
        return y

    def feed_forward(self, x, layer):
        block = f"blk.{layer}.ffn_"
        if self.n_experts and layer % self.every == 1:
            return self.experts(x, block)
        up = self.file.linear(x, block + "up")
        if block + "gate.weight" in self.file.tensors:
            up = self.activation(self.file.linear(x, block + "gate")) * up
        elif self.arch in ("bert", "nomic-bert-moe"):
            up = self.activation(up)
        else:
            gate, up = np.split(up, 2, axis=1)
            up = self.activation(gate) * up
        return self.file.linear(up, block + "down")

    def hidden(self, ids, second=None):
        """[n, dim]; second: where the second kind of text begins."""
        x = self.file.rows("token_embd.weight", np.asarray(ids))
        if self.gemma:
            x = x * math.sqrt(self.dim)
        if "position_embd.weight" in self.file.tensors:
            x = x + self.file.rows("position_embd.weight", slice(0, len(ids)))
        if "token_types.weight" in self.file.tensors:
            kinds = np.arange(len(ids)) >= (len(ids) if second is None else second)
            x = x + self.file.rows("token_types.weight", kinds.astype(int))
        if not self.gemma:
            x = self.norm(x, "token_embd_norm")
        for layer in range(self.n_layers):
            block = f"blk.{layer}."
            if self.post:
                x = self.norm(x + self.attention(x, layer), block + "attn_output_norm")
                x = self.norm(x + self.feed_forward(x, layer), block + "layer_output_norm")
                continue
            first = block + "attn_norm.weight" not in self.file.tensors
            y = self.attention(x if first else self.norm(x, block + "attn_norm"), layer)
            x = x + (self.norm(y, block + "post_attention_norm") if self.gemma else y)
            y = self.feed_forward(self.norm(x, block + "ffn_norm"), layer)
            x = x + (self.norm(y, block + "post_ffw_norm") if self.gemma else y)
        if not self.post:
            x = self.norm(x, "output_norm")
        return x

    def pooled(self, ids):
        """{way: vector}, not normalized."""
        hidden, out = self.hidden(ids), {}
        for name, pool in POOLS.items():
            x = pool(hidden)
            for dense in ("dense_2", "dense_3"):
                if dense + ".weight" in self.file.tensors:
                    x = self.file.linear(x[None], dense)[0]
            out[name] = x
        self.file.check_all_read(self.n_layers)
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True, help="JSON list of lists of ids")
    args = parser.parse_args()
    with open(args.tokens, encoding="utf-8") as file:
        lists = json.load(file)
    try:
        model = Encoder(args.model)
        print(json.dumps([{k: v.tolist() for k, v in model.pooled(ids).items()} for ids in lists]))
    except (Unsupported, OSError) as error:
        print(f"reference_encoders.py: {args.model}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
