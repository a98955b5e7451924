"""--memory: what does not fit is refused before anything is read, with a table; what just fits runs."""
import os
import re
import resource

from harness import TestCase, model, stoker

MIB = 1 << 20


def processor_seconds():
    """Of all processes started so far that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Memory(TestCase):
    def table(self, done):
        """The lines of the table in bytes, and the limit in MiB that it says would work."""
        self.assertEqual((done.code, done.out), (1, ""), done)
        lines = done.err.splitlines()
        self.assertLessEqual(len(lines), 12, done)
        self.assertIn("memory limit", lines[0])
        units = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30, "TiB": 1 << 40, "EiB": 1 << 60}
        rows = {}
        for line in lines[1:-1]:
            name, number, unit = re.fullmatch(r"  (\S.*\S) +([0-9.]+) (\w+)", line).groups()
            rows[name.strip()] = float(number) * units[unit]
        return rows, int(re.search(r"--memory (\d+)M", lines[-1]).group(1))

    def test_too_small_says_what_needs_what(self):
        for limit in ("1M", "20M", "1K"):
            rows, needed = self.table(stoker("run", "-m", model(), "-p", "hello", "-n", "9", "--memory", limit))
            for name in ("process", "weights", "kv cache", "load window"):
                self.assertIn(name, rows)
            self.assertAlmostEqual(sum(rows.values()) / MIB, needed, delta=1.5)

    def test_the_limit_that_it_names_works_and_one_less_does_not(self):
        cases = (
            ("run", "-p", "hello", "-n", "9"),
            ("run", "-p", "hello", "-n", "900", "--ctx", "4096"),
            ("run", "-p", "hello", "--ctx", "3000", "--threads", "1"),
            ("run", "-p", "hello" * 300, "-n", "9", "--kv-type", "f32"),
            ("perplexity", "-f", self.file("text", "hello " * 200)),
            ("bench", "-p", "64", "-n", "4", "-r", "1"),
            ("bench", "-p", "9", "-n", "2", "-r", "1", "-d", "300", "-b", "5"),
        )
        for command, *args in cases:
            for name in ("llama", "mix-gemma3"):
                run = lambda limit: stoker(command, "-m", model(name), *args, "--memory", limit)
                _, needed = self.table(run("1M"))
                self.assertEqual(run(f"{needed}M").code, 0, (command, args, needed))
                self.assertEqual(self.table(run(f"{needed - 1}M"))[1], needed)

    def test_the_environment_variable_and_which_wins(self):
        args = ("run", "-m", model(), "-p", "hello", "-n", "2")
        self.table(stoker(*args, env={"STOKER_MEMORY": "20M"}))
        self.ok(*args, "--memory", "1G", env={"STOKER_MEMORY": "20M"})
        self.table(stoker(*args, "--memory", "20M", env={"STOKER_MEMORY": "1G"}))
        self.refused(2, "--memory", *args, env={"STOKER_MEMORY": "lots"})
        self.ok(*args, "--memory", "1G", env={"STOKER_MEMORY": "lots"})

    def test_default_context_is_what_fits(self):
        args = ("run", "-m", model(), "-p", "hello", "-n", "2", "--memory")
        _, needed = self.table(stoker(*args, "1M"))
        contexts = []
        for more in (0, 1, 2, 20):
            done = self.ok(*args, f"{needed + more}M")
            contexts.append(int(re.search(r"context (\d+)", done.err).group(1)))
        self.assertEqual(contexts, sorted(contexts))
        self.assertLess(contexts[0], contexts[-1])
        self.assertEqual(contexts[-1], 4096)

    def test_contexts_beyond_all_memory(self):
        args = ("run", "-m", model(), "-p", "hello", "--ctx", 1 << 20, "--memory", "500M")
        rows, _ = self.table(stoker(*args))
        self.assertAlmostEqual(rows["kv cache"] / MIB, 512, delta=3)
        self.ok(*args, "-n", "2")  # what was not asked for is not reserved

    def test_refused_before_anything_is_read(self):
        rows = 100_000_000

        def change(gguf):
            table = gguf.tensors.pop("token_embd.weight")
            table.dims, table.data = [96, rows], b""
            gguf.tensors["token_embd.weight"] = table  # last, where a hole can be its data

        path = self.edited(change)
        os.truncate(path, path.stat().st_size + rows * 96 * 4)
        before = processor_seconds()
        table, _ = self.table(stoker("run", "-m", path, "-p", "hello", "-n", "2", "--memory", "300M"))
        self.assertGreater(table["logits"], 380 * MIB)  # the table itself may stay on disk
        # Reading 36 GiB takes longer on any machine, however busy.
        self.assertLess(processor_seconds() - before, 4)
