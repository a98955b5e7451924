"""Writes tiny models of Gemma 3n; tiny_model.py has the list."""
from dataclasses import dataclass, replace

from tiny_writer import ModelWriter

LAUREL = 64  # no key says so


@dataclass(frozen=True)
class Gemma3n:
    """What these have beyond a Shape."""

    sparsity: tuple[float, ...]  # of each layer's gates; -inf: none
    n_shared: int  # layers at the end without keys and values of their own
    streams: int = 4
    width: int = 12  # of per-layer inputs


class Gemma3nWriter(ModelWriter):
    def keys(self):
        s, g = self.shape, self.shape.gemma3n
        keys = {
            "altup.num_inputs": g.streams,
            "altup.active_idx": 0,
            "activation_sparsity_scale": list(g.sparsity),
            "attention.shared_kv_layers": g.n_shared,
            "embedding_length_per_layer_input": g.width,
        }
        self.shape = replace(s, keys=keys | s.keys)
        super().keys()

    def tensors(self):
        s, g = self.shape, self.shape.gemma3n
        self.global_tensors()
        self.random_f32("per_layer_token_embd.weight", s.n_vocab, g.width * s.n_layers, std=0.3)
        self.linear("per_layer_model_proj", g.width * s.n_layers, s.dim)
        self.norm("per_layer_proj_norm", g.width)
        for name in ("altup_proj", "altup_unembd_proj"):
            self.weight(name + ".weight", g.streams - 1, s.dim, s.dim)
        for layer in range(s.n_layers):
            self.layer(f"blk.{layer}.")

    def layer(self, block):
        s, g = self.shape, self.shape.gemma3n
        n = g.streams
        for name in ("attn_norm", "ffn_norm"):
            self.norm(block + name, s.dim)
        for name in ("post_attention_norm", "laurel_post_norm", "post_ffw_norm", "post_norm"):
            self.vector(f"{block}{name}.weight", s.dim, std=0.1, mean=0.3)  # small: many layers must not blow up rounding
        for name, n_out in (("q", s.n_heads), ("k", s.n_kv_heads), ("v", s.n_kv_heads)):  # read or not
            self.linear(block + "attn_" + name, n_out * s.head_dim, s.dim)
        for name in "qk":
            self.vector(f"{block}attn_{name}_norm.weight", s.head_dim, std=0.1, mean=0.45)
        self.linear(block + "attn_output", s.dim, s.n_heads * s.head_dim)
        self.linear(block + "laurel_l", LAUREL, s.dim)
        self.linear(block + "laurel_r", s.dim, LAUREL)
        for name in ("gate", "up"):
            self.linear(block + "ffn_" + name, s.ff_dim, s.dim)
        self.linear(block + "ffn_down", s.dim, s.ff_dim)
        self.random_f32(block + "altup_router.weight", n, s.dim, std=6.0)  # over the root of dim
        self.vector(block + "altup_router_norm.weight", s.dim, std=0.3, mean=1.0)
        self.random_f32(block + "altup_predict_coef.weight", n * n, n, std=0.1)
        self.random_f32(block + "altup_correct_coef.weight", n, n, std=0.2)
        self.vector(block + "altup_correct_scale.weight", s.dim, std=0.3, mean=1.0)
        self.linear(block + "inp_gate", g.width, s.dim)
        self.linear(block + "proj", s.dim, g.width)
