#!/usr/bin/env python3
"""Tiny models with random weights, one for each thing that an engine can get wrong, as GGUF.

usage: tiny_model.py list                  their names
       tiny_model.py make DIR [NAME...]    writes DIR/NAME.gguf (all of them by default), the same bytes everywhere

F32 models leave no room for quantization noise: an engine that computes in f32 agrees with tools/reference.py to about
1e-5, so these find wrong formulas. The others have one tensor type each, or the mixtures of real files.
A file that this very program wrote is left as it is.
Run it with the interpreter that tools/venv prints.
"""
import argparse
import hashlib
import json
import os
import pathlib
import sys

import gguf

from tiny_deci import DeciWriter
from tiny_deepseek4 import DeepSeek4Writer
from tiny_dense import DENSE
from tiny_encoders import ENCODERS, EncoderWriter
from tiny_gemma3n import Gemma3nWriter
from tiny_gemma4 import Gemma4Writer
from tiny_hybrid import HYBRID
from tiny_kimi_k3 import KimiK3Writer
from tiny_latent import LATENT
from tiny_mamba import FalconH1Writer, NemotronHWriter
from tiny_moe import MOE
from tiny_rerankers import RERANKERS
from tiny_types import MIXTURES, TYPES
from tiny_writer import ModelWriter

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "tiny"
VECTORS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "vectors"
RANKS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "ranks"
MODELS = DENSE | MOE | LATENT | HYBRID | TYPES | MIXTURES  # those that continue texts; ENCODERS give vectors of them,
EVERYTHING = MODELS | ENCODERS | RERANKERS  # and the last rank them


def source_version():
    """Changes when a file written now could differ from one written before."""
    digest = hashlib.sha256(getattr(gguf, "__version__", "").encode())
    for path in sorted(pathlib.Path(__file__).parent.glob("tiny_*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make(name, folder):
    """Writes folder/name.gguf unless it is up to date; others may read or write it at the same time."""
    path, stamp = folder / f"{name}.gguf", folder / f".{name}.version"
    if path.exists() and stamp.exists() and stamp.read_text() == source_version():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.{os.getpid()}.partial"
    try:
        shape = RERANKERS[name].shape if name in RERANKERS else (MODELS | ENCODERS)[name]
        writers = (DeciWriter, shape.deci), (Gemma3nWriter, shape.gemma3n), (Gemma4Writer, shape.gemma4)
        writers += (DeepSeek4Writer, shape.deepseek4), (KimiK3Writer, shape.kimi_k3)
        of_arch = {"nemotron_h": NemotronHWriter, "nemotron_h_moe": NemotronHWriter, "falcon-h1": FalconH1Writer}
        writer = next((writer for writer, spec in writers if spec), of_arch.get(shape.arch, ModelWriter))
        writer = EncoderWriter if name in ENCODERS else RERANKERS[name].writer if name in RERANKERS else writer
        writer(name, shape, partial).write()
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    stamp.write_text(source_version())
    return path


def differs_from_golden(name, path):
    """Whether the recorded scores belong to another file: the program changed, or its numbers depend on the machine."""
    golden = (VECTORS if name in ENCODERS else RANKS if name in RERANKERS else GOLDEN) / f"{name}.json"
    if not golden.exists():
        return False
    return json.loads(golden.read_text("utf-8"))["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print the names")
    making = verbs.add_parser("make", help="write models")
    making.add_argument("folder", metavar="DIR", type=pathlib.Path)
    making.add_argument("names", metavar="NAME", nargs="*")
    args = parser.parse_args()
    if args.verb == "list":
        print("\n".join(EVERYTHING))
        return 0
    unknown = [name for name in args.names if name not in EVERYTHING]
    if unknown:
        print(f"tiny_model.py: no model {', '.join(unknown)}; `tiny_model.py list` prints the names", file=sys.stderr)
        return 2
    stale = [name for name in args.names or EVERYTHING if differs_from_golden(name, make(name, args.folder))]
    if stale:
        print(f"tiny_model.py: not the models that {GOLDEN} describes: {', '.join(stale)}; see golden.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
