"""Layers with a state of fixed size in float64 for reference_model.py: token by token, as the papers define them.

Source: Gated Delta Networks (arXiv:2412.06464) as Qwen3-Next and Qwen3.5 use them; Kimi Linear (arXiv:2510.26692);
Mamba-2 (arXiv:2405.21060) as Granite 4 uses it; LFM2 (arXiv:2511.23404).
"""
import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.logaddexp(0, x)


class History:
    """What a layer has kept of the tokens before: columns of its convolution, and its state."""

    def __init__(self):
        self.columns, self.state = {}, None

    def convolve(self, name, x, weight, bias=0.0):
        """Causal, each channel by itself; x: [n, channels], weight: [channels, taps], the oldest value's first."""
        taps = weight.shape[1]
        before = self.columns.get(name, np.zeros((taps - 1, x.shape[1])))
        rows = np.concatenate([before, x])
        self.columns[name] = rows[len(rows) - taps + 1 :]
        return sum(rows[j : j + len(x)] * weight[:, j] for j in range(taps)) + bias

    def delta_rule(self, q, k, v, decay, beta):
        """q, k: [n, heads, D]; v: [n, heads, M]; decay: [n, heads, D or 1], a logarithm; beta: [n, heads]."""
        if self.state is None:
            self.state = np.zeros((k.shape[1], k.shape[2], v.shape[2]))
        out = np.empty(v.shape)
        for t in range(len(q)):
            self.state = self.state * np.exp(decay[t])[:, :, None]
            error = beta[t][:, None] * (v[t] - np.einsum("hdm,hd->hm", self.state, k[t]))
            self.state = self.state + k[t][:, :, None] * error[:, None]
            out[t] = np.einsum("hdm,hd->hm", self.state, q[t])
        return out


class Recurrent:
    """What the kinds share; model.kv[layer, "state"] is the layer's History."""

    def __init__(self, model):
        self.model, self.file, self.eps = model, model.file, model.eps
        self.taps = model.file.get("ssm.conv_kernel")

    def history(self, layer):
        return self.model.kv.setdefault((layer, "state"), History())

    def unit(self, x):
        return x / np.sqrt((x * x).sum(-1, keepdims=True) + self.eps)


class GatedDelta(Recurrent):
    """tiled: head h of v belongs to head h mod (heads of k); otherwise neighbours share one."""

    def __init__(self, model, tiled):
        super().__init__(model)
        get = self.file.get
        self.dim, self.n_keys, self.n_heads = get("ssm.state_size"), get("ssm.group_count"), get("ssm.time_step_rank")
        if get("ssm.inner_size") != self.n_heads * self.dim:
            raise ValueError("ssm.inner_size is not that of all heads")
        head, group = np.arange(self.n_heads), self.n_heads // self.n_keys
        self.key_of, self.group = head % self.n_keys if tiled else head // group, group
        flags, interval = get("attention.recurrent_layers", None), get("full_attention_interval", 4)
        self.layers = {i for i in range(model.n_layers) if (flags[i] if flags else (i + 1) % interval)}

    def inputs(self, x, block):
        """q, k and v beside each other, and the gate."""
        if block + "ssm_in.weight" not in self.file.tensors:
            return self.file.linear(x, block + "attn_qkv"), self.file.linear(x, block + "attn_gate")
        both = self.file.linear(x, block + "ssm_in").reshape(len(x), self.n_keys, -1)
        d, m = self.dim, self.group * self.dim
        q, k, v, gate = np.split(both, [d, 2 * d, 2 * d + m], axis=2)
        return np.concatenate([part.reshape(len(x), -1) for part in (q, k, v)], axis=1), gate.reshape(len(x), -1)

    def beta_decay(self, x, block):
        if block + "ssm_ba.weight" not in self.file.tensors:
            return self.file.linear(x, block + "ssm_beta"), self.file.linear(x, block + "ssm_alpha")
        both = self.file.linear(x, block + "ssm_ba").reshape(len(x), self.n_keys, 2, self.group)
        return both[:, :, 0].reshape(len(x), -1), both[:, :, 1].reshape(len(x), -1)

    def __call__(self, x, layer):
        block, tensor, history = f"blk.{layer}.", self.file.tensor, self.history(layer)
        mixed, gate = self.inputs(x, block)
        beta, decay = self.beta_decay(x, block)
        mixed = silu(history.convolve("qkv", mixed, tensor(block + "ssm_conv1d.weight")))
        n_keys = self.n_keys * self.dim
        q, k, v = (part.reshape(len(x), -1, self.dim) for part in np.split(mixed, [n_keys, 2 * n_keys], axis=1))
        q, k = self.unit(q)[:, self.key_of] / math.sqrt(self.dim), self.unit(k)[:, self.key_of]
        decay = tensor(block + "ssm_a") * softplus(decay + tensor(block + "ssm_dt.bias"))
        out = history.delta_rule(q, k, v, decay[:, :, None], sigmoid(beta))
        out = self.model.norm(out, block + "ssm_norm") * silu(gate.reshape(out.shape))
        return self.file.linear(out.reshape(len(x), -1), block + "ssm_out")


class KimiDelta(Recurrent):
    """Each row of a head's state decays by itself; a sigmoid gates the output."""

    def __init__(self, model):
        super().__init__(model)
        self.dim, self.n_heads = self.file.get("kda.head_dim"), model.n_heads[0]
        self.bound = self.file.get("kda.gate_lower_bound", None)
        self.layers = {i for i, heads in enumerate(model.n_kv_heads) if heads == 0}

    def heads(self, x):
        return x.reshape(len(x), self.n_heads, self.dim)

    def inputs(self, x, block):
        if block + "attn_qkv.weight" in self.file.tensors:
            return np.split(self.file.linear(x, block + "attn_qkv"), 3, axis=1)
        return [self.file.linear(x, f"{block}attn_{name}") for name in "qkv"]

    def up(self, x, name):
        return self.heads(self.file.linear(self.file.linear(x, name + "_a"), name + "_b"))

    def __call__(self, x, layer):
        block, tensor, history = f"blk.{layer}.", self.file.tensor, self.history(layer)
        q, k, v = (
            self.heads(silu(history.convolve(name, y, tensor(f"{block}ssm_conv1d_{name}.weight").reshape(-1, self.taps))))
            for name, y in zip("qkv", self.inputs(x, block))
        )
        decay = self.up(x, block + "ssm_f") + self.heads(tensor(block + "ssm_dt.bias")[None])
        a = tensor(block + "ssm_a").reshape(-1, 1)
        decay = a * softplus(decay) if self.bound is None else self.bound * sigmoid(-a * decay)
        beta = sigmoid(self.file.linear(x, block + "ssm_beta"))
        out = history.delta_rule(self.unit(q) / math.sqrt(self.dim), self.unit(k), v, decay, beta)
        joined = block + "ssm_g.weight" in self.file.tensors
        gate = self.heads(self.file.linear(x, block + "ssm_g")) if joined else self.up(x, block + "ssm_g")
        out = self.model.norm(out, block + "ssm_norm") * sigmoid(gate)
        return self.file.linear(out.reshape(len(x), -1), block + "attn_output")


class Scan(Recurrent):
    """Mamba-2: every head's state decays by its step, and takes its input times the step."""

    def __init__(self, model):
        super().__init__(model)
        get = self.file.get
        self.n_rows, self.n_groups, self.n_heads = (
            get("ssm." + key) for key in ("state_size", "group_count", "time_step_rank")
        )
        self.inner = get("ssm.inner_size")
        self.layers = {i for i, heads in enumerate(model.n_kv_heads) if heads == 0}

    def __call__(self, x, layer):
        block, tensor, history, n = f"blk.{layer}.", self.file.tensor, self.history(layer), len(x)
        keys = self.n_groups * self.n_rows
        gate, mixed, step = np.split(
            self.file.linear(x, block + "ssm_in"), [self.inner, 2 * self.inner + 2 * keys], axis=1
        )
        bias = tensor(block + "ssm_conv1d.bias")
        mixed = history.convolve("vkq", mixed, tensor(block + "ssm_conv1d.weight"), 0.0 if bias is None else bias)
        v, k, q = np.split(silu(mixed), [self.inner, self.inner + keys], axis=1)
        v = v.reshape(n, self.n_heads, -1)
        key_of = np.arange(self.n_heads) // (self.n_heads // self.n_groups)
        k, q = (part.reshape(n, self.n_groups, -1)[:, key_of] for part in (k, q))
        step = softplus(step + tensor(block + "ssm_dt.bias"))
        decay = np.exp(step * tensor(block + "ssm_a").reshape(-1))
        if history.state is None:
            history.state = np.zeros((self.n_heads, self.n_rows, v.shape[2]))
        out = np.empty(v.shape)
        for t in range(n):
            new = k[t][:, :, None] * (step[t][:, None] * v[t])[:, None]
            history.state = history.state * decay[t][:, None, None] + new
            out[t] = np.einsum("hdm,hd->hm", history.state, q[t])
        out = (out + tensor(block + "ssm_d").reshape(-1, 1) * v).reshape(n, -1) * silu(gate)
        if block + "ssm_norm.weight" not in self.file.tensors:
            return self.file.linear(out, block + "ssm_out")
        groups = out.reshape(n, self.n_groups, -1)
        groups = groups / np.sqrt((groups * groups).mean(-1, keepdims=True) + self.eps)
        return self.file.linear((groups * tensor(block + "ssm_norm.weight")).reshape(n, -1), block + "ssm_out")


class ShortConvolution(Recurrent):
    """LFM2: a gate, a convolution without an activation, a gate."""

    def __init__(self, model):
        self.model, self.file, self.eps = model, model.file, model.eps
        self.taps = self.file.get("shortconv.l_cache")
        self.layers = {i for i, heads in enumerate(model.n_kv_heads) if heads == 0}

    def __call__(self, x, layer):
        block = f"blk.{layer}.shortconv."
        before, after, y = np.split(self.file.linear(x, block + "in_proj"), 3, axis=1)
        weight = self.file.tensor(block + "conv.weight").reshape(-1, self.taps)
        return self.file.linear(after * self.history(layer).convolve("", before * y, weight), block + "out_proj")
