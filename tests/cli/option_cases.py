"""What is refused before any compute because it was asked wrongly: one line, exit code 2."""
from harness import TestCase, model, stoker


class Usage(TestCase):
    def run_refused(self, words, *args, **kwargs):
        return self.refused(2, words, "run", "-m", model(), *args, **kwargs)

    def test_empty_prompt(self):
        for args, kwargs in (
            (("-p", ""), {}),
            ((), {"stdin": b""}),
            (("-f", self.file("empty.txt", "")), {}),
            (("--tokens", self.file("empty.json", "[]")), {}),
        ):
            self.run_refused("empty", *args, **kwargs)
        self.refused(2, "empty", "perplexity", "-m", model())

    def test_ids_outside_the_vocabulary(self):
        for ids in ("[0, 288]", "[0, 2147483647]"):
            self.run_refused("outside the vocabulary of 288", "--tokens", self.file("ids.json", ids))
            path = self.file("ids.json", ids)
            self.refused(2, "outside the vocabulary of 288", "perplexity", "-m", model(), "--tokens", path)
            self.refused(2, "outside the vocabulary of 288", "detokenize", "-m", model(), path)

    def test_malformed_ids(self):
        for text in ("", "x", "[1, 2", "5", "null", '{"ids": [1]}', '{"tokens": 1}', "[[1]]", "[1.5]", '["1"]', "[true]", "[-1]",
                     "[4294967297]", "[18446744073709551616]", "[1e3]"):  # fmt: skip
            self.run_refused(["ids.json", "[1, 2, 3]"], "--tokens", self.file("ids.json", text))
        self.refused(2, "standard input", "detokenize", "-m", model(), stdin=b"[-1]")

    def test_prompt_and_answer_above_the_context_with_both_numbers(self):
        self.run_refused(["4 tokens", "(17)", "20"], "-p", "hello", "-n", "17", "--ctx", "20")
        self.run_refused(["4 tokens", "(1000000)", "4096"], "-p", "hello", "-n", "1000000")
        self.run_refused(["4 tokens", "3"], "-p", "hello", "--ctx", "3")
        self.run_refused(["5000 tokens", "4096"], stdin=b"z" * 5000)

    def test_numbers(self):
        for option in ("--ctx", "--threads", "--batch", "-n", "--top-k", "--seed"):
            for value in ("-1", "x", "1.5", "", "99999999999999999999", "1 "):
                self.run_refused(["--", "wanted a whole number"], "-p", "x", option, value)
        for option in ("--ctx", "--threads", "--batch"):
            self.run_refused(option + " is '0'", "-p", "x", option, "0")
        for value in ("-1", "nan", "1e9"):
            self.run_refused("temp", "-p", "x", "--temp", value)
        for option in ("--top-p", "--min-p"):
            for value in ("-0.1", "1.1", "nan"):
                self.run_refused(option[2:], "-p", "x", option, value)
        self.refused(2, "--top", "perplexity", "-m", model(), "--top", "-1", stdin=b"abc")
        self.refused(2, "context", "perplexity", "-m", model(), "--ctx", "1", stdin=b"abc")
        self.refused(2, "at least 2", "perplexity", "-m", model(), stdin=b"a")
        self.refused(2, "--repetitions", "bench", "-m", model(), "-r", "0")
        self.refused(2, "nothing to time", "bench", "-m", model(), "-p", "0", "-n", "0")

    def test_a_leading_zero_is_no_octal(self):
        answer = self.ok("run", "-m", model(), "-p", "x", "-n", "010", "--ignore-eos", "--json").json()
        self.assertEqual(answer["generated_tokens"], 10)

    def test_words(self):
        self.run_refused(["--kv-type", "'q8'", "q8_0, f16, bf16 or f32"], "-p", "x", "--kv-type", "q8")
        for size in ("6", "6Q", "-1G", "1.5G", "", "0M", "99999999999T"):
            self.run_refused("--memory", "-p", "x", "--memory", size)
        self.run_refused("KEY=VALUE", "-p", "x", "--override", "=3")
        self.run_refused("no_such_key", "-p", "x", "--override", "no_such_key=3")
        self.run_refused("rope.freq_base", "-p", "x", "--override", "rope.freq_base=many")

    def test_command_lines(self):
        self.run_refused("At Most 1", "-p", "x", "-p", "y")
        self.run_refused("at most 1", "-p", "x", "-f", "y")
        self.run_refused("--bogus", "-p", "x", "--bogus")
        self.refused(2, "--model is required", "run", "-p", "x")
        self.refused(2, "subcommand")
        self.refused(2, "'frob'", "frob")
        self.refused(2, "tcsh", "completion", "tcsh")
        self.refused(2, "KEY=VALUE", "inspect", model(), "--override", "x")


class Help(TestCase):
    def test_help_names_what_there_is(self):
        text = self.ok("--help").out
        for name in ("run", "tokenize", "detokenize", "inspect", "perplexity", "bench", "completion"):
            self.assertIn("\n  " + name, text)
            self.assertIn("--help", self.ok(name, "--help").out)
        for option in ("--memory", "--threads", "--ctx", "--kv-type", "--seed", "--ignore-eos", "--json", "--digest", "-n,"):
            self.assertIn(option, self.ok("run", "--help").out)
        self.assertRegex(self.ok("--version").out, r"^stoker \d+\.\d+\.\d+\n$")

    def test_completion_is_shell(self):
        import shutil
        import subprocess

        for shell in ("bash", "zsh", "fish"):
            script = self.ok("completion", shell).out
            for word in ("run", "perplexity", "ctx", "ignore-eos"):
                self.assertIn(word, script)
            if not shutil.which(shell):
                continue
            checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_bash_completes(self):
        import subprocess

        script = self.ok("completion", "bash").out + 'COMP_WORDS=(stoker run --igno) COMP_CWORD=2\n_stoker\necho "${COMPREPLY[@]}"\n'
        done = subprocess.run(["bash", "-c", script], text=True, capture_output=True)
        self.assertEqual((done.stdout, done.stderr), ("--ignore-eos\n", ""))


class InstructionSet(TestCase):
    def test_unknown_or_absent_exits_1(self):
        for isa in ("foo", "neon", "AVX2", "", " avx2"):
            done = stoker("run", "-m", model(), "-p", "x", "-n", "1", env={"STOKER_ISA": isa})
            if isa == "" and done.code == 0:
                continue  # as if it were not set
            self.assertEqual(done.code, 1, done)
            self.one_line(done, ["STOKER_ISA", "scalar"])

    def test_it_is_obeyed(self):
        done = self.ok("bench", "-m", model(), "-p", "4", "-n", "2", "-r", "1", "--json", env={"STOKER_ISA": "scalar"})
        self.assertEqual({row["isa"] for row in done.json()}, {"scalar"})
