"""Writes tiny models of DeepSeek V4; tiny_model.py has the list."""
import math
from dataclasses import dataclass, replace

import numpy as np

from tiny_writer import ModelWriter

N_STREAMS = 4
N_MIXES = N_STREAMS * (N_STREAMS + 2)


@dataclass(frozen=True)
class DeepSeek4:
    """What these have beyond a Shape. ratios: by layer, positions that a compressed row stands for; 0: there are none."""

    ratios: tuple[int, ...] = (0, 4, 128, 4)
    n_hashed: int = 1  # layers whose experts are looked up by token
    window: int = 16
    rope: int = 16
    q_dim: int = 24
    groups: int = 2  # of heads, for the way out
    out_dim: int = 16  # of each
    index: tuple[int, int, int] = (8, 64, 3)  # heads, their size, rows chosen
    mixings: int = 20
    limit: float | tuple[float, ...] = 2.0
    shared_limit: tuple[float, ...] = ()  # (): as the others


class DeepSeek4Writer(ModelWriter):
    def keys(self):
        s, v = self.shape, self.shape.deepseek4
        heads, dim, top_k = v.index
        keys = {
            "attention.head_count_kv": 1,
            "attention.q_lora_rank": v.q_dim,
            "attention.sliding_window": v.window,
            "attention.output_group_count": v.groups,
            "attention.output_lora_rank": v.out_dim,
            "attention.compress_ratios": list(v.ratios),
            "attention.compress_rope_freq_base": 1600.0,
            "attention.indexer.head_count": heads,
            "attention.indexer.key_length": dim,
            "attention.indexer.top_k": top_k,
            "rope.dimension_count": v.rope,
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 64,
            "hyper_connection.count": N_STREAMS,
            "hyper_connection.sinkhorn_iterations": v.mixings,
            "hyper_connection.epsilon": 1e-6,
            "hash_layer_count": v.n_hashed,
            "expert_shared_count": 1,
            "expert_weights_scale": 1.5,
            "expert_weights_norm": True,
            "expert_gating_func": 4,
            "embedding_length_out": N_STREAMS * s.dim,
            "swiglu_clamp_exp": list(v.limit) if isinstance(v.limit, tuple) else v.limit,
        }
        if v.shared_limit:
            keys["swiglu_clamp_shexp"] = list(v.shared_limit)
        self.shape = replace(s, keys=s.keys | keys)
        super().keys()

    def tensors(self):
        s, v = self.shape, self.shape.deepseek4
        self.global_tensors()
        self.mixing("output_hc", N_STREAMS, 1)
        for layer, ratio in enumerate(v.ratios):
            block = f"blk.{layer}."
            for name in ("attn", "ffn"):
                self.norm(f"{block}{name}_norm", s.dim)
                self.mixing(f"{block}hc_{name}", N_MIXES, 3)
            self.attention_of(block, ratio)
            self.expert_tensors(block + "ffn_")
            if layer < v.n_hashed:
                table = [self.random.state.permutation(s.experts.count)[: s.experts.used] for _ in range(s.n_vocab)]
                self.file.add_tensor(block + "ffn_gate_tid2eid.weight", np.stack(table).astype(np.int32))
            else:
                self.vector(block + "exp_probs_b.bias", s.experts.count, std=s.experts.selection_bias)

    def mixing(self, name, n_out, n_scales):
        n_in = N_STREAMS * self.shape.dim
        self.random_f32(name + "_fn.weight", n_out, n_in, std=1.2 / math.sqrt(n_in))
        self.vector(name + "_base.weight", n_out, std=0.6)
        self.vector(name + "_scale.weight", n_scales, std=0.2, mean=1.0)

    def attention_of(self, block, ratio):
        s, v = self.shape, self.shape.deepseek4
        heads, index_dim, _ = v.index
        self.linear(block + "attn_q_a", v.q_dim, s.dim)
        self.norm(block + "attn_q_a_norm", v.q_dim)
        self.linear(block + "attn_q_b", s.n_heads * s.head_dim, v.q_dim)
        self.linear(block + "attn_kv", s.head_dim, s.dim)
        self.norm(block + "attn_kv_a_norm", s.head_dim)
        self.vector(block + "attn_sinks.weight", s.n_heads, std=1.0)
        self.linear(block + "attn_output_a", v.groups * v.out_dim, s.n_heads * s.head_dim // v.groups)
        self.linear(block + "attn_output_b", s.dim, v.groups * v.out_dim)
        if ratio:
            self.compressor(block + "attn_compressor_", ratio, s.head_dim)
        if ratio == 4:
            self.compressor(block + "indexer_compressor_", ratio, index_dim)
            self.linear(block + "indexer.proj", heads, s.dim)
            self.linear(block + "indexer.attn_q_b", heads * index_dim, v.q_dim)

    def compressor(self, prefix, ratio, dim):
        width = 2 * dim if ratio == 4 else dim
        self.linear(prefix + "kv", width, self.shape.dim)
        self.linear(prefix + "gate", width, self.shape.dim)
        self.random_f32(prefix + "ape.weight", ratio, width, std=0.6)
        self.norm(prefix + "norm", dim)
