"""Feed-forward blocks and experts in float64, for reference_model.py."""
import numpy as np

from reference_math import gelu, gelu_erf, sigmoid, silu, softmax

SMALLEST_WEIGHT_SUM = 6.103515625e-5  # of routing weights before they are renormalized: the smallest normal f16


class FeedForward:
    """Of a Model, which is one."""

    def gated(self, gate, up, limit=0.0):
        """limit: of what the activation gives, and of up on both sides; 0: none."""
        if self.kimi_k3:
            return self.kimi_k3.gated(gate, up)
        if limit > 1e-6:
            return np.minimum(silu(gate), limit) * np.clip(up, -limit, limit)
        if self.family.activation == "clamped":
            gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
            return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
        activation = {"gelu": gelu, "relu": lambda z: np.maximum(z, 0)}.get(self.family.activation, silu)
        return activation(gate) * up

    def xielu(self, x, layer):
        values = [self.file.bare_keys["xielu." + name] for name in ("alpha_p", "alpha_n", "beta", "eps")]
        alpha_p, alpha_n, beta, eps = (v[layer] if isinstance(v, list) else v for v in values)
        alpha_p, alpha_n = np.logaddexp(0, alpha_p), beta + np.logaddexp(0, alpha_n)
        below = (np.expm1(np.minimum(x, eps)) - x) * alpha_n
        return np.where(x > 0, alpha_p * x * x, below) + beta * x

    def feed_forward(self, x, layer):
        prefix = f"blk.{layer}.ffn_"
        if self.has_experts(layer):
            routed = (self.kimi_k3 or self).experts(x, layer, prefix, self.routed)
            shared = self.shared_experts(x, prefix, self.limit("swiglu_clamp_shexp", layer))
            average = self.family.averages_shared and isinstance(shared, np.ndarray)
            return (routed + shared) / (2 if average else 1)
        if not self.family.gated:
            act = {"gelu": gelu, "gelu_erf": gelu_erf, "relu2": lambda z: np.maximum(z, 0) ** 2}.get(self.family.activation)
            act = act or (lambda z: self.xielu(z, layer))
            return self.file.linear(act(self.file.linear(x, prefix + "up")), prefix + "down")
        if prefix + "gate.weight" in self.file.tensors:
            gate, up = self.file.linear(x, prefix + "gate"), self.file.linear(x, prefix + "up")
        else:  # one matrix
            gate, up = np.split(self.file.linear(x, prefix + "up"), 2, axis=1)
        return self.file.linear(self.gated(gate, up, self.limit("swiglu_clamp_shexp", layer)), prefix + "down")

    def limit(self, key, layer):
        limits = self.file.get(key, 0.0) if self.family.late_limits else 0.0
        return limits[layer] if isinstance(limits, list) else limits

    def route(self, x, layer, prefix):
        """(experts [n, used], their weights): the best first, the lower index where two are equal."""
        logits, bias = self.file.linear(x, prefix + "gate_inp"), self.file.tensor(f"blk.{layer}.exp_probs_b.bias")
        bias = self.file.tensor(f"blk.{layer}.exp_probs_b") if bias is None else bias
        if self.gating == "near":
            best = self.largest(logits, self.n_used_experts)
            return best, self.near_weights(logits, best)
        share = {"softmax": softmax, "sigmoid": sigmoid, "selected": lambda z: z}[self.gating](logits)
        if bias is None and self.n_groups == 1:
            best = self.largest(logits, self.n_used_experts)  # as of the scores, with margins that do not shrink
        else:
            score = share if bias is None else share + bias
            best = self.largest(self.in_best_groups(score), self.n_used_experts)
        weight = np.take_along_axis(share, best, -1)
        if self.gating == "selected":
            weight = softmax(weight)
        if self.renormalized:
            weight = weight / np.maximum(weight.sum(-1, keepdims=True), SMALLEST_WEIGHT_SUM)
        return best, weight * self.expert_scale

    def near_weights(self, logits, best):
        """Each of the best shares with those within 2 % of it that are not better."""
        left, weight = logits.copy(), np.empty(best.shape)
        for i in range(best.shape[1]):
            top = np.take_along_axis(logits, best[:, i : i + 1], -1)
            distance = (top - logits) / np.maximum(np.abs(logits), top)
            self.router_margin = min(self.router_margin, float(np.abs(distance - 0.02).min()))
            weight[:, i] = 1 / np.exp(np.where(distance > 0.02, -np.inf, left) - top).sum(-1)
            np.put_along_axis(left, best[:, i : i + 1], -np.inf, -1)
        return weight

    def largest(self, values, n):
        """Where the n largest of each row are."""
        order = np.argsort(-values, axis=-1, kind="stable")
        if n < values.shape[-1]:
            last, next_best = (np.take_along_axis(values, order[:, i : i + 1], -1) for i in (n - 1, n))
            self.router_margin = min(self.router_margin, float((last - next_best).min()))
        return order[:, :n]

    def in_best_groups(self, score):
        """Scores, minus infinity outside of the groups whose two best are the largest together."""
        grouped = score.reshape(len(score), self.n_groups, -1)
        if self.n_groups == 1:
            return score
        n_best = 1 if self.latent and self.gating == "softmax" else 2  # DeepSeek V2 and V3
        best = self.largest(np.sort(grouped, -1)[:, :, -n_best:].sum(-1), self.n_used_groups)
        out = np.full_like(grouped, -np.inf)
        rows = np.arange(len(score))[:, None]
        out[rows, best] = grouped[rows, best]
        return out.reshape(score.shape)

    def experts(self, x, layer, prefix, routed=None):
        """routed: what the router reads, where that is something else."""
        best, weight = self.route(x if routed is None else routed, layer, prefix)
        matrix = {name: self.file.tensor(f"{prefix}{name}_exps.weight") for name in ("gate", "up", "down")}
        if matrix["gate"] is None and self.family.gated:  # one matrix
            matrix["gate"], matrix["up"] = np.split(self.file.tensor(f"{prefix}gate_up_exps.weight"), 2, axis=1)
        scale = self.file.tensor(f"{prefix}down_exps.scale")
        if scale is not None:
            weight = weight * scale[best]
        bias = {name: self.file.tensor(f"{prefix}{name}_exps.bias") for name in matrix}

        def inner(expert, h):
            if matrix["gate"] is None:
                return np.maximum(project("up", expert, h), 0) ** 2
            return self.gated(project("gate", expert, h), project("up", expert, h), self.limit("swiglu_clamp_exp", layer))

        def project(name, expert, h):
            y = h @ matrix[name][expert].T
            return y if bias[name] is None else y + bias[name][expert]

        out = np.zeros_like(x)
        for expert in np.unique(best):
            rows, slot = np.nonzero(best == expert)
            weights = weight[rows, slot][:, None]
            if self.family.llama4:
                out[rows] += project("down", expert, inner(expert, weights * x[rows]))
            else:
                out[rows] += weights * project("down", expert, inner(expert, x[rows]))
        return out

    def shared_experts(self, x, prefix, limit=0.0):
        """What all tokens get, in some families times a weight of its own; 0 where there is none."""
        if prefix + "down_shexp.weight" not in self.file.tensors:
            return 0
        h = self.file.linear(x, prefix + "up_shexp")
        gated = self.family.gated
        h = self.gated(self.file.linear(x, prefix + "gate_shexp"), h, limit) if gated else np.maximum(h, 0) ** 2
        out, gate = self.file.linear(h, prefix + "down_shexp"), self.file.tensor(prefix + "gate_inp_shexp.weight")
        return out if gate is None else out * sigmoid(x @ gate)[:, None]
