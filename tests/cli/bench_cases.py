"""`stoker bench`: its tests, settings and formats, and what it refuses. Rates are never judged."""
import contextlib
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import STOKER, TestCase, environment, instruction_sets, model, stoker

KEYS = (
    "model test depth streams threads kv_type isa repetitions tps_median tps_min tps_max "
    "bytes_per_token disk_bytes_per_token bandwidth_share int8_share joules_per_token"
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
            self.assertEqual(row["disk_bytes_per_token"], 0)
            self.assertIsNone(row["bandwidth_share"])
            self.assertIsNone(row["int8_share"])

    def test_read_loop(self):
        loop = ["read_loop_bytes_per_second", "read_loop_share"]
        for row in self.rows("-m", model(), *SMALL, "--read-loop", "-t", "1,2", "--threads-exact"):
            self.assertEqual(list(row), KEYS + loop)
            self.assertTrue(0 < row[loop[0]] < 1e13)
            self.assertAlmostEqual(row[loop[1]] * row[loop[0]] / (row["bytes_per_token"] * row["tps_median"]), 1)
        text = self.ok("bench", "-m", model(), *SMALL, "--read-loop").out
        self.assertRegex(text.splitlines()[0], r" loop GB/s +of loop$")
        self.assertRegex(text.splitlines()[1], r" [\d.]+ +[\d.]+ %$")
        self.assertNotIn("loop", self.ok("bench", "-m", model(), *SMALL).out)
        self.refused(2, ["--read-loop goes with"], "bench", "--machine", "--read-loop")

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
        lines = self.ok(*args, "--md").out.split("\n\n")[0].splitlines()
        self.assertEqual(len(lines), 6)
        self.assertEqual(len({line.count("|") for line in lines}), 1)
        self.assertEqual({line.strip()[0] + line[-1] for line in lines}, {"||"})
        lines = self.ok(*args).out.split("\n\n")[0].splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[1].split()[3], "pp4")

    def test_ratios_to_an_older_run(self):
        rows = self.rows("-m", model(), *SMALL, "-t", 1)
        # One row that this run lacks; one that it has and the old run lacks, or has with another setting.
        lacking = [{"test": "pp77"}, {"model": "x.gguf"}, {"threads": 77}, {"kv_type": "f32"}]
        old = self.file("old.json", json.dumps([rows[0], *(rows[1] | other for other in lacking)]))
        args = ("-m", model(), *SMALL, "-t", 1, "--compare", old)
        now = self.rows(*args)
        self.assertEqual([list(row) for row in now], [[*KEYS, "ratio"]] * 2)
        self.assertAlmostEqual(now[0]["ratio"], now[0]["tps_median"] / rows[0]["tps_median"])
        self.assertIsNone(now[1]["ratio"])
        lines = self.ok("bench", *args).out.splitlines()
        self.assertEqual(lines[0].split()[-1], "ratio")
        self.assertRegex(lines[1].split()[-1], r"^\d+\.\d{3}$")
        self.assertEqual(lines[2].split()[-1], "-")
        self.assertEqual(list(csv.DictReader(io.StringIO(self.ok("bench", *args, "--csv").out)))[1]["ratio"], "")

    def test_ctrl_c_keeps_the_rows_so_far(self):
        for option, read in (("--json", json.loads), ("--csv", lambda text: list(csv.DictReader(io.StringIO(text))))):
            args = [STOKER, "bench", "-m", model(), "-p", "4,4000", "-n", 0, "-r", "1000", "-t", 1, option]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
            run = subprocess.Popen(list(map(str, args)), env=environment(), **pipes)
            first = run.stdout.read(1)  # a row is there
            time.sleep(0.1)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 1, err)
            self.assertIn(b"stoker: error: cancelled", err)
            self.assertEqual([row["test"] for row in read((first + out).decode())], ["pp4"])

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
        self.bench_refused("--disk goes with --machine", "-m", model(), "--disk", "/tmp")
        self.bench_refused("--quick goes with", "-m", model(), "--quick")
        self.bench_refused("two commands", "--machine", "--kernels")
        self.bench_refused("no --model", "--machine", "-m", model())
        self.bench_refused("no --model", "--kernels", "-m", model())
        self.bench_refused("text or --json", "--machine", "--csv")
        self.bench_refused(["'Q9_K'", "Q4_K", "MXFP4"], "--kernels", "Q9_K")

    def test_old_runs(self):
        self.refused(1, ["none.json", "No such file"], "bench", "-m", model(), "--compare", self.folder / "none.json")
        for text in ("", "no JSON", b"\xff\0", "[", "{}", "[1]", '[{"test": "pp4"}]'):
            self.bench_refused(["old.json", "--json"], "-m", model(), "--compare", self.file("old.json", text))

    def test_a_later_model_is_looked_at_first(self):
        self.refused(1, ["none.gguf", "No such file"], "bench", "-m", model(), "-m", self.folder / "none.gguf")


def open_files_in(folder, pid):
    """Sizes of the files in a folder, with a name or without, that a process has open."""
    sizes = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed in the meantime
            if os.readlink(link).startswith(f"{folder}/"):
                sizes.append(link.stat().st_size)
    return sizes


class Machine(TestCase):
    def setUp(self):
        super().setUp()
        self.env = {"STOKER_HOME": str(self.folder / "home")}
        self.kept = self.folder / "home" / "machine.json"

    def machine(self, *args):
        return self.ok("bench", "--machine", "--quick", *args, env=self.env)

    def test_figures(self):
        begin = int(time.time())
        figures = self.machine("--json", "-t", "1,2").json()
        self.assertEqual(list(figures), "version cpu processors measured_at quick read peak disk_path disk".split())
        self.assertTrue(figures["cpu"])
        self.assertGreaterEqual(figures["processors"], 1)
        self.assertTrue(begin <= figures["measured_at"] <= time.time())
        self.assertIs(figures["quick"], True)
        for read in figures["read"]:
            self.assertEqual(list(read), "threads bytes_per_second median_bytes_per_second".split())
        for peak in figures["peak"]:
            self.assertEqual(list(peak), "isa threads int8_ops_per_second f32_ops_per_second".split())
        self.assertEqual([read["threads"] for read in figures["read"]], [1, 2])
        sets = instruction_sets()
        self.assertEqual([(p["threads"], p["isa"]) for p in figures["peak"]], [(t, isa) for t in (1, 2) for isa in sets])
        for read in figures["read"]:
            self.assertLessEqual(read["median_bytes_per_second"], read["bytes_per_second"])
            self.assertGreater(read["median_bytes_per_second"], 1e8)
        for peak in figures["peak"]:
            self.assertGreater(peak["int8_ops_per_second"], 1e7)
            self.assertGreater(peak["f32_ops_per_second"], 1e7)
        self.assertEqual(figures["disk"], [])
        self.assertEqual(json.loads(self.kept.read_text()), [figures])

    def test_disk(self):
        drive = self.file("drive", bytes(8 << 20))
        for path in (drive, self.folder):
            done = stoker("bench", "--machine", "--quick", "--json", "-t", 1, "--disk", path, env=self.env)
            if done.code == 1 and "O_DIRECT" in done.err:
                continue  # tmpfs of older kernels; it says so
            self.assertEqual(done.code, 0, done)
            figures = done.json()
            self.assertEqual([(d["bytes"], d["depth"]) for d in figures["disk"]], [(b, n) for b in (4096, 65536) for n in (1, 4, 16)])
            for d in figures["disk"]:
                self.assertAlmostEqual(d["bytes_per_second"], d["bytes"] * d["reads_per_second"], delta=1)
                self.assertGreater(d["reads_per_second"], 0)
            self.assertEqual(figures["disk_path"], str(path))
            # A later run without a disk keeps this one's.
            self.machine("-t", 1)
            self.assertEqual(json.loads(self.kept.read_text())[0]["disk"], figures["disk"])
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["drive", "home"])

    def test_ctrl_c_leaves_no_file_behind(self):
        args = [STOKER, "bench", "--machine", "-t", "1", "--disk", str(self.folder)]
        run = subprocess.Popen(args, env=environment(**self.env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while run.poll() is None and not any(open_files_in(self.folder, run.pid)):
            time.sleep(0.005)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        if b"O_DIRECT" in err:
            self.skipTest("no direct reads here")
        self.assertEqual((run.returncode, out, err), (1, b"", b"stoker: error: cancelled\n"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_disks_that_cannot_be(self):
        args = ("bench", "--machine", "--quick", "--disk")
        self.refused(1, ["none", "No such file"], *args, self.folder / "none", env=self.env)
        self.refused(2, ["small", "4 MiB"], *args, self.file("small", b"x"), env=self.env)
        self.refused(2, ["/dev/null", "a folder, or a file"], *args, "/dev/null", env=self.env)
        self.assertFalse(self.kept.exists())

    def test_shares_are_of_these_figures(self):
        self.machine("-t", 1)
        figures = json.loads(self.kept.read_text())
        figures[0]["read"][0]["bytes_per_second"] = 1e6
        for peak in figures[0]["peak"]:
            peak["int8_ops_per_second"] = 1e3
        figures[0] |= {"quick": False, "measured_at": int(time.time()) - 3 * 86400 - 5}
        another = {"cpu": "another", "processors": 1}
        self.kept.write_text(json.dumps([another, *figures]))
        rows = self.ok("bench", "-m", model("type-q8_0"), *SMALL, "-t", "1,2", "--threads-exact", "--json", env=self.env).json()
        for row in rows[:2]:
            self.assertAlmostEqual(row["bandwidth_share"], row["bytes_per_token"] * row["tps_median"] / 1e6)
            self.assertGreater(row["int8_share"], 0)
        self.assertEqual([row["bandwidth_share"] for row in rows[2:]], [None, None])
        for age, words in ((3 * 86400, "3 days"), (2 * 86400 - 60, "47 hours"), (7100, "118 min"), (60, "less than 2 min")):
            figures[0]["measured_at"] = int(time.time()) - age
            self.kept.write_text(json.dumps([another, *figures]))
            out = self.ok("bench", "-m", model("type-q8_0"), *SMALL, "-t", 1, env=self.env).out
            self.assertRegex(out, rf"measured {words} ago\.\n$")
            self.assertRegex(out.splitlines()[1], r" \d+ %  +\d+ %$")
        self.kept.write_text(json.dumps([another, {**figures[0], "version": figures[0]["version"] - 1}]))
        self.assertIn("No shares", self.ok("bench", "-m", model("type-q8_0"), *SMALL, "-t", 1, env=self.env).out)
        self.kept.write_text(json.dumps([another, *figures]))
        # Quick figures replace no others, and what belongs to other machines stays.
        self.machine("-t", 2)
        self.assertEqual(json.loads(self.kept.read_text()), [another, *figures])
        figures[0]["quick"] = True
        self.kept.write_text(json.dumps([another, *figures]))
        self.machine("-t", 2)
        kept = json.loads(self.kept.read_text())
        self.assertEqual((kept[0], [read["threads"] for read in kept[1]["read"]]), (another, [2]))

    def test_a_broken_file_is_no_file(self):
        self.machine("-t", 1)
        other_types = '[{"cpu": 1, "processors": "x"}]'
        for text in ("", "[", "{}", "[1]", other_types, re.sub('"read"', '"dear"', self.kept.read_text())):
            self.kept.write_text(text)
            self.assertIn("No shares", self.ok("bench", "-m", model(), *SMALL, env=self.env).out)
            self.machine("-t", 1)
            self.assertEqual(json.loads(self.kept.read_text())[-1]["read"][0]["threads"], 1)

    def test_text(self):
        out = self.machine("-t", 1).out
        for word in ("read GB/s", "int8 GOP/s", "scalar"):
            self.assertIn(word, out)


class Kernels(TestCase):
    def test_rows(self):
        rows = self.ok("bench", "--kernels", "q4_k,F16", "--quick", "--json", "-t", 2).json()
        self.assertEqual([(r["type"], r["rows"]) for r in rows], [(t, n) for t in ("Q4_K", "F16") for n in (1, 2, 4, 8, 16, 512)])
        for row in rows:
            weight_bytes = {"Q4_K": 144 / 256, "F16": 2}[row["type"]]
            self.assertAlmostEqual(row["ops_per_second"], row["bytes_per_second"] / weight_bytes * 2 * row["rows"], delta=1e4)
            self.assertGreater(row["bound_share"], 0)

    def test_the_instruction_set_is_obeyed(self):
        out = self.ok("bench", "--kernels", "Q8_0", "--quick", env={"STOKER_ISA": "scalar"}).out
        self.assertRegex(out, r"^scalar, ")
        self.assertEqual(len(re.findall(r"^Q8_0 +scalar ", out, re.MULTILINE)), 6)
