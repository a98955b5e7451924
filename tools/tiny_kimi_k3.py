"""Writes tiny models of Kimi K3; tiny_model.py has the list."""
from dataclasses import dataclass, replace

from tiny_writer import ModelWriter


@dataclass(frozen=True)
class KimiK3:
    """What these have beyond a Shape with Kda and Latent."""

    block_size: int = 2  # layers that add to one residual; 0: all of them
    bound: float = -5.0
    beta: float = 1.5
    linear_beta: float = 2.0
    expert_dim: int = 24  # 0: that of the model
    expert_norm: bool = True
    gated: bool = True  # what latent attention gives


class KimiK3Writer(ModelWriter):
    def keys(self):
        s, k = self.shape, self.shape.kimi_k3
        keys = {
            "kda.gate_lower_bound": k.bound,
            "activation.situ_beta": k.beta,
            "activation.situ_linear_beta": k.linear_beta,
            "attn_res.block_size": k.block_size,
        }
        if k.expert_dim:
            keys["expert_latent_length"] = k.expert_dim
        self.shape = replace(s, keys=keys | s.keys)
        super().keys()

    def global_tensors(self):
        super().global_tensors()
        if self.shape.kimi_k3.block_size:
            self.vector("output_res_score.weight", self.shape.dim, std=0.3)

    def block_norm(self, name):
        super().block_norm(name)
        if self.shape.kimi_k3.block_size and name.startswith("blk."):
            self.vector(name.removesuffix("_norm") + "_res_score.weight", self.shape.dim, std=0.3)

    def delta_gates(self, block, kda):
        inner = self.shape.n_heads * kda.dim
        self.linear(block + "ssm_f_a", kda.dim, self.shape.dim)
        self.linear(block + "ssm_f_b", inner, kda.dim)
        self.linear(block + "ssm_g", inner, self.shape.dim)
        self.file.add_tensor(block + "ssm_a", self.random.uniform((self.shape.n_heads,), 0.25, -0.66))

    def latent_attention(self, block, latent):
        super().latent_attention(block, latent)
        if self.shape.kimi_k3.gated:
            self.linear(block + "attn_gate", self.shape.n_heads * latent.value, self.shape.dim)

    def expert_tensors(self, prefix):
        s, k = self.shape, self.shape.kimi_k3
        super().expert_tensors(prefix)
        if not k.expert_dim:
            return
        self.linear(prefix + "routed_down", k.expert_dim, s.dim)
        self.linear(prefix + "routed_up", s.dim, k.expert_dim)
        if k.expert_norm:
            self.norm(prefix + "routed_norm", k.expert_dim)

    def expert_dim(self):
        return self.shape.kimi_k3.expert_dim or self.shape.dim
