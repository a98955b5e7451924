#!/usr/bin/env python3
"""Digests of the tiny models against tests/golden/digests.txt: the same on every compiler, processor and instruction set.

usage: digest_test.py --stoker BINARY --models DIR [--emulator "qemu-aarch64 -L /usr/aarch64-linux-gnu"] [--short [--match GLOB] | --record]
  --short    a few models that cover every class of kernel and block, for emulators
  --match    only those of these names
  --record   writes the file anew; the commit says why the bits changed

They show drift and are no reference: that the logits are right, tests/model/golden_test.cc says. STOKER_ISA is obeyed.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shlex
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
DIGESTS = GOLDEN / "digests.txt"
SHORT = (
    # Rotation, caps, windows, norms, biases, odd rows.
    "llama llama-bias llama-rows-15 llama-yarn llama-longrope-long qwen2-output-bias qwen3-d128 gemma2 gemma3-pattern "
    # Norms with their mean, blocks beside each other, no gate, queries that grow.
    "cohere2 starcoder2 mistral3 gpt2 nemotron phimoe "
    # f32 activations; the three forms of int8 products; f16 and bf16 tables of the lookup.
    "type-f16 type-bf16 type-q4_1 type-q8_0 type-mxfp4 type-q3_k type-q4_k type-q6_k tied-q6_k mix-gemma3 "
    # Experts: sinks, clamps, biases; a shared one; sigmoid gating, groups, dense layers; multipliers.
    "gpt-oss-mxfp4 qwen2moe glm4moe-groups granitemoe "
    # Latents: of f32 and of int8, keys transposed at load, selected ones.
    "deepseek2 deepseek2-joined-q8_0 glm-dsa deepseek32 "
    # Heads of two sizes, shared keys, inputs of layers; experts beside a dense block.
    "gemma4 gemma4-moe "
    # States of fixed size: convolution, both delta rules, a scan.
    "qwen3next-joined kimi-linear-q8_0 granitehybrid lfm2 "
    # Several streams, rows that stand for several positions.
    "deepseek4 deepseek4-q8_0 "
    # Several residuals, experts of their own dimension.
    "kimi-k3 "
    # Layers without a state, experts without a gate; both kinds of state in a layer.
    "nemotron_h_moe falcon-h1 "
    # Vectors of texts: norms behind the blocks, distances, windows to both sides, dense layers.
    "bert-q8_0 nomic-bert nomic-bert-moe jina-bert-v2 modern-bert gemma-embedding"
).split()


def digest(command, model, name):
    """Of logits, or of the vectors of a model that gives these."""
    vectors = GOLDEN / "vectors" / f"{name}.json"
    if vectors.exists():
        lists = json.dumps([text["tokens"] for text in json.loads(vectors.read_text("utf-8"))["texts"]])
        args = [*command, "embed", "-m", str(model), "--tokens", "-", "--digest"]
    else:
        lists = None
        args = [*command, "perplexity", "-m", str(model), "--tokens", str(GOLDEN / "tiny" / f"{name}.json"), "--digest"]
    done = subprocess.run(args, capture_output=True, text=True, input=lists)
    lines = [line for line in done.stderr.splitlines() if line.startswith("digest: ")]
    if done.returncode != 0 or len(lines) != 1:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    return lines[0].removeprefix("digest: ")


def recorded():
    lines = [line for line in DIGESTS.read_text("utf-8").splitlines() if not line.startswith("#")]
    return dict(line.split() for line in lines)


def record(found):
    head = "# XXH3-64 of all logits, or vectors, of each tiny model over its golden tokens, f16 KV. made_by: tests/cli/digest_test.py --record\n"
    DIGESTS.write_text(head + "".join(f"{name} {value}\n" for name, value in sorted(found.items())), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", required=True)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--emulator", default="", type=shlex.split)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--match", default="*")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()

    names = sorted({path.stem for folder in ("tiny", "vectors") for path in (GOLDEN / folder).glob("*.json")})
    if args.short:
        names = [name for name in names if name in SHORT]
        assert len(names) == len(SHORT), set(SHORT) - set(names)
    names = fnmatch.filter(names, args.match)
    assert names, f"no model is named {args.match}"
    command = [*args.emulator, args.stoker]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = dict(zip(names, pool.map(lambda name: digest(command, args.models / f"{name}.gguf", name), names)))
    if args.record:
        record(found)
    want = recorded()
    wrong = [name for name in names if found[name] != want.get(name)]
    for name in wrong:
        print(f"{name}: {found[name]}, recorded is {want.get(name)}", file=sys.stderr)
    isa = os.environ.get("STOKER_ISA", "")
    print(f"{len(names) - len(wrong)} of {len(names)} digests are as recorded{isa and ' with '}{isa}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
