"""`stoker synth`, and `synth:SHAPE` in place of a model's file."""
import hashlib
import os
import resource
import signal
import subprocess
import time

from harness import FAULTY_DISK, STOKER, TestCase, environment, stoker

RANDOM = "the weights are random (made by `stoker synth`): its text is noise"


class Synth(TestCase):
    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        self.env = {"STOKER_HOME": str(self.home)}

    def make(self, *args):
        done = self.ok("synth", *args, env=self.env)
        self.assertEqual(done.err, "")
        return self.home / "synth" / os.path.basename(done.out.strip())

    def files(self):
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())

    def test_makes_what_runs(self):
        path = self.make("tiny-llama", "--type", "q8_0")
        self.assertEqual(path, self.home / "synth" / "tiny-llama-q8_0.gguf")
        done = self.ok("inspect", path, "--verify")
        self.assertIn("Q8_0: 15 tensors", done.out)
        self.assertIn("tiny-llama, random weights", done.out)
        self.assertEqual(done.err, f"stoker: warning: {path}: {RANDOM}\n")
        done = self.ok("run", "-m", path, "-p", "a", "-n", 2, "--temp", 0, "--threads", 1)
        self.assertIn(RANDOM, done.err)

    def test_the_seed_decides_about_the_bytes(self):
        def digest(*args):
            return hashlib.sha256(self.make("tiny-gpt-oss", *args).read_bytes()).hexdigest()

        first = digest()
        self.assertEqual(digest("--force", "--threads", 3), first)
        self.assertNotEqual(digest("--seed", 2), first)
        self.assertNotEqual(digest("--zipf", 1.5), first)
        names = ["tiny-gpt-oss-mxfp4-seed2.gguf", "tiny-gpt-oss-mxfp4-zipf1.5.gguf", "tiny-gpt-oss-mxfp4.gguf"]
        self.assertEqual(self.files(), names)

    def test_a_file_that_is_there_is_kept(self):
        path = self.make("tiny-llama", "--layers", 1)
        self.assertEqual(path.name, "tiny-llama-1l-q4_k_m.gguf")
        path.write_bytes(b"mine")
        self.make("tiny-llama", "--layers", 1)
        self.assertEqual(path.read_bytes(), b"mine")
        self.refused(1, [str(path), "--force"], "synth", "tiny-llama", "-o", path)
        self.assertEqual(path.read_bytes(), b"mine")
        self.assertEqual(self.ok("synth", "tiny-llama", "-o", path, "--force").out, f"{path}\n")
        self.assertEqual(path.read_bytes()[:4], b"GGUF")

    def test_in_place_of_a_file(self):
        args = ("-m", "synth:tiny-olmoe:q4_0", "-p", "a", "-n", 1, "--temp", 0)
        first = self.ok("run", *args, env=self.env)
        path = self.home / "synth" / "tiny-olmoe-q4_0.gguf"
        self.assertIn(f"stoker: writing 3.8 MiB of random weights: {path}\n", first.err)
        again = self.ok("run", *args, env=self.env)
        self.assertNotIn("writing", again.err)
        self.assertEqual(again.raw, first.raw)
        # What reads no weights needs none.
        inspected = self.ok("inspect", "synth:tiny-olmoe", "--plan", env=self.env)
        self.assertIn("olmoe", inspected.out)
        self.ok("tokenize", "-m", "synth:tiny-olmoe", "a", env=self.env)
        self.assertEqual(self.files(), ["tiny-olmoe-q4_0.gguf"])
        self.ok("inspect", "synth:tiny-olmoe", "--verify", env=self.env)
        self.ok("perplexity", "-m", "synth:tiny-olmoe", "--ctx", 64, stdin=b"the cat " * 40, env=self.env)
        self.assertEqual(self.files(), ["tiny-olmoe-q4_0.gguf", "tiny-olmoe-q4_k_m.gguf"])

    def test_bench(self):
        args = ("-p", 4, "-n", 1, "-r", 1, "--json")
        rows = self.ok("bench", "synth:tiny-llama", "-m", "synth:tiny-qwen3:f16", *args, env=self.env).json()
        self.assertEqual([row["model"] for row in rows[::2]], ["synth:tiny-llama", "synth:tiny-qwen3:f16"])
        self.assertEqual(self.files(), ["tiny-llama-q4_k_m.gguf", "tiny-qwen3-f16.gguf"])

    def test_list(self):
        out = self.ok("synth", "--list").out
        self.assertRegex(out, r"\ngpt-oss-20b +20\.9 B +11\.3 GiB  mxfp4\n")
        self.assertIn(" q4_k_m ", out.splitlines()[-1])

    def test_wrong_usage(self):
        for args, words in (
            (("huge",), ["'huge'", "known are", "gpt-oss-20b"]),
            (("tiny-llama", "--type", "q3"), ["'q3'", "q4_k_m"]),
            (("tiny-llama", "--layers", 0), ["--layers", "'0'"]),
            (("tiny-llama", "--seed", -1), ["--seed", "'-1'"]),
            (("tiny-olmoe", "--zipf", "x"), ["--zipf", "'x'"]),
            (("tiny-olmoe", "--zipf", "nan"), ["--zipf", "'nan'"]),
            (("tiny-olmoe", "--zipf", "4"), ["--zipf", "'4'"]),
            (("tiny-llama", "--zipf", "1"), ["no experts"]),
            ((), ["SHAPE", "--list"]),
        ):
            self.refused(2, words, "synth", *args, env=self.env)
        self.refused(2, "'huge'", "run", "-m", "synth:huge", "-p", "x", env=self.env)
        self.refused(2, "'q9'", "inspect", "synth:tiny-llama:q9", env=self.env)
        self.assertEqual(self.files(), [])

    def test_places_that_cannot_be_written(self):
        self.refused(1, ["none/m.gguf", "No such file"], "synth", "tiny-llama", "-o", self.folder / "none" / "m.gguf")
        self.refused(1, "directory", "synth", "tiny-llama", "-o", self.folder, "--force")
        self.file("home", "a file")
        self.refused(1, "tiny-llama-q4_k_m.gguf", "synth", "tiny-llama", env=self.env)
        done = stoker("bench", "synth:tiny-llama", env=self.env)
        self.assertEqual((done.code, done.out), (1, ""), done)
        self.assertIn("tiny-llama-q4_k_m.gguf: cannot be written: Not a directory", done.err)

    def test_a_disk_that_is_too_small(self):
        env = self.env | {"LD_PRELOAD": FAULTY_DISK, "FAULTY_FREE": str(5 << 20)}
        words = ["qwen3-30b-a3b-q8_0.gguf: its disk has 5 MiB free, 30.3 GiB are needed: make room"]
        self.refused(1, words, "synth", "qwen3-30b-a3b", "--type", "q8_0", env=env)
        self.assertEqual(self.files(), [])

    def test_a_disk_that_becomes_full(self):
        def small_files_only():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        self.refused(1, "File too large", "synth", "tiny-olmoe", env=self.env, before=small_files_only)
        self.assertEqual(self.files(), [])

    def test_ctrl_c_leaves_nothing_behind(self):
        args = [STOKER, "synth", "llama-3.2-1b", "--threads", "1"]
        run = subprocess.Popen(args, env=environment(**self.env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while run.poll() is None and not self.files():
            time.sleep(0.001)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertEqual((run.returncode, out, err), (1, b"", b"stoker: error: cancelled\n"))
        self.assertEqual(self.files(), [])
