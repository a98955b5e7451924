"""`stoker run --trace` and --profile, and `stoker trace`, which replays what was written."""
import json

from harness import TestCase, model

MOE = "olmoe"


class Trace(TestCase):
    def record(self, *args):
        path = self.folder / "routes"
        run = ("run", "-m", model(MOE), "-p", "hello", "-n", 30, "--ignore-eos", "--seed", 1)
        self.ok(*run, "--trace", path, *args)
        return path

    def test_it_is_written_and_replayed(self):
        path = self.record("--expert-cache", "300K")
        lines = path.read_text().splitlines()
        self.assertEqual(lines[:2], ["stoker-trace 1", "model olmoe.gguf"])
        self.assertEqual(sum(line.startswith("call ") for line in lines), 30)  # the prompt, then all but the last token
        done = self.ok("trace", path)
        self.assertIn("olmoe.gguf: ", done.out)
        self.assertIn("29 tokens one after the other", done.out)
        for word in ("recency", "counts", "lfu", "store", "optimum", "behind", "read/token"):
            self.assertIn(word, done.out)
        self.assertEqual(path.read_text(), self.record().read_text())  # where the experts are is not in it

    def test_json_has_every_size_asked_for(self):
        path = self.record()
        out = self.ok("trace", path, "--cache", "100K", "--cache", "300K", "--json").json()
        self.assertEqual([cache["bytes"] for cache in out["caches"]], [100 << 10, 300 << 10])
        for cache in out["caches"]:
            self.assertEqual(cache["optimum"]["decode"]["tokens"], 29)
            self.assertGreaterEqual(cache["optimum"]["all"]["hits"], cache["store"]["all"]["hits"])
        everything = self.ok("trace", path, "--json").json()["caches"][-1]
        self.assertEqual(everything["bytes"], out["bytes"])

    def test_routes_made_up(self):
        args = ("trace", "--generate", "zipf:1", "--experts", 16, "--used", 2, "--layers", 4, "--tokens", 100)
        done = self.ok(*args)
        self.assertIn("4 layers, 2 of 16 experts", done.out)
        self.assertEqual(self.ok(*args, "--persist", 0).out, done.out)
        self.assertNotEqual(self.ok(*args, "--seed", 2).out, done.out)
        self.assertNotEqual(self.ok(*args, "--persist", 0.5).out, done.out)

    def test_mistakes(self):
        path = self.record()
        self.refused(2, "one of them", "trace")
        self.refused(2, "one of them", "trace", path, "--generate", "zipf:1")
        self.refused(2, ["--cache", "has no suffix"], "trace", path, "--cache", "100")
        self.refused(2, "--half-life", "trace", path, "--half-life", 0)
        self.refused(2, "--persist", "trace", "--generate", "zipf:1", "--persist", 2)
        for text in ("zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:nan", "zipf:1x", "flat:1"):
            self.refused(2, "wanted zipf:S", "trace", "--generate", text)
        self.refused(2, "--used is 9", "trace", "--generate", "zipf:1", "--used", 9, "--experts", 8)
        self.refused(1, "none", "trace", self.folder / "none")
        self.refused(1, ["cut", "line"], "trace", self.file("cut", path.read_bytes().rpartition(b" ")[0]))
        self.refused(1, ["model.gguf", "line 1"], "trace", self.file("model.gguf", model().read_bytes()))

    def test_a_dense_model_has_no_routes(self):
        path = self.folder / "routes"
        self.refused(2, ["llama.gguf", "no experts"], "run", "-m", model(), "-p", "x", "-n", 1, "--trace", path)
        self.refused(1, "nowhere", "run", "-m", model(MOE), "-p", "x", "-n", 1, "--trace", self.folder / "nowhere" / "x")
        self.assertEqual(list(self.folder.iterdir()), [])


class Profile(TestCase):
    def test_both_phases_and_where_tokens_went(self):
        path = self.folder / "profile.json"
        run = ("run", "-m", model(MOE), "-p", "hello", "-n", 9, "--ignore-eos", "--expert-cache", "100K")
        done = self.ok(*run, "--profile", "--profile-json", path)
        for phase in ("prefill", "decode"):
            self.assertRegex(done.err, rf"profile: {phase}: \d+ tokens, ")
            self.assertRegex(done.err, rf"profile: {phase}: \d+ requests, .* hits")
        phases = json.loads(path.read_text())["phases"]
        self.assertEqual([phase["name"] for phase in phases], ["prefill", "decode"])
        self.assertEqual(phases[1]["tokens"], 8)
        for phase in phases:
            counts = [sum(layer["counts"]) for layer in phase["routes"]]
            self.assertEqual(len(set(counts[:-1])), 1)  # every token, but in the last layer only those that are sampled from
            self.assertEqual(counts[-1] * (phase["tokens"] if phase["name"] == "prefill" else 1), counts[0])
            self.assertEqual(sum(counts), phase["expert_selections"])
            experts = phase["experts"]
            ways = ("hits", "joined", "foreseen", "misses")
            self.assertEqual(sum(experts[way] for way in ways), experts["requests"])

    def test_a_path_that_cannot_be_written_is_known_before_the_work(self):
        path = self.folder / "nowhere" / "x"
        self.refused(1, "nowhere", "run", "-m", model(MOE), "-p", "x", "-n", 1, "--profile-json", path)
