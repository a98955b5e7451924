"""What tells the positions apart, in float64 for reference_model.py."""
import math

import numpy as np

from reference_file import Unsupported

YARN_BETA_FAST, YARN_BETA_SLOW = 32.0, 1.0


def slopes(n_heads, most=8.0):
    """ALiBi: the powers of 2^(-most/n), and between them for heads beyond a power of two."""
    n = 2 ** int(math.log2(n_heads))
    first = [2 ** (-most / n * (h + 1)) for h in range(n)]
    return np.array(first + [2 ** (-most / 2 / n * (2 * h + 1)) for h in range(n_heads - n)])


class Rope:
    """Angle per position and pair, and the factor on sine and cosine."""

    def __init__(self, file, base, scaled, n_ctx, yarn_truncate, yarn_keys=False, n_dims=0):
        self.yarn_keys = file.get if yarn_keys else lambda key, default: default
        self.n_dims = n_dims or file.get("rope.dimension_count", file.get("attention.key_length"))
        self.magnitude = float(file.get("rope.scaling.attn_factor", 1.0))
        pair = np.arange(self.n_dims // 2)
        self.frequency = float(base) ** (-2.0 * pair / self.n_dims)
        kind, factor = file.get("rope.scaling.type", "linear"), float(file.get("rope.scaling.factor", 0.0)) or 1.0
        original = file.get("rope.scaling.original_context_length", file.get("context_length"))
        divisors = self.divisors(file, kind, n_ctx > original)
        if divisors is not None and scaled:
            self.frequency = self.frequency / divisors[: len(pair)]
        if not scaled or kind in ("none", "longrope") or factor == 1.0:
            return
        if kind == "linear":
            self.frequency = self.frequency / factor
        elif kind == "yarn":
            self.yarn(pair, base, factor, original, yarn_truncate)
        else:
            raise Unsupported(f"rope scaling {kind}")

    @staticmethod
    def divisors(file, kind, is_long):
        """Llama 3's factors, or for LongRoPE the set that belongs to the allocated context."""
        chosen = file.tensor("rope_freqs.weight")
        if kind == "longrope" or "rope_factors_long.weight" in file.tensors:
            pair = file.tensor("rope_factors_long.weight"), file.tensor("rope_factors_short.weight")
            chosen = pair[0 if is_long else 1] if chosen is None else chosen
        return chosen

    def yarn(self, pair, base, factor, original, truncate):
        def pair_that_turns(times):
            return self.n_dims * math.log(original / (2 * math.pi * times)) / (2 * math.log(base))

        get = self.yarn_keys
        low = pair_that_turns(get("rope.scaling.yarn_beta_fast", YARN_BETA_FAST))
        high = pair_that_turns(get("rope.scaling.yarn_beta_slow", YARN_BETA_SLOW))
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(0, low), min(self.n_dims - 1, high)
        keep = 1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)
        self.frequency = self.frequency * (keep + (1 - keep) / factor)
        back = get("rope.scaling.yarn_log_multiplier", 0.0)
        usual = (0.1 * math.log(factor) + 1) / (0.1 * back * math.log(factor) + 1)
        self.magnitude *= get("rope.scaling.yarn_attn_factor", 0.0) or usual

    def turn(self, x, positions, pairs):
        """x: [n, heads, D]; the first n_dims of a head are turned."""
        angle = positions[:, None, None] * self.frequency
        cos, sin = self.magnitude * np.cos(angle), self.magnitude * np.sin(angle)
        if pairs == "neighbours":
            a, b = np.s_[..., 0 : self.n_dims : 2], np.s_[..., 1 : self.n_dims : 2]
        else:
            a, b = np.s_[..., : self.n_dims // 2], np.s_[..., self.n_dims // 2 : self.n_dims]
        y = x.copy()
        y[a], y[b] = x[a] * cos - x[b] * sin, x[a] * sin + x[b] * cos
        return y
