"""Writes tiny models of Gemma 4; tiny_model.py has the list."""
from dataclasses import dataclass, replace

from tiny_writer import ModelWriter


@dataclass(frozen=True)
class Gemma4:
    """What these have beyond a Shape, whose sizes of heads are those of layers that see everything."""

    pattern: tuple[bool, ...]  # slides
    local: tuple[int, int] = (2, 16)  # key-value heads and their size in layers that slide
    n_shared: int = 0  # layers at the end without keys and values of their own
    shared_ff_dim: int = 0  # of these
    width: int = 0  # of per-layer inputs
    values_of_keys: bool = False  # layers that see everything have no matrix of values
    fused_experts: bool = True
    expert_scale: bool = True
    layer_scale: bool = True


class Gemma4Writer(ModelWriter):
    """spec: Gemma4"""

    def keys(self):
        s, g = self.shape, self.shape.gemma4
        keys = {
            "attention.head_count_kv": [self.kv_heads(i)[0] for i in range(s.n_layers)],
            "attention.key_length_swa": g.local[1],
            "attention.value_length_swa": g.local[1],
            "attention.sliding_window_pattern": list(g.pattern),
            "rope.dimension_count": s.head_dim,
            "rope.dimension_count_swa": g.local[1],
            "embedding_length_per_layer_input": g.width,
            "feed_forward_length": [self.ff_dim(i) for i in range(s.n_layers)],
        }
        if g.n_shared:
            keys["attention.shared_kv_layers"] = g.n_shared
        self.shape = replace(s, keys=s.keys | keys)
        super().keys()

    def kv_heads(self, layer):
        """(how many, their size)"""
        s, g = self.shape, self.shape.gemma4
        return g.local if g.pattern[layer] else (s.n_kv_heads, s.head_dim)

    def has_own(self, layer):
        return layer < self.shape.n_layers - self.shape.gemma4.n_shared

    def ff_dim(self, layer):
        return self.shape.ff_dim if self.has_own(layer) else self.shape.gemma4.shared_ff_dim

    def tensors(self):
        s, g = self.shape, self.shape.gemma4
        self.global_tensors()
        if g.width:
            self.random_f32("per_layer_token_embd.weight", s.n_vocab, g.width * s.n_layers, std=0.3)
            self.linear("per_layer_model_proj", g.width * s.n_layers, s.dim)
            self.norm("per_layer_proj_norm", g.width)
        for layer in range(s.n_layers):
            block = f"blk.{layer}."
            for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
                self.norm(block + name, s.dim)
            self.attention_of(layer, block)
            for name, n_out, n_in in (("gate", self.ff_dim(layer), s.dim), ("up", self.ff_dim(layer), s.dim)):
                self.linear(block + "ffn_" + name, n_out, n_in)
            self.linear(block + "ffn_down", s.dim, self.ff_dim(layer))
            if s.experts:
                self.expert_layer(block)
            if g.width:
                self.linear(block + "inp_gate", g.width, s.dim)
                self.linear(block + "proj", s.dim, g.width)
                self.norm(block + "post_norm", s.dim)
            if g.layer_scale:
                self.vector(block + "layer_output_scale.weight", 1, std=0.15, mean=0.9)

    def attention_of(self, layer, block):
        s, g = self.shape, self.shape.gemma4
        n_kv_heads, head_dim = self.kv_heads(layer)
        self.linear(block + "attn_q", s.n_heads * head_dim, s.dim)
        self.vector(block + "attn_q_norm.weight", head_dim, std=0.1, mean=0.45)
        self.linear(block + "attn_output", s.dim, s.n_heads * head_dim)
        if not self.has_own(layer):
            return
        self.linear(block + "attn_k", n_kv_heads * head_dim, s.dim)
        self.vector(block + "attn_k_norm.weight", head_dim, std=0.1, mean=0.45)
        if g.pattern[layer] or not g.values_of_keys:
            self.linear(block + "attn_v", n_kv_heads * head_dim, s.dim)

    def expert_layer(self, block):
        s, g, e = self.shape, self.shape.gemma4, self.shape.experts
        self.random_f32(block + "ffn_gate_inp.weight", e.count, s.dim, std=0.3)
        self.vector(block + "ffn_gate_inp.scale", s.dim, std=0.5, mean=3.0)
        for name in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):
            self.norm(block + name, s.dim)
        if g.fused_experts:
            self.weight(block + "ffn_gate_up_exps.weight", e.count, 2 * e.ff_dim, s.dim)
        else:
            for name in ("gate", "up"):
                self.weight(f"{block}ffn_{name}_exps.weight", e.count, e.ff_dim, s.dim)
        self.weight(block + "ffn_down_exps.weight", e.count, s.dim, e.ff_dim)
        if g.expert_scale:
            self.vector(block + "ffn_down_exps.scale", e.count, std=0.3, mean=1.0)


def divisors(head_dim):
    """Of the angles of layers that see everything: a quarter of the pairs turn."""
    n_pairs, n_turned = head_dim // 2, head_dim // 8
    return [1.0] * n_turned + [1e30] * (n_pairs - n_turned)
