#!/usr/bin/env python3
"""Turns a published BERT (config.json, model.safetensors, vocab.txt) into a GGUF file, for tests.

usage: encoder_to_gguf.py FOLDER OUT.gguf [--type f32|f16|q8_0]     of the matrices; norms, biases and small tables are F32

Run it with the interpreter that tools/venv prints. Anything but BertModel is refused.
"""
import argparse
import json
import pathlib
import struct
import sys

import gguf
import numpy as np

GLOBALS = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm.weight": "token_embd_norm.weight",
    "embeddings.LayerNorm.bias": "token_embd_norm.bias",
}
OF_LAYERS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
UNUSED = ("pooler.", "embeddings.position_ids")
POOLING = {"pooling_mode_mean_tokens": 1, "pooling_mode_cls_token": 2, "pooling_mode_lasttoken": 3}
Type = gguf.GGMLQuantizationType
TYPES = {"f32": Type.F32, "f16": Type.F16, "q8_0": Type.Q8_0}


def read_safetensors(path):
    """{name: array}; the file is a u64 length, that many bytes of JSON, and the numbers."""
    data = np.memmap(path, np.uint8, "r")
    (n,) = struct.unpack("<Q", data[:8].tobytes())
    header = json.loads(data[8 : 8 + n].tobytes())
    header.pop("__metadata__", None)
    types = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}
    out = {}
    for name, tensor in header.items():
        begin, end = (8 + n + at for at in tensor["data_offsets"])
        out[name] = data[begin:end].view(types[tensor["dtype"]]).reshape(tensor["shape"])
    return out


def gguf_name(name):
    """None where the file has no use for it."""
    if name.startswith(UNUSED):
        return None
    if name in GLOBALS:
        return GLOBALS[name]
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{OF_LAYERS[part]}.{kind}"


def read_json(path, default=None):
    return json.loads(path.read_text("utf-8")) if path.exists() or default is None else default


def add_vocabulary(file, folder):
    """Tokens that go on with a word lose their "##", others get U+2581 before them."""
    texts = (folder / "vocab.txt").read_text("utf-8").split("\n")
    texts = texts[:-1] if texts[-1] == "" else texts
    special = {"[PAD]": "pad", "[UNK]": "unk", "[CLS]": "cls", "[SEP]": "sep", "[MASK]": "mask"}

    def stored(text):
        if text.startswith("[") and text.endswith("]") and len(text) > 2:
            return text
        return text[2:] if text.startswith("##") else "▁" + text

    file.add_tokenizer_model("bert")
    file.add_tokenizer_pre("default")
    file.add_token_list([stored(text) for text in texts])
    file.add_token_types([3 if text in special else 1 for text in texts])
    for text, key in (("[PAD]", "padding"), ("[UNK]", "unknown"), ("[CLS]", "cls"), ("[SEP]", "seperator"), ("[MASK]", "mask")):
        file.add_uint32(f"tokenizer.ggml.{key}_token_id", texts.index(text))
    lower = read_json(folder / "tokenizer_config.json", {}).get("do_lower_case", True)
    file.add_bool("tokenizer.ggml.normalizer.lowercase", lower)


def add_keys(file, config, pooling):
    file.add_context_length(config["max_position_embeddings"])
    file.add_embedding_length(config["hidden_size"])
    file.add_block_count(config["num_hidden_layers"])
    file.add_feed_forward_length(config["intermediate_size"])
    file.add_head_count(config["num_attention_heads"])
    file.add_layer_norm_eps(config["layer_norm_eps"])
    file.add_causal_attention(False)
    file.add_token_type_count(config["type_vocab_size"])
    chosen = [number for key, number in POOLING.items() if pooling.get(key)]
    if len(chosen) == 1:
        file.add_uint32(f"{file.arch}.pooling_type", chosen[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--type", choices=TYPES, default="f16")
    args = parser.parse_args()
    config = read_json(args.folder / "config.json")
    known = config["architectures"] == ["BertModel"] and config["hidden_act"] == "gelu"
    if not known or config.get("position_embedding_type", "absolute") != "absolute":
        print(f"encoder_to_gguf.py: {args.folder}: not the BertModel with GELU and absolute positions", file=sys.stderr)
        return 1
    file = gguf.GGUFWriter(args.out, "bert")
    file.add_name(args.folder.name)
    add_keys(file, config, read_json(args.folder / "1_Pooling" / "config.json", {}))
    add_vocabulary(file, args.folder)
    for name, values in read_safetensors(args.folder / "model.safetensors").items():
        to = gguf_name(name)
        if to is None:
            continue
        values = np.asarray(values, np.float32)
        kind = TYPES[args.type] if values.ndim == 2 and not to.startswith(("position", "token_types")) else Type.F32
        if kind == Type.F16:
            file.add_tensor(to, values.astype(np.float16))
        else:
            file.add_tensor(to, gguf.quants.quantize(values, kind), raw_dtype=None if kind == Type.F32 else kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
