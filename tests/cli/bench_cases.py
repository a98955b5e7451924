"""`stoker bench`: its tests, settings and formats, and what it refuses. Rates are never judged."""
import csv
import io

from harness import TestCase, model

KEYS = (
    "model test depth streams threads kv_type isa repetitions tps_median tps_min tps_max "
    "bytes_per_token bandwidth_share int8_share"
).split()
SMALL = ("-p", 4, "-n", 2, "-r", 1)


class Bench(TestCase):
    def rows(self, *args):
        # Nothing of what was once measured on this machine.
        return self.ok("bench", *args, "--json", env={"STOKER_HOME": str(self.folder)}).json()

    def tests(self, *args):
        return [row["test"] for row in self.rows("-m", model(), *args)]

    def test_rows(self):
        rows = self.rows("-m", model(), "-p", 8, "-n", 3, "-r", 3)
        self.assertEqual([row["test"] for row in rows], ["pp8", "tg3"])
        for row in rows:
            self.assertEqual(list(row), KEYS)
            self.assertEqual((row["model"], row["depth"], row["streams"]), ("llama.gguf", 0, 1))
            self.assertEqual((row["repetitions"], row["kv_type"]), (3, "f16"))
            self.assertLess(0, row["tps_min"])
            self.assertLessEqual(row["tps_min"], row["tps_median"])
            self.assertLessEqual(row["tps_median"], row["tps_max"])
            self.assertGreater(row["bytes_per_token"], 0)
            self.assertIsNone(row["bandwidth_share"])
            self.assertIsNone(row["int8_share"])

    def test_lists(self):
        self.assertEqual(self.tests("-p", "4,6", "-p", 8, "-n", 0, "-r", 1), ["pp4", "pp6", "pp8"])
        depths = self.tests("-p", 4, "-n", 2, "-d", "0,70", "-b", "1,3", "-r", 1)
        wide = ["pp4 x 3", "tg2 x 3"]
        self.assertEqual(depths, ["pp4", "tg2", *wide, "pp4@d70", "tg2@d70", "pp4@d70 x 3", "tg2@d70 x 3"])

    def test_settings(self):
        models = ("-m", model(), "-m", model("qwen3"))
        rows = self.rows(*models, "-p", 4, "-n", 0, "-r", 1, "-t", "1,2", "--threads-exact", "--kv-type", "f16,f32")
        found = [(row["model"], row["threads"], row["kv_type"]) for row in rows]
        names = ("llama.gguf", "qwen3.gguf")
        self.assertEqual(found, [(m, t, k) for m in names for t in (1, 2) for k in ("f16", "f32")])

    def test_depth_costs_bytes_and_streams_share_weights(self):
        rows = self.rows("-m", model(), "-p", 0, "-n", 1, "-r", 1, "-d", "0,64", "-b", "1,4")
        one, four, deep, _ = (row["bytes_per_token"] for row in rows)
        self.assertGreater(deep, one)
        self.assertLess(four, one / 2)

    def test_formats(self):
        args = ("bench", "-m", model(), *SMALL, "-d", "0,5")
        lines = self.ok(*args, "--csv").out.splitlines()
        self.assertEqual(lines[0].split(","), KEYS)
        rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
        self.assertEqual([row["test"] for row in rows], ["pp4", "tg2", "pp4@d5", "tg2@d5"])
        lines = self.ok(*args, "--md").out.splitlines()
        self.assertEqual(len(lines), 6)
        self.assertEqual({line.count("|") for line in lines}, {11})
        self.assertEqual({line.strip()[0] + line[-1] for line in lines}, {"||"})
        lines = self.ok(*args).out.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[1].split()[3], "pp4")

    def test_nothing_on_stderr_in_a_pipe(self):
        self.assertEqual(self.ok("bench", "-m", model(), *SMALL).err, "")

    def test_more_streams_than_rows_of_a_batch(self):
        rows = self.rows("-m", model(), "-p", 3, "-n", 1, "-b", 9, "--batch", 4, "-r", 1)
        self.assertEqual([row["streams"] for row in rows], [9, 9])


class Refusals(TestCase):
    def bench_refused(self, words, *args):
        self.refused(2, words, "bench", *args)

    def test_numbers(self):
        for option in ("-p", "-n", "-d", "-b", "-t", "-r"):
            for value in ("-1", "x", "1.5", "", "99999999999999999999"):
                self.bench_refused("wanted a whole number", "-m", model(), option, value)
        for option in ("-p", "-n", "-d", "-b", "-t"):
            for value in ("1,", ",1", "1,,2", "1,x", "1 2"):
                self.bench_refused("wanted a whole number", "-m", model(), option, value)
        for option in ("-b", "-t", "-r"):
            self.bench_refused("'0'", "-m", model(), option, 0)
        self.bench_refused("'1025'", "-m", model(), "-b", 1025)

    def test_words(self):
        self.bench_refused(["--kv-type", "'q8'", "f16, bf16 or f32"], "-m", model(), "--kv-type", "f16,q8")
        self.bench_refused("--model is required")
        self.bench_refused("nothing to time", "-m", model(), "-p", "0", "-n", "0")
        self.bench_refused("at most 1", "-m", model(), "--md", "--csv")
        self.bench_refused(["pp9@d4", "13 positions", "12"], "-m", model(), "-p", 9, "-d", 4, "-n", 0, "--ctx", 12)
        self.bench_refused("positions", "-m", model(), "-p", 1 << 21, "-d", 1)

    def test_a_later_model_is_looked_at_first(self):
        self.refused(1, ["none.gguf", "No such file"], "bench", "-m", model(), "-m", self.folder / "none.gguf")
