"""What the tests of the binary share: running it, and tiny GGUF files with one thing wrong."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import gguf_edit

# Set by cli_test.py before the tests are loaded.
STOKER = os.environ.get("STOKER_BINARY", "build/release/stoker")
FAULTY_DISK = os.environ.get("STOKER_FAULTY_DISK", "")
MODELS = pathlib.Path(os.environ.get("STOKER_MODELS", "build/release/tiny"))


class Done:
    """A finished run: exit code, standard output as bytes and text, standard error as text."""

    def __init__(self, args, process, out, err):
        self.args, self.code, self.raw = args, process.returncode, out
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.raw)

    def digest(self):
        lines = [line for line in self.err.splitlines() if line.startswith("digest: ")]
        assert len(lines) == 1, self
        return lines[0].removeprefix("digest: ")

    def __repr__(self):
        return f"{self.args}\nexit {self.code}\nstdout: {self.raw!r}\nstderr: {self.err}"


def environment(**more):
    """The caller's, without what would change what is tested."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("STOKER_")}
    return plain | more


def stoker(*args, stdin=b"", env=None, stdout=subprocess.PIPE, timeout=120, before=None):
    """Runs the binary; `before` is called in the child before it starts."""
    args = [STOKER, *map(str, args)]
    process = subprocess.Popen(
        args, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, env=environment(**(env or {})), preexec_fn=before
    )
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Done(args, process, out or b"", err)


def peak_resident(*args):
    """The most memory, in bytes, that a run had resident."""
    process = subprocess.Popen(
        [STOKER, *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, args
    return usage.ru_maxrss << 10


def model(name="llama"):
    return MODELS / f"{name}.gguf"


class TestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stoker-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def edited(self, change, name="llama"):
        """A copy of a tiny model after `change(gguf)`."""
        gguf = gguf_edit.Gguf.read(model(name))
        change(gguf)
        return self.file("edited.gguf", gguf.bytes())

    def ok(self, *args, **kwargs):
        done = stoker(*args, **kwargs)
        self.assertEqual(done.code, 0, done)
        return done

    def refused(self, code, words, *args, **kwargs):
        """That a run fails with `code` and one line on standard error that has all of `words` in it."""
        done = stoker(*args, **kwargs)
        self.assertEqual(done.code, code, done)
        self.assertEqual(done.out, "", done)
        self.one_line(done, words)
        return done

    def one_line(self, done, words):
        self.assertTrue(done.err.startswith("stoker: error: "), done)
        self.assertEqual(done.err.count("\n"), 1, done)
        self.assertTrue(done.err.endswith("\n"), done)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.err, done)


def instruction_sets():
    """What this machine has, by the binary's own words."""
    done = stoker("run", "-m", model(), "-p", "x", env={"STOKER_ISA": "no-such"})
    return done.err.strip().rpartition("this machine has: ")[2].split()
