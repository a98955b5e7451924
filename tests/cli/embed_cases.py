"""stoker embed: vectors of texts, and what cannot be."""
import json
import math

from harness import TestCase, model, stoker


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class Vectors(TestCase):
    def lines(self, *args, name="bert", **kwargs):
        out = self.ok("embed", "-m", model(name), *args, **kwargs).out
        return [[float(x) for x in line.split()] for line in out.splitlines()]

    def answer(self, *args, name="bert", **kwargs):
        return self.ok("embed", "-m", model(name), "--json", *args, **kwargs).json()

    def test_one_line_for_each_text(self):
        both = self.lines("the cat", "A dog!")
        self.assertEqual([len(row) for row in both], [96, 96])
        for row in both:
            self.assertAlmostEqual(sum(x * x for x in row), 1, places=5)
        self.assertEqual(self.lines("the cat"), both[:1])
        self.assertEqual(self.lines("THE CAT"), both[:1])  # its tokenizer makes letters small
        self.assertEqual(self.lines(stdin=b"the cat\r\nA dog!\n"), both)
        self.assertEqual(self.lines("-f", self.file("texts", "the cat\nA dog!")), both)

    def test_as_the_api_answers(self):
        got = self.answer("the cat", "a")
        self.assertEqual(list(got), ["object", "data", "model", "usage"])
        self.assertEqual(got["usage"], {"prompt_tokens": 4 + 3, "total_tokens": 7})
        self.assertEqual([entry["index"] for entry in got["data"]], [0, 1])
        for entry, row in zip(got["data"], self.lines("the cat", "a")):
            self.assertEqual(entry["object"], "embedding")
            self.assertLess(max(abs(x - y) for x, y in zip(entry["embedding"], row)), 1e-8)

    def test_pooling(self):
        tokens = self.answer("the cat", "--pooling", "none", "--no-normalize")["data"][0]["embedding"]
        self.assertEqual([len(tokens), len(tokens[0])], [4, 96])
        want = {"mean": [sum(column) / 4 for column in zip(*tokens)], "cls": tokens[0], "last": tokens[-1]}
        for way, vector in want.items():
            got = self.lines("the cat", "--pooling", way, "--no-normalize")[0]
            self.assertLess(max(abs(x - y) for x, y in zip(got, vector)), 1e-6, way)
        self.assertEqual(self.lines("the cat", "--pooling", "mean"), self.lines("the cat"))  # as the file says
        self.assertEqual(self.lines("the cat", "--pooling", "cls", name="bert-cls"), self.lines("the cat", name="bert-cls"))

    def test_similarity(self):
        rows = self.lines("the cat", "a dog", "the cat", "--similarity")
        vectors = self.lines("the cat", "a dog", "the cat")
        for a, row in zip(vectors, rows):
            for b, value in zip(vectors, row):
                self.assertAlmostEqual(cosine(a, b), value, places=5)
        self.refused(2, "one vector", "embed", "-m", model("bert"), "a", "--similarity", "--pooling", "none")

    def test_tokens(self):
        ids = self.ok("tokenize", "-m", model("bert"), "the cat", "--add-special", "--json").json()["tokens"]
        self.assertEqual(self.lines("--tokens", self.file("ids", json.dumps([ids, [2, 3]])))[0], self.lines("the cat")[0])
        for text, words in (("[1, 2]", "no array"), ("[]", "no array of lists"), ("[[-1]]", "no token id"), ("x", "no JSON")):
            self.refused(2, words, "embed", "-m", model("bert"), "--tokens", self.file("bad", text))
        self.refused(2, "outside the vocabulary", "embed", "-m", model("bert"), "--tokens", self.file("big", "[[1, 99999]]"))

    def test_control_tokens_in_a_text_are_text(self):
        self.assertNotEqual(self.lines("a [SEP] b"), self.lines("--tokens", self.file("ids", "[[2, 5, 3, 6, 3]]")))

    def test_a_model_that_continues_texts(self):
        done = self.ok("embed", "-m", model("llama"), "the cat", "a dog")
        self.assertEqual([len(line.split()) for line in done.out.splitlines()], [96, 96])
        self.assertIn("taking last", done.err)
        self.assertEqual(self.ok("embed", "-m", model("llama"), "the cat", "--pooling", "last").err, "")
        whole = self.ok("embed", "-m", model("llama"), "the cat " * 20, "--pooling", "mean").raw
        self.assertEqual(self.ok("embed", "-m", model("llama"), "the cat " * 20, "--pooling", "mean", "--batch", 7).raw, whole)


class Refusals(TestCase):
    def test_texts_that_are_too_long(self):
        text = "a " * 200
        done = self.refused(2, ["text 2 has 202 tokens", "the context is 160", "--truncate"], "embed", "-m", model("bert"), "a", text)
        self.assertNotIn("text 1", done.err)
        self.refused(2, "the context is 160", "embed", "-m", model("bert"), text, "--ctx", 1000)  # its table of positions ends
        self.refused(2, "the context is 30", "embed", "-m", model("bert"), text, "--ctx", 30)
        cut = self.ok("embed", "-m", model("bert"), text, "--truncate").raw
        self.assertEqual(cut, self.ok("embed", "-m", model("bert"), "a " * 158).raw)

    def test_wrong_calls(self):
        bert = model("bert")
        self.refused(2, "--pooling", "embed", "-m", bert, "a", "--pooling", "best")
        self.refused(2, "there is no text", "embed", "-m", bert)
        self.refused(2, "excludes", "embed", "-m", bert, "a", "-f", "x")
        self.refused(1, "no-such", "embed", "-m", bert, "-f", "/no-such")
        self.refused(2, "text 2 is empty", "embed", "-m", model("llama"), "--pooling", "last", stdin=b"a\n\nb\n")

    def test_encoders_continue_nothing(self):
        for args in (("run", "-p", "x"), ("perplexity",), ("bench", "-p", 8, "-n", 0)):
            command = [args[0], "-m", model("bert"), *args[1:]]
            self.refused(1, ["bert gives vectors", "stoker embed"], *command, stdin=b"some text")

    def test_a_reranker_gives_vectors_when_it_is_asked(self):
        self.refused(1, ["pooling_type rank", "stoker rerank", "mean, cls or last"], "embed", "-m", model("bert-rank"), "a")
        self.ok("embed", "-m", model("bert-rank"), "a", "--pooling", "cls")
        path = self.edited(lambda gguf: gguf.keys.update({"bert.pooling_type": (4, 4)}), "bert")
        self.refused(1, "no head that ranks", "embed", "-m", path, "a")

    def test_a_causal_encoder_is_refused(self):
        path = self.edited(lambda gguf: gguf.keys.update({"bert.attention.causal": (7, True)}), "bert")
        self.refused(1, ["bert.attention.causal", "true"], "embed", "-m", path, "a")

    def test_one_dense_layer_without_the_other(self):
        for name, other in (("dense_2", "dense_3"), ("dense_3", "dense_2")):
            path = self.edited(lambda gguf, name=name: gguf.tensors.pop(name + ".weight"), "gemma-embedding")
            self.refused(1, [name + ".weight is missing", other], "embed", "-m", path, "a")

    def test_no_room(self):
        done = stoker("embed", "-m", model("bert"), "a", "--memory", "25M")
        self.assertEqual(done.code, 1, done)
        self.assertIn("weights", done.err)


class Inspect(TestCase):
    def test_says_what_it_gives(self):
        self.assertIn("vectors of texts, pooled by cls", self.ok("inspect", model("bert-cls")).out)
        self.assertFalse(self.ok("inspect", model("bert"), "--json").json()["config"]["causal"])


class Plan(TestCase):
    def test_memory_and_no_decoding(self):
        out = self.ok("plan", model("bert"), "--no-measure").out
        self.assertIn("f32, of one layer at a time", out)
        self.assertIn("text of 160", out)
        self.assertNotIn("decode", out)
        report = self.ok("plan", model("bert"), "--no-measure", "--json").json()
        self.assertIsNone(report["decode"])
        names = {line["name"]: line["bytes"] for line in report["memory"]}
        # K and V of three tiles of one layer: 96 dimensions each.
        self.assertGreaterEqual(names["kv cache"], 3 * 64 * 2 * 96 * 4)
        self.assertLess(names["kv cache"], 2 * 3 * 64 * 2 * 96 * 4)


class Digest(TestCase):
    def test_the_same_whatever_the_calls(self):
        texts = [f"the cat sat on mat {i} " * (i + 1) for i in range(5)]
        want = self.ok("embed", "-m", model("bert"), *texts, "--digest").digest()
        for args in (("--threads", 1), ("--threads", 4, "--threads-exact"), ("--batch", 30), ("--batch", 1)):
            self.assertEqual(self.ok("embed", "-m", model("bert"), *texts, "--digest", *args).digest(), want, args)
