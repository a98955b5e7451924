"""Scores of a query with a document in float64, of models with a head for it; written from the papers, as
reference_encoders.py.

usage: reference_rerank.py MODEL --tokens IDS.json     prints the numbers of the head per list of ids
"""
import argparse
import json
import sys

import numpy as np

from reference_encoders import Encoder, gelu_erf, gelu_table
from reference_file import File, Unsupported
from reference_math import softmax
from reference_model import Model

FIRST, MEAN = 2, 1
POOL = {FIRST: lambda rows: rows[0], MEAN: lambda rows: rows.mean(0)}


class Ranker:
    """table: GELU as llama.cpp has it."""

    def __init__(self, path, table=False):
        self.causal = File(path).architecture == "qwen3"
        self.model = Model(path) if self.causal else Encoder(path, table=table)
        self.file, self.gelu = self.model.file, gelu_table if table else gelu_erf
        get, arch = self.file.get, self.file.architecture
        if get("pooling_type", 0) != 4:
            raise Unsupported("a model that does not rank")
        self.pooling = get("classifier.pooling_type", MEAN if arch == "modern-bert" else FIRST)
        self.labels = get("classifier.output_labels", [])
        self.arch = arch

    def hidden(self, ids, second):
        if not self.causal:
            return self.model.hidden(ids, second)
        self.model.reset()
        return self.model.hidden(ids)

    def pooled(self, rows):
        return rows[-1] if self.causal else POOL[self.pooling](rows)

    def head_norm(self, x):
        x = x - x.mean()
        return x / np.sqrt((x * x).mean() + self.model.eps) * self.file.tensor("cls.norm.weight")

    def numbers(self, ids, second=None):
        """Of each label; second: where the second kind of text begins."""
        x, linear = self.pooled(self.hidden(ids, second)), lambda x, name: self.file.linear(x[None], name)[0]
        if self.arch == "jina-bert-v2":
            x = np.tanh(linear(x, "cls"))
        elif "cls.weight" in self.file.tensors:
            y = linear(x, "cls")
            x = self.gelu(y) if self.arch == "modern-bert" else np.tanh(y)
            x = self.head_norm(x) if "cls.norm.weight" in self.file.tensors else x
        if "cls.output.weight" in self.file.tensors:
            x = linear(x, "cls.output")
        self.file.check_all_read(self.model.n_layers)
        return softmax(x[None])[0] if self.causal else x


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True, help="JSON list of lists of ids")
    args = parser.parse_args()
    with open(args.tokens, encoding="utf-8") as file:
        lists = json.load(file)
    try:
        ranker = Ranker(args.model)
        print(json.dumps([ranker.numbers(ids).tolist() for ids in lists]))
    except (Unsupported, OSError) as error:
        print(f"reference_rerank.py: {args.model}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
