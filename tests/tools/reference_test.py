"""tools/reference_model.py, tiny models and distances. That the formulas are right is shown by llama.cpp's distance in
tests/golden; here: that goldens, models and reference still belong together, and that nothing is skipped silently."""
import json
import pathlib
import sys
import tempfile
import unittest
from dataclasses import replace

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import distance  # noqa: E402
import reference  # noqa: E402
import tiny_model  # noqa: E402
from reference_file import Unsupported  # noqa: E402
from reference_model import Model  # noqa: E402
from tiny_writer import write_model  # noqa: E402

SAMPLE = "llama-longrope-long qwen2-output-bias gemma2 gemma3-pattern gpt-oss glm4moe-groups type-q5_k".split()
RULES = {
    "bailingmoe": {"renormalized": False, "ffn_down_shexp.weight": None},
    "bailingmoe2": {"n_groups": 1, "expert_scale": 1.0, "exp_probs_b.bias": None, "ffn_down_shexp.weight": None},
    "dots1": {"renormalized": False, "expert_scale": 1.0, "exp_probs_b.bias": None, "ffn_down_shexp.weight": None},
    "minimax-m2": {"renormalized": False, "gating": "softmax", "exp_probs_b.bias": None},
    "deepseek": {"gating": "sigmoid", "renormalized": True, "expert_scale": 1.0, "ffn_down_shexp.weight": None},
    "ernie4_5-moe": {"renormalized": False, "exp_probs_b.bias": None, "ffn_down_shexp.weight": None},
    "granite": {"embedding_scale": 1.0, "residual_scale": 1.0, "scale": 0.25, "logit_scale": 1.0, "rotates": False},
    "granitemoe": {"renormalized": False, "residual_scale": 1.0, "ffn_down_shexp.weight": None},
    "glm4moe-groups": {
        **{"gating": "softmax", "renormalized": False, "expert_scale": 1.0, "n_groups": 1, "n_used_groups": 3},
        **{"exp_probs_b.bias": None, "ffn_down_shexp.weight": None},
    },
    "afmoe": {
        **{"renormalized": False, "expert_scale": 1.0, "embedding_scale": 1.0, "window": 1000},
        **{"exp_probs_b.bias": None, "ffn_down_shexp.weight": None, "attn_gate.weight": None},
    },
    "apertus": {"ffn_down.weight": None, "attn_q_norm.weight": None},
    "cohere2moe": {"gating": "softmax", "renormalized": True, "logit_scale": 1.0, "window": 1000},
    "dbrx": {"renormalized": False, "layer_norm": False},
    "deci": {"scale": 1.0, "rotates": False},
    "exaone-moe": {"renormalized": False, "expert_scale": 1.0, "window": 1000, "exp_probs_b.bias": None},
    "gemma3n": {"embedding_scale": 1.0, "window": 1000, "final_cap": 0.0, "laurel_r.weight": None},
    "granite_swa": {"embedding_scale": 1.0, "residual_scale": 1.0, "logit_scale": 1.0, "window": 1000},
    "hy_v3": {"renormalized": False, "expert_scale": 1.0, "exp_probs_b": None, "ffn_down_shexp.weight": None},
    "jais2": {"layer_norm": False, "rotates": False},
    "laguna": {
        **{"renormalized": False, "expert_scale": 1.0, "window": 1000},
        **{"exp_probs_b.bias": None, "ffn_down_shexp.weight": None, "attn_gate.weight": None},
    },
    "llama4": {"gating": "softmax", "ffn_down_shexp.weight": None},
    "mellum": {"renormalized": False, "window": 1000},
    "mimo2": {"renormalized": False, "value_scale": 1.0, "window": 1000, "exp_probs_b.bias": None},
    "mpt": {"layer_norm": False},
    "smallthinker": {"renormalized": False, "n_used_experts": 2},
    "step35": {
        **{"renormalized": False, "expert_scale": 1.0, "window": 1000},
        **{"exp_probs_b.bias": None, "ffn_down_shexp.weight": None, "attn_gate.weight": None},
    },
}


def golden(name):
    return json.loads((ROOT / "tests" / "golden" / "tiny" / f"{name}.json").read_text("utf-8"))


class WithModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def model(self, name, **options):
        return Model(tiny_model.make(name, self.folder), **options)

    def changed(self, name, **fields):
        path = self.folder / "changed.gguf"
        write_model(name, replace(tiny_model.MODELS[name], **fields), path)
        return path


class Reference(WithModels):
    def test_agrees_with_the_goldens(self):
        for name in SAMPLE:
            with self.subTest(name):
                want = golden(name)
                got = reference.score(self.model(name, n_ctx=want["ctx"]), want["tokens"], top=5)
                np.testing.assert_allclose(got["logprobs"], want["logprobs"], atol=1e-6)
                self.assertEqual(got["top_ids"].tolist(), [[i for i, _ in row] for row in want["top"]])

    def test_pieces_are_the_whole(self):
        for name in ("llama", "gemma3"):  # gemma3's window is shorter than a piece
            model = self.model(name)
            ids = golden(name)["tokens"][:40]
            whole = model.hidden(ids)
            model.reset()
            pieces = [model.hidden(ids[start:end]) for start, end in ((0, 1), (1, 12), (12, 40))]
            np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-12)

    def test_large_models_are_read_in_blocks(self):
        model, ids = self.model("type-q4_1"), [1, 2, 3]
        whole = model.logits_of(model.hidden(ids))
        model.reset()
        model.file.n_weights, model.file.kept = 1 << 40, {}
        np.testing.assert_allclose(model.logits_of(model.hidden(ids)), whole, atol=1e-12)

    def test_greedy_continues(self):
        model = self.model("qwen3")
        found = reference.greedy(model, [5, 6, 7], 3)
        scores = reference.score(model, [5, 6, 7] + [step["id"] for step in found], top=2)
        self.assertEqual(scores["top_ids"][2:5, 0].tolist(), [step["id"] for step in found])
        self.assertTrue(all(step["margin"] > 0 for step in found))

    def test_context_decides_longrope(self):
        ids = golden("llama-longrope-long")["tokens"]
        scores = [reference.score(self.model("llama-longrope-long", n_ctx=n), ids)["logprobs"] for n in (64, 65)]
        self.assertGreater(np.abs(scores[0] - scores[1]).max(), 0.01)

    def test_each_rule_counts(self):
        """Without it the scores are others: the tiny models do take these paths."""
        for name, rules in RULES.items():
            want = golden(name)["logprobs"]
            for rule, value in rules.items():
                model = self.model(name)
                if value is None:  # a tensor, without which it is zero
                    for key in model.file.tensors:
                        if key.endswith(rule):
                            model.file.kept[key] = 0 * model.file.tensor(key)
                else:
                    self.assertNotEqual(getattr(model, rule), value)
                    setattr(model, rule, value)
                got = reference.score(model, golden(name)["tokens"])["logprobs"]
                self.assertGreater(np.abs(got - want).mean(), 2e-3, (name, rule))

    def test_draft_layers_take_no_part(self):
        ids = golden("glm4moe")["tokens"][:9]
        model = self.model("glm4moe")
        reference.score(model, ids)
        self.assertEqual(model.n_layers, 4)
        self.assertFalse([name for name in model.file.tensors_read if name.startswith("blk.4.")])

    def test_unknown_key_is_refused(self):
        model = Model(self.changed("llama", keys={"attention.clamp_kqv": 8.0}))
        with self.assertRaisesRegex(Unsupported, "attention.clamp_kqv"):
            list(model.logits([1]))

    def test_unknown_tensor_is_refused(self):
        model = Model(self.changed("llama", vectors={"blk.0.attn_gate.weight": [1.0]}))
        with self.assertRaisesRegex(Unsupported, "blk.0.attn_gate.weight"):
            list(model.logits([1]))

    def test_unknown_rope_scaling_and_architecture_are_refused(self):
        with self.assertRaisesRegex(Unsupported, "dynamic"):
            Model(self.changed("llama", keys={"rope.scaling.type": "dynamic", "rope.scaling.factor": 2.0}))
        with self.assertRaisesRegex(Unsupported, "mamba"):
            Model(self.changed("llama", arch="mamba"))


class TinyModels(WithModels):
    def test_bytes_are_those_of_the_goldens(self):
        for name in SAMPLE:
            self.assertFalse(tiny_model.differs_from_golden(name, tiny_model.make(name, self.folder)), name)

    def test_every_model_has_a_golden(self):
        names = {path.stem for path in (ROOT / "tests" / "golden" / "tiny").glob("*.json")}
        self.assertEqual(names, set(tiny_model.MODELS))

    def test_a_file_of_another_version_is_made_again(self):
        path = tiny_model.make("llama", self.folder)
        before = path.read_bytes()
        path.write_bytes(b"old")
        (self.folder / ".llama.version").write_text("another")
        tiny_model.make("llama", self.folder)
        self.assertEqual(path.read_bytes(), before)


class Distances(unittest.TestCase):
    def setUp(self):
        random = np.random.RandomState(1)
        self.ids = random.randint(0, 50, 9).tolist()
        self.logits = random.normal(0, 3, (9, 50))
        self.log_probs = reference.log_softmax(self.logits)
        ids, values = reference.best(self.log_probs, distance.N_TOP)
        self.top = [[[i, p] for i, p in zip(*row)] for row in zip(ids.tolist(), values.tolist())]
        following = self.log_probs[np.arange(8), self.ids[1:]].tolist()
        self.golden = {"tokens": self.ids, "top": self.top, "logprobs": following}

    def of(self, logits):
        return distance.of_rows(self.ids, self.top, self.log_probs, iter(logits)).summary()

    def test_none(self):
        found = self.of(self.logits + 7.0)  # a constant changes nothing
        self.assertLess(max(found["mean_abs"], abs(found["kl"]), abs(found["kl_top"])), 1e-12)
        self.assertEqual(found["same_best"], 1.0)

    def test_kl_by_hand(self):
        other = self.logits.copy()
        other[3, 11] += 2.0
        p, q = np.exp(self.log_probs[3]), np.exp(reference.log_softmax(other[3:4])[0])
        found = self.of(other)
        self.assertAlmostEqual(found["kl"], float((p * np.log(p / q)).sum()) / 8, places=12)
        self.assertLessEqual(found["kl_top"], found["kl"] + 1e-12)  # lumping can only lose

    def test_position_0_is_left_out(self):
        other = self.logits.copy()
        other[0] = -other[0]
        self.assertLess(self.of(other)["mean_abs"], 1e-12)

    def test_json_and_logits_give_the_same(self):
        other = self.logits + np.random.RandomState(2).normal(0, 0.1, self.logits.shape)
        z = reference.log_softmax(other)
        ids, values = reference.best(z, 40)
        scores = {"tokens": self.ids, "logprobs": z[np.arange(8), self.ids[1:]].tolist()}
        scores["top"] = [[list(pair) for pair in zip(*row)] for row in zip(ids.tolist(), values.tolist())]
        a = distance.of_json(self.golden, scores).summary()
        b = distance.of_committed(self.golden, iter(other)).summary()
        for key in ("mean_abs", "kl_top", "same_best", "perplexity"):
            self.assertAlmostEqual(a[key], b[key], places=10)
        self.assertAlmostEqual(a["mean_abs"], self.of(other)["mean_abs"], places=10)

    def test_other_tokens_or_too_few_rows_are_refused(self):
        with self.assertRaises(ValueError):
            distance.of_json(self.golden, {"tokens": [1]})
        with self.assertRaises(ValueError):
            self.of(self.logits[:5])


if __name__ == "__main__":
    unittest.main()
