#!/usr/bin/env python3
"""Who may include whom (the arrows at the top of docs/architecture.md), and that there is one forward pass.

usage: layering_test.py        Standard library only.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORWARD = {"src/model/forward.h", "src/model/forward.cc"}
MAY_DECLARE_FORWARD = {"src/model/forward.h", "src/model/entry.h"}

ARROW = re.compile(r"^(\w+) .*?(?:-> ([\w ]+))?$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
RUNS_A_STEP = re.compile(r"\b\w*step\w*(?:\[[^\]]*\])?\s*(?:\.|->)\s*run\s*\(", re.IGNORECASE)
FORWARD_FUNCTION = re.compile(r"\bforward\w*\s*\(")


def arrows(document):
    """module: what it may include, itself and what those may include too."""
    block = document.split("```")[1]
    direct = {}
    for line in block.strip().splitlines():
        module, targets = ARROW.match(line.rstrip()).groups()
        direct[module] = (targets or "").split()
    allowed = {}
    for module in direct:  # from the bottom up
        allowed[module] = {module}.union(*(allowed[target] for target in direct[module]))
    return allowed


def wrong_includes(files, allowed):
    """A line for each include that no arrow allows. `files`: path below src: text."""
    out = []
    for path, text in files.items():
        module = path.split("/")[1]
        for target in INCLUDE.findall(text):
            if module not in allowed:
                out.append(f"{path}: docs/architecture.md has no module {module}")
            elif target.split("/")[0] not in allowed[module]:
                out.append(f"{path}: includes {target}; {module} may include {', '.join(sorted(allowed[module]))}")
    return out


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def second_forwards(files):
    """A line for each place that runs a plan's steps, or offers to, besides the one forward pass and its thin wrappers."""
    out = []
    for path, text in files.items():
        code = without_comments(text)
        if path not in FORWARD and RUNS_A_STEP.search(code):
            out.append(f"{path}: runs a step of a plan; only {' and '.join(sorted(FORWARD))} do")
        if path.endswith(".h") and path not in MAY_DECLARE_FORWARD and FORWARD_FUNCTION.search(code):
            out.append(f"{path}: declares a forward pass; {' and '.join(sorted(MAY_DECLARE_FORWARD))} have them")
    return out


class Layering(unittest.TestCase):
    def setUp(self):
        paths = sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".h", ".cc", ".inc"))
        self.files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
        self.files = {path: text for path, text in self.files.items() if path.count("/") > 1}
        self.allowed = arrows((ROOT / "docs" / "architecture.md").read_text("utf-8"))

    def test_includes(self):
        self.assertGreater(len(self.files), 100)
        self.assertEqual({path.split("/")[1] for path in self.files}, set(self.allowed))
        self.assertEqual(wrong_includes(self.files, self.allowed), [])

    def test_includes_start_at_src(self):
        for path, text in self.files.items():
            for target in INCLUDE.findall(text):
                self.assertTrue((ROOT / "src" / target).is_file(), f"{path}: {target} is no path below src")

    def test_one_forward(self):
        self.assertEqual(second_forwards(self.files), [])
        for path in FORWARD - {"src/model/forward.h"}:
            self.assertRegex(without_comments(self.files[path]), RUNS_A_STEP)  # the pattern finds what it looks for

    def test_arrows_are_read(self):
        allowed = arrows("x\n```\na   the ground\nb   on it   -> a\nc   more   -> b\nd   both   -> a c\n```\n")
        self.assertEqual(allowed, {"a": {"a"}, "b": {"a", "b"}, "c": {"a", "b", "c"}, "d": {"a", "b", "c", "d"}})

    def test_planted_faults_are_found(self):
        planted = {"src/gguf/x.cc": '#include <map>\n#include "model/plan.h"\n#include "base/file.h"\n'}
        self.assertEqual(len(wrong_includes(planted, self.allowed)), 1)
        self.assertEqual(len(wrong_includes({"src/new/x.cc": '#include "base/file.h"\n'}, self.allowed)), 1)
        self.assertEqual(len(second_forwards({"src/engine/x.cc": "for (auto& step : plan.steps) step.run(step, exec, worker);"})), 1)
        self.assertEqual(len(second_forwards({"src/engine/x.cc": "plan.steps[i].run(plan.steps[i], e, w);"})), 1)
        self.assertEqual(len(second_forwards({"src/model/x.h": "Result<Row> forward_fast(int32_t token);"})), 1)
        self.assertEqual(second_forwards({"src/model/x.h": "// forward(x)\nusing std::forward<T>(t);"}), [])


if __name__ == "__main__":
    unittest.main()
