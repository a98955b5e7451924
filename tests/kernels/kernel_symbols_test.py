#!/usr/bin/env python3
"""What release objects define and call.

1. Files of one instruction set define nothing weak. A weak function of theirs (an inline one, a template) could be what the
   linker keeps for every processor.
2. Nothing that computes calls the math library, whose results depend on its version and on the processor.

usage: kernel_symbols_test.py --build BUILD_DIR --libm FILE        Standard library and nm only.
"""
import argparse
import pathlib
import subprocess
import sys

COMPUTING = ("base", "kernels", "model", "engine")
# IEEE 754 asks for one result of these, so that every library gives the same.
EXACT = {"fma", "fmaf", "sqrt", "sqrtf", "round", "roundf"}
# How an object file refers to the handler of exceptions; data, the same for all.
PERSONALITY = "DW.ref.__gxx_personality_v0"


def nm(*args):
    lines = subprocess.run(["nm", *map(str, args)], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split()[-2:] for line in lines if len(line.split()) >= 2]


def weak_symbols(objects):
    rows = [row for path in objects for row in nm(path)]
    if not rows:
        sys.exit("kernel_symbols: no symbols in these objects; is this a release build?")
    return sorted({name for kind, name in rows if kind in "VvWwu" and name != PERSONALITY})


def math_functions(libm):
    return {name.split("@")[0] for kind, name in nm("-D", "--defined-only", libm) if kind in "TtWwi"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--libm", required=True)
    args = parser.parse_args()
    wrong = []
    for folder in sorted((args.build / "src/kernels/CMakeFiles").glob("stoker_kernels_*.dir")):
        isa = folder.stem.removeprefix("stoker_kernels_")
        if isa == "scalar":
            continue
        objects = sorted((folder / isa).glob("*.o"))
        wrong += [f"{isa}/ defines {name}, which is weak" for name in weak_symbols(objects)]
    functions = math_functions(args.libm)
    assert {"exp", "expf", "sinf", "powf"} <= functions, "not the math library"
    for module in COMPUTING:
        library = args.build / "src" / module / f"libstoker_{module}.a"
        called = {name for kind, name in nm("-u", library) if kind == "U"}
        wrong += [f"{library.name} calls {name} of the math library" for name in sorted(called & functions - EXACT)]
    print("\n".join(wrong) or "kernel_symbols: fine")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
