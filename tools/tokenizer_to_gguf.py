#!/usr/bin/env python3
"""Turns a tokenizer.json (byte-level BPE) into a GGUF file with nothing but the vocabulary, for tests.

usage: tokenizer_to_gguf.py TOKENIZER.json PRE OUT.gguf        PRE: the name of the pre-tokenizer
"""
import json
import os
import sys

import gguf

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    source, pre, out = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        definition = json.load(file)
    vocab, added = definition["model"]["vocab"], definition["added_tokens"]
    size = 1 + max(*vocab.values(), *(token["id"] for token in added))
    texts, kinds = [f"[PAD{i}]" for i in range(size)], [UNUSED] * size
    for text, i in vocab.items():
        texts[i], kinds[i] = text, NORMAL
    for token in added:
        texts[token["id"]], kinds[token["id"]] = token["content"], CONTROL if token["special"] else USER_DEFINED
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in definition["model"]["merges"]]

    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    writer = gguf.GGUFWriter(out + ".partial", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    os.replace(out + ".partial", out)


main()
