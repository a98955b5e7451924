#!/usr/bin/env python3
"""Writes tests/quant/golden.txt: what the Python package gguf decodes and encodes, as hashes.

usage: $(tools/venv) tools/quant_golden.py [FILE]

tests/quant/golden_test.cc makes the same blocks and values from the same random numbers and compares hashes, so the
test needs no Python. A line is: kind, type, part, hash of what goes in, hash of what comes out. A part has 64 blocks;
several parts per type, to see where two sides differ.
"""
import hashlib
import pathlib
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

PARTS = 8
BLOCKS = 64
NAN = 0x7FC00000

# Where f16 fields lie in a block.
HALVES = {T.F16: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.IQ4_NL: [0],
          T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_XS: [0]}
# Zeros, denormals, the smallest and largest normal numbers, infinities, quiet and signalling NaN.
SPECIAL = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFD01]
DECODED = [T.F32, T.F16, T.BF16, T.F64, T.I8, T.I16, T.I32, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.IQ4_NL, T.MXFP4,
           T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_XS]
PLAIN = {T.F64: np.float64, T.I8: np.int8, T.I16: np.int16, T.I32: np.int32}
ENCODED = [T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.MXFP4]


def numbers(seed, count):
    """splitmix64: number i of the stream depends on seed and i alone."""
    with np.errstate(over="ignore"):
        z = (np.uint64(seed) << np.uint64(32)) + np.arange(1, count + 1, dtype=np.uint64)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fnv(data):
    """Hashes 32-bit words (bytes are zero-extended): quick enough in Python, and easy in C++."""
    h = 0xCBF29CE484222325
    for word in np.asarray(data).tolist():
        h = (h ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def blocks_of(kind, part):
    """Random bytes; every second scale is one of SPECIAL."""
    size = GGML_QUANT_SIZES[kind][1]
    data = numbers(int(kind) * 16 + part, BLOCKS * size).astype(np.uint8).reshape(BLOCKS, size)
    for block in range(0, BLOCKS, 2):
        for field, at in enumerate(HALVES.get(kind, [])):
            value = SPECIAL[(block // 2 + 3 * field + part) % len(SPECIAL)]
            data[block, at:at + 2] = value & 255, value >> 8
        if kind == T.MXFP4:
            data[block, 0] = [0, 1, 2, 254, 255][(block // 2 + part) % 5]
    return data


def values_of(kind, part):
    """Sums of four uniform numbers times a power of two: exact in float. Some blocks are zero or constant."""
    per_block = max(GGML_QUANT_SIZES[kind][0], 32)
    count = BLOCKS * per_block
    draws = (numbers(int(kind) * 16 + part + 1024, 4 * count) >> np.uint64(43)).astype(np.int64).reshape(count, 4)
    values = (draws.sum(axis=1) - 2 * (1 << 21)).astype(np.float32).reshape(BLOCKS, per_block)
    values *= np.float32(2.0) ** ((np.arange(BLOCKS) * 7 + part) % 30 - 36).astype(np.float32)[:, None]
    values[5] = 0
    values[6] = values[6, 0]
    values[7, 1:] = 0
    return values


def canonical(values):
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).copy().reshape(-1)
    bits[np.isnan(bits.view(np.float32))] = NAN
    return bits


def decode(kind, data):
    with np.errstate(all="ignore"):
        if kind in PLAIN:
            return data.view(PLAIN[kind]).astype(np.float32)
        return dequantize(data, kind)


def lines():
    for kind in DECODED:
        for part in range(PARTS):
            data = blocks_of(kind, part)
            yield "decode", kind, part, fnv(data.reshape(-1)), fnv(canonical(decode(kind, data)))
    for kind in ENCODED:
        for part in range(PARTS):
            values = values_of(kind, part)
            encoded = quantize(values, kind).view(np.uint8).reshape(-1)
            yield "encode", kind, part, fnv(canonical(values)), fnv(encoded)


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "quant" / "golden.txt"
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    version = __import__("importlib.metadata").metadata.version("gguf")
    source = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()[:12]
    text = [f"# made_by: tools/quant_golden.py ({source}), gguf {version}, numpy {np.__version__}"]
    for what, kind, part, before, after in lines():
        text.append(f"{what} {kind.name} {part} {before:016x} {after:016x}")
    path.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
