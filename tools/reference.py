#!/usr/bin/env python3
"""Scores tokens with the float64 reference of reference_model.py.

usage: reference.py MODEL --tokens IDS.json [--out OUT.json|OUT.npz] [--top 64] [--full] [--ctx N] [--yarn-truncate]
       reference.py MODEL --tokens IDS.json --greedy N

IDS.json: a list of ids, or an object with "tokens" or "ids". OUT.json has what `stoker perplexity --json` prints:
tokens, logprobs (natural; entry i is that of token i + 1 given tokens 0...i), top ([id, logprob] per position),
perplexity. OUT.npz has tokens, logprobs, top_ids, top_logprobs and with --full log_probs: f32 [n, n_vocab].
Without --out a summary is printed. --greedy prints the N best next tokens, their margins and the runners-up.
Run it with the interpreter that tools/venv prints.
"""
import argparse
import json
import sys

import numpy as np

from reference_file import Unsupported
from reference_model import Model


def log_softmax(z):
    top = z.max(-1, keepdims=True)
    return z - (top + np.log(np.exp(z - top).sum(-1, keepdims=True)))


def best(values, n):
    """(ids, values) of the n largest per row in falling order; the lower id where two are equal."""
    n = min(n, values.shape[1])
    ids = np.argpartition(-values, n - 1, axis=-1)[:, :n]
    found = np.take_along_axis(values, ids, -1)
    order = np.lexsort((ids, -found), axis=-1)
    return np.take_along_axis(ids, order, -1), np.take_along_axis(found, order, -1)


def score(model, ids, top=64, full=None):
    """What is described above as OUT.npz. full: the type of log_probs, when they are wanted."""
    model.reset()
    parts, done = [], 0
    for logits in model.logits(ids):
        log_probs = log_softmax(logits)
        top_ids, top_logprobs = best(log_probs, top)
        following = np.asarray(ids[done + 1 : done + 1 + len(logits)], dtype=np.int64)
        part = {"logprobs": log_probs[np.arange(len(following)), following]}
        part |= {"top_ids": top_ids.astype(np.int32), "top_logprobs": top_logprobs}
        if full:
            part["log_probs"] = log_probs.astype(full)
        parts.append(part)
        done += len(logits)
    out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return out | {"tokens": np.asarray(ids, np.int32)}


def perplexity(logprobs):
    return float(np.exp(-np.mean(logprobs))) if len(logprobs) else float("nan")


def greedy(model, ids, n):
    model.reset()
    out, following = [], list(ids)
    for _ in range(n):
        logits = model.logits_of(model.hidden(following)[-1:])
        (first, second), (value, next_value) = (a[0].tolist() for a in best(logits, 2))
        out.append({"id": first, "margin": value - next_value, "second": second})
        following = [first]
    return out


def read_ids(path, n_vocab):
    with open(path, encoding="utf-8") as file:
        ids = json.load(file)
    if isinstance(ids, dict):
        ids = ids.get("tokens", ids.get("ids"))
    if not ids or not all(isinstance(i, int) and 0 <= i < n_vocab for i in ids):
        raise Unsupported(f"{path}: wanted a list of token ids below {n_vocab}")
    return ids


def write(path, scores):
    if path.endswith(".npz"):
        np.savez(path, **scores)
        return
    pairs = zip(scores["top_ids"].tolist(), scores["top_logprobs"].tolist())
    out = {
        "tokens": scores["tokens"].tolist(),
        "logprobs": scores["logprobs"].tolist(),
        "top": [[[i, p] for i, p in zip(*row)] for row in pairs],
        "perplexity": perplexity(scores["logprobs"]),
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(out, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True, help="JSON file of ids")
    parser.add_argument("--out", help="file to write, .json or .npz")
    parser.add_argument("--top", type=int, default=64, help="best tokens per position (64)")
    parser.add_argument("--full", action="store_true", help="keep the log-probabilities of the whole vocabulary (npz)")
    parser.add_argument("--greedy", type=int, metavar="N", help="continue by the N best tokens instead")
    parser.add_argument("--ctx", type=int, help="allocated context, which decides LongRoPE (the model's own)")
    parser.add_argument("--yarn-truncate", action="store_true", default=None, help="whole-numbered YaRN bounds")
    args = parser.parse_args()
    try:
        model = Model(args.model, n_ctx=args.ctx, yarn_truncate=args.yarn_truncate)
        ids = read_ids(args.tokens, model.file.n_vocab)
        if args.greedy:
            print(json.dumps(greedy(model, ids, args.greedy)))
            return 0
        scores = score(model, ids, args.top, np.float32 if args.full else None)
    except (Unsupported, OSError) as error:
        print(f"reference.py: {args.model}: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"n": len(ids), "perplexity": perplexity(scores["logprobs"])}))
    if args.out:
        write(args.out, scores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
