#!/usr/bin/env python3
"""Judges an engine on a real model: how far it is from the float64 reference, and how that compares with llama.cpp.

usage: compare_logits.py NAME --engine STOKER [--texts prose,code] [-- OPTIONS of `stoker perplexity`]
       compare_logits.py NAME TEXT=FILE...

NAME is a model of tools/get-model; TEXT one of tests/golden/texts. FILE is what `stoker perplexity` wrote: --json (best
with --top 64), or --logits: raw little-endian f32 [n, n_vocab]. --engine runs it on all texts.
The KL divergence is over the whole vocabulary where FILE has logits and the log-probabilities of tools/golden.py lie in
the cache; else it is that of the ten best tokens and the rest as one, for both engines.
Exit code 1: the distance is above 1.15 times llama.cpp's over all texts or above 1.4 times on one, or the perplexity
is off by more than 1 % and three standard errors.
Run it with the interpreter that tools/venv prints.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import distance

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "real"
LIMIT_POOLED, LIMIT_ONE = 1.15, 1.4
PERPLEXITY_SHARE, PERPLEXITY_ERRORS = 0.01, 3


def cached_log_probs(name, text):
    home = os.environ.get("STOKER_HOME") or pathlib.Path.home() / ".cache" / "stoker"
    path = pathlib.Path(home) / "reference" / name / f"{text}.npy"
    return np.load(path, mmap_mode="r") if path.exists() else None


def distance_of_file(name, text, golden, path):
    with open(path, "rb") as file:
        is_json = file.read(1) == b"{"
    if is_json:
        with open(path, encoding="utf-8") as file:
            return distance.of_json(golden, json.load(file))
    n = len(golden["tokens"])
    values = np.memmap(path, "<f4", "r")
    if values.size % n:
        raise ValueError(f"{path}: {values.size} numbers are not rows for {n} tokens")
    logits = values.reshape(n, -1)
    log_probs = cached_log_probs(name, text)
    if log_probs is None:
        return distance.of_committed(golden, logits)
    return distance.of_rows(golden["tokens"], golden["top"], log_probs, logits)


def run_engine(engine, model, golden, options, folder):
    """The file of logits."""
    ids, logits = os.path.join(folder, "ids.json"), os.path.join(folder, "logits.f32")
    with open(ids, "w", encoding="utf-8") as file:
        json.dump(golden["tokens"], file)
    command = [engine, "perplexity", "-m", model, "--tokens", ids, "--ctx", "2048", *options]
    subprocess.run([*command, "--logits", logits], check=True, stdout=subprocess.DEVNULL)
    return logits


def report(what, ours, peer, limit):
    """Prints a line; returns whether the limits hold."""
    kl = "kl" if "kl" in ours and "kl" in peer else "kl_top"
    ratios = [ours[k] / peer[k] for k in ("mean_abs", kl)]
    change, error = ours["log_perplexity_change"], ours["error"]
    perplexity_ok = abs(np.expm1(change)) <= PERPLEXITY_SHARE or abs(change) <= PERPLEXITY_ERRORS * error
    good = max(ratios) <= limit and perplexity_ok
    verdict = "ok" if good else f"above {limit}x" if perplexity_ok else "perplexity"
    print(
        f"{what:13} |d log p| {ours['mean_abs']:.4f} ({ratios[0]:.3f}x)  {kl} {ours[kl]:.5f} ({ratios[1]:.3f}x)  "
        f"same best {ours['same_best']:.3f} ({peer['same_best']:.3f})  perplexity {ours['perplexity']:.3f} "
        f"({100 * np.expm1(change):+.2f} % +- {100 * error:.2f})  {verdict}"
    )
    return good


def judge(name, golden, files):
    print(f"{golden['model']}; in brackets: times llama.cpp's distance, its share of same best tokens")
    good, distances = True, []
    for text, path in files:
        distances.append(distance_of_file(name, text, golden["texts"][text], path))
        peer = golden["texts"][text]["llama_cpp"]
        good &= report(text, distances[-1].summary(), peer, LIMIT_ONE)
    if len(distances) == len(golden["texts"]):
        good &= report("pooled", distance.pooled(distances).summary(), golden["llama_cpp"], LIMIT_POOLED)
    return good


def files_of_engine(args, golden, model, folder):
    for text in args.texts.split(",") if args.texts else golden["texts"]:
        yield text, run_engine(args.engine, model, golden["texts"][text], args.options, folder)


def parse_arguments():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [path.stem for path in sorted(GOLDEN.glob("*.json"))]
    parser.add_argument("name", metavar="NAME", choices=known, help=", ".join(known))
    parser.add_argument("files", metavar="TEXT=FILE", nargs="*")
    parser.add_argument("--engine", help="path of stoker")
    parser.add_argument("--texts", help="only these, comma-separated")
    args = parser.parse_args(arguments)
    if bool(args.engine) == bool(args.files):
        parser.error("wanted: --engine, or files")
    args.options = options
    return args


def main():
    args = parse_arguments()
    golden = json.loads((GOLDEN / f"{args.name}.json").read_text(encoding="utf-8"))
    try:
        if not args.engine:
            return 0 if judge(args.name, golden, [file.split("=", 1) for file in args.files]) else 1
        get = pathlib.Path(__file__).with_name("get-model")
        model = subprocess.run([get, args.name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        with tempfile.TemporaryDirectory(dir=os.path.dirname(model)) as folder:  # half a gigabyte: not in a small /tmp
            return 0 if judge(args.name, golden, files_of_engine(args, golden, model, folder)) else 1
    except (ValueError, OSError, KeyError, subprocess.CalledProcessError) as error:
        print(f"compare_logits.py: {error!r}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
