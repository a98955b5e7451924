#!/usr/bin/env python3
"""Turns a tokenizer of another format into a GGUF file with nothing but the vocabulary, for tests.

usage: tokenizer_to_gguf.py FILE PRE OUT.gguf

FILE: a tokenizer.json of byte-level BPE, a tekken.json, or a SentencePiece .model (PRE is then not used).
PRE: the name of the pre-tokenizer. Does nothing when OUT is there and newer than FILE.
"""
import base64
import json
import os
import sys

import gguf

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def byte_characters():
    """The character that stands for each byte in byte-level vocabularies."""
    same = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    extra = iter(range(0x100, 0x200))
    return [chr(byte) if byte in same else chr(next(extra)) for byte in range(256)]


CHARACTERS = byte_characters()


def mapped(data):
    return "".join(CHARACTERS[byte] for byte in data)


def add_hf(definition, writer):
    vocab, added = definition["model"]["vocab"], definition["added_tokens"]
    size = 1 + max(*vocab.values(), *(token["id"] for token in added))
    texts, kinds = [f"[PAD{i}]" for i in range(size)], [UNUSED] * size
    for text, i in vocab.items():
        texts[i], kinds[i] = text, NORMAL
    for token in added:
        texts[token["id"]], kinds[token["id"]] = token["content"], CONTROL if token["special"] else USER_DEFINED
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in definition["model"]["merges"]]
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)


def two_parts(data, rank, ranks):
    """What is left of data when all merges of a lower rank have been applied: the two parts that this token joins."""
    parts = [data[i : i + 1] for i in range(len(data))]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        best, i = min(pairs)
        if best >= rank:
            return None  # A token that merges do not reach.
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def add_tekken(definition, writer):
    config = definition["config"]
    n_special = config["default_num_special_tokens"]
    tokens = definition["vocab"][: config["default_vocab_size"] - n_special]
    data = [base64.b64decode(token["token_bytes"]) for token in tokens]
    ranks = {token: rank for rank, token in enumerate(data)}
    merges = [two_parts(token, rank, ranks) for rank, token in enumerate(data) if len(token) > 1]
    writer.add_token_list([f"<SPECIAL_{i}>" for i in range(n_special)] + [mapped(token) for token in data])
    writer.add_token_types([CONTROL] * n_special + [NORMAL] * len(data))
    writer.add_token_merges([mapped(left) + " " + mapped(right) for left, right in filter(None, merges)])


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protocol buffer message; values are integers or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or varint(data, at)
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def add_sentencepiece(data, writer):
    import struct

    texts, scores, kinds = [], [], []
    for number, value in fields(data):
        if number == 1:
            piece = dict(fields(value))
            texts.append(piece[1])
            scores.append(struct.unpack("<f", piece.get(2, bytes(4)))[0])
            kinds.append(piece.get(3, NORMAL))
    writer.add_token_list(texts)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    source, pre, out = sys.argv[1:]
    if not os.path.exists(source):
        sys.exit(f"tokenizer_to_gguf: {source} is missing: run tools/get-testdata")
    if os.path.exists(out) and os.path.getmtime(out) >= os.path.getmtime(source):
        return
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    writer = gguf.GGUFWriter(out + ".partial", "llama")
    writer.add_tokenizer_model("gpt2" if source.endswith(".json") else "llama")
    if source.endswith(".json"):
        writer.add_tokenizer_pre(pre)
        with open(source, encoding="utf-8") as file:
            definition = json.load(file)
        (add_tekken if "config" in definition else add_hf)(definition, writer)
    else:
        with open(source, "rb") as file:
            add_sentencepiece(file.read(), writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    os.replace(out + ".partial", out)


main()
