#!/usr/bin/python3
"""Writes the seeds of the fuzzers to tests/fuzz/corpus: small GGUF files and saved states, good ones and each of the known
ways to be bad.

Run it after changing it and commit what it writes; `ctest -R fuzz/` feeds every file to its fuzzer once.
"""
import pathlib
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
# id: weights and bytes of a block
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
         10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
         16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
         23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
         34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18), 42: (64, 18)}


class Gguf:
    """Spells a file field by field, in either byte order."""

    def __init__(self, n_tensors=0, n_keys=0, version=3, order="<"):
        self.order = order
        self.out = b"GGUF" + self.pack("IQQ", version, n_tensors, n_keys)

    def pack(self, codes, *values):
        return struct.pack(self.order + codes, *values)

    def put(self, codes, *values):
        self.out += self.pack(codes, *values)
        return self

    def text(self, text):
        data = text.encode("latin-1")
        self.out += self.pack("Q", len(data)) + data
        return self

    def key(self, name, kind):
        return self.text(name).put("I", kind)

    def value(self, name, kind, value):
        self.key(name, kind)
        return self.text(value) if kind == STRING else self.put(CODES[kind], value)

    def array(self, name, kind, values):
        self.key(name, ARRAY).put("IQ", kind, len(values))
        for value in values:
            self.text(value) if kind == STRING else self.put(CODES[kind], value)
        return self

    def tensor(self, name, dims, kind, offset):
        return self.text(name).put("I" + "Q" * len(dims) + "IQ", len(dims), *dims, kind, offset)

    def pad(self, alignment=32):
        self.out += bytes(-len(self.out) % alignment)
        return self

    def data(self, data):
        self.out += data
        return self.pad()


def every_value(order="<", version=3):
    g = Gguf(0, 2 * len(CODES) + 2, version, order)
    for kind in CODES:
        g.value(f"scalar.{kind}", kind, 1)
    g.value("text", STRING, "a\0\xff")
    for kind in CODES:
        g.array(f"array.{kind}", kind, [1, 0, 1])
    return g.array("texts", STRING, ["", "token", "\xe2\x96"])


def every_type(order="<"):
    g = Gguf(len(TYPES), 1, 3, order).value("general.architecture", STRING, "llama")
    offset = 0
    for kind, (weights, size) in TYPES.items():
        g.tensor(f"t{kind}", [weights, 2], kind, offset)
        offset += (2 * size + 31) // 32 * 32
    g.pad()
    for kind, (weights, size) in TYPES.items():
        g.data(bytes((37 * i + kind) % 256 for i in range(2 * size)))
    return g


def model():
    g = Gguf(2, 5).value("general.architecture", STRING, "llama").value("general.alignment", U32, 64)
    g.value("llama.block_count", U32, 1).array("tokenizer.ggml.tokens", STRING, ["<unk>", "a", "b"])
    g.array("tokenizer.ggml.scores", F32, [0, -1, -2])
    g.tensor("token_embd.weight", [32, 3], 8, 0).tensor("output_norm.weight", [32], 0, 128).pad(64)
    return g.data(bytes(3 * 34)).pad(64).data(bytes(128))


def shard(no, count, total=2):
    g = Gguf(1, 3).value("split.no", U16, no).value("split.count", U16, count)
    return g.value("split.tensors.count", I32, total).tensor(f"t{no}", [8], 0, 0).pad().data(bytes(32))


def one_tensor(dims, kind=0, offset=0, data=64):
    return Gguf(1, 0).tensor("t", dims, kind, offset).pad().data(bytes(data))


def seeds():
    top = 2**64 - 1
    yield "example", Gguf(1, 1).value("general.architecture", STRING, "llama").tensor("t", [3, 2], 0, 0).pad().data(
        struct.pack("<6f", 1, 2, 3, 4, 5, 6))
    yield "empty", Gguf()
    yield "model", model()
    yield "every_value", every_value()
    yield "every_value_big_endian", every_value(">")
    yield "every_value_v2", every_value(version=2)
    yield "every_type", every_type()
    yield "every_type_big_endian", every_type(">")
    yield "shard", shard(0, 2)
    yield "shards_joined", shard(0, 2).data(shard(1, 2).out)
    yield "version_1", Gguf(0, 0, 1)
    yield "version_9", Gguf(0, 0, 9)
    yield "tensor_count_wraps", Gguf(top, 0).put("64x")
    yield "key_count_wraps", Gguf(0, top).put("64x")
    yield "string_length_wraps", Gguf(0, 1).key("a", STRING).put("Q16x", top)
    yield "string_length_1g", Gguf(0, 1).key("a", STRING).put("Q16x", 2**30)
    yield "array_count_wraps", Gguf(0, 1).key("a", ARRAY).put("IQ16x", U64, 2**61 + 1)
    yield "array_of_arrays", Gguf(0, 1).key("a", ARRAY).put("IQIQ", ARRAY, 1, ARRAY, 1)
    yield "key_twice", Gguf(0, 2).value("a", U8, 1).value("a", U8, 2)
    yield "key_empty", Gguf(0, 1).value("", U8, 1).put("16x")
    yield "value_type_13", Gguf(0, 1).key("a", 13).put("16x")
    yield "tensor_twice", Gguf(2, 0).tensor("t", [8], 0, 0).tensor("t", [8], 0, 32).pad().data(bytes(64))
    yield "tensors_overlap", Gguf(2, 0).tensor("a", [9], 0, 0).tensor("b", [8], 0, 32).pad().data(bytes(64))
    yield "tensor_out_of_order", Gguf(2, 0).tensor("a", [8], 0, 32).tensor("b", [8], 0, 0).pad().data(bytes(64))
    yield "dims_5", one_tensor([1, 1, 1, 1, 1])
    yield "dims_0", one_tensor([])
    yield "dim_is_0", one_tensor([4, 0])
    yield "dims_wrap", one_tensor([2**20, 2**42 + 1])
    yield "offset_wraps", one_tensor([8], 0, 2**64 - 32)
    yield "offset_unaligned", one_tensor([4], 0, 8)
    yield "tensor_past_end", one_tensor([1024])
    yield "type_156", one_tensor([8], 156)
    yield "type_removed", one_tensor([32], 4)
    yield "type_negative", one_tensor([8], 2**32 - 1)
    yield "rows_not_blocks", one_tensor([128, 2], 12, 0, 144)
    yield "alignment_0", Gguf(1, 1).value("general.alignment", U32, 0).tensor("t", [1], 0, 0).pad().data(bytes(4))


def state(n_tokens, length, version=1, kv_type=0, page_bytes=192, state_bytes=128, tokens=None, cut=0):
    """A saved state (docs/state-file.md) of the layout in state_fuzz.cc, which fills in the owner and the checksums."""
    tokens = [i * 37 % 500 for i in range(n_tokens)] if tokens is None else tokens
    out = b"StokerSq" + struct.pack("<IIQQqqqq", version, kv_type, 0, 0, page_bytes, state_bytes, n_tokens, length)
    out += b"seed".ljust(64, b"\0") + bytes(8) + struct.pack(f"<{len(tokens)}i", *tokens)
    n_body = -(-length // 64) * 192 + (128 if length > 0 else 0) if 0 <= length <= 1024 else 0
    out += bytes(i * 7 % 251 for i in range(n_body)) + bytes(8)
    return out[:len(out) - cut]


def states():
    yield "one_page", state(65, 64)
    yield "three_pages", state(150, 130)
    yield "no_positions", state(1, 0)
    yield "too_many_pages", state(201, 200)
    yield "empty", b""
    yield "header_alone", state(1, 0, cut=12)
    yield "cut", state(65, 64, cut=1)
    yield "version_2", state(65, 64, version=2)
    yield "type_9", state(65, 64, kv_type=9)
    yield "other_layout", state(65, 64, page_bytes=128)
    yield "no_state", state(65, 64, state_bytes=0)
    yield "positions_of_all_tokens", state(64, 64)
    yield "positions_negative", state(64, -1)
    yield "token_negative", state(1, 0, tokens=[-1])
    yield "token_past_end", state(1, 0, tokens=[500])
    yield "tokens_wrap", state(2**62 + 1, 0, tokens=[1])
    yield "pages_wrap", state(2**60, 2**59, page_bytes=2**20, tokens=[])
    yield "other_magic", b"GGUF" + state(1, 0)[4:]


def main():
    corpus = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fuzz" / "corpus"
    for kind, files in ("gguf", ((name, file.out) for name, file in seeds())), ("state", states()):
        (corpus / kind).mkdir(parents=True, exist_ok=True)
        for name, data in files:
            (corpus / kind / f"{name}.{kind}").write_bytes(data)


if __name__ == "__main__":
    main()
