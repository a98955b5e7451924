"""How a run ends from outside: Ctrl-C, a closed pipe, a full disk."""
import json
import os
import signal
import subprocess
import time

from harness import STOKER, TestCase, environment, model, stoker

LONG = ("run", "-m", model(), "-p", "hello", "-n", "60000", "--ctx", "70000", "--ignore-eos", "--seed", "1")


class Started:
    """A run in progress, its output in pipes."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            [STOKER, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )

    def first_line_of_stderr(self):
        return self.process.stderr.readline().decode()

    def finish(self, number):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err.decode()


class Cancelled(TestCase):
    def test_ctrl_c_keeps_what_there_is(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = Started(*LONG)
            first = run.process.stdout.read(1)
            code, rest, err = run.finish(number)
            self.assertEqual(code, 0, err)
            self.assertIn("cancelled", err)
            self.assertIn("t/s", err)
            text = (first + rest).decode("utf-8")
            whole = self.ok(*LONG[:5], "-n", str(len(text)), *LONG[7:]).out
            self.assertTrue(whole.startswith(text[:-1]))

    def test_json(self):
        run = Started(*LONG, "--json")
        run.first_line_of_stderr()
        time.sleep(0.2)
        code, out, err = run.finish(signal.SIGINT)
        self.assertEqual(code, 0, err)
        answer = json.loads(out)
        self.assertEqual(answer["stop"], "cancelled")
        self.assertEqual(answer["generated_tokens"], len(answer["tokens"]))
        self.assertLess(answer["generated_tokens"], 60000)

    def test_while_the_prompt_is_read(self):
        prompt = self.file("long.txt", "hello " * 10000)
        run = Started("run", "-m", model(), "-f", prompt, "--ctx", "70000", "-n", "5", "--batch", "16", "--json")
        run.first_line_of_stderr()
        code, out, err = run.finish(signal.SIGINT)
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["stop"], "cancelled")

    def test_perplexity_and_bench_say_so(self):
        text = self.file("long.txt", "hello " * 50000)
        for args in (("perplexity", "-f", text), ("bench", "-p", "4000", "-n", "4000", "-r", "100")):
            run = Started(*args, "-m", model())
            time.sleep(0.7)
            code, out, err = run.finish(signal.SIGINT)
            self.assertEqual((code, out), (1, b""), err)
            self.assertIn("stoker: error: cancelled", err)


class Output(TestCase):
    SHORT = (
        ("run", "-m", model(), "-p", "hello", "-n", "3", "--ignore-eos"),
        ("run", "-m", model(), "-p", "hello", "-n", "3", "--json"),
        ("tokenize", "-m", model(), "hello"),
        ("inspect", model()),
        ("bench", "-m", model(), "-p", "2", "-n", "2", "-r", "1"),
        ("completion", "bash"),
        ("--help",),
        ("run", "--help"),
    )

    def check(self, done, reason):
        self.assertEqual(done.code, 1, done)
        done.err = done.err.splitlines(keepends=True)[-1]
        self.one_line(done, ["standard output", reason])

    def test_full_disk(self):
        for args in self.SHORT:
            with open("/dev/full", "wb") as full:
                self.check(stoker(*args, stdout=full), "No space left")

    def test_closed_pipe(self):
        for args in (*self.SHORT, LONG):
            end, pipe = os.pipe()
            os.close(end)
            with os.fdopen(pipe, "wb") as closed:
                self.check(stoker(*args, stdout=closed), "Broken pipe")

    def test_reader_that_leaves(self):
        run = Started(*LONG)
        run.process.stdout.read(1)
        run.process.stdout.close()
        err = run.process.stderr.read().decode()
        self.assertEqual(run.process.wait(timeout=60), 1, err)
        self.assertIn("Broken pipe", err)
        run.process.stderr.close()
