"""tools/synth with its tiny shape. usage: synth_test.py STOKER"""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STOKER = sys.argv.pop(1)


def load_tool():
    loader = importlib.machinery.SourceFileLoader("synth", str(ROOT / "tools" / "synth"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("synth", loader))
    loader.exec_module(module)
    return module


class Synth(unittest.TestCase):
    tool = load_tool()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "synth"
        os.environ["STOKER_HOME"] = folder.name

    def run_tool(self, *arguments):
        """(exit code, stdout, stderr)"""
        out, err = io.StringIO(), io.StringIO()
        sys.argv = ["synth", *arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self.tool.main()
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def make(self, *arguments):
        code, out, err = self.run_tool(*arguments)
        self.assertEqual((code, err), (0, ""))
        return pathlib.Path(out.strip())

    def test_stoker_opens_and_runs_it(self):
        layers = {"q8_0": "Q8_0: 15 tensors", "q6_k": "Q6_K: 15 tensors", "mxfp4": "MXFP4: 14 tensors"}
        for recipe, wanted in (layers | {"q4_k_m": "Q4_K: 12 tensors"}).items():
            path = self.make("tiny", recipe)
            self.assertEqual(path, self.folder / f"tiny-{recipe}.gguf")
            shown = subprocess.run([STOKER, "inspect", path], capture_output=True, text=True, check=False)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn(wanted, shown.stdout)
            run = [STOKER, "run", "-m", path, "-p", "a", "-n", "2", "--temp", "0", "--threads", "1"]
            self.assertEqual(subprocess.run(run, capture_output=True, check=False).returncode, 0)

    def test_the_seed_decides_about_the_bytes(self):
        digests = []
        for options in ((), ("--force",), ("--seed", "2")):
            path = self.make("tiny", "q4_k_m", *options)
            digests.append(hashlib.sha256(path.read_bytes()).hexdigest())
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[0], digests[2])
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["tiny-q4_k_m-seed2.gguf", "tiny-q4_k_m.gguf"])

    def test_a_file_that_is_there_is_kept(self):
        path = self.make("tiny", "q8_0", "--layers", "1")
        self.assertEqual(path.name, "tiny-1l-q8_0.gguf")
        path.write_bytes(b"mine")
        self.make("tiny", "q8_0", "--layers", "1")
        self.assertEqual(path.read_bytes(), b"mine")

    def test_experts(self):
        path = self.make("gpt-oss-20b", "mxfp4", "--layers", "1") if os.environ.get("STOKER_LONG_TESTS") else None
        self.tool.SHAPES["moe"] = self.tool.model(
            *("olmoe", 2, 256, 64, (4, 4, 64)),
            n_vocab=512,
            qk_norm="full",
            tied=False,
            experts=self.tool.Experts(4, used=2, ff_dim=64, ff_key="feed_forward_length"),
        )
        for path in filter(None, (path, self.make("moe", "mxfp4"))):
            reader = self.tool.gguf.GGUFReader(path)
            types = {t.name: t.tensor_type.name for t in reader.tensors}
            self.assertEqual(types["blk.0.ffn_up_exps.weight"], "MXFP4")
            self.assertEqual(types["blk.0.attn_q.weight"], "Q8_0")

    def test_rows_that_are_no_whole_blocks(self):
        self.tool.SHAPES["narrow"] = self.tool.model("llama", 1, 288, 512, (3, 3, 64), n_vocab=512)
        types = {t.name: t.tensor_type.name for t in self.tool.gguf.GGUFReader(self.make("narrow", "q4_k_m")).tensors}
        self.assertEqual(types["blk.0.ffn_up.weight"], "Q8_0")
        self.assertEqual(types["blk.0.ffn_down.weight"], "Q6_K")

    def test_a_disk_that_is_too_small(self):
        with mock.patch.object(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 20)):
            code, out, err = self.run_tool("qwen3-30b-a3b", "q8_0")
        self.assertEqual((code, out, err.count("\n")), (1, "", 1))
        self.assertIn("has 5 MiB free", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_a_failure_leaves(self):
        with mock.patch.object(self.tool.SynthWriter, "matrix", side_effect=OSError(28, "No space left on device")):
            code, _, err = self.run_tool("tiny", "q8_0")
        self.assertEqual(code, 1)
        self.assertIn("is full", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_wrong_usage(self):
        for arguments in (("huge", "q8_0"), ("tiny", "q3"), ("tiny",), ("tiny", "q8_0", "--layers", "0")):
            self.assertEqual(self.run_tool(*arguments)[0], 2, arguments)
        self.assertEqual(self.run_tool("--list")[0], 0)


if __name__ == "__main__":
    unittest.main()
