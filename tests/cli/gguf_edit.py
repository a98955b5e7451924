"""Reads a small GGUF file, changes it and writes it again, right or wrong: for tests of what a reader refuses.

Knows version 3, little-endian, and the types that tiny models have.
"""
import struct

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", 11: "q", 12: "d"}
ALIGNMENT = 32


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner = self.number("I")
            return inner, [self.value(inner) for _ in range(self.number("Q"))]
        return self.number(FORMATS[kind])


def _text(text):
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def _value(kind, value):
    if kind == STRING:
        return _text(value)
    if kind == ARRAY:
        inner, values = value
        return struct.pack("<IQ", inner, len(values)) + b"".join(_value(inner, v) for v in values)
    return struct.pack("<" + FORMATS[kind], value)


class Tensor:
    """`dims` in the order of the file, innermost first."""

    def __init__(self, dims, kind, data):
        self.dims, self.kind, self.data = dims, kind, bytearray(data)


class Gguf:
    def __init__(self):
        self.magic, self.version = b"GGUF", 3
        self.keys = {}  # name: (type, value)
        self.tensors = {}

    @staticmethod
    def read(path):
        reader = _Reader(path.read_bytes())
        out = Gguf()
        reader.at = 8
        n_tensors, n_keys = reader.number("Q"), reader.number("Q")
        for _ in range(n_keys):
            name, kind = reader.text(), reader.number("I")
            out.keys[name] = (kind, reader.value(kind))
        places = []
        for _ in range(n_tensors):
            name = reader.text()
            dims = [reader.number("Q") for _ in range(reader.number("I"))]
            places.append((name, dims, reader.number("I"), reader.number("Q")))
        start = -(-reader.at // ALIGNMENT) * ALIGNMENT
        ends = [place[3] for place in places[1:]] + [len(reader.data) - start]
        for (name, dims, kind, offset), end in zip(places, ends):
            out.tensors[name] = Tensor(dims, kind, reader.data[start + offset : start + end])
        return out

    def bytes(self):
        out = self.magic + struct.pack("<IQQ", self.version, len(self.tensors), len(self.keys))
        for name, (kind, value) in self.keys.items():
            out += _text(name) + struct.pack("<I", kind) + _value(kind, value)
        offset, data = 0, bytearray()
        for name, tensor in self.tensors.items():
            out += _text(name) + struct.pack(f"<I{len(tensor.dims)}QIQ", len(tensor.dims), *tensor.dims, tensor.kind, offset)
            data += tensor.data + b"\0" * (-len(tensor.data) % ALIGNMENT)
            offset = len(data)
        return out + b"\0" * (-len(out) % ALIGNMENT) + bytes(data)

    # Changes.

    def set_string(self, key, text):
        self.keys[key] = (STRING, text)

    def set_u32(self, key, value):
        self.keys[key] = (U32, value)

    def put_f32(self, tensor, index, value):
        struct.pack_into("<f", self.tensors[tensor].data, 4 * index, value)

    def drop_weights(self):
        """Leaves a vocabulary."""
        self.tensors = {}
