"""Medians, spreads and ratios of bench/peers, for the screen and as Markdown."""
import statistics

OURS = "stoker"


def summary(numbers):
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers), "all": numbers}


def ratio(bigger, ours, theirs):
    a, b = statistics.median(ours), statistics.median(theirs)
    pairs = [x / y if bigger else y / x for x, y in zip(ours, theirs)]
    return {"median": a / b if bigger else b / a, "min": min(pairs), "max": max(pairs)}


def summarize(unit, bigger, values):
    """Of one test, from {engine name: numbers}; "ratios" by peer, when stoker took part."""
    out = {"unit": unit, "engines": {name: summary(numbers) for name, numbers in values.items()}}
    ours = values.get(OURS)
    others = {name: numbers for name, numbers in values.items() if name != OURS}
    out["ratios"] = {name: ratio(bigger, ours, numbers) for name, numbers in others.items()} if ours else {}
    return out


def print_test(test, found):
    cells = [f"{name} {r['median']:.1f} ({r['min']:.1f}-{r['max']:.1f})" for name, r in found["engines"].items()]
    ratios = [f"{r['median']:.2f} ({r['min']:.2f}-{r['max']:.2f})" for r in found["ratios"].values()]
    settings = [f"{name}: {s}" for name, s in found.get("settings", {}).items() if s != "as it is"]
    failures = [f"{name} failed: {why}" for name, why in found.get("failures", {}).items()]
    line = f"  {test:18} {found['unit']:4} " + "  ".join(f"{cell:36}" for cell in cells)
    print(line, "ratio " + ", ".join(ratios) if ratios else "", *settings, *failures, flush=True)


def short(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def markdown(models):
    """A table with one column per engine and the ratio to the best peer of each row."""
    rows = [(model, test, found) for model, tests in models.items() for test, found in tests.items()]
    names = list(dict.fromkeys(name for _, _, found in rows for name in found["engines"]))
    yield "| model | | " + " | ".join(names) + " | ratio to the best peer |"
    yield "|---" * (len(names) + 3) + "|"
    for model, test, found in rows:
        cells = [short(found["engines"][name]["median"]) if name in found["engines"] else "–" for name in names]
        best = min(found["ratios"].values(), key=lambda r: r["median"], default=None)
        shown = f"{best['median']:.2f} ({best['min']:.2f}–{best['max']:.2f})" if best else ""
        yield " | ".join(["| " + model, f"{test}, {found['unit']}", *cells, shown]) + " |"
