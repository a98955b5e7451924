"""stoker perplexity: the scores, windows, and that its digest depends on nothing but the model and the text."""
import json
import math
import pathlib
import resource
import signal
import struct

from harness import TestCase, instruction_sets, model, stoker

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tiny"


def golden(name):
    return GOLDEN / f"{name}.json"


class Scores(TestCase):
    def score(self, *args, name="llama", tokens=None):
        return self.ok("perplexity", "-m", model(name), "--tokens", tokens or golden(name), "--json", *args).json()

    def test_matches_the_reference(self):
        want = json.loads(golden("llama").read_text("utf-8"))
        got = self.score("--kv-type", "f32")
        self.assertEqual(got["tokens"], want["tokens"])
        self.assertEqual(len(got["logprobs"]), len(want["tokens"]) - 1)
        worst = max(abs(a - b) for a, b in zip(got["logprobs"], want["logprobs"]))
        self.assertLess(worst, 1e-3)
        mean = sum(got["logprobs"]) / len(got["logprobs"])
        self.assertAlmostEqual(got["perplexity"], math.exp(-mean), delta=1e-6 * got["perplexity"])
        self.assertNotIn("top", got)

    def test_top(self):
        tokens = json.loads(golden("llama").read_text("utf-8"))["tokens"]
        got = self.score("--top", "3")
        self.assertEqual([len(row) for row in got["top"]], [3] * len(tokens))
        for i, row in enumerate(got["top"]):
            values = [logprob for _, logprob in row]
            self.assertEqual(values, sorted(values, reverse=True))
            if i + 1 < len(tokens) and tokens[i + 1] in dict(row):
                self.assertAlmostEqual(dict(row)[tokens[i + 1]], got["logprobs"][i], places=12)
        everything = self.score("--top", "1000")["top"][5]
        self.assertEqual(len(everything), 288)
        self.assertAlmostEqual(sum(math.exp(logprob) for _, logprob in everything), 1.0, places=9)

    def test_windows_start_from_nothing(self):
        tokens = json.loads(golden("llama").read_text("utf-8"))["tokens"]
        whole = self.score("--ctx", "72")["logprobs"]
        self.assertNotIn(None, whole)
        for ctx in (2, 7, 64, 71):
            got = self.score("--ctx", ctx)["logprobs"]
            nulls = [i for i, logprob in enumerate(got) if logprob is None]
            # Entry i scores token i + 1, and the first token of a window has nothing before it.
            self.assertEqual(nulls, [i for i in range(len(got)) if (i + 1) % ctx == 0])
            self.assertEqual(got[: ctx - 1], whole[: ctx - 1])
        second = self.file("second.json", json.dumps(tokens[20:40]))
        self.assertEqual(self.score("--ctx", "20")["logprobs"][20:39], self.score(tokens=second)["logprobs"])

    def test_text_gets_bos_as_the_file_asks_and_tokens_do_not(self):
        bos = self.edited(lambda gguf: gguf.keys.update({"tokenizer.ggml.add_bos_token": (7, True)}))
        text, ids = self.file("t.txt", "hello"), self.file("ids.json", "[104, 101]")
        got = self.ok("perplexity", "-m", bos, "-f", text, "--json").json()
        self.assertEqual(got["tokens"], [287, 104, 101, 278, 111])
        self.assertEqual(self.ok("perplexity", "-m", bos, "--json", stdin=b"hello").json()["tokens"], got["tokens"])
        self.assertEqual(self.ok("perplexity", "-m", bos, "--tokens", ids, "--json").json()["tokens"], [104, 101])

    def test_plain_output(self):
        done = self.ok("perplexity", "-m", model(), "--tokens", golden("llama"))
        self.assertRegex(done.out, r"^perplexity \d+\.\d+ over 71 tokens\n$")

    def test_logits_file(self):
        path = self.folder / "logits.bin"
        got = self.score("--logits", path, "--top", "1")
        data = path.read_bytes()
        self.assertEqual(len(data), 72 * 288 * 4)
        row = struct.unpack_from("<288f", data, 288 * 4 * 10)
        self.assertEqual(row.index(max(row)), got["top"][10][0][0])
        self.refused(1, "/no/such/x", "perplexity", "-m", model(), "--tokens", golden("llama"), "--logits", "/no/such/x")
        self.refused(1, "device", "perplexity", "-m", model(), "--tokens", golden("llama"), "--logits", "/dev/full")

    def test_logits_on_a_full_disk_leave_what_was_there(self):
        path = self.file("old", "as it was")

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        args = ("perplexity", "-m", model(), "--tokens", golden("llama"), "--logits", path)
        self.refused(1, [str(path), "File too large"], *args, before=small_files)
        self.assertEqual(path.read_text(), "as it was")
        self.assertEqual(len(list(self.folder.iterdir())), 1)


class Digest(TestCase):
    NAMES = ("llama", "gemma3-d256", "qwen3-d128", "type-q4_k", "mix-gemma3")

    def digest(self, name, *args, env=None):
        return self.ok("perplexity", "-m", model(name), "--tokens", golden(name), "--digest", *args, env=env).digest()

    def test_layouts(self):
        for name in self.NAMES:
            want = self.digest(name)
            for batch in (1, 3, 64):
                self.assertEqual(self.digest(name, "--batch", batch), want, (name, batch))
            for threads in (1, 2, 4):
                self.assertEqual(self.digest(name, "--threads", threads, "--threads-exact"), want, (name, threads))

    def test_instruction_sets(self):
        for name in self.NAMES:
            got = {isa: self.digest(name, "--batch", "17", env={"STOKER_ISA": isa}) for isa in instruction_sets()}
            self.assertEqual(len(set(got.values())), 1, (name, got))

    def test_it_sees_one_bit(self):
        def change(gguf):
            gguf.tensors["output_norm.weight"].data[0] ^= 1

        path = self.edited(change)
        done = stoker("perplexity", "-m", path, "--tokens", golden("llama"), "--digest")
        self.assertNotEqual(done.digest(), self.digest("llama"))
