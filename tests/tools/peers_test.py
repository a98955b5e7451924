"""bench/peers with shell scripts as engines."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Each notes its arguments in "calls" and answers as the real program does.
NOTE = """#!/bin/sh
cd "$(dirname "$0")"
case "$*" in *--help*) ;; *) echo "$(basename "$0") $*" >> calls ;; esac
"""
STOKER = """
case "$*" in
  run*) echo answer ;;
  *"-p 0"*) echo '[{"test": "tg4", "tps_median": 30.0}]' ;;
  *) echo '[{"test": "pp8", "tps_median": 200.0}]' ;;
esac
"""
# Repacking makes its decode slower.
LLAMA = """
case "$*" in
  --help) echo '-d, --n-depth <n>  --repack <0|1>' ;;
  *"-n 0"*) echo '[{"samples_ts": [100.0]}]' ;;
  *"--repack 0"*) echo '[{"samples_ts": [60.0]}]' ;;
  *) echo '[{"samples_ts": [50.0]}]' ;;
esac
"""
# Reads a prompt twice; knows -gp instead of a depth; repacking makes it faster, and crash while decoding.
IK = """
case "$*" in
  --help) echo '-gp <pp,tg>  -rtr, --run-time-repack <0|1>' ;;
  *"-n 4"*-rtr*) kill -SEGV $$ ;;
  *"-p 8"*"-r 2"*-rtr*) echo '[{"samples_ts": [1.0, 150.0]}]' ;;
  *"-p 8"*) echo '[{"samples_ts": [1.0, 80.0]}]' ;;
  *"-n 4"*|*"-gp 16,4"*) echo '[{"samples_ts": [20.0]}]' ;;
  *) exit 9 ;;
esac
"""
BATCHED = """
echo '|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |'
echo '|     1 |      4 |    2 |     10 |    0.091 |    10.97 |    0.200 |    15.00 |    0.305 |    17.00 |' >&2
"""


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=pathlib.Path.home())  # on a disk: a tmpfs cannot be cold
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("stoker", STOKER), ("llama-bench", LLAMA), ("ik/llama-bench", IK)):
            self.script(name, text)
        for name in ("llama-completion", "ik/llama-cli"):
            self.script(name, "echo hi")
        for name in ("llama-batched-bench", "ik/llama-batched-bench"):
            self.script(name, BATCHED)
        (self.folder / "model.gguf").write_bytes(b"x" * 100_000)

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(NOTE + text)
        path.chmod(0o755)

    def run_peers(self, *arguments):
        engines = ["--stoker", self.folder / "stoker", "--peer", f"llama.cpp={self.folder / 'llama-bench'}"]
        engines += ["--peer", f"ik={self.folder / 'ik' / 'llama-bench'}", "-m", self.folder / "model.gguf"]
        sizes = ["-p", "8", "-n", "4", "-t", "1", "--out", self.folder / "out.json"]
        command = [sys.executable, ROOT / "bench" / "peers", *engines, *sizes, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def calls(self, folder="."):
        return (self.folder / folder / "calls").read_text().splitlines()

    def results(self):
        return json.loads((self.folder / "out.json").read_text())["models"]["model.gguf"]

    def test_ratios_favour_the_faster_and_each_peer_has_its_best_setting(self):
        result = self.run_peers("-r", "2", "--skip", "start", "--md")
        self.assertEqual(result.returncode, 0, result.stderr)
        tests = self.results()
        ratios = {(test, name): r["median"] for test, found in tests.items() for name, r in found["ratios"].items()}
        self.assertEqual(ratios[("pp8", "llama.cpp")], 2.0)
        self.assertAlmostEqual(ratios[("pp8", "ik")], 4 / 3)
        self.assertEqual(ratios[("tg4", "llama.cpp")], 0.5)
        self.assertEqual(tests["pp8"]["settings"], {"stoker": "as it is", "llama.cpp": "as it is", "ik": "-rtr 1"})
        self.assertEqual(tests["tg4"]["settings"]["llama.cpp"], "--repack 0")
        self.assertIn("| model.gguf | tg4, t/s | 30.0 | 60.0 | 20.0 | 0.50 (0.50–0.50) |", result.stdout)

    def test_engines_take_turns(self):
        # The scripts beside ik's share the folder of the others' notes here.
        self.script("ik/llama-bench", IK.replace("case", 'echo ik >> ../calls\ncase', 1))
        self.assertEqual(self.run_peers("-r", "2", "--skip", "start", "-n", "0").returncode, 0)
        turns = [call.split()[0] for call in self.calls()]
        self.assertEqual(turns[-6:], ["stoker", "llama-bench", "ik"] * 2)

    def test_depth_and_streams_reach_every_engine(self):
        result = self.run_peers("-r", "1", "--skip", "start", "-p", "0", "-d", "16", "-b", "1,2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.results()["tg4 at 16 x 2"]["engines"]["ik"]["median"], 15.0)
        self.assertIn("-d 16", " ".join(self.calls()))
        self.assertIn("-d 16 -b 2", " ".join(self.calls()))
        self.assertIn("-gp 16,4", " ".join(self.calls("ik")))
        self.assertIn("-npp 16 -ntg 4 -npl 2 -c 512", " ".join(self.calls("ik")))

    def test_start_is_measured_warm_and_cold(self):
        result = self.run_peers("-r", "1", "--skip", "speed")
        self.assertEqual(result.returncode, 0, result.stderr)
        tests = self.results()
        self.assertEqual(set(tests), {"first byte, warm", "first byte, cold", "peak RSS, warm", "peak RSS, cold"})
        self.assertGreater(tests["peak RSS, warm"]["engines"]["stoker"]["median"], 0)
        self.assertIn("llama-completion", " ".join(self.calls()))
        self.assertIn("llama-cli", " ".join(self.calls("ik")))

    def test_an_engine_that_fails_is_named_and_the_others_go_on(self):
        broken = 'case "$*" in --help) ;; *) echo broken >&2; exit 3 ;; esac'
        self.script("llama-bench", broken + LLAMA)
        result = self.run_peers("-r", "1", "--skip", "start")
        self.assertEqual(result.returncode, 1)
        self.assertIn("pp8", result.stderr)
        self.assertIn("llama.cpp failed", result.stdout)
        self.assertIn("broken", result.stdout)
        self.assertEqual(set(self.results()["pp8"]["ratios"]), {"ik"})

    def test_an_engine_without_an_answer_is_named(self):
        self.script("llama-completion", "exit 0")
        result = self.run_peers("-r", "1", "--skip", "speed")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no answer", result.stderr)

    def test_a_peer_without_a_path_is_refused(self):
        result = self.run_peers("--peer", "nothing")
        self.assertEqual(result.returncode, 2)
        self.assertIn("NAME=PATH", result.stderr)


if __name__ == "__main__":
    unittest.main()
