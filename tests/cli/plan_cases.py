"""`stoker plan`: what it says, what it refuses."""
import json
import re

from harness import MODELS, TestCase, model, stoker

MIB, GIB = 1 << 20, 1 << 30
FAMILIES = "llama qwen2 qwen3 gemma2 gemma3 olmoe mixtral qwen2moe qwen3moe gpt-oss-mxfp4 deepseek2".split()
SPEEDS = ("prefill", "decode", "decode_full_context")


class Plan(TestCase):
    def setUp(self):
        super().setUp()
        self.env = {"STOKER_HOME": str(self.folder / "home")}

    def plan(self, *args):
        return self.ok("plan", *args, "--no-measure", "--json", env=self.env).json()

    def test_every_tiny_family(self):
        for name in FAMILIES:
            plan = self.plan(model(name), "--threads", 1)
            self.assertEqual(sum(line["bytes"] for line in plan["memory"]), plan["memory_bytes"])
            self.assertLessEqual(plan["memory_bytes"], plan["limit_bytes"])
            self.assertEqual((plan["expert_cache"], plan["streamed_bytes"]), (None, 0), name)
            self.assertFalse(plan["synthetic"])
            for speed in SPEEDS:
                self.assertGreater(plan[speed]["tokens_per_second"], 0)
                self.assertLessEqual(plan[speed]["tokens_per_second"], plan[speed]["bound_tokens_per_second"])
                self.assertIn(plan[speed]["bound"], ("memory", "arithmetic"))
            self.assertEqual(plan["rates"]["memory_source"], "guess")
            text = self.ok("plan", model(name), "--no-measure", env=self.env)
            self.assertEqual(text.err, "")
            for word in ("weights", "together", "All weights are in memory", "prompt of", "decode after it", "a guess"):
                self.assertIn(word, text.out)
        self.assertFalse((self.folder / "home").exists())

    def test_the_smallest_limit_works(self):
        for name in ("llama", "olmoe", "gpt-oss-mxfp4", "deepseek2"):
            for options in ((), ("--ctx", 3000), ("--parallel", 5), ("--kv-type", "f32", "--batch", 64)):
                args = ("plan", model(name), "--no-measure", "--json", *options, "--memory")
                done = stoker(*args, "1M", env=self.env)
                self.assertEqual((done.code, done.out), (1, ""), done)
                self.assertIn("memory limit of 1 MiB is too small", done.err)
                needed = int(re.search(r"--memory (\d+)M", done.err)[1])
                plan = self.ok(*args, f"{needed}M", env=self.env).json()
                self.assertEqual(plan["smallest_limit_bytes"], needed * MIB)
                self.assertEqual(plan["limits"][0]["limit_bytes"], needed * MIB)
                self.assertEqual(stoker(*args, f"{needed - 1}M", env=self.env).code, 1)

    def test_latents_of_a_long_context_take_what_the_arithmetic_says(self):
        """128k tokens of DeepSeek-V3: 61 layers of 576 values in f16; as K and V of 128 heads they would take 71 times that."""
        plan = self.plan("synth:deepseek-v3", "--ctx", 131072, "--memory", "32G")
        kv = next(line["bytes"] for line in plan["memory"] if line["name"] == "kv cache")
        self.assertLess(abs(kv / (131072 * 61 * 576 * 2) - 1), 0.03)

    def test_index_keys_stand_beside_the_latents(self):
        """128k tokens of GLM-5.2: 78 layers of 576 values, and 21 keys of 128."""
        plan = self.plan("synth:glm-5.2", "--ctx", 131072, "--memory", "64G")
        kv = next(line["bytes"] for line in plan["memory"] if line["name"] == "kv cache")
        self.assertLess(abs(kv / (131072 * (78 * 576 + 21 * 128) * 2) - 1), 0.03)
        # What a token reads of them: 2048 latents of each layer, but all keys.
        read = 2048 * 78 * 576 * 2 + 131072 * 21 * 128 * 2
        self.assertLess(abs(plan["bytes_per_token"]["kv"] / read - 1), 0.03)

    def test_a_run_has_what_the_plan_says(self):
        args = ("--memory", "1G", "--ctx", 700, "--threads", 1, "--expert-cache", "100K")
        plan = self.plan(model("olmoe"), *args)
        ids = self.file("ids.json", json.dumps([1] * plan["prompt_tokens"]))
        done = self.ok("-v", "run", "-m", model("olmoe"), "--tokens", ids, "-n", 188, "--ignore-eos", *args)
        self.assertEqual(plan["expert_cache"]["slots"], int(re.search(r"experts: (\d+) slots", done.err)[1]))
        self.assertIn("experts", done.err)

    def test_shapes(self):
        plan = self.plan("gpt-oss-20b", "--memory", "4G", "--ctx", 4096, "--threads", 1)
        self.assertEqual(plan["model"], "synth:gpt-oss-20b-mxfp4")
        self.assertTrue(plan["synthetic"])
        self.assertEqual(plan["expert_cache"]["experts"], 24 * 32)
        self.assertEqual(plan["decode"]["bound"], "disk")
        self.assertAlmostEqual(plan["file_bytes"] / 12.1e9, 1, delta=0.01)
        limits = [row["limit_bytes"] for row in plan["limits"]]
        self.assertEqual(limits, sorted(limits))
        self.assertIn(8 * GIB, limits)
        self.assertEqual((limits[0], limits[-1]), (plan["smallest_limit_bytes"], plan["resident_limit_bytes"]))
        speeds = [row["decode_tokens_per_second"] for row in plan["limits"]]
        self.assertEqual(speeds, sorted(speeds))
        self.assertEqual(self.plan("synth:gpt-oss-20b:mxfp4", "--memory", "4G", "--ctx", 4096, "--threads", 1), plan)
        many = self.plan("gpt-oss-20b", "--memory", "4G", "--ctx", 1024, "--parallel", 8)
        self.assertGreater(many["decode"]["tokens_per_second"], plan["decode"]["tokens_per_second"])
        text = self.ok("plan", "gpt-oss-20b", "--memory", "4G", "--ctx", 4096, "--no-measure", env=self.env).out
        for word in ("random weights", "On disk stay", "of 768 experts", "by disk", "4 GiB"):
            self.assertIn(word, text)
        self.assertFalse((self.folder / "home").exists())

    def test_what_is_measured_is_kept(self):
        self.ok("bench", "--machine", "--quick", "-t", 1, env=self.env)
        kept = self.folder / "home" / "machine.json"
        before = json.loads(kept.read_text())[0]
        done = self.ok("plan", model("type-q4_k"), "--threads", 1, "--json", env=self.env)
        self.assertIn("measuring matrix products", done.err)
        rates = done.json()["rates"]
        self.assertEqual([rates[f"{what}_source"] for what in ("memory", "kernels")], ["kept", "now"])
        after = json.loads(kept.read_text())[0]
        kernels = after.pop("kernels")
        self.assertEqual(after, before)
        self.assertIn(("Q4_K", 512), [(k["type"], k["rows"]) for k in kernels])
        again = self.ok("plan", model("type-q4_k"), "--threads", 1, "--json", env=self.env)
        self.assertEqual(again.err, "")
        self.assertEqual(again.json()["rates"]["kernels_source"], "kept")
        # A later measurement of the machine keeps them.
        self.ok("bench", "--machine", "--quick", "-t", 1, env=self.env)
        self.assertEqual(json.loads(kept.read_text())[0]["kernels"], kernels)

    def test_what_is_kept_is_checked_once_it_is_old(self):
        self.ok("bench", "--machine", "--quick", "-t", 1, env=self.env)
        self.ok("plan", model("type-q4_k"), "--threads", 1, env=self.env)
        kept = self.folder / "home" / "machine.json"
        figures = json.loads(kept.read_text())
        figures[0]["measured_at"] -= 3600
        figures[0]["read"][0]["median_bytes_per_second"] *= 100
        kept.write_text(json.dumps(figures))
        done = self.ok("plan", model("type-q4_k"), "--threads", 1, "--json", env=self.env)
        for what in ("memory and arithmetic", "matrix products"):
            self.assertIn(f"measuring {what}", done.err)
        rates = done.json()["rates"]
        self.assertEqual([rates[f"{what}_source"] for what in ("memory", "kernels")], ["now", "now"])
        self.assertLess(rates["steady_read_bytes_per_second"], figures[0]["read"][0]["median_bytes_per_second"] / 10)
        self.assertEqual(json.loads(kept.read_text()), figures, "they may hold again")

    def test_bad_input(self):
        bad = (
            (2, "model is required", ()),
            (1, ["nowhere", "No such file", "no shape"], ("nowhere",)),
            (2, ["'nothing'", "gpt-oss-20b"], ("synth:nothing",)),
            (2, "'q9'", ("gpt-oss-20b:q9",)),
            (2, "--parallel is '0'", (model(), "--parallel", 0)),
            (2, "--parallel is 'x'", (model(), "--parallel", "x")),
            (2, "--kv-type", (model(), "--kv-type", "q7")),
            (2, "--memory", (model(), "--memory", "4X")),
            (2, "--ctx", (model(), "--ctx", 0)),
            (1, "not a GGUF", (self.file("text.gguf", "some text, and more of it"),)),
        )
        for code, words, args in bad:
            self.refused(code, words, "plan", *args, env=self.env)
