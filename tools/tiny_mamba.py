"""Writes tiny models that have Mamba-2 among layers of one block each (Nemotron H) or beside attention (Falcon H1);
tiny_model.py has the list."""
from dataclasses import replace

from tiny_writer import ModelWriter


class NemotronHWriter(ModelWriter):
    """keys["feed_forward_length"]: a list, 0 where a layer is no feed-forward block; of the others those without
    recurrence have attention."""

    def keys(self):
        s = self.shape
        heads = [0 if ff or scan else s.n_kv_heads for ff, scan in zip(self.widths(), s.scan.layers)]
        self.shape = replace(s, keys=s.keys | {"attention.head_count_kv": heads})
        super().keys()

    def widths(self):
        return self.shape.keys["feed_forward_length"]

    def tensors(self):
        s = self.shape
        self.global_tensors()
        for layer, width in enumerate(self.widths()):
            block = f"blk.{layer}."
            if width:
                self.norm(block + "attn_norm", s.dim)
                self.experts_of(block) if s.experts else self.feed_forward_of(block, width)
            elif s.scan.layers[layer]:
                self.mamba(block, s.scan)
            else:
                self.attention(block, s.n_heads, s.n_kv_heads)

    def feed_forward_of(self, block, width):
        self.linear(block + "ffn_up", width, self.shape.dim)
        self.linear(block + "ffn_down", self.shape.dim, width)

    def experts_of(self, block):
        s, e, prefix = self.shape, self.shape.experts, block + "ffn_"
        latent = s.keys.get("moe_latent_size", 0)
        dim = latent or s.dim
        self.random_f32(prefix + "gate_inp.weight", e.count, s.dim, std=0.5)
        self.vector(block + "exp_probs_b.bias", e.count, std=e.selection_bias)
        if latent:
            self.linear(prefix + "latent_down", latent, s.dim)
            self.linear(prefix + "latent_up", s.dim, latent)
        self.weight(prefix + "up_exps.weight", e.count, e.ff_dim, dim)
        self.weight(prefix + "down_exps.weight", e.count, dim, e.ff_dim)
        self.linear(prefix + "up_shexp", e.shared_ff_dim, s.dim)
        self.linear(prefix + "down_shexp", s.dim, e.shared_ff_dim)


class FalconH1Writer(ModelWriter):
    def tensors(self):
        s = self.shape
        self.global_tensors()
        for layer in range(s.n_layers):
            block = f"blk.{layer}."
            self.mamba(block, s.scan)
            self.attention(block, s.n_heads, s.n_kv_heads)
            self.vector(block + "ffn_norm", s.dim, std=0.2, mean=1.0)
            self.linear(block + "ffn_gate", s.ff_dim, s.dim)
            self.linear(block + "ffn_up", s.ff_dim, s.dim)
            self.linear(block + "ffn_down", s.dim, s.ff_dim)

    def attention(self, block, n_heads, n_kv_heads):
        """Without a norm of its own."""
        self.shape, shape = replace(self.shape, pre_norms=False), self.shape
        super().attention(block, n_heads, n_kv_heads)
        self.shape = shape
