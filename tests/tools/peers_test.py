"""bench/peers with two shell scripts as engines."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STOKER = """#!/bin/sh
echo stoker $1 >> "$(dirname "$0")/calls"
case $1 in
  bench) echo '[{"test": "pp8", "tps_median": 200.0}, {"test": "tg4", "tps_median": 30.0}]' ;;
  run) echo answer ;;
esac
"""
LLAMA_BENCH = """#!/bin/sh
echo llama-bench >> "$(dirname "$0")/calls"
echo '[{"n_prompt": 8, "n_gen": 0, "avg_ts": 100.0}, {"n_prompt": 0, "n_gen": 4, "avg_ts": 60.0}]'
"""


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=pathlib.Path.home())  # on a disk: a tmpfs cannot be cold
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        scripts = {"stoker": STOKER, "llama-bench": LLAMA_BENCH, "llama-completion": "#!/bin/sh\necho hi\n"}
        for name, text in scripts.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        (self.folder / "model.gguf").write_bytes(b"x" * 100_000)

    def run_peers(self, *arguments):
        engines = ["--stoker", self.folder / "stoker", "--llama", self.folder, "-m", self.folder / "model.gguf"]
        sizes = ["-p", "8", "-n", "4", "-t", "1", "--out", self.folder / "out.json"]
        command = [sys.executable, ROOT / "bench" / "peers", *engines, *sizes, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_engines_take_turns_and_ratios_favour_the_faster(self):
        result = self.run_peers("-r", "2", "--skip", "start")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "calls").read_text().splitlines(), ["stoker bench", "llama-bench"] * 2)
        tests = json.loads((self.folder / "out.json").read_text())["models"]["model.gguf"]
        self.assertEqual(tests["pp8"]["ratio"]["median"], 2.0)
        self.assertEqual(tests["tg4"]["ratio"]["median"], 0.5)
        self.assertIn("ratio 2.00", result.stdout)

    def test_start_is_measured_warm_and_cold(self):
        result = self.run_peers("-r", "1", "--skip", "speed")
        self.assertEqual(result.returncode, 0, result.stderr)
        tests = json.loads((self.folder / "out.json").read_text())["models"]["model.gguf"]
        self.assertEqual(set(tests), {"first byte, warm", "first byte, cold", "peak RSS, warm", "peak RSS, cold"})
        self.assertGreater(tests["peak RSS, warm"]["stoker"]["median"], 0)

    def test_a_failing_engine_is_named(self):
        (self.folder / "llama-bench").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
        result = self.run_peers("-r", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("llama-bench", result.stderr)
        self.assertIn("broken", result.stderr)

    def test_an_engine_without_an_answer_is_named(self):
        (self.folder / "llama-completion").write_text("#!/bin/sh\nexit 0\n")
        result = self.run_peers("-r", "1", "--skip", "speed")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no answer", result.stderr)


if __name__ == "__main__":
    unittest.main()
