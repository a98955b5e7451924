"""stoker rerank: scores of documents, and what cannot be."""
from gguf_edit import ARRAY, F32, STRING, Tensor
from harness import TestCase, model, stoker

DOCUMENTS = "the cat sat on the mat", "a dog", "money in the bank"


class Ranks(TestCase):
    def lines(self, *args, name="bert-rank", **kwargs):
        out = self.ok("rerank", "-m", model(name), "-q", "is the cat", *args, **kwargs).out
        rows = [line.split("\t") for line in out.splitlines()]
        return [(float(score), int(number), document) for score, number, document in rows]

    def answer(self, *args, name="bert-rank"):
        return self.ok("rerank", "-m", model(name), "-q", "is the cat", "--json", *args).json()

    def test_the_best_first(self):
        got = self.lines(*DOCUMENTS)
        self.assertEqual(sorted(got, reverse=True), got)
        self.assertEqual({(number, document) for _, number, document in got}, set(enumerate(DOCUMENTS, 1)))
        self.assertEqual(self.lines(*DOCUMENTS, "--top-n", 2), got[:2])
        self.assertEqual(self.lines(*DOCUMENTS, "--top-n", 9), got)
        self.assertEqual(self.lines(stdin="\n".join(DOCUMENTS).encode()), got)
        self.assertEqual(self.lines("-f", self.file("documents", "\n".join(DOCUMENTS))), got)
        for score, number, document in got:
            self.assertEqual(self.lines(document), [(score, 1, document)])

    def test_as_the_apis_answer(self):
        got = self.answer(*DOCUMENTS)
        self.assertEqual(list(got), ["object", "model", "usage", "results"])
        lines = self.lines(*DOCUMENTS)
        self.assertEqual([entry["index"] + 1 for entry in got["results"]], [number for _, number, _ in lines])
        for entry, (score, _, _) in zip(got["results"], lines):
            self.assertAlmostEqual(entry["relevance_score"], score, places=6)
        self.assertEqual(got["usage"]["prompt_tokens"], sum(6 + len(document.split()) for document in DOCUMENTS))
        self.assertEqual(len(self.answer(*DOCUMENTS, "--top-n", 1)["results"]), 1)

    def test_every_kind_of_head(self):
        for name in ("bert-rank-plain", "jina-rank", "modern-bert-rank", "qwen3-rank"):
            done = self.ok("rerank", "-m", model(name), "-q", "is the cat", *DOCUMENTS)
            self.assertEqual(len(done.out.splitlines()), 3)
            self.assertEqual("lacks the layer before its head" in done.err, name in ("bert-rank-plain", "jina-rank"), name)
        for score, _, _ in self.lines(*DOCUMENTS, name="qwen3-rank"):
            self.assertTrue(0 < score < 1)

    def test_the_same_whatever_the_calls(self):
        want = self.ok("rerank", "-m", model("bert-rank"), "-q", "cat", *DOCUMENTS, "--digest").digest()
        for args in (("--threads", 1), ("--threads", 4, "--threads-exact"), ("--batch", 1)):
            self.assertEqual(self.ok("rerank", "-m", model("bert-rank"), "-q", "cat", *DOCUMENTS, "--digest", *args).digest(), want)


class Refusals(TestCase):
    def refuse(self, code, words, path, *args, **kwargs):
        self.refused(code, words, "rerank", "-m", path, *args, **kwargs)

    def test_models_without_a_head(self):
        self.refuse(1, ["bert.gguf", "no head that ranks", "tensor cls.output.weight is missing"], model("bert"), "-q", "a", "b")
        self.refuse(1, ["tensor cls.weight is missing"], model("jina-bert-v2"), "-q", "a", "b")
        self.refuse(1, ["no head that ranks", "bert, jina-bert-v2, modern-bert, qwen3", "not of llama"], model("llama"), "-q", "a", "b")

    def test_texts_that_cannot_be(self):
        bert = model("bert-rank")
        self.refuse(2, "the query is empty", bert, "-q", "", "b")
        self.refuse(2, "document 2 is empty", bert, "-q", "a", stdin=b"a\n\nb\n")
        self.refuse(2, "there is no document", bert, "-q", "a")
        self.refuse(2, ["document 2 with the query has 204 tokens", "the context is 160"], bert, "-q", "a", "b", "a " * 200)
        self.refuse(2, "--query", bert, "b")
        self.refuse(2, "--top-n", bert, "-q", "a", "b", "--top-n", 0)
        self.refuse(2, "excludes", bert, "-q", "a", "b", "-f", "x")

    def test_heads_of_classes(self):
        def three(gguf):
            gguf.keys["bert.classifier.output_labels"] = (ARRAY, (STRING, ["against", "neutral", "for"]))
            gguf.tensors["cls.output.weight"] = Tensor([96, 3], 0, bytes(96 * 3 * 4))
            gguf.tensors["cls.output.bias"] = Tensor([3], 0, bytes(12))

        self.refuse(1, ["3 numbers", "'neutral'", "wanted one score"], self.edited(three, "bert-rank"), "-q", "a", "b")

        def other_words(gguf):
            gguf.keys["qwen3.classifier.output_labels"] = (ARRAY, (STRING, ["ja", "nein"]))

        self.refuse(1, ["'ja'", "wanted yes and no"], self.edited(other_words, "qwen3-rank"), "-q", "a", "b")

    def test_keys_that_cannot_be(self):
        for key, value, words in (
            ("bert.classifier.output_labels", (ARRAY, (F32, [1.0])), "no list of up to 4096 texts"),
            ("bert.classifier.pooling_type", (4, 9), "bert.classifier.pooling_type is 9"),
        ):
            path = self.edited(lambda gguf, key=key, value=value: gguf.keys.update({key: value}), "bert-rank")
            self.refuse(1, words, path, "-q", "a", "b")

    def test_tensors_that_cannot_be(self):
        def short(gguf):
            gguf.tensors["cls.bias"] = Tensor([95], 0, bytes(95 * 4))

        self.refuse(1, "tensor cls.bias has shape [95], wanted [96]", self.edited(short, "bert-rank"), "-q", "a", "b")

    def test_prompts_that_cannot_be(self):
        key = "tokenizer.chat_template.rerank"
        path = self.edited(lambda gguf: gguf.keys.update({key: (STRING, "<Query>: {query}")}), "qwen3-rank")
        self.refuse(1, [key, "has no {document}"], path, "-q", "a", "b")
        path = self.edited(lambda gguf: gguf.keys.pop(key), "qwen3-rank")
        self.refuse(1, [key + " is missing", "nothing between two texts"], path, "-q", "a", "b")

    def test_no_room(self):
        done = stoker("rerank", "-m", model("bert-rank"), "-q", "a", "b", "--memory", "25M")
        self.assertEqual(done.code, 1, done)
        self.assertIn("weights", done.err)


class Inspect(TestCase):
    def test_says_what_it_gives(self):
        for name in ("bert-rank", "qwen3-rank"):
            self.assertIn("gives          scores of documents for a query", self.ok("inspect", model(name)).out)
            self.ok("plan", model(name), "--no-measure")
        self.refused(1, ["pooling_type rank", "stoker rerank"], "embed", "-m", model("qwen3-rank"), "a")

    def test_a_decoder_that_ranks_continues_texts_all_the_same(self):
        self.ok("run", "-m", model("qwen3-rank"), "-p", "the", "-n", 2)
