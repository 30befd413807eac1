"""What Python costs beside the command, and beside a model's own time.

    python crates/lstep-py/benches/overhead.py --command target/release/lstep --uci events.csv.gz

Four figures, each as wall-clock and processor seconds, the fastest of some turns:

1. A Python model whose `score` takes a millisecond, in batches of 200: the share of the evaluation
   that is spent outside `score`. Asked for: below 5 %. Before its first step the library makes the
   protocol's questions, for Python as for the command; that is said separately.
2. `Stream.from_pandas` of 5 million events, beside reading them from Parquet.
3. Scores of a million pairs, beside `lstep score --pairs`.
4. The likeliest ten of all destinations for 10,000 sources, beside `lstep score --all --top 10`.

For 3 and 4 Python and the command open the same exported model, and the command also reads the
pairs and writes its answers, so Python should not be slower at all. Asked for: within 10 %.
"""

import argparse
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import lstep


class OneMillisecond:
    """Takes a millisecond for each call, and notes how long its calls took."""

    spent = 0.0
    calls = 0

    def score(self, past, queries):
        began = time.perf_counter()
        scores = np.zeros(len(queries.candidates))
        while time.perf_counter() - began < 1e-3:
            pass
        OneMillisecond.calls += 1
        OneMillisecond.spent += time.perf_counter() - began
        return scores

    def observe(self, events):
        pass


def processor(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def fastest(turns, work, who=resource.RUSAGE_SELF):
    """The shortest wall-clock time of some turns with its processor time, and the last result."""
    found = []
    for _ in range(turns):
        began, used = time.perf_counter(), processor(who)
        result = work()
        found.append((time.perf_counter() - began, processor(who) - used))
    return min(found), result


def outside(stream, protocol, turns):
    """The share of an evaluation that is not a model's own."""
    (drawing, _), _ = fastest(turns, lambda: lstep.negatives(stream, protocol))
    found = []
    for _ in range(turns):
        OneMillisecond.spent = OneMillisecond.calls = 0
        began = time.perf_counter()
        lstep.evaluate(stream, OneMillisecond, protocol, progress=False)
        whole = time.perf_counter() - began
        found.append((whole - OneMillisecond.spent, whole, OneMillisecond.calls))
    extra, whole, calls = min(found)
    loop = max(extra - drawing, 0.0)
    print(
        f"outside a score of 1 ms, {protocol}: {100 * loop / (whole - drawing):.1f} % of the loop, "
        f"{1e6 * loop / calls:.0f} us for each of {calls} calls; "
        f"{100 * extra / whole:.1f} % of {whole:.3f} s with the {1e3 * drawing:.0f} ms in which "
        "the protocol's questions are made",
        flush=True,
    )


def row(what, python, command):
    said = f"{what:44} Python {python[0]:7.2f} s wall, {python[1]:7.2f} s processor"
    if command is not None:
        ratio = python[0] / command[0]
        said += f"; beside it {command[0]:7.2f} s, {command[1]:7.2f} s: {ratio:.2f}"
    print(said, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", help="the command, built for release; else Python alone")
    parser.add_argument("--uci", help="uci's events; without it a generated stream of its size")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--model", default="lstep-pair")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    draw = np.random.default_rng(0)

    if args.uci:
        stream = lstep.read(args.uci)
    else:
        source = draw.integers(0, 1_900, 59_835)
        stream = lstep.Stream(source, (source * 7 + draw.integers(0, 30, 59_835)) % 1_900,
                              np.arange(59_835))
    for protocol in ("stream", "dyglib"):
        outside(stream, protocol, args.turns)

    folder = Path(tempfile.mkdtemp())
    try:
        import pandas
    except ImportError:
        print("pandas is not installed: from_pandas is not timed")
    else:
        frame = pandas.DataFrame({
            "source": draw.integers(0, 100_000, args.events),
            "target": draw.integers(0, 20_000, args.events),
            "time": np.sort(draw.integers(0, 10**9, args.events)),
        })
        names = {"src": "source", "dst": "target", "time": "time"}
        python, _ = fastest(args.turns, lambda: lstep.Stream.from_pandas(frame, **names))
        frame.to_parquet(folder / "events.parquet")
        command, _ = fastest(args.turns, lambda: lstep.read(folder / "events.parquet", **names))
        row(f"from_pandas, {args.events:,} events (Parquet)", python, command)

    source = draw.integers(0, 10_000, 100_000)
    target = 10_000 + (source * 7 + draw.integers(0, 30, 100_000)) % 1_000
    stream = lstep.Stream(source, target, np.arange(100_000), name="shop")
    model = lstep.train(stream, args.model, epochs=1, progress=False)
    path = folder / "model.lstep"
    model.save(path)
    ask = (draw.integers(0, 10_000, args.pairs), draw.integers(10_000, 11_000, args.pairs),
           np.full(args.pairs, 100_000))
    lines = "\n".join(f"{a},{b},{t}" for a, b, t in zip(*ask))
    (folder / "pairs.csv").write_text(f"source,target,time\n{lines}\n")

    def run(*arguments):
        call = [args.command, "score", str(path), *arguments, "--force"]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    children = resource.RUSAGE_CHILDREN
    python, _ = fastest(args.turns, lambda: lstep.load(path).score(*ask))
    command = None
    if args.command:
        pairs, out = str(folder / "pairs.csv"), str(folder / "scores.parquet")
        command, _ = fastest(args.turns, lambda: run("--pairs", pairs, "--out", out), children)
    row(f"score, {args.pairs:,} pairs", python, command)

    python, found = fastest(args.turns, lambda: lstep.load(path).top_k(k=10, progress=False))
    command = None
    if args.command:
        out = str(folder / "top.parquet")
        ask_all = ("--all", "--top", "10", "--out", out)
        command, _ = fastest(args.turns, lambda: run(*ask_all), children)
    row(f"top 10 of {len(found) // 10:,} sources", python, command)


if __name__ == "__main__":
    main()
