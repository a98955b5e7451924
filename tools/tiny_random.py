"""Random numbers and weights of tiny models: the same bytes on every machine, since they are uniform numbers of numpy's
frozen RandomState and no sum whose order could depend on the CPU decides about them."""
import hashlib
import math

import gguf
import gguf.quants
import numpy as np

Type = gguf.GGMLQuantizationType

# Where a block keeps its f16 scale, and its f16 minimum with the multiple of the scale that makes the mean about zero.
SCALE_AT = {"Q2_K": 80, "Q3_K": 108, "Q6_K": 208}  # 0 for the others
MINIMUM_AT = {"Q4_1": (2, -7.5), "Q5_1": (2, -15.5), "Q2_K": (82, 1.5), "Q4_K": (2, 7.5), "Q5_K": (2, 15.5)}


class Random:
    """Numbers that depend on a name only."""

    def __init__(self, name):
        self.state = np.random.RandomState(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))

    def uniform(self, shape, std, mean=0.0):
        return ((self.state.random_sample(shape) - 0.5) * (std * math.sqrt(12)) + mean).astype(np.float32)

    def bytes(self, shape):
        return self.state.randint(0, 256, shape, dtype=np.uint8)

    def token_ids(self, n, n_ids):
        return [int(i) for i in self.state.randint(0, n_ids, n)]


def random_weights(random, t, rows, cols):
    """[rows, cols] of valid random blocks whose values have a standard deviation of about 1.2 / sqrt(cols)."""
    std = 1.2 / math.sqrt(cols)
    if t == Type.F32:
        return random.uniform((rows, cols), std)
    if t == Type.F16:
        return random.uniform((rows, cols), std).astype(np.float16)
    if t == Type.BF16:
        high = (random.uniform((rows, cols), std).view(np.uint32) >> 16).astype(np.uint16)
        return high.view(np.uint8).reshape(rows, cols * 2)
    weights, size = gguf.GGML_QUANT_SIZES[t]
    if cols % weights:
        raise ValueError(f"{t.name} needs rows of a multiple of {weights} weights, not {cols}")
    blocks = random.bytes((rows * cols // weights, size))
    if t == Type.MXFP4:
        blocks[:, 0] = 127 + math.floor(math.log2(std / 4)) + blocks[:, 0] % 3
    else:
        scale_blocks(random, blocks, t, std)
    return blocks.reshape(rows, cols // weights * size)


def scale_blocks(random, blocks, t, std):
    """Sets the f16 scales of blocks of random bytes: they vary by a factor, the values get the standard deviation."""
    vary = random.uniform((len(blocks),), 1 / 8, 1.0)

    def set_scales(scale):
        put_f16(blocks, SCALE_AT.get(t.name, 0), vary * np.float32(scale))
        if t.name in MINIMUM_AT:
            at, multiple = MINIMUM_AT[t.name]
            put_f16(blocks, at, vary * np.float32(scale * multiple))

    set_scales(1 / 64)
    measured = gguf.quants.dequantize(blocks, t).astype(np.float64).std()
    # To 8 bits: how numpy sums, and so the last bits of what it measured, depends on the CPU.
    mantissa, exponent = math.frexp(std / 64 / measured)
    set_scales(math.ldexp(round(mantissa * 256) / 256, exponent))


def put_f16(blocks, at, values):
    blocks[:, at : at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)
