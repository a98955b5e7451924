"""stoker inspect: what it lists, and that its exit code says whether the file runs."""
import json
import os
import pathlib

from harness import TestCase, instruction_sets, model, stoker


class Inspect(TestCase):
    def cannot_run(self, change, words, name="llama"):
        path = self.edited(change, name)
        done = stoker("inspect", path)
        self.assertEqual((done.code, done.err), (1, ""), done)
        problems = [line for line in done.out.splitlines() if line.startswith("cannot run")]
        self.assertGreaterEqual(len(problems), 1, done)
        for word in words:
            self.assertIn(word, "\n".join(problems))
        report = stoker("inspect", path, "--json")
        self.assertEqual(report.code, 1)
        self.assertFalse(report.json()["runs"])
        return path, report.json()

    def test_which_latents_are_rotated(self):
        self.assertIn("with 8 rotated", self.ok("inspect", model("deepseek2")).out)
        for name in ("kimi-linear", "kimi-k3"):
            out = self.ok("inspect", model(name)).out
            self.assertRegex(out, "one latent of [0-9]+ with [0-9]+ shared", name)
            self.assertNotIn("rotated", out)

    def test_a_model_that_runs(self):
        done = self.ok("inspect", model())
        for word in ("GGUF version 3", "llama", "gpt2", "F32"):
            self.assertIn(word, done.out)
        report = self.ok("inspect", model(), "--json").json()
        self.assertEqual((report["runs"], report["problems"], report["architecture"]), (True, [], "llama"))
        self.assertEqual(report["config"]["n_layers"], 4)
        self.assertNotIn("tensors", report)

    def test_tensors(self):
        report = self.ok("inspect", model(), "--json", "--tensors").json()
        self.assertEqual(len(report["tensors"]), report["n_tensors"])
        by_name = {tensor["name"]: tensor for tensor in report["tensors"]}
        self.assertEqual(by_name["blk.0.ffn_down.weight"]["shape"], [96, 160])
        self.assertIn("blk.0.ffn_down.weight  F32  [96, 160]", self.ok("inspect", model(), "--tensors").out)

    def test_plan_names_matrices_and_kernels(self):
        plan = self.ok("inspect", model(), "--plan").out
        best = instruction_sets()[-1]
        for word in ("embed", "attention", "blk.3.ffn_down.weight", best):
            self.assertIn(word, plan)
        found = self.ok("inspect", model(), "--plan", "--json").json()["memory"]
        self.assertEqual(sorted(cpu for node in found["nodes"] for cpu in node["cpus"]), sorted(os.sched_getaffinity(0)))
        used = [node for node in found["nodes"] if node["workers"] > 0]
        self.assertEqual(found["placed"], len(used) > 1)
        self.assertIn("\nmemory         " + ("one node" if len(found["nodes"]) == 1 else "node "), plan)
        setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
        granted = setting.exists() and "[never]" not in setting.read_text()
        self.assertIn("\nhuge pages     " + ("granted\n" if granted else "refused"), plan)
        self.assertEqual(found["huge_pages_refusal"] == "", granted)
        scalar = self.ok("inspect", model(), "--plan", env={"STOKER_ISA": "scalar"}).out
        self.assertIn("scalar", scalar)
        self.assertNotIn(best + "\n", scalar)

    def test_vocabulary_only_exits_0(self):
        path = self.edited(lambda gguf: gguf.drop_weights())
        self.assertIn("vocabulary only", self.ok("inspect", path).out)
        self.assertTrue(self.ok("inspect", path, "--json").json()["vocabulary_only"])
        self.refused(1, ["edited.gguf", "no weights"], "run", "-m", path, "-p", "x")

    def test_unknown_architecture(self):
        path, _ = self.cannot_run(lambda g: g.set_string("general.architecture", "unheard-of"), ["unheard-of", "llama"])
        self.refused(1, [path.name, "unheard-of"], "run", "-m", path, "-p", "x")

    def test_architecture_that_is_no_text(self):
        self.cannot_run(lambda g: g.set_u32("general.architecture", 3), ["general.architecture"])

    def test_unknown_tensor_type_lists_the_others(self):
        def change(gguf):
            gguf.tensors["output_norm.weight"].kind = 156

        path, report = self.cannot_run(change, ["output_norm.weight", "156"])
        self.assertGreater(report["n_tensors"], 30)
        listed = stoker("inspect", path, "--tensors")
        self.assertIn("blk.0.attn_q.weight", listed.out)
        self.refused(1, [path.name, "output_norm.weight", "156"], "run", "-m", path, "-p", "x")

    def test_missing_tensor(self):
        path, _ = self.cannot_run(lambda g: g.tensors.pop("blk.1.attn_k.weight"), ["blk.1.attn_k.weight", "[32, 96]"])
        self.refused(1, [path.name, "blk.1.attn_k.weight", "[32, 96]"], "run", "-m", path, "-p", "x")

    def test_wrong_shape(self):
        def change(gguf):
            gguf.tensors["blk.2.ffn_up.weight"].dims = [160, 96]

        path, _ = self.cannot_run(change, ["blk.2.ffn_up.weight", "[96, 160]", "[160, 96]"])
        self.refused(1, [path.name, "blk.2.ffn_up.weight", "[96, 160]", "[160, 96]"], "run", "-m", path, "-p", "x")

    def test_missing_tokenizer(self):
        def change(gguf):
            for key in [key for key in gguf.keys if key.startswith("tokenizer.")]:
                del gguf.keys[key]

        path, _ = self.cannot_run(change, ["tokenizer.ggml.model"])
        self.refused(1, [path.name, "tokenizer.ggml.model", "--tokens"], "run", "-m", path, "-p", "x")
        self.refused(1, [path.name, "tokenizer.ggml.model"], "tokenize", "-m", path, "x")
        ids = self.file("ids.json", "[1, 2, 3]")
        answer = self.ok("run", "-m", path, "--tokens", ids, "-n", "3", "--ignore-eos", "--json").json()
        self.assertEqual((answer["text"], answer["generated_tokens"]), ("", 3))

    def test_unknown_pre_tokenizer(self):
        path, _ = self.cannot_run(lambda g: g.set_string("tokenizer.ggml.pre", "my-own"), ["my-own"])
        self.refused(1, [path.name, "my-own"], "run", "-m", path, "-p", "x")
        self.refused(1, [path.name, "my-own"], "tokenize", "-m", path, "x")

    def test_mixtures_of_experts(self):
        done = self.ok("inspect", model("gpt-oss-mxfp4"), "--plan")
        self.assertRegex(done.out, r"experts\tblk.0.ffn_down_exps.weight\t\[8, 96, 64\]\tMXFP4")
        path = self.edited(lambda g: g.set_u32("gpt-oss.expert_used_count", 9), "gpt-oss")
        self.refused(1, [path.name, "gpt-oss.expert_used_count is 9", "1 to 8"], "run", "-m", path, "-p", "x")

    def test_unused_tensors_are_notes(self):
        def change(gguf):
            gguf.tensors["v.patch.weight"] = gguf.tensors["output_norm.weight"]

        done = self.ok("inspect", self.edited(change))
        self.assertIn("v.patch.weight is not used", done.out)


class Verify(TestCase):
    def test_good_files(self):
        for name in ("llama", "type-q4_k", "type-mxfp4"):
            done = self.ok("inspect", model(name), "--verify")
            self.assertRegex(done.out, r"verified +\d+ tensors")

    def test_planted_values(self):
        for value in (float("nan"), float("inf"), float("-inf")):
            path = self.edited(lambda gguf: gguf.put_f32("blk.3.ffn_up.weight", 12345, value))
            self.ok("inspect", path)
            done = stoker("inspect", path, "--verify")
            self.assertEqual(done.code, 1, done)
            self.assertIn("blk.3.ffn_up.weight", done.out)
            self.assertIn("12345", done.out)
            self.assertEqual(len(json.loads(stoker("inspect", path, "--verify", "--json").out)["problems"]), 1)

    def test_planted_scale(self):
        def change(gguf):
            data = gguf.tensors["blk.1.ffn_down.weight"].data
            data[144 * 7 : 144 * 7 + 2] = b"\x00\x7c"  # the f16 scale of block 7: infinite

        done = stoker("inspect", self.edited(change, "type-q4_k"), "--verify")
        self.assertEqual(done.code, 1, done)
        self.assertIn("blk.1.ffn_down.weight: block 7", done.out)

    def test_a_run_over_a_planted_value_says_where(self):
        path = self.edited(lambda gguf: gguf.put_f32("blk.2.ffn_norm.weight", 5, float("nan")))
        done = stoker("run", "-m", path, "-p", "hello", "-n", "3", "--json")
        self.assertEqual((done.code, done.out), (1, ""), done)
        done.err = done.err.splitlines(keepends=True)[-1]  # what is printed at the start comes before
        self.one_line(done, ["layer 2", "position 0", "--verify"])
