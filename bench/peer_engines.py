"""The engines that bench/peers compares: how each is called, and how its figures are read."""
import json
import pathlib
import re
import subprocess
from dataclasses import dataclass

PROMPT = "The river rises in the mountains, crosses the plain, and reaches the sea near"  # 16 tokens, give or take two


class Failure(Exception):
    """One line for the user."""


@dataclass(frozen=True)
class Test:
    kind: str  # "pp": read a prompt of n tokens; "tg": generate n
    n: int
    depth: int = 0  # tokens that lie in the cache before
    streams: int = 1  # sequences that generate side by side; their tokens are added up

    def __str__(self):
        depth = f" at {self.depth}" if self.depth else ""
        return f"{self.kind}{self.n}{depth}" + (f" x {self.streams}" if self.streams > 1 else "")


@dataclass(frozen=True)
class Setting:
    """Options of a peer that may or may not be faster. Its programs do not spell them alike."""

    name: str
    bench: tuple = ()
    batched: tuple = ()


def output_of(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failure(f"{' '.join(map(str, command))}: exit code {result.returncode}: {last}")
    return result.stdout + "\n" + result.stderr, result.stdout


class Stoker:
    name = "stoker"
    settings = (Setting("as it is"),)

    def __init__(self, binary, threads):
        self.binary, self.threads = binary, str(threads)

    def speed(self, model, test, _):
        sizes = ["-p", str(test.n if test.kind == "pp" else 0), "-n", str(test.n if test.kind == "tg" else 0), "-r", "1"]
        sizes += ["-d", str(test.depth)] if test.depth else []
        sizes += ["-b", str(test.streams)] if test.streams > 1 else []
        _, text = output_of([self.binary, "bench", "-m", model, *sizes, "--threads", self.threads, "--json"])
        rows = [row for row in json.loads(text) if row["test"].startswith(test.kind)]
        if not rows:
            raise Failure(f"{self.binary} bench has no row {test}")
        return rows[-1]["tps_median"]

    def start_command(self, model):
        options = ["-n", "2", "--temp", "0", "--threads", self.threads, "--ctx", "512"]
        return [self.binary, "run", "-m", model, "-p", PROMPT, *options]


class Peer:
    """llama.cpp or ik_llama.cpp, by the path of its llama-bench; the other programs lie beside it."""

    def __init__(self, name, bench, threads):
        self.name, self.bench, self.threads = name, pathlib.Path(bench), str(threads)
        usage = subprocess.run([bench, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.has_depth = "--n-depth" in usage.stdout
        self.settings = (Setting("as it is"),)
        if "--run-time-repack" in usage.stdout:  # ik_llama.cpp
            self.settings += (Setting("-rtr 1", ("-rtr", "1"), ("-rtr",)),)  # -thp and -mqkv gained nothing
        elif "--repack" in usage.stdout:  # llama.cpp, which repacks unless told otherwise
            self.settings += (Setting("--repack 0", ("--repack", "0"), ("--no-repack",)),)

    def speed(self, model, test, setting):
        return self.streams(model, test, setting) if test.streams > 1 else self.single(model, test, setting)

    def single(self, model, test, setting):
        # ik_llama.cpp warms up with one token only: a prompt is read twice, and the second time counts.
        repeats = "2" if test.kind == "pp" and not self.has_depth else "1"
        sizes = ["-p", str(test.n), "-n", "0"] if test.kind == "pp" else ["-p", "0", "-n", str(test.n)]
        if test.depth and self.has_depth:
            sizes += ["-d", str(test.depth)]
        elif test.depth:  # "-gp DEPTH,N" times the N behind a prompt
            sizes = ["-p", "0", "-n", "0", "-gp", f"{test.depth},{test.n}"]
        command = [self.bench, "-m", model, *sizes, "-r", repeats, "-t", self.threads, *setting.bench, "-o", "json"]
        rows = json.loads(output_of(command)[1])
        return rows[-1]["samples_ts"][-1]

    def streams(self, model, test, setting):
        """llama-batched-bench starts each sequence behind a prompt of its own, of at least one token."""
        depth = max(test.depth, 1)
        context = test.streams * -(-(depth + test.n) // 256) * 256
        sizes = ["-npp", str(depth), "-ntg", str(test.n), "-npl", str(test.streams), "-c", str(context)]
        command = [self.bench.with_name("llama-batched-bench"), "-m", model, *sizes, "-t", self.threads, *setting.batched]
        # PP TG B N_KV T_PP S_PP T_TG S_TG T S
        rows = re.findall(r"^\|((?: *[\d.]+ \|){10})$", output_of(command)[0], re.MULTILINE)
        if not rows:
            raise Failure(f"{' '.join(map(str, command))}: no figures")
        return float(rows[-1].split("|")[7])

    def start_command(self, model):
        """Without its warm-up run, which would come before the prompt."""
        completion = self.bench.with_name("llama-completion")
        plain = ["-no-cnv"] if completion.exists() else []  # ik_llama.cpp's llama-cli does not converse unless asked
        program = completion if plain else self.bench.with_name("llama-cli")
        options = ["-n", "2", "--temp", "0", "-t", self.threads, "-c", "512", "--no-warmup"]
        return [program, "-m", model, "-p", PROMPT, *options, *plain, "--no-display-prompt", "--simple-io"]
