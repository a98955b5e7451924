"""Experts that stay in the file: how the cache is asked for, and what happens when the disk lets it down."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

import harness
from gguf_edit import Gguf
from harness import FAULTY_DISK, TestCase, model, stoker

MOE = "olmoe"
MIB = 1 << 20
ARGS = ("-p", "hello", "-n", "12", "--temp", "0", "--ignore-eos")


def place_of(path, name):
    """Where a tensor begins and ends in the file."""
    data = Gguf.read(path).tensors[name].data
    begin = path.read_bytes().find(bytes(data))
    return begin, begin + len(data)


class ExpertCache(TestCase):
    def cache(self, *args, **kwargs):
        """What the cache takes by the table of --verbose, in words; nothing when there is none."""
        done = self.ok("-v", "run", "-m", model(MOE), *ARGS, "--digest", *args, **kwargs)
        self.digests.add(done.digest())
        found = re.search(r"memory: expert cache +(\S.*)", done.err)
        return found and found[1]

    def setUp(self):
        super().setUp()
        self.digests = set()

    def test_it_is_obeyed_and_changes_no_bit(self):
        self.assertIsNone(self.cache())
        sizes = [self.cache("--expert-cache", size) for size in ("0K", "100K", "300K", "1M", "16777215T")]
        self.assertNotIn(None, sizes)
        self.assertEqual(sizes[0], sizes[1])  # less than two experts of 72 KiB
        self.assertEqual(len(set(sizes)), 4, sizes)
        self.assertEqual(len(self.digests), 1)

    def test_the_environment_variable_and_which_wins(self):
        small, large = (self.cache("--expert-cache", size) for size in ("100K", "300K"))
        self.assertNotEqual(small, large)
        self.assertEqual(self.cache(env={"STOKER_EXPERT_CACHE": "100K"}), small)
        self.assertEqual(self.cache("--expert-cache", "300K", env={"STOKER_EXPERT_CACHE": "100K"}), large)
        self.assertIsNone(self.cache(env={"STOKER_EXPERT_CACHE": ""}))  # as if it were not set

    def test_each_mistake_has_its_own_message(self):
        mistakes = {
            "": "is empty",
            "100": "has no suffix",
            "-1M": "has a sign",
            "+1M": "has a sign",
            "1.5M": "has a fraction",
            "99999999999999999999M": "has a number too large for 64 bits",
            "16777216T": "is out of range",
            os.fsdecode(b"1\xffM"): "is no UTF-8",
            "M": "has no number",
            "1MB": "goes on after its suffix",
            "1m": "neither a digit nor",
            "lots": "neither a digit nor",
        }
        for text, why in mistakes.items():
            words = ["--expert-cache", why]
            self.refused(2, words, "run", "-m", model(MOE), *ARGS, "--expert-cache", text)
            if text:
                env = {"STOKER_EXPERT_CACHE": text}
                self.refused(2, words, "run", "-m", model(MOE), *ARGS, env=env)
                self.ok("run", "-m", model(MOE), *ARGS, "--expert-cache", "1M", env=env)  # the flag wins here too
                self.ok("tokenize", "-m", model(MOE), "hello", env=env)  # and who does not read it does not mind

    def test_readers_and_lookahead_change_no_bit(self):
        for args in (("threads", "off"), ("io_uring", "off"), ("io_uring", "on"), ("auto", "on"), ("threads", "auto")):
            file = os.open(model(MOE), os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
            self.cache("--expert-cache", "300K", "--expert-reader", args[0], "--expert-lookahead", args[1])
        self.assertEqual(len(self.digests), 1)
        for option in ("--expert-reader", "--expert-lookahead"):
            self.refused(2, [option, "maybe"], "run", "-m", model(MOE), *ARGS, option, "maybe")

    def test_reads_are_replayed(self):
        args = ("--expert-cache", "100K", "--profile", "--replay-reads", "--profile-json", self.file("p.json", b""))
        done = self.ok("run", "-m", model(MOE), *ARGS, *args)
        self.assertRegex(done.err, r"decode: disk at work \d.* %.*such reads alone: \d+\.\d+ s at")
        with open(args[-1], encoding="utf-8") as file:
            decode = json.load(file)["phases"][1]
        self.assertEqual(decode["replay"]["bytes_read"], decode["experts"]["bytes_read"])
        self.assertGreater(decode["experts"]["disk_seconds"], 0)

    def test_bench_tells_what_comes_from_disk(self):
        args = ("bench", "-m", model(MOE), "-p", 4, "-n", 2, "-r", 2)
        found = {}
        for size in ("64M", "0K"):
            rows = self.ok(*args, "--expert-cache", size, "--json").json()
            found[size] = [row["disk_bytes_per_token"] for row in rows]
        for kept, passing in zip(found["64M"], found["0K"]):  # what stays is there once the first run has warmed up
            self.assertLess(kept, passing / 2)
        self.assertIn("from disk", self.ok(*args, "--expert-cache", "0K").out)

    def test_a_dense_model_has_no_use_for_it(self):
        want = self.ok("run", "-m", model(), *ARGS, "--digest").digest()
        self.assertEqual(self.ok("run", "-m", model(), *ARGS, "--digest", "--expert-cache", "1M").digest(), want)


class StreamedLayers(TestCase):
    """A dense model larger than the limit: parts of it are read again for each token."""

    ARGS = ("-p", "hello there", "-n", "3", "--temp", "0", "--ignore-eos", "--ctx", "64", "--batch", "8", "--threads", "2")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = tempfile.TemporaryDirectory()
        done = stoker("synth", "tiny-llama", "--type", "f32", "--layers", "32", env={"STOKER_HOME": cls.home.name})
        assert done.code == 0, done.err
        cls.path = done.out.strip()
        cls.smallest = int(re.search(r"--memory (\d+)M", cls.run_in(1).err)[1])

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()
        super().tearDownClass()

    @classmethod
    def run_in(cls, limit, *args, **kwargs):
        return stoker("run", "-m", cls.path, *cls.ARGS, "--memory", f"{limit}M", "--digest", *args, **kwargs)

    def parts(self, limit):
        """How many parts the disk keeps, of how many."""
        done = self.run_in(limit)
        self.assertEqual(done.code, 0, done.err)
        self.digests.add(done.digest())
        found = re.search(rf"the limit of {limit} MiB does not hold all weights: (\d+) of their (\d+) parts, ", done.err)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def test_more_memory_leaves_less_on_disk(self):
        self.digests = set()
        plan = self.ok("plan", self.path, "--ctx", "64", "--batch", "8", "--json", "--no-measure").json()
        resident = plan["memory_bytes"] // MIB + 1
        self.assertLess(self.smallest, resident - 10)
        limits = (self.smallest, (self.smallest + resident) // 2, resident + 2)
        counts = [self.parts(limit) for limit in limits]
        self.assertGreater(counts[0][0], counts[1][0])
        self.assertGreater(counts[1][0], 0)
        self.assertEqual(counts[2], (0, 0))
        self.assertEqual(len(self.digests), 1)
        self.assertEqual(self.run_in(self.smallest - 1).code, 1)
        streamed = self.ok("plan", self.path, "--ctx", "64", "--batch", "8", "--json", "--no-measure", "--memory",
                           f"{limits[1]}M").json()
        units = streamed["streamed_units"]
        self.assertEqual(sum(len(kind["streamed"]) for kind in units.values()), streamed["streamed_parts"])
        self.assertEqual(units["feed_forward"]["all"], 32)
        self.assertEqual(units["output"]["streamed"], [])  # it comes last
        self.assertIn("On disk stay", self.ok("plan", self.path, "--no-measure", "--memory", f"{limits[1]}M").out)

    def test_the_profile_counts_them(self):
        path = self.folder / "profile.json"
        done = self.run_in(self.smallest, "--profile", "--profile-json", path)
        self.assertEqual(done.code, 0, done.err)
        self.assertRegex(done.err, r"profile: decode: \d+ parts read, ")
        self.assertRegex(done.err, r"profile: decode: disk at work ")
        layers = json.loads(path.read_text())["phases"][-1]["layers"]
        self.assertEqual(layers["errors"], 0)
        self.assertGreater(layers["bytes_read"], 0)

    def test_what_cannot_be_read_is_named(self):
        path = self.file("bad.gguf", pathlib.Path(self.path).read_bytes())
        for name in ("blk.30.ffn_up.weight", "blk.1.attn_output.weight", "token_embd.weight"):
            begin, end = place_of(path, name)
            if name == "token_embd.weight":
                begin = end - (end - begin) // 4  # of the output matrix, but no token of the prompt
            env = {"LD_PRELOAD": FAULTY_DISK, "FAULTY_FILE": str(path), "FAULTY_ERRNO": "5"}
            env |= {"FAULTY_FROM": str(begin), "FAULTY_TO": str(end)}
            done = stoker("run", "-m", path, *self.ARGS, "--memory", f"{self.smallest}M", env=env)
            self.assertEqual((done.code, done.out), (1, ""), done.err)
            self.assertIn("bad.gguf", done.err)
            self.assertIn(f"tensor '{name}'", done.err)
            self.assertIn("Input/output error", done.err)

    def test_bench_and_perplexity(self):
        rows = self.ok("bench", "-m", self.path, "-p", 8, "-n", 2, "-r", 1, "--json", "--memory",
                       f"{self.smallest + 2}M").json()
        self.assertTrue(all(row["disk_bytes_per_token"] > 0 for row in rows), rows)
        text = b"the cat sat on the mat " * 20
        args = ("perplexity", "-m", self.path, "--ctx", 64, "--digest")
        want = self.ok(*args, stdin=text)
        got = self.ok(*args, "--memory", f"{self.smallest + 2}M", stdin=text)
        self.assertEqual(got.digest(), want.digest())


class Unreadable(TestCase):
    def error_of(self, code, err):
        """The one line of a run that failed under way; before it come the context and the seed."""
        lines = err.splitlines()
        self.assertEqual((code, sum(line.startswith("stoker: ") for line in lines)), (1, 1), err)
        self.assertTrue(lines[-1].startswith("stoker: error: "), err)
        return lines[-1]

    def test_errors_name_the_file_and_the_tensor(self):
        path = self.file("bad.gguf", model(MOE).read_bytes())
        for name in ("blk.0.ffn_gate_exps.weight", "blk.1.ffn_down_exps.weight"):
            begin, end = place_of(path, name)
            for code, reason in (("5", "Input/output error"), ("116", "Stale file handle")):
                env = {"LD_PRELOAD": FAULTY_DISK, "FAULTY_FILE": str(path), "FAULTY_ERRNO": code}
                env |= {"FAULTY_FROM": str(begin), "FAULTY_TO": str(end)}
                for size in ("0K", "100K", "1G"):
                    done = stoker("run", "-m", path, *ARGS, "--expert-cache", size, env=env)
                    error = self.error_of(done.code, done.err)
                    self.assertEqual(done.out, "")
                    for word in ("bad.gguf", f"tensor '{name}'", reason):
                        self.assertIn(word, error)

    def test_short_and_interrupted_reads_are_whole_in_the_end(self):
        path = self.file("slow.gguf", model(MOE).read_bytes())
        want = self.ok("run", "-m", path, *ARGS, "--digest").digest()
        env = {"LD_PRELOAD": FAULTY_DISK, "FAULTY_FILE": str(path), "FAULTY_SHORT": "1"}
        got = self.ok("run", "-m", path, *ARGS, "--digest", "--expert-cache", "100K", env=env)
        self.assertEqual(got.digest(), want)

    def test_a_file_that_is_shortened_while_it_streams(self):
        path = self.file("cut.gguf", model(MOE).read_bytes())
        begin, end = place_of(path, "blk.0.ffn_gate_exps.weight")
        args = ("run", "-m", path, "-p", "hello", "-n", "3000", "--ignore-eos", "--expert-cache", "0K")
        process = subprocess.Popen(
            [harness.STOKER, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment()
        )
        first = process.stdout.read(1)
        os.truncate(path, (begin + end) // 2)
        out, err = process.communicate(timeout=120)
        self.assertEqual(len(first), 1, err)
        error = self.error_of(process.returncode, err.decode())
        for word in ("cut.gguf", "tensor 'blk.", "_exps.weight"):
            self.assertIn(word, error)
        self.assertLess(len(out), 3000 * 8)
