#!/usr/bin/env python3
"""A real encoder against its original: all-MiniLM-L6-v2 in float64, from the published weights and tokenizer.

usage: encoder_test.py --stoker BINARY     Run it with the interpreter that tools/venv --peers prints.

Nothing here goes through GGUF: weights are read out of the safetensors file and multiplied by numpy, ids come from the
PyPI package tokenizers where it is installed, otherwise from the binary.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from encoder_to_gguf import read_safetensors  # noqa: E402

ARGS = None
NAME = "all-minilm-l6-v2"
# Pairs that mean about the same, and nothing like the next pair.
PAIRS = [
    ("A cat sleeps on the sofa.", "The kitten is napping on the couch."),
    ("How do I reset my password?", "I forgot my login, how can I recover it?"),
    ("The stock market fell sharply today.", "Shares dropped on Wall Street."),
    ("He plays the guitar in a band.", "A musician performs with his group."),
    ("Water boils at 100 degrees Celsius.", "The boiling point of water is 100 °C."),
]
ODD = ["", "naïve CAFÉ déjà-vu!!! ¿qué?", "你好,世界 한국어 日本語", "🙂" * 20, "word " * 300, "x=1;\ty=[2,3]\n# comment"]
LONGEST = 96  # --ctx


def get_encoder(*args):
    return pathlib.Path(subprocess.run([ROOT / "tools" / "get-encoder", *args, NAME], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


class Original:
    """BERT in float64 out of the published files."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text("utf-8"))
        self.tensors = {k: np.asarray(v, np.float64) for k, v in read_safetensors(folder / "model.safetensors").items()}
        self.folder = folder

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def linear(self, x, name):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def layer(self, x, name):
        n, heads = len(x), self.config["num_attention_heads"]
        q, k, v = (self.linear(x, f"{name}.attention.self.{part}").reshape(n, heads, -1).transpose(1, 0, 2) for part in ("query", "key", "value"))
        z = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        p = np.exp(z - z.max(-1, keepdims=True))
        y = (p / p.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, -1)
        x = self.norm(x + self.linear(y, name + ".attention.output.dense"), name + ".attention.output.LayerNorm")
        y = self.linear(x, name + ".intermediate.dense")
        y = 0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))
        return self.norm(x + self.linear(y, name + ".output.dense"), name + ".output.LayerNorm")

    def vector(self, ids):
        e = "embeddings."
        x = self.tensors[e + "word_embeddings.weight"][ids] + self.tensors[e + "position_embeddings.weight"][: len(ids)]
        x = self.norm(x + self.tensors[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(x, f"encoder.layer.{i}")
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)


def stoker(*args, stdin=None):
    done = subprocess.run([ARGS.stoker, *map(str, args)], input=stdin, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


class Encoder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.original = Original(get_encoder("--original"))
        cls.texts = [text for pair in PAIRS for text in pair] + ODD
        cls.ids = cls.ids_of(cls.texts)
        cls.want = [cls.original.vector(ids) for ids in cls.ids]

    @classmethod
    def ids_of(cls, texts):
        try:
            import tokenizers
        except ImportError:
            model = get_encoder("--type", "f16")
            all_ids = [json.loads(stoker("tokenize", "-m", model, "--add-special", "--json", stdin=text))["tokens"] for text in texts]
        else:
            tokenizer = tokenizers.Tokenizer.from_file(str(cls.original.folder / "tokenizer.json"))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            all_ids = [tokenizer.encode(text).ids for text in texts]
        return [ids if len(ids) <= LONGEST else ids[: LONGEST - 1] + ids[-1:] for ids in all_ids]

    def vectors(self, kind, *args):
        out = stoker("embed", "-m", get_encoder("--type", kind), "--json", "--truncate", "--ctx", LONGEST, *args, "--", *self.texts)
        answer = json.loads(out)
        self.assertEqual(answer["usage"]["prompt_tokens"], sum(map(len, self.ids)))
        return [np.array(entry["embedding"]) for entry in answer["data"]]

    def test_the_originals_vectors(self):
        # F16 rounds weights to 11 bits; Q8_0 weights and activations to 8, of which odd texts get more.
        n = 2 * len(PAIRS)
        for kind, least, least_odd in (("f32", 1 - 1e-10, 1 - 1e-10), ("f16", 1 - 1e-5, 1 - 1e-5), ("q8_0", 0.9985, 0.995)):
            cosines = [a @ b / np.linalg.norm(a) for a, b in zip(self.vectors(kind), self.want)]
            worst, worst_odd = min(cosines[:n]), min(cosines[n:])
            print(f"{kind}: 1 - cosine at most {1 - worst:.1e}, of odd texts {1 - worst_odd:.1e}", file=sys.stderr)
            self.assertGreater(worst, least, kind)
            self.assertGreater(worst_odd, least_odd, kind)

    def test_what_means_the_same_is_near(self):
        vectors = self.vectors("f16")[: 2 * len(PAIRS)]
        for i, first in enumerate(vectors[::2]):
            near = [first @ second for second in vectors[1::2]]
            self.assertEqual(int(np.argmax(near)), i, near)
            self.assertGreater(near[i], 0.5)
            self.assertLess(sorted(near)[-2], 0.4)

    def test_the_same_whatever_the_calls(self):
        want = self.vectors("f16")
        for args in (("--threads", 1), ("--batch", 40)):
            for a, b in zip(self.vectors("f16", *args), want):
                self.assertTrue((a == b).all(), args)


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", required=True)
    ARGS = parser.parse_args()
    return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
