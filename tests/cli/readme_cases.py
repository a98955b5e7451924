"""The commands of README.md, on a tiny model."""
import pathlib
import shlex

from harness import TestCase, model

README = pathlib.Path(__file__).resolve().parent.parent.parent / "README.md"
BINARY = "build/release/stoker "
MODELS = {"MODEL.gguf": model(), "RERANKER.gguf": model("bert-rank")}


class Readme(TestCase):
    def test_its_commands_work(self):
        lines = [line for line in README.read_text("utf-8").splitlines() if line.startswith(BINARY)]
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            args = [str(MODELS.get(word, word)) for word in shlex.split(line, comments=True)[1:]]
            done = self.ok(*args)
            self.assertNotEqual(done.out, "", line)
