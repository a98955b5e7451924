"""Writes tiny models whose layers lack parts; tiny_model.py has the list."""
from dataclasses import dataclass, replace

from tiny_writer import ModelWriter


@dataclass(frozen=True)
class Deci:
    layers: tuple[tuple[int, int, int], ...]  # heads, key-value heads, feed-forward; heads alone: a matrix in their place


class DeciWriter(ModelWriter):
    def keys(self):
        s, layers = self.shape, self.shape.deci.layers
        names = ("attention.head_count", "attention.head_count_kv", "feed_forward_length")
        keys = {name: [layer[i] for layer in layers] for i, name in enumerate(names)}
        self.shape = replace(s, keys=keys | {"rope.dimension_count": s.head_dim} | s.keys)
        super().keys()

    def tensors(self):
        s = self.shape
        self.global_tensors()
        for layer, (heads, kv_heads, ff_dim) in enumerate(s.deci.layers):
            block = f"blk.{layer}."
            if heads and kv_heads:
                self.attention(block, heads, kv_heads)
            elif heads:
                self.norm(block + "attn_norm", s.dim)
                self.linear(block + "attn_output", s.dim, s.dim)
            if ff_dim:
                self.shape = replace(s, ff_dim=ff_dim)
                self.feed_forward(block, None)
                self.shape = s
