#!/usr/bin/env python3
"""llama.cpp by ctypes out of the PyPI wheel xllamacpp: ids and full logits, to know how far a peer is from the reference.

usage: llamacpp.py MODEL --tokens IDS.json --out LOGITS.f32 [--kv f16|f32] [--no-flash] [--ctx N]
       llamacpp.py MODEL --tokenize FILE

LOGITS.f32 is raw little-endian f32 [n, n_vocab]. --tokenize prints ids with BOS and EOS as the file asks.
Needs the environment of `tools/venv --peers`. The parameter structs are patched by offset; their defaults are compared
first, so that another version of the wheel fails instead of measuring something else.
Run it with the interpreter that tools/venv prints.
"""
import argparse
import ctypes as C
import json
import os
import struct
import sys

import numpy as np

PARAMS_BYTES = 1024  # more than either struct has; passed by value, so they lie on the stack
# Offset in llama_context_params, default: checked before use.
CONTEXT_DEFAULTS = {0: 512, 4: 2048, 8: 512, 12: 1, 24: 1, 28: 4, 32: 4, 40: -1, 44: -1, 48: -1, 52: -1, 104: 1, 108: 1}
N_CTX, N_BATCH, N_OUTPUTS_MAX, N_OUTPUTS_MAX_PER_SEQ, N_THREADS, N_THREADS_BATCH = 0, 4, 20, 24, 28, 32
FLASH_ATTN, TYPE_K, TYPE_V = 52, 104, 108
KV_TYPES = {"f32": 0, "f16": 1}
Pointer = C.c_void_p


class Params(C.Structure):
    _fields_ = [("bytes", C.c_uint8 * PARAMS_BYTES)]

    def put(self, offset, value):
        struct.pack_into("<i", self.bytes, offset, value)

    def at(self, offset):
        return struct.unpack_from("<i", bytes(self.bytes), offset)[0]


class Batch(C.Structure):
    _fields_ = [("n_tokens", C.c_int32)]
    _fields_ += [(name, Pointer) for name in ("token", "embd", "pos", "n_seq_id", "seq_id", "logits")]


def load_library():
    import xllamacpp

    library = C.CDLL(os.path.join(os.path.dirname(xllamacpp.__file__), "xllamacpp.abi3.so"))
    signatures = {
        "llama_context_default_params": (Params,),
        "llama_model_default_params": (Params,),
        "llama_model_load_from_file": (Pointer, C.c_char_p, Params),
        "llama_init_from_model": (Pointer, Pointer, Params),
        "llama_decode": (C.c_int32, Pointer, Batch),
        "llama_get_logits_ith": (C.POINTER(C.c_float), Pointer, C.c_int32),
        "llama_model_get_vocab": (Pointer, Pointer),
        "llama_vocab_n_tokens": (C.c_int32, Pointer),
        "llama_tokenize": (
            *(C.c_int32, Pointer, C.c_char_p, C.c_int32),
            *(C.POINTER(C.c_int32), C.c_int32, C.c_bool, C.c_bool),
        ),
        "llama_get_memory": (Pointer, Pointer),
        "llama_memory_clear": (None, Pointer, C.c_bool),
        "llama_free": (None, Pointer),
        "llama_model_free": (None, Pointer),
        "llama_backend_init": (None,),
        "llama_log_set": (None, Log, Pointer),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(SILENT, None)
    library.llama_backend_init()
    return library


Log = C.CFUNCTYPE(None, C.c_int, C.c_char_p, Pointer)
SILENT = Log(lambda level, text, user: None)


class Llama:
    """flash: None lets the library choose."""

    def __init__(self, path, n_ctx=4096, n_threads=1, kv="f16", flash=None):
        self.lib = load_library()
        self.model = self.lib.llama_model_load_from_file(os.fsencode(path), self.lib.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        self.vocab = self.lib.llama_model_get_vocab(self.model)
        self.n_vocab = self.lib.llama_vocab_n_tokens(self.vocab)
        params = self.lib.llama_context_default_params()
        for offset, value in CONTEXT_DEFAULTS.items():
            if params.at(offset) != value:
                raise RuntimeError(f"context parameter at {offset} is {params.at(offset)}, not {value}: another wheel?")
        for offset in (N_CTX, N_BATCH, N_OUTPUTS_MAX, N_OUTPUTS_MAX_PER_SEQ):
            params.put(offset, n_ctx)
        params.put(N_THREADS, n_threads)
        params.put(N_THREADS_BATCH, n_threads)
        params.put(FLASH_ATTN, -1 if flash is None else int(flash))
        params.put(TYPE_K, KV_TYPES[kv])
        params.put(TYPE_V, KV_TYPES[kv])
        self.context = self.lib.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError("llama.cpp cannot make a context")

    def close(self):
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)

    def logits(self, ids):
        """Yields the f32 row of each position; ids are decoded as one batch in an empty context."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        n = len(ids)
        tokens, wanted = (C.c_int32 * n)(*ids), (C.c_int8 * n)(*[1] * n)
        batch = Batch(n, token=C.cast(tokens, Pointer), logits=C.cast(wanted, Pointer))
        error = self.lib.llama_decode(self.context, batch)
        if error:
            raise RuntimeError(f"llama_decode: {error}")
        for i in range(n):
            row = self.lib.llama_get_logits_ith(self.context, i)
            yield np.ctypeslib.as_array(row, (self.n_vocab,)).copy()

    def vectors(self, ids, width=None):
        """Of a model that gives vectors: f32 [n, width], one for each token, or pooled as the file says; not normalized.
        width: what a head that ranks gives."""
        lib, n = self.lib, len(ids)
        if memory := lib.llama_get_memory(self.context):  # encoders have none
            lib.llama_memory_clear(memory, True)
        lib.llama_set_embeddings.argtypes = Pointer, C.c_bool
        lib.llama_set_embeddings(self.context, True)
        lib.llama_model_n_embd.argtypes = lib.llama_pooling_type.argtypes = (Pointer,)
        width, pooled = width or lib.llama_model_n_embd(self.model), lib.llama_pooling_type(self.context) > 0
        tokens, wanted = (C.c_int32 * n)(*ids), (C.c_int8 * n)(*[1] * n)
        batch = Batch(n, token=C.cast(tokens, Pointer), logits=C.cast(wanted, Pointer))
        error = lib.llama_decode(self.context, batch)
        if error:
            raise RuntimeError(f"llama_decode: {error}")
        get = lib.llama_get_embeddings_seq if pooled else lib.llama_get_embeddings_ith
        get.restype, get.argtypes = C.POINTER(C.c_float), (Pointer, C.c_int32)
        rows = [np.ctypeslib.as_array(get(self.context, i), (width,)).copy() for i in range(1 if pooled else n)]
        return np.stack(rows)

    def tokenize(self, data, add_special=True, parse_special=False):
        room = len(data) + 16
        ids = (C.c_int32 * room)()
        n = self.lib.llama_tokenize(self.vocab, data, len(data), ids, room, add_special, parse_special)
        if n < 0:
            raise RuntimeError(f"llama_tokenize: {n}")
        return list(ids[:n])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--tokens", help="JSON list of ids to score")
    what.add_argument("--tokenize", metavar="FILE", help="text to turn into ids")
    parser.add_argument("--out", help="where the logits go")
    parser.add_argument("--kv", choices=KV_TYPES, default="f16")
    parser.add_argument("--no-flash", action="store_true")
    parser.add_argument("--ctx", type=int, default=4096)
    args = parser.parse_args()
    peer = Llama(args.model, n_ctx=args.ctx, kv=args.kv, flash=False if args.no_flash else None)
    if args.tokenize:
        with open(args.tokenize, "rb") as file:
            print(json.dumps({"tokens": peer.tokenize(file.read())}))
        return 0
    if not args.out:
        parser.error("--tokens needs --out")
    with open(args.tokens, encoding="utf-8") as file:
        ids = json.load(file)
    with open(args.out, "wb") as out:
        for row in peer.logits(ids["tokens"] if isinstance(ids, dict) else ids):
            out.write(row.astype("<f4").tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
