"""How far an engine's log-probabilities are from the reference's. The numbers of goldens and of compare_logits.py.

Position 0 is left out everywhere: models without BOS lose it to the massive activations of a first token, whatever
computes them in 8 bits.
"""
import math
from dataclasses import dataclass, field

import numpy as np

from reference import log_softmax

N_TOP = 10  # tokens per position in the committed references
ROWS = 64  # at once in float64


@dataclass
class Distance:
    """Per position, from position 1 on. `difference` has one entry less than there are positions."""

    difference: list = field(default_factory=list)  # engine's minus reference's log-probability of the next token
    reference: list = field(default_factory=list)  # the reference's
    kl: list = field(default_factory=list)  # of the whole vocabulary; empty when it is not known
    kl_top: list = field(default_factory=list)  # of the N_TOP best of the reference and the rest as one
    same_best: list = field(default_factory=list)

    def extend(self, other):
        for name in ("difference", "reference", "kl", "kl_top", "same_best"):
            getattr(self, name).extend(getattr(other, name))

    def summary(self):
        d = np.array(self.difference)
        out = {"mean_abs": float(np.abs(d).mean()), "max_abs": float(np.abs(d).max())}
        if self.kl:
            out["kl"] = float(np.mean(self.kl))
        out |= {"kl_top": float(np.mean(self.kl_top)), "same_best": float(np.mean(self.same_best))}
        nll = -(np.array(self.reference) + d)
        # Both engines see the same tokens, so the error of the difference of the means is that of the differences.
        error = float(d.std() / math.sqrt(len(d)))
        perplexity = float(np.exp(nll.mean()))
        return out | {"perplexity": perplexity, "log_perplexity_change": float(-d.mean()), "error": error}


def pooled(distances):
    total = Distance()
    for distance in distances:
        total.extend(distance)
    return total


def kl_of_best(top_logprobs, engine_logprobs):
    """KL of the distributions {the best tokens, all others}, [n]; both arguments [n, tokens]."""
    p, q = np.exp(top_logprobs), np.exp(engine_logprobs)
    rest_p, rest_q = np.maximum(1 - p.sum(-1), 1e-12), np.maximum(1 - q.sum(-1), 1e-12)
    return (p * (top_logprobs - engine_logprobs)).sum(-1) + rest_p * np.log(rest_p / rest_q)


def of_rows(ids, top, log_probs, logits):
    """log_probs: f32 or f64 [n, n_vocab] of the reference, or None; logits: an iterable of the engine's rows;
    top: of the reference, per position [[id, logprob], ...]."""
    out, block, start = Distance(), [], 0
    for row in logits:
        block.append(row)
        if len(block) == ROWS or start + len(block) == len(ids):
            out.extend(_of_block(ids, top, log_probs, np.stack(block), start))
            start += len(block)
            block = []
    if start != len(ids):
        raise ValueError(f"{start} rows of logits for {len(ids)} tokens")
    return out


def _of_block(ids, top, log_probs, logits, start):
    z = log_softmax(logits.astype(np.float64))
    rows = np.arange(len(z))
    best = [top[start + row][:N_TOP] for row in rows]
    top_ids = np.array([[i for i, _ in row] for row in best])
    top_lp = np.array([[p for _, p in row] for row in best])
    out = Distance()
    out.kl_top = kl_of_best(top_lp, z[rows[:, None], top_ids]).tolist()
    out.same_best = (z.argmax(-1) == top_ids[:, 0]).tolist()
    following = np.asarray(ids[start + 1 : start + 1 + len(z)])
    got = z[rows[: len(following)], following]
    if log_probs is not None:
        r = np.asarray(log_probs[start : start + len(z)], np.float64)
        out.kl = (np.exp(r) * (r - z)).sum(-1).tolist()
        out.reference = r[rows[: len(following)], following].tolist()
        out.difference = (got - out.reference).tolist()
    else:
        out.difference = got.tolist()  # the caller knows the reference's
    if start == 0:
        out.kl, out.kl_top, out.same_best = out.kl[1:], out.kl_top[1:], out.same_best[1:]
        out.reference, out.difference = out.reference[1:], out.difference[1:]
    return out


def of_committed(golden, logits):
    """Distance of rows of logits from a committed reference, which has no whole vocabulary."""
    out = of_rows(golden["tokens"], golden["top"], None, logits)
    out.reference = list(golden["logprobs"][1:])
    out.difference = [got - want for got, want in zip(out.difference, out.reference)]
    return out


def of_json(golden, scores):
    """Distance of what `stoker perplexity --json --top N` prints. A token that is not among its N best is taken to be
    as probable as the last of them, which makes the distance smaller, never larger."""
    if scores["tokens"] != golden["tokens"]:
        raise ValueError("the engine scored other tokens")
    out = Distance(reference=list(golden["logprobs"][1:]))
    out.difference = [got - want for got, want in zip(scores["logprobs"][1:], out.reference)]
    for want, got in list(zip(golden["top"], scores["top"]))[1:]:
        known, least = {i: p for i, p in got}, got[-1][1]
        engine = np.array([[known.get(i, least) for i, _ in want[:N_TOP]]])
        out.kl_top.append(float(kl_of_best(np.array([[p for _, p in want[:N_TOP]]]), engine)[0]))
        out.same_best.append(got[0][0] == want[0][0])
    return out
