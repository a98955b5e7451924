"""stoker run: what is printed where, when it stops, that it can be repeated."""
import json
import os
import re

from harness import TestCase, instruction_sets, model, peak_resident, stoker

GREEDY = ("--temp", "0")
FIELDS = {"text", "tokens", "prompt_tokens", "restored_tokens", "generated_tokens", "decode_tokens", "prefill_seconds", "decode_seconds", "stop"}


def run(*args, **kwargs):
    return stoker("run", "-m", model(), *args, **kwargs)


class Memory(TestCase):
    def test_what_is_resident_stays_below_the_limit(self):
        long = self.file("long", "one word and then another " * 12000)
        for small, args in (
            ("1M", ("run", "-m", model(), "-p", "hello", "-n", "4000", "--ctx", "4096", "--kv-type", "f32")),
            ("26M", ("perplexity", "-m", model(), "-f", long, "--ctx", "64", "--top", "3", "--json")),
        ):
            with self.subTest(args=args):
                refused = stoker(*args, "--memory", small)
                limit = int(re.search(r"--memory (\d+)M", refused.err)[1])
                self.assertLessEqual(peak_resident(*args, "--memory", f"{limit}M"), limit << 20)
        longer = self.file("longer", "one word and then another " * 60000)
        self.refused(1, "memory limit", "perplexity", "-m", model(), "-f", longer, "--memory", "26M")


class Threads(TestCase):
    def threads(self, *args, **kwargs):
        done = self.ok("bench", "-m", model(), "-p", "4", "-n", "0", "-r", "1", "--json", *args, **kwargs)
        return done.json()[0]["threads"], done.err

    def test_default_and_cap_are_what_the_affinity_gives(self):
        cpu = min(os.sched_getaffinity(0))
        one = {"before": lambda: os.sched_setaffinity(0, {cpu})}
        self.assertEqual(self.threads(**one)[0], 1)
        capped, said = self.threads("--threads", "8", **one)
        self.assertEqual(capped, 1)
        self.assertIn("--threads-exact", said)
        self.assertEqual(self.threads("--threads", "8", "--threads-exact", "--pin", **one)[0], 8)

    def test_pinning_changes_no_bits(self):
        args = ("-p", "hello", "-n", "6", "--ignore-eos", *GREEDY, "--digest")
        self.assertEqual(run(*args, "--pin").digest(), run(*args).digest())


class Output(TestCase):
    def test_text_goes_to_stdout_and_all_else_to_stderr(self):
        done = self.ok("run", "-m", model(), "-p", "hello", "-n", "6", "--ignore-eos", *GREEDY)
        answer = self.ok("run", "-m", model(), "-p", "hello", "-n", "6", "--ignore-eos", *GREEDY, "--json").json()
        self.assertEqual(done.out, answer["text"])
        self.assertIn("6 tokens", done.err)
        self.assertIn("token_limit", done.err)

    def test_json_has_the_fields_and_the_seed(self):
        answer = self.ok("run", "-m", model(), "-p", "hello", "-n", "5", "--ignore-eos", "--seed", "7", "--json").json()
        self.assertEqual(set(answer), FIELDS | {"seed"})
        self.assertEqual((answer["seed"], answer["generated_tokens"], answer["prompt_tokens"]), (7, 5, 4))
        self.assertEqual(len(answer["tokens"]), 5)
        self.assertEqual(answer["stop"], "token_limit")
        self.assertGreater(answer["prefill_seconds"], 0)
        self.assertGreater(answer["decode_seconds"], 0)

    def test_the_last_token_is_not_forwarded(self):
        for n, forwarded in ((1, 0), (5, 4)):
            answer = self.ok("run", "-m", model(), "-p", "hello", "-n", n, "--ignore-eos", "--json").json()
            self.assertEqual(answer["decode_tokens"], forwarded)

    def test_n_0_only_reads_the_prompt(self):
        done = self.ok("run", "-m", model(), "-p", "hello", "-n", "0")
        self.assertEqual(done.raw, b"")
        answer = self.ok("run", "-m", model(), "-p", "hello", "-n", "0", "--json").json()
        self.assertEqual((answer["text"], answer["tokens"], answer["stop"]), ("", [], "token_limit"))
        self.assertEqual((answer["prompt_tokens"], answer["decode_tokens"]), (4, 0))

    def test_default_context_is_printed(self):
        self.assertIn("context 4096,", run("-p", "hello", "-n", "1").err)
        long = self.edited(lambda gguf: gguf.set_u32("llama.context_length", 100000))
        self.assertIn("context 8192,", stoker("run", "-m", long, "-p", "hello", "-n", "1").err)
        self.assertIn("context 77,", run("-p", "hello", "-n", "1", "--ctx", "77").err)

    def test_incomplete_characters_are_never_shown_broken(self):
        for seed in range(8):
            done = self.ok("run", "-m", model(), "-p", "hello", "-n", "40", "--ignore-eos", "--seed", seed, "--top-k", "0")
            done.raw.decode("utf-8")  # raises when it is not


class Stops(TestCase):
    def tokens(self, n):
        return run("-p", "hello", "-n", n, "--ignore-eos", *GREEDY, "--json").json()["tokens"]

    def test_end_token_is_neither_printed_nor_counted(self):
        tokens = self.tokens(12)
        end = tokens[2]
        n = tokens.index(end)
        ends = self.edited(lambda gguf: gguf.set_u32("tokenizer.ggml.eos_token_id", end))
        answer = self.ok("run", "-m", ends, "-p", "hello", *GREEDY, "--json").json()
        self.assertEqual((answer["tokens"], answer["stop"]), (tokens[:n], "end_of_sequence"))
        self.assertEqual((answer["generated_tokens"], answer["decode_tokens"]), (n, n))
        printed = self.ok("run", "-m", ends, "-p", "hello", *GREEDY)
        self.assertEqual(printed.out, answer["text"])
        kept = self.ok("run", "-m", ends, "-p", "hello", "-n", "12", "--ignore-eos", *GREEDY, "--json").json()
        self.assertEqual((kept["tokens"], kept["stop"]), (tokens, "token_limit"))

    def test_without_n_it_ends_at_the_context(self):
        answer = self.ok("run", "-m", model(), "-p", "hello", "--ctx", "20", "--ignore-eos", "--json").json()
        self.assertEqual((answer["generated_tokens"], answer["stop"]), (16, "context"))
        full = self.ok("run", "-m", model(), "-p", "hello", "--ctx", "4", "--json").json()
        self.assertEqual((full["generated_tokens"], full["stop"]), (0, "context"))

    def test_n_up_to_the_context_is_a_token_limit(self):
        answer = self.ok("run", "-m", model(), "-p", "hello", "--ctx", "20", "-n", "16", "--ignore-eos", "--json").json()
        self.assertEqual((answer["generated_tokens"], answer["stop"]), (16, "token_limit"))


class Repeats(TestCase):
    ARGS = ("-p", "hello", "-n", "24", "--ignore-eos", "--temp", "1.2", "--top-k", "0", "--top-p", "1", "--min-p", "0")

    def test_same_seed_same_text(self):
        first = run(*self.ARGS, "--seed", "42")
        for more in ((), ("--threads", "1"), ("--batch", "1"), ("--threads", "2", "--threads-exact")):
            self.assertEqual(run(*self.ARGS, "--seed", "42", *more).raw, first.raw, more)
        self.assertNotEqual(run(*self.ARGS, "--seed", "43").raw, first.raw)

    def test_printed_seed_repeats_the_run(self):
        first = run(*self.ARGS)
        seed = re.search(r"seed (\d+)", first.err).group(1)
        self.assertEqual(run(*self.ARGS, "--seed", seed).raw, first.raw)

    def test_digest_does_not_depend_on_the_layout(self):
        args = ("-p", "the quick brown fox jumps over the lazy dog", "-n", "8", "--ignore-eos", "--digest", *GREEDY)
        want = run(*args).digest()
        self.assertRegex(want, "^[0-9a-f]{16}$")
        for more in (("--batch", "1"), ("--batch", "3"), ("--threads", "1"), ("--threads", "3", "--threads-exact")):
            self.assertEqual(run(*args, *more).digest(), want, more)
        for isa in instruction_sets():
            self.assertEqual(run(*args, env={"STOKER_ISA": isa}).digest(), want, isa)
        self.assertNotEqual(run(*args, "--kv-type", "f32").digest(), want)

    def test_digest_is_of_the_last_prompt_row_and_each_token_forwarded(self):
        ids = [104, 101]
        prompt = self.file("prompt.json", json.dumps(ids[:1]))
        answer = run("--tokens", prompt, "-n", "3", "--ignore-eos", "--digest", "--json", *GREEDY)
        both = self.file("both.json", json.dumps(ids[:1] + answer.json()["tokens"][:2]))
        self.assertEqual(stoker("perplexity", "-m", model(), "--tokens", both, "--digest").digest(), answer.digest())


class Prompts(TestCase):
    def answer(self, *args, **kwargs):
        answer = self.ok("run", "-m", model(), *args, "-n", "4", "--ignore-eos", "--json", *GREEDY, **kwargs).json()
        return answer["prompt_tokens"], answer["tokens"]

    def test_all_ways_in_are_the_same(self):
        text = "hello world"
        want = self.answer("-p", text)
        ids = stoker("tokenize", "-m", model(), text, "--json").json()["tokens"]
        self.assertEqual(want[0], len(ids))
        self.assertEqual(self.answer("-f", self.file("p.txt", text)), want)
        self.assertEqual(self.answer(stdin=text.encode()), want)
        self.assertEqual(self.answer("-f", "-", stdin=text.encode()), want)
        self.assertEqual(self.answer("--tokens", self.file("a.json", json.dumps(ids))), want)
        self.assertEqual(self.answer("--tokens", self.file("b.json", json.dumps({"tokens": ids}))), want)

    def test_invalid_utf8_is_kept_as_bytes(self):
        raw = b"a\xff\xfe\xc3b"
        ids = self.file("ids.json", json.dumps(list(raw)))
        want = self.answer("--tokens", ids)
        self.assertEqual(want[0], len(raw))
        self.assertEqual(self.answer(stdin=raw), want)
        self.assertEqual(self.answer("-f", self.file("raw.txt", raw)), want)
        self.assertEqual(self.answer("-p", raw.decode("utf-8", "surrogateescape")), want)

    def test_bos_as_the_file_asks(self):
        plain = self.answer("-p", "hello")
        bos = self.edited(lambda gguf: gguf.keys.update({"tokenizer.ggml.add_bos_token": (7, True)}))
        answer = self.ok("run", "-m", bos, "-p", "hello", "-n", "0", "--json").json()
        self.assertEqual(answer["prompt_tokens"], plain[0] + 1)
        ids = self.file("ids.json", "[104]")
        as_they_are = self.ok("run", "-m", bos, "--tokens", ids, "-n", "0", "--json").json()
        self.assertEqual(as_they_are["prompt_tokens"], 1)

    def test_prompts_that_look_like_options(self):
        for text in ("-n", "--json", "--", "{}", "[1]", '"x"', "-"):
            self.assertEqual(self.answer("-p", text), self.answer(stdin=text.encode()), text)
