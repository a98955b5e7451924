#!/usr/bin/env python3
"""Makes the references that tests compare an engine with: tests/golden/tiny and tests/golden/real.

usage: golden.py tiny DIR [NAME...]    of the models that tiny_model.py made or makes in DIR
       golden.py vectors DIR [NAME...] the same of those that give vectors
       golden.py ranks DIR [NAME...]   the same of those that rank
       golden.py real [NAME...]        of the models of tools/get-model, on tests/golden/texts; hours on one core

Both hold the float64 reference's scores and how far llama.cpp (`tools/venv --peers`) is from them. `real` also keeps
the log-probabilities of the whole vocabulary, 0.2 to 1 MB per token, in ${STOKER_HOME:-~/.cache/stoker}/reference.
Run it with the interpreter that tools/venv prints.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np

import distance
import reference
import tiny_encoders
import tiny_model
import tiny_rerankers
from llamacpp import Llama
from reference_encoders import Encoder
from reference_model import Model
from reference_rerank import Ranker
from tiny_random import Random

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
SOURCES = ("golden", "distance", "reference", "reference_*", "tiny_*", "llamacpp")  # patterns, as git matches them
TINY_CONTEXT = 256  # at least
N_TINY_TOP = 5
PROMPT, N_GREEDY = "The capital of France is", 8
# llama.cpp wants experts in all layers; has switched off the window of Phi-3; has other norms and weights than the
# original Phi-3.5-MoE; divides MiniCPM's logits by what the original multiplies them with, where files have no key;
# takes no notice of the epsilon of Qwen2-VL's norms; has one rule for the groups of DeepSeek V2 and V3, and does not
# read Kimi K2's bounds of YaRN; has one size of Llama 4's chunks, and ends where a file switches them off; has one
# window of SmallThinker, whatever files say; does not read Laguna's keys of YaRN, nor the sizes of Gemma 3n; leaves
# the attention out of layers without a feed-forward block.
PEER_LACKS = {"llama4-chunks", "llama4-whole", "ernie4_5-moe-step", "phi3-window", "phimoe", "deci-attention", "gemma3n", "smallthinker-window", "laguna-original", "minicpm-defaults", "qwen2vl", "deepseek2-original"}
CANDIDATES = 200  # token lists, of which the one whose closest routing decision is widest is taken: no near-ties


def home():
    return pathlib.Path(os.environ.get("STOKER_HOME") or pathlib.Path.home() / ".cache" / "stoker")


def made_by():
    def git(*arguments):
        command = ["git", "-C", ROOT, *arguments, "--", *(f"tools/{name}.py" for name in SOURCES)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    changed = "+changes" if git("status", "--porcelain") else ""
    return f"tools/golden.py at {git('log', '-1', '--format=%h')}{changed}, float64"


def rounded(value, digits):
    """Nested lists and dicts with their numbers rounded: digits behind the point, or three that count if it is tiny."""
    if isinstance(value, dict):
        return {k: rounded(v, digits) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v, digits) for v in value]
    if isinstance(value, float):
        return round(value, digits) if abs(value) >= 0.01 else float(f"{value:.3g}")
    return value


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


def pairs(scores, n, digits):
    ids, values = scores["top_ids"][:, :n].tolist(), scores["top_logprobs"][:, :n].tolist()
    return [[[i, round(p, digits)] for i, p in zip(*row)] for row in zip(ids, values)]


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def peer_distance(path, ids, top, log_probs, **options):
    peer = Llama(path, **options)
    try:
        return distance.of_rows(ids, top, log_probs, peer.logits(ids))
    finally:
        peer.close()


def tiny_ids(name, shape, model):
    """(ids, margin of the closest routing decision or None)."""
    tries = [Random(f"tokens {name} {k}").token_ids(shape.n_tokens, shape.n_vocab - 1) for k in range(CANDIDATES)]
    if not shape.experts:
        return tries[0], None

    def margin(ids):
        model.reset()
        model.hidden(ids)
        return model.router_margin

    if margin(tries[0]) == math.inf:  # nothing is decided
        return tries[0], None
    ids = max(tries, key=margin)
    return ids, margin(ids)


def tiny(name, folder):
    shape, path = tiny_model.MODELS[name], tiny_model.make(name, folder)
    n_ctx = max(TINY_CONTEXT, (shape.n_tokens + 63) // 64 * 64)
    model = Model(path, n_ctx=n_ctx)
    ids, router_margin = tiny_ids(name, shape, model)
    scores = reference.score(model, ids, top=distance.N_TOP, full=np.float64)
    # llama.cpp rounds YaRN's bounds for every family.
    peer_model = Model(path, n_ctx=n_ctx, yarn_truncate=True)
    peer_scores = reference.score(peer_model, ids, top=distance.N_TOP, full=np.float64)
    top = pairs(peer_scores, distance.N_TOP, 9)
    distances = {}
    for kv, options in () if name in PEER_LACKS else (("f32_kv", {"kv": "f32", "flash": False}), ("f16_kv", {})):
        found = peer_distance(path, ids, top, peer_scores["log_probs"], n_ctx=n_ctx, **options).summary()
        distances[kv] = rounded({k: found[k] for k in ("mean_abs", "max_abs", "kl", "same_best")}, 4)
    options = {} if router_margin is None else {"router_margin": round(router_margin, 6)}
    if shape.arch == "gpt-oss":
        options["yarn_truncate"] = False  # of the scores below, not of llama.cpp's distance
        if shape.n_tokens > 100:
            options["truncated_logprobs"] = [round(p, 7) for p in peer_scores["logprobs"].tolist()]
    golden = {
        "made_by": made_by(),
        "model": f"{name}.gguf",
        "sha256": sha256_of(path),
        "arch": shape.arch,
        "ctx": n_ctx,
        "llama_cpp": distances,
        **options,
        "perplexity": reference.perplexity(scores["logprobs"]),
        "tokens": ids,
        "logprobs": [round(p, 7) for p in scores["logprobs"].tolist()],
        "top": pairs(scores, N_TINY_TOP, 6),
    }
    write_json(GOLDEN / "tiny" / f"{name}.json", golden)
    print(f"{name:22} {distances}", flush=True)


def vector_distance(a, b):
    cosine = a @ b / np.sqrt((a @ a) * (b @ b))
    return {"mean_abs": np.abs(a - b).mean(), "max_abs": np.abs(a - b).max(), "one_minus_cosine": 1 - cosine}


def vector_ids(name, n, shape, path):
    """As tiny_ids: where experts are chosen, the list with the widest margin."""
    if not shape.n_experts:
        return Random(f"tokens {name} {n}").token_ids(n, shape.n_vocab - 1)

    def margin(ids):
        model = Encoder(path)
        model.hidden(ids)
        return model.router_margin

    return max((Random(f"tokens {name} {n} {k}").token_ids(n, shape.n_vocab - 1) for k in range(CANDIDATES // 4)), key=margin)


def vectors(name, folder):
    shape, path = tiny_encoders.ENCODERS[name], tiny_model.make(name, folder)
    model, texts = Encoder(path), []
    for n in (150, 23, 1):  # over several tiles, beyond every window
        ids = vector_ids(name, n, shape, path)
        texts.append({"tokens": ids} | {k: np.round(v, 7).tolist() for k, v in model.pooled(ids).items()})
    ids, distances = texts[0]["tokens"], {}
    for kind, table in (("erf_gelu", False), ("gelu_table", True)):
        judge = Encoder(path, table=table)
        peer = Llama(path, n_ctx=512, kv="f32", flash=False)
        distances[kind] = rounded(vector_distance(judge.pooled(ids)[judge.pooling], peer.vectors(ids)[0].astype(float)), 4)
        peer.close()
    golden = {"made_by": made_by(), "model": f"{name}.gguf", "sha256": sha256_of(path), "arch": shape.arch}
    write_json(GOLDEN / "vectors" / f"{name}.json", golden | {"llama_cpp": distances, "texts": texts})
    print(f"{name:20} {distances}", flush=True)


def ranks(name, folder):
    path, pairs_of = tiny_model.make(name, folder), []
    shape, ranker = tiny_rerankers.RERANKERS[name].shape, Ranker(path)
    kinds = getattr(shape, "token_types", 1) > 1 and shape.arch == "bert"
    for n in (150, 23, 9):
        ids = Random(f"tokens {name} {n}").token_ids(n, shape.n_vocab - 1)
        scores = {"numbers": [float(f"{x:.8g}") for x in ranker.numbers(ids)]}
        if kinds:
            scores |= {"second": n // 3, "of_kinds": [float(f"{x:.8g}") for x in ranker.numbers(ids, n // 3)]}
        pairs_of.append({"tokens": ids} | scores)
    distances = {}
    for kind, table in (("erf_gelu", False), ("gelu_table", True)):
        judge, peer = Ranker(path, table=table), Llama(path, n_ctx=512, kv="f32", flash=False)
        apart = [
            np.abs(judge.numbers(pair["tokens"]) - peer.vectors(pair["tokens"], width=len(pair["numbers"]))[0]).max() for pair in pairs_of
        ]
        distances[kind] = float(f"{max(apart):.3g}")
        peer.close()
    golden = {"made_by": made_by(), "model": f"{name}.gguf", "sha256": sha256_of(path), "arch": shape.arch}
    write_json(GOLDEN / "ranks" / f"{name}.json", golden | {"llama_cpp": distances, "pairs": pairs_of})
    print(f"{name:22} {distances}", [pair["numbers"] for pair in pairs_of], flush=True)


def real_models():
    """NAME: path, of tools/get-model."""
    def get(name):
        found = subprocess.run([ROOT / "tools" / "get-model", name], stdout=subprocess.PIPE, text=True, check=True)
        return pathlib.Path(found.stdout.strip())

    return {name: get(name) for name in ("smollm2-135m", "gemma3-270m", "qwen2.5-coder-1.5b")}


def log_probs_path(name, text):
    return home() / "reference" / name / f"{text}.npy"


def reference_scores(model, path, ids):
    """Scores of ids, their log-probabilities kept in path; both are read back when they are there already."""
    scores_path = path.with_suffix(".npz")
    if path.exists() and scores_path.exists():
        scores = dict(np.load(scores_path))
        if scores["tokens"].tolist() == ids:
            return scores
    scores = reference.score(model, ids, top=64, full=np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, scores.pop("log_probs"))
    np.savez(scores_path, **scores)
    return scores


def greedy_steps(name, model, ids):
    """The best continuation of ids, with margins; kept in the cache, for it takes as long as a text."""
    path = home() / "reference" / name / "greedy.json"
    if path.exists():
        kept = json.loads(path.read_text("utf-8"))
        if kept["tokens"] == ids:
            return kept
    kept = {"prompt": PROMPT, "tokens": ids, "steps": reference.greedy(model, ids, N_GREEDY)}
    write_json(path, kept)
    return kept


def real(name, path):
    texts = sorted((GOLDEN / "texts").glob("*.txt"))
    tokenizer = Llama(path, n_ctx=64)
    ids_of = {text.stem: tokenizer.tokenize(text.read_bytes()) for text in texts}
    prompt_ids = tokenizer.tokenize(PROMPT.encode())
    tokenizer.close()
    model, goldens, distances = Model(path), {}, []
    for text, ids in ids_of.items():
        kept = log_probs_path(name, text)
        scores = reference_scores(model, kept, ids)
        top = pairs(scores, distance.N_TOP, 9)
        distances.append(peer_distance(path, ids, top, np.load(kept, mmap_mode="r")))
        goldens[text] = {
            "llama_cpp": rounded(distances[-1].summary(), 5),
            "perplexity": reference.perplexity(scores["logprobs"][1:]),
            "tokens": ids,
            "logprobs": [round(p, 5) for p in scores["logprobs"].tolist()],
            "top": pairs(scores, distance.N_TOP, 4),
        }
        print(f"{name} {text}: {len(ids)} tokens, llama.cpp {goldens[text]['llama_cpp']}", flush=True)
    pooled = rounded(distance.pooled(distances).summary(), 5)
    golden = {"made_by": made_by(), "model": path.name, "sha256": sha256_of(path), "llama_cpp": pooled}
    golden["greedy"] = rounded(greedy_steps(name, model, prompt_ids), 4)
    write_json(GOLDEN / "real" / f"{name}.json", golden | {"texts": goldens})
    print(f"{name} pooled: llama.cpp {pooled}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("tiny")
    verb.add_argument("folder", type=pathlib.Path)
    verb.add_argument("names", nargs="*", metavar="NAME")
    verb = verbs.add_parser("vectors")
    verb.add_argument("folder", type=pathlib.Path)
    verb.add_argument("names", nargs="*", metavar="NAME")
    verb = verbs.add_parser("ranks")
    verb.add_argument("folder", type=pathlib.Path)
    verb.add_argument("names", nargs="*", metavar="NAME")
    verb = verbs.add_parser("real")
    verb.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.verb == "tiny":
        for name in args.names or tiny_model.MODELS:
            tiny(name, args.folder)
    elif args.verb == "vectors":
        for name in args.names or tiny_encoders.ENCODERS:
            vectors(name, args.folder)
    elif args.verb == "ranks":
        for name in args.names or tiny_rerankers.RERANKERS:
            ranks(name, args.folder)
    else:
        models = real_models()
        for name in args.names or models:
            real(name, models[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
