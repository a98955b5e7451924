"""stoker run --save-state and --load-state: the bits of a run that was not interrupted, and what cannot be."""
import os
import resource
import signal

from harness import FAULTY_DISK, TestCase, instruction_sets, model, stoker

PROMPT = "the cat and the other thing that sat there in the " * 5
# A kind of state each: heads, latents with an indexer, recurrences, windows and compressed rows.
KINDS = "llama", "glm-dsa", "qwen3next", "deepseek4"


class States(TestCase):
    def run_of(self, name, *args, **kwargs):
        return self.ok("run", "-m", model(name), "--temp", 0, "--ignore-eos", "--json", "--digest", *args, **kwargs)

    def tokens(self, tokens):
        return "--tokens", self.file("tokens.json", str(tokens))

    def test_bits_of_an_uninterrupted_run(self):
        state = self.folder / "state"
        for name in KINDS:
            whole = self.run_of(name, "-p", PROMPT, "-n", 12).json()["tokens"]
            first = self.run_of(name, "-p", PROMPT, "-n", 5, "--save-state", state, "--batch", 50).json()
            self.assertEqual(first["tokens"], whole[:5])
            done = self.run_of(name, "--load-state", state, "-n", 7, stdin=b"nobody reads this")
            got = done.json()
            self.assertEqual(got["tokens"], whole[5:], name)
            self.assertEqual(got["prompt_tokens"], first["prompt_tokens"] + 5)
            self.assertEqual(got["restored_tokens"], got["prompt_tokens"] - 1)
            prompt = self.ok("tokenize", "-m", model(name), PROMPT, "--add-special", "--json").json()["tokens"]
            want = self.run_of(name, *self.tokens(prompt + whole[:5]), "-n", 7)
            self.assertEqual(done.digest(), want.digest(), name)

    def test_a_text_behind_the_state(self):
        state = self.folder / "state"
        for name in KINDS:
            self.run_of(name, "-p", PROMPT, "-n", 0, "--save-state", state)
            got = self.run_of(name, "--load-state", state, "-p", " in the end", "-n", 6)
            ids = [self.ok("tokenize", "-m", model(name), text, *args, "--json").json()["tokens"] for text, args in ((PROMPT, ["--add-special"]), (" in the end", []))]
            self.assertEqual(got.digest(), self.run_of(name, *self.tokens(sum(ids, [])), "-n", 6).digest(), name)

    def test_over_itself_and_what_is_told(self):
        state = self.folder / "state"
        whole = self.run_of("llama", "-p", PROMPT, "-n", 9).json()["tokens"]
        self.run_of("llama", "-p", PROMPT, "-n", 3, "--save-state", state)
        for begin in (3, 6):
            got = self.run_of("llama", "--load-state", state, "-n", 3, "--save-state", state).json()
            self.assertEqual(got["tokens"], whole[begin : begin + 3])
        done = self.ok("run", "-m", model("llama"), "--load-state", state, "-n", 1, "--temp", 0)
        self.assertIn("restored)", done.err)
        self.assertEqual(os.listdir(self.folder), ["state"])

    def test_in_every_type_of_cache(self):
        state = self.folder / "state"
        for kv in ("f16", "bf16", "f32", "q8_0"):
            whole = self.run_of("llama", "-p", PROMPT, "-n", 8, "--kv-type", kv).json()["tokens"]
            self.run_of("llama", "-p", PROMPT, "-n", 4, "--kv-type", kv, "--save-state", state)
            self.assertEqual(self.run_of("llama", "--load-state", state, "-n", 4, "--kv-type", kv).json()["tokens"], whole[4:])
            other = "f32" if kv == "f16" else "f16"
            words = [str(state), f"in {kv}", f"this run in {other}", "--kv-type"]
            self.refused(2, words, "run", "-m", model("llama"), "--load-state", state, "--kv-type", other)

    def test_other_instruction_sets_and_threads(self):
        state = self.folder / "state"
        for name, kv in (("llama", "f16"), ("llama", "bf16"), ("glm-dsa", "bf16"), ("qwen3next", "q8_0")):
            args = "--kv-type", kv, "-n", 4
            want, states = None, set()
            for isa in instruction_sets():
                self.run_of(name, "-p", PROMPT, *args, "--threads", 1, "--save-state", state, env={"STOKER_ISA": isa})
                states.add(state.read_bytes())
                done = self.run_of(name, "--load-state", state, *args, "--threads", 2, "--threads-exact", env={"STOKER_ISA": "scalar"})
                want = want or done.digest()
                self.assertEqual(done.digest(), want, (name, kv, isa))
            self.assertEqual(len(states), 1, (name, kv))  # every byte is the same

    def test_streamed_experts(self):
        state = self.folder / "state"
        whole = self.run_of("mixtral", "-p", PROMPT, "-n", 8).json()["tokens"]
        self.run_of("mixtral", "-p", PROMPT, "-n", 4, "--expert-cache", "1M", "--save-state", state)
        for args in ((), ("--expert-cache", "1M")):
            self.assertEqual(self.run_of("mixtral", "--load-state", state, "-n", 4, *args).json()["tokens"], whole[4:])


class Refusals(TestCase):
    def save(self, name="llama", file="state", *args):
        state = self.folder / file
        self.ok("run", "-m", model(name), "-p", PROMPT, "-n", 2, "--temp", 0, "--save-state", state, *args)
        return state

    def refuse(self, code, words, state, name="llama", *args, **kwargs):
        self.refused(code, words, "run", "-m", model(name), "--load-state", state, "-n", 1, *args, **kwargs)

    def test_other_models(self):
        state = self.save()
        self.refuse(2, [str(state), "another model, 'tiny llama', not of 'tiny qwen3'"], state, "qwen3")
        self.refuse(2, ["another model"], state, "llama", "--override", "rope.freq_base=500")

    def test_no_state(self):
        self.refuse(1, ["No such file"], self.folder / "none")
        self.refuse(1, ["directory"], self.folder)
        self.refuse(1, ["is no saved state"], self.file("text", "a letter " * 100))
        self.refuse(1, ["is no saved state"], model("llama"))
        self.refuse(1, ["too short"], self.file("empty", b""))

    def test_damage(self):
        data = self.save().read_bytes()
        for cut in (1, 100, 135, 136, 200, len(data) // 2, len(data) - 1):
            self.refuse(1, [], self.file("cut", data[:cut]))
        for at in (0, 9, 40, 130, 150, len(data) // 2, len(data) - 1):
            damaged = bytearray(data)
            damaged[at] ^= 16
            done = stoker("run", "-m", model("llama"), "--load-state", self.file("damaged", bytes(damaged)), "-n", 1)
            self.assertEqual((done.code, done.out), (1, ""), done)
            self.assertRegex(done.err, "error: .*/damaged is (damaged|no saved state|a saved state of version)")

    def test_a_context_that_is_too_small(self):
        self.refuse(2, ["the context"], self.save(), "llama", "--ctx", 50)

    def test_places_that_cannot_be_written(self):
        args = "run", "-m", model("llama"), "-p", "x", "-n", 1, "--save-state"
        self.refused(1, "directory", *args, self.folder)
        self.refused(1, "cannot be written", *args, self.folder / "none" / "state")
        self.refused(1, "device", *args, "/dev/null")

    def test_a_full_disk_leaves_what_was_there(self):
        state = self.save()
        before = state.read_bytes()
        environment = {"LD_PRELOAD": FAULTY_DISK, "FAULTY_FREE": "8192"}
        args = "run", "-m", model("llama"), "-p", PROMPT, "-n", 3, "--json", "--save-state", state
        done = stoker(*args, env=environment)
        self.assertEqual(done.code, 1, done)
        self.assertIn("make room", done.err)
        self.assertEqual(len(done.json()["tokens"]), 3)  # the answer is there all the same
        self.assertEqual(state.read_bytes(), before)
        self.assertEqual(os.listdir(self.folder), ["state"])

    def test_a_disk_that_becomes_full(self):
        def small_files_only():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        args = "-p", PROMPT, "-n", 1, "--save-state", self.folder / "state"
        done = stoker("run", "-m", model("llama"), *args, before=small_files_only)
        self.assertEqual(done.code, 1, done)
        self.assertIn("File too large", done.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_models_that_give_vectors(self):
        self.refuse(1, ["bert gives vectors"], self.folder / "none", "bert")
