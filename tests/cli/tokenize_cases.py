"""stoker tokenize and detokenize."""
import json

from harness import TestCase, model

END = 287  # "<|end|>", the tiny vocabulary's last token


class Tokenize(TestCase):
    def ids(self, *args, **kwargs):
        out = self.ok("tokenize", "-m", kwargs.pop("path", model()), *args, "--json", **kwargs).json()
        self.assertEqual(set(out), {"tokens"})
        return out["tokens"]

    def test_ids_and_pieces(self):
        lines = self.ok("tokenize", "-m", model(), "hello\n").out.splitlines()
        rows = [line.split("\t") for line in lines]
        self.assertEqual([int(row[0]) for row in rows], self.ids("hello\n"))
        self.assertEqual("".join(json.loads(row[1]) for row in rows), "hello\n")

    def test_special_tokens_in_the_text(self):
        text = "a<|end|>b"
        for args in ((), ("--special",), ("--special=true",)):
            self.assertEqual(self.ids(text, *args), [97, END, 98])
        for args in (("--special=false",), ("--no-special",)):
            self.assertNotIn(END, self.ids(text, *args))

    def test_bos_and_eos_only_when_asked_and_as_the_file_asks(self):
        self.assertEqual(self.ids("a", "--add-special"), [97])

        def ask(gguf):
            gguf.keys["tokenizer.ggml.add_bos_token"] = (7, True)
            gguf.keys["tokenizer.ggml.add_eos_token"] = (7, True)

        path = self.edited(ask)
        self.assertEqual(self.ids("a", path=path), [97])
        self.assertEqual(self.ids("a", "--add-special=false", path=path), [97])
        for args in (("--add-special",), ("--add-special=true",)):
            self.assertEqual(self.ids("a", *args, path=path), [END, 97, END])

    def test_input_is_bytes(self):
        raw = b"a\xff\xfe\xc3b\x00c"
        self.assertEqual(self.ids(stdin=raw), list(raw))
        self.assertEqual(self.ids("-f", self.file("raw", raw)), list(raw))
        self.assertEqual(self.ids(""), [])
        self.assertEqual(self.ids(stdin=b""), [])

    def test_vocabulary_only_files(self):
        path = self.edited(lambda gguf: gguf.drop_weights())
        self.assertEqual(self.ids("hello", path=path), self.ids("hello"))
        self.assertEqual(self.ok("detokenize", "-m", path, stdin=b"[97, 98]").raw, b"ab")

    def test_architectures_that_do_not_run(self):
        path = self.edited(lambda gguf: gguf.set_string("general.architecture", "unheard-of"))
        self.assertEqual(self.ids("hello", path=path), self.ids("hello"))


class Detokenize(TestCase):
    def test_every_byte_comes_back(self):
        raw = bytes(range(256)) + b"the \xe4\xb8\x96\xe7\x95\x8c \xff"
        tokens = self.ok("tokenize", "-m", model(), "--json", "--special=false", stdin=raw).raw
        self.assertEqual(self.ok("detokenize", "-m", model(), stdin=tokens).raw, raw)
        self.assertEqual(self.ok("detokenize", "-m", model(), "-f", self.file("ids.json", tokens)).raw, raw)

    def test_control_tokens_show_when_asked(self):
        ids = json.dumps([97, END, 98]).encode()
        self.assertEqual(self.ok("detokenize", "-m", model(), stdin=ids).raw, b"ab")
        self.assertEqual(self.ok("detokenize", "-m", model(), "--special", stdin=ids).raw, b"a<|end|>b")

    def test_json_is_valid_utf8(self):
        out = self.ok("detokenize", "-m", model(), "--json", stdin=b"[97, 255, 98]").raw
        self.assertEqual(json.loads(out.decode("utf-8")), {"text": "a\ufffdb"})
