#!/usr/bin/python3
"""A real model through the binary: the reference's next token, and the same bits however the work is cut.

usage: real_test.py --stoker BINARY --model NAME (of tools/get-model)
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARGS = None
# Rounding activations to 8 bits moves log-probabilities by up to some tenths: only clearer choices must be the same.
CLEAR = 0.5


def stoker(*arguments, isa=None):
    env = dict(os.environ)
    env.pop("STOKER_ISA", None)
    if isa:
        env["STOKER_ISA"] = isa
    return subprocess.run([ARGS.stoker, *map(str, arguments)], capture_output=True, env=env, check=False, timeout=600)


def digest(result):
    found = re.search(rb"digest: ([0-9a-f]{16})", result.stderr)
    if result.returncode or not found:
        raise AssertionError(result.stderr.decode(errors="replace"))
    return found[1].decode()


def isas():
    """Those of this machine: the others are refused with exit code 1."""
    return [isa for isa in ("scalar", "avx2", "avx512") if stoker("inspect", ARGS.path, isa=isa).returncode == 0]


class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = json.loads((ROOT / "tests/golden/real" / f"{ARGS.model}.json").read_text(encoding="utf-8"))

    def test_greedy_is_the_references_choice(self):
        greedy = self.golden["greedy"]
        result = stoker("run", "-m", ARGS.path, "-p", greedy["prompt"], "-n", len(greedy["steps"]), "--temp", 0, "--json", "--ignore-eos")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["prompt_tokens"], len(greedy["tokens"]))
        for token, step in zip(answer["tokens"], greedy["steps"]):
            if token != step["id"]:
                # The first difference may only be where the reference hardly prefers one to the other.
                self.assertLess(step["margin"], CLEAR, answer["text"])
                self.assertEqual(token, step["second"])
                return

    def test_same_bits_however_cut(self):
        tokens = self.golden["texts"]["multilingual"]["tokens"][:150]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ids.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(tokens, file)

            def run(batch, threads, isa=None, ids=path):
                return digest(stoker("perplexity", "-m", ARGS.path, "--tokens", ids, "--batch", batch, "--threads", threads,
                                     "--threads-exact", "--digest", isa=isa))

            want = run(150, 2)
            self.assertEqual(run(1, 1), want)
            self.assertEqual(run(7, 3), want)
            self.assertEqual(run(64, 2), want)
            self.assertEqual(run(64, 2, "avx2"), want)
            short = os.path.join(folder, "short.json")
            with open(short, "w", encoding="utf-8") as file:
                json.dump(tokens[:20], file)
            digests = {isa: run(64, 2, isa, short) for isa in isas()}
            self.assertEqual(len(set(digests.values())), 1, digests)

    def test_memory_limit_of_the_file_and_a_little(self):
        size = os.path.getsize(ARGS.path) >> 20
        result = stoker("run", "-m", ARGS.path, "-p", "Hello", "-n", 4, "--temp", 0, "--memory", f"{size + 96}M")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stdout
        result = stoker("run", "-m", ARGS.path, "-p", "Hello", "-n", 4, "--memory", "30M")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"streamed layers", result.stderr)
        self.assertLessEqual(result.stderr.count(b"\n"), 12)
        self.check_smallest(re.search(rb"--memory (\d+)M", result.stderr)[1].decode(), text)

    def check_smallest(self, limit, text):
        """That the smallest limit that was named works, with layers on disk if need be, and is never passed."""
        run = [ARGS.stoker, "run", "-m", ARGS.path, "-p", "Hello", "-n", "4", "--temp", "0", "--memory", f"{limit}M"]
        process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        out = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual((process.returncode, out), (0, text))
        self.assertLessEqual(usage.ru_maxrss, int(limit) << 10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", required=True)
    parser.add_argument("--model", required=True)
    ARGS, rest = parser.parse_known_args()
    ARGS.path = subprocess.run([ROOT / "tools/get-model", ARGS.model], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    unittest.main(argv=sys.argv[:1] + rest)
