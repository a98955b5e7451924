"""Model files that are none, or are broken: one line that names the file and says what is wrong, exit code 1."""
import re
import struct

from gguf_edit import Gguf
from harness import FAULTY_DISK, TestCase, model, stoker

COMMANDS = (
    ("run", "-p", "x", "-m"),
    ("tokenize", "x", "-m"),
    ("detokenize", "-m"),
    ("perplexity", "-m"),
    ("bench", "-m"),
    ("inspect",),
)


class Broken(TestCase):
    def all_refuse(self, path, words):
        for command in COMMANDS:
            self.refused(1, [str(path), *words], *command, path, stdin=b"[1]")

    def test_missing_and_no_files(self):
        self.all_refuse(self.folder / "none.gguf", ["No such file"])
        self.all_refuse(self.folder, ["directory"])
        self.all_refuse("/dev/null", ["device"])

    def test_no_gguf(self):
        self.all_refuse(self.file("empty.gguf", b""), [])
        self.all_refuse(self.file("text.gguf", "This is a letter, not a model.\n" * 100), ["GGUF"])
        self.all_refuse(self.file("zeros.gguf", bytes(4096)), ["GGUF"])
        self.all_refuse(self.file("one.gguf", b"G"), [])
        for magic in (b"GGML", b"FUGG", b"gguf", b"\x7fELF"):
            self.all_refuse(self.file("magic.gguf", magic + model().read_bytes()[4:]), ["GGUF"])

    def test_versions(self):
        for version in (0, 1, 4, 0xFFFFFFFF):
            path = self.file("version.gguf", b"GGUF" + struct.pack("<I", version) + model().read_bytes()[8:])
            self.all_refuse(path, ["version"])

    def test_truncated_anywhere(self):
        data = model().read_bytes()
        cuts = [4, 7, 8, 23, 24, 100, 1000, 5000, 9000, len(data) // 2, len(data) - 4096, len(data) - 1]
        for cut in cuts:
            self.refused(1, "cut.gguf", "run", "-m", self.file("cut.gguf", data[:cut]), "-p", "x")
            self.refused(1, "cut.gguf", "inspect", self.file("cut.gguf", data[:cut]))
        self.all_refuse(self.file("cut.gguf", data[: len(data) // 2]), ["bytes"])

    def test_names_of_the_tensor_that_is_cut(self):
        data = model().read_bytes()
        self.refused(1, ["blk.3.ffn_down.weight", str(len(data) - 1)], "inspect", self.file("cut.gguf", data[:-1]))

    def test_unreadable(self):
        path = self.file("secret.gguf", model().read_bytes())
        path.chmod(0)
        if stoker("inspect", path).code == 0:
            self.skipTest("root reads everything")
        self.all_refuse(path, ["Permission denied"])

    def test_config_that_cannot_be(self):
        cases = (
            (lambda g: g.keys.pop("llama.block_count"), "llama.block_count"),
            (lambda g: g.set_u32("llama.block_count", 0), "llama.block_count"),
            (lambda g: g.set_u32("llama.block_count", 4000000000), "llama.block_count"),
            (lambda g: g.set_string("llama.block_count", "four"), "llama.block_count"),
            (lambda g: g.set_u32("llama.attention.head_count", 0), "llama.attention.head_count"),
            (lambda g: g.set_u32("llama.attention.head_count", 5), "key-value heads"),
            (lambda g: g.set_string("llama.rope.scaling.type", "spiral"), "spiral"),
        )
        for change, word in cases:
            path = self.edited(change)
            self.refused(1, [path.name, word], "run", "-m", path, "-p", "x")
            done = stoker("inspect", path)
            self.assertEqual(done.code, 1, done)
            self.assertIn(word, done.out)


class FaultyDisk(TestCase):
    def env(self, path, **more):
        return {"LD_PRELOAD": FAULTY_DISK, "FAULTY_FILE": str(path)} | more

    def limits(self):
        """With room for the file in the page cache, and without: the two ways of reading."""
        small = stoker("run", "-m", model(), "-p", "hello", "-n", "6", "--memory", "1M")
        return "4G", re.search(r"--memory (\d+M)", small.err)[1]

    def test_read_errors_name_the_file_and_the_tensor(self):
        path = self.file("bad.gguf", model().read_bytes())
        size = path.stat().st_size
        for code, reason in (("5", "Input/output error"), ("116", "Stale file handle")):
            for limit in self.limits():
                env = self.env(path, FAULTY_FROM=str(size * 2 // 3), FAULTY_ERRNO=code)
                words = ["bad.gguf", "tensor 'blk.", reason]
                self.refused(1, words, "run", "-m", path, "-p", "x", "-n", "2", "--memory", limit, env=env)
        env = self.env(path, FAULTY_FROM="100", FAULTY_ERRNO="5")
        self.refused(1, ["bad.gguf", "Input/output error"], "run", "-m", path, "-p", "x", env=env)
        self.refused(1, ["bad.gguf", "Input/output error"], "inspect", path, env=env)

    def test_short_and_interrupted_reads_are_whole_in_the_end(self):
        path = self.file("slow.gguf", model().read_bytes())
        args = ("run", "-m", path, "-p", "hello", "-n", "6", "--temp", "0", "--ignore-eos", "--digest")
        want = self.ok(*args).digest()
        for limit in self.limits():
            got = self.ok(*args, "--memory", limit, env=self.env(path, FAULTY_SHORT="1"))
            self.assertEqual(got.digest(), want)


class Overrides(TestCase):
    def test_they_stand_in_for_the_file(self):
        broken = self.edited(lambda gguf: gguf.keys.pop("llama.rope.freq_base"))
        args = ("-p", "hello", "-n", "6", "--temp", "0", "--ignore-eos", "--digest")
        want = self.ok("run", "-m", model(), *args)
        same = self.ok("run", "-m", broken, *args, "--override", "llama.rope.freq_base=10000")
        other = self.ok("run", "-m", broken, *args, "--override", "rope.freq_base=500")
        self.assertEqual(same.digest(), want.digest())
        self.assertNotEqual(other.digest(), want.digest())


class Split(TestCase):
    def setUp(self):
        super().setUp()
        whole = Gguf.read(model())
        names = list(whole.tensors)
        self.shards = []
        for n, part in enumerate((names[:20], names[20:])):
            shard = Gguf()
            shard.keys = dict(whole.keys) if n == 0 else {}
            shard.keys |= {"split.no": (2, n), "split.count": (2, 2), "split.tensors.count": (5, len(names))}
            shard.tensors = {name: whole.tensors[name] for name in part}
            self.shards.append(self.file(f"m-0000{n + 1}-of-00002.gguf", shard.bytes()))

    def test_any_shard_opens_the_whole(self):
        args = ("-p", "hello", "-n", "4", "--temp", "0", "--ignore-eos", "--digest")
        want = self.ok("run", "-m", model(), *args).digest()
        for shard in self.shards:
            self.assertEqual(self.ok("run", "-m", shard, *args).digest(), want)
            self.assertIn("2 files", self.ok("inspect", shard).out)
            self.assertIn("h", self.ok("tokenize", "-m", shard, "h").out)

    def test_a_missing_shard_is_named(self):
        for gone, left in (self.shards, reversed(self.shards)):
            data = gone.read_bytes()
            gone.unlink()
            self.refused(1, gone.name, "run", "-m", left, "-p", "x")
            gone.write_bytes(data)

    def test_shards_joined_with_cat(self):
        joined = self.file("joined.gguf", b"".join(path.read_bytes() for path in self.shards))
        self.refused(1, "joined.gguf", "run", "-m", joined, "-p", "x")
