#!/usr/bin/env python3
"""Tests of the binary: what it prints, what it refuses, how it ends.

usage: cli_test.py --stoker BINARY --models DIR --faulty-disk LIBRARY [TEST...]     DIR: tiny models; TEST: module, module.Class, module.Class.test
Standard library only.
"""
import argparse
import os
import pathlib
import sys
import unittest

MODULES = (
    "run_cases tokenize_cases inspect_cases perplexity_cases embed_cases rerank_cases state_cases bench_cases synth_cases plan_cases memory_cases file_cases option_cases signal_cases "
    "readme_cases expert_cases trace_cases"
).split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--faulty-disk", required=True, help="the library made of faulty_disk.cc")
    parser.add_argument("tests", nargs="*", default=MODULES)
    args = parser.parse_args()
    os.environ["STOKER_BINARY"] = os.path.abspath(args.stoker)
    os.environ["STOKER_MODELS"] = os.path.abspath(args.models)
    os.environ["STOKER_FAULTY_DISK"] = os.path.abspath(args.faulty_disk)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    suite = unittest.defaultTestLoader.loadTestsFromNames(args.tests)
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
