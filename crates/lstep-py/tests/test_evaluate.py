"""Python models under every protocol, and what a model may not do."""

import os
import pickle
import signal
import sys
import threading
import time
import types
from multiprocessing import get_context

import numpy as np
import pytest
from models import First, Honest, Learned, Stateful

import lstep


@pytest.mark.parametrize("protocol", ["stream", "dyglib", "tgb"])
def test_a_model_is_evaluated_under_every_protocol(protocol, stream):
    found = lstep.evaluate(stream, ["edgebank", Honest, Stateful()], protocol)
    models = list(dict.fromkeys(row["model"] for row in found))
    assert models == ["edgebank", "Honest", "Stateful"]
    for row in found:
        assert 0 < row["ap"] <= 1 and row["part"] == "test"
    hashes = {(row["negatives"], row["negatives_sha256"]) for row in found.report["results"]}
    assert len(hashes) == len(found) // 3, "all models answer the same questions"


def test_a_counting_model_of_python_has_the_number_of_the_library(stream):
    class EdgeBank(Stateful):
        def score(self, past, queries):
            return (super().score(past, queries) > 0).astype(float)

    found = lstep.evaluate(stream, ["edgebank", EdgeBank], "dyglib").rows
    for ours, theirs in zip(found[:3], found[3:]):
        assert ours["ap"] == theirs["ap"] and ours["auc"] == theirs["auc"]


def test_the_place_of_a_candidate_tells_nothing(stream):
    honest, first = lstep.evaluate(stream, [Honest, First], negatives="historical").rows
    assert first["ap"] < honest["ap"] + 0.1


def test_a_model_is_trained_by_its_hook_before_it_is_asked(stream):
    seen = []

    class Watching(Learned):
        def train(self, past, batches):
            super().train(past, batches)
            seen.append((len(batches), self.weight, past.horizon))

    lstep.evaluate(stream, Watching, "stream", negatives="random")
    (batches, weight, horizon) = seen[0]
    assert batches == horizon / 200 and 0.5 < weight < 1


def test_a_past_answers_only_before_its_horizon_and_while_it_is_open(stream):
    kept = []

    class Curious(Honest):
        def score(self, past, queries):
            sources, _, times = queries.pairs()
            nodes, at, events = past.recent(sources, times, 5)
            assert nodes.shape == at.shape == events.shape == (len(sources), 5)
            known = nodes >= 0
            assert (at[known] < np.repeat(times[:, None], 5, 1)[known]).all()
            assert (events < past.horizon).all()
            assert (past.degree(sources, times) >= known.sum(1)).all()
            with pytest.raises(ValueError, match="ask about times up to that"):
                past.recent(sources, times + 1e6, 5)
            with pytest.raises(ValueError, match="different lengths"):
                past.recent(sources, times[:-1], 5)
            assert past.node_features(sources).shape == (len(sources), 0)
            kept.append(past)
            return super().score(past, queries)

    lstep.evaluate(stream, Curious, negatives="random")
    assert kept and repr(kept[0]) == "Past(closed)"
    with pytest.raises(RuntimeError, match="this past is closed"):
        kept[0].horizon


def test_what_score_raises_comes_out_as_it_was(stream):
    class Wrong(Honest):
        def __init__(self, give):
            self.give = give

        def score(self, past, queries):
            return self.give(super().score(past, queries))

    def fails(scores):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        lstep.evaluate(stream, Wrong(fails))
    with pytest.raises(lstep.InputError, match="candidates and scores"):
        lstep.evaluate(stream, Wrong(lambda scores: scores[:-1]))
    with pytest.raises(lstep.NumericError, match="finite"):
        lstep.evaluate(stream, Wrong(lambda scores: scores * np.nan))
    with pytest.raises(TypeError, match="not numbers"):
        lstep.evaluate(stream, Wrong(lambda scores: "high"))
    with pytest.raises(KeyboardInterrupt):
        lstep.evaluate(stream, Wrong(lambda scores: (_ for _ in ()).throw(KeyboardInterrupt())))
    for kind in (np.float32, np.int64):
        assert len(lstep.evaluate(stream, Wrong(lambda scores, kind=kind: scores.astype(kind))))
    assert len(lstep.evaluate(stream, Wrong(lambda scores: scores.tolist())))


def test_what_any_other_method_raises_comes_out_as_it_was(stream, small_audit):
    class Mine(Exception):
        pass

    def fails(*_):
        raise Mine("here")

    for name in ("observe", "reset", "prepare", "train", "fork"):
        body = {name: staticmethod(fails) if name == "train" else fails}
        model = type("Model", (Honest,), body)
        given = model() if name == "fork" else model
        with pytest.raises(Mine, match="here"):
            lstep.evaluate(stream, given, negatives="random", progress=False)
    for name in ("save", "load"):
        both = {"save": lambda self, path: None, "load": lambda self, path: None}
        model = type("Model", (Honest,), {**both, name: lambda self, path: fails()})
        with pytest.raises(Mine, match="here"):
            lstep.audit(model, stream, **small_audit)
    # Nothing is lost: the next call works.
    assert len(lstep.evaluate(stream, Honest, negatives="random", progress=False)) == 1


def test_arrays_given_to_a_past_may_be_of_any_kind(stream):
    class Careless(Honest):
        def score(self, past, queries):
            sources, candidates, times = queries.pairs()
            expected = past.met(sources, candidates, times)[0]
            twice = np.repeat(sources, 2)[::2]
            twice.flags.writeable = False
            assert (past.met(twice, candidates, times)[0] == expected).all()
            for wrong in (sources.astype(float), sources.tolist(), sources[:, None], None):
                with pytest.raises(TypeError):
                    past.met(wrong, candidates, times)
            for time in (np.nan, np.inf):
                with pytest.raises(ValueError, match="ask about times up to that"):
                    past.degree(sources, np.full_like(times, time))
            nobody = np.full_like(sources, -5)
            assert not past.degree(nobody, times).any()
            return expected

    assert lstep.evaluate(stream, Careless, negatives="random", progress=False)[0]["ap"] > 0.5


def test_ctrl_c_stops_cleanly(stream):
    class Slow(Honest):
        def score(self, past, queries):
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.01)
            return super().score(past, queries)

    with pytest.raises(KeyboardInterrupt):
        lstep.evaluate(stream, Slow, progress=False)
    # Models of the library run without Python; the signal comes while they do.
    for work in (
        lambda: lstep.train(stream, "lstep-pair", epochs=10_000, step=50, progress=False),
        lambda: lstep.evaluate(stream, ["edgebank"] * 10_000, progress=False),
    ):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        timer.join()
    assert len(lstep.evaluate(stream, "edgebank", progress=False)) == 3


def test_progress_is_shown_by_tqdm_if_it_is_there(stream, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, desc, leave):
            self.total, self.desc, self.n, self.closed = total, desc, 0, False
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    lstep.evaluate(stream, [Honest, "edgebank"], negatives="random", progress=True)
    assert [bar.desc for bar in bars][:2] == ["Honest", "edgebank (unlimited)"]
    assert all(bar.closed and bar.n == bar.total > 0 for bar in bars)
    model = lstep.train(stream, "lstep-pair", epochs=2, step=100, progress=True)
    assert {"epoch 1", "epoch 2"} <= {bar.desc for bar in bars}
    model.top_k(k=3, progress=True)
    assert (bars[-1].desc, bars[-1].n) == ("sources", 150)
    shown = len(bars)
    lstep.evaluate(stream, Honest, progress=False)
    assert len(bars) == shown


def test_what_is_no_model_and_what_is_no_option_is_refused(stream):
    with pytest.raises(TypeError, match=r"score\(past, queries\)"):
        lstep.evaluate(stream, object())
    with pytest.raises(lstep.SettingError, match="choose one of lstep"):
        lstep.evaluate(stream, "edgebnak")
    with pytest.raises(lstep.SettingError, match="stream, dyglib or tgb"):
        lstep.evaluate(stream, protocol="dgylib")
    with pytest.raises(lstep.SettingError, match="leave it out"):
        lstep.evaluate(stream, protocol="dyglib", held_out=0.1)
    with pytest.raises(TypeError, match="unknown argument"):
        lstep.evaluate(stream, batch_size=200)
    with pytest.raises(lstep.SettingError, match="name it once"):
        lstep.evaluate(stream, negatives=["random", "random"])


def test_threads_evaluate_one_model_at_once(stream):
    model, found = Stateful(), []

    def work():
        found.append(lstep.evaluate(stream, model, negatives="random", progress=False)[0]["ap"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(found)) == 1 and len(found) == 4


def test_the_exact_negatives_are_given_as_arrays(stream):
    [questions] = lstep.negatives(stream, "dyglib", negatives="random")
    report = lstep.evaluate(stream, "edgebank", "dyglib", negatives="random").report
    assert questions.sha256 == report["results"][0]["negatives_sha256"]
    assert len(questions) == len(questions.sources) == report["results"][0]["events"]
    assert questions.offsets[-1] == len(questions.destinations)
    assert set(questions.destinations) <= set(stream.ids)


def test_a_loop_of_ones_own_gives_the_number_of_the_library(stream):
    """As a PyTorch script would use negatives, splits and metrics."""
    parts = lstep.dyglib.splits(stream)
    questions = lstep.dyglib.negatives(stream, "historical")
    sources, destinations = stream.source_numbers, stream.destination_numbers
    before = np.concatenate([parts["train"], parts["validation"]])
    known = set(zip(sources[before], destinations[before]))
    found = []
    for start, end in zip(questions.steps[:-1], questions.steps[1:]):
        events = questions.events[start:end]
        true = list(zip(sources[events], destinations[events]))
        false = list(
            zip(questions.source_numbers[start:end], questions.destination_numbers[start:end])
        )
        scores = np.array([float(pair in known) for pair in true + false])
        labels = np.repeat([1, 0], len(true))
        found.append(lstep.dyglib.link_prediction_metrics(scores, labels)["average_precision"])
        known |= set(true)
    expected = lstep.evaluate(stream, "edgebank", "dyglib", negatives="historical")[0]["ap"]
    assert np.mean(found) == pytest.approx(expected, abs=1e-12)


def test_ranks_are_those_of_the_benchmark():
    ranks = lstep.dyglib.reciprocal_ranks([0.5, 0.9], [[0.1, 0.7, 0.5], [0.1, 0.2, 0.3]])
    assert ranks.tolist() == pytest.approx([1 / 2.5, 1.0])


@pytest.fixture(scope="module")
def every_result(stream):
    """One result of each job, with how many rows its table has."""
    model = lstep.train(stream, "heuristics", progress=False)
    quiet = {"negatives": "random", "progress": False}
    [questions] = lstep.negatives(stream, "dyglib", negatives="random")
    return {
        "inspect": (stream.inspect(), len(stream.inspect().report)),
        "evaluate": (lstep.evaluate(stream, ["edgebank", Honest], **quiet), 2),
        "audit": (lstep.audit(Honest, stream, step=100, steps=2, rows=20, progress=False), 14),
        "compare": (lstep.compare(stream, ["edgebank", Honest], seeds=[0, 1], **quiet), 2),
        "top_k": (model.top_k([0, 1], 3, explain=True), 6),
        "model.evaluate": (model.evaluate(baselines=True, progress=False), 13),
        "negatives": (questions, len(questions)),
        "stream": (stream, len(stream)),
    }


JOBS = "inspect evaluate audit compare top_k model.evaluate negatives stream".split()


@pytest.mark.parametrize("job", JOBS)
def test_every_result_goes_into_every_kind_of_table(job, every_result):
    found, rows = every_result[job]
    assert len(pytest.importorskip("pandas").DataFrame(found.to_pandas())) == rows
    polars = pytest.importorskip("polars")
    assert found.to_polars().height == polars.DataFrame(found).height == rows
    assert pytest.importorskip("pyarrow").table(found).num_rows == rows


@pytest.mark.parametrize("job", [job for job in JOBS if job not in ("negatives", "stream")])
def test_every_report_is_shown_and_printed(job, every_result):
    found, rows = every_result[job]
    assert found._repr_html_().startswith("<table>")
    assert found._repr_html_().count("<tr>") == rows + 1
    latex = found.to_latex()
    assert latex.count(r"\\") == rows + 1 and latex.startswith(r"\begin{tabular}")
    assert len(str(found).splitlines()) > rows


def test_results_are_tables(stream):
    found = lstep.evaluate(stream, ["edgebank", "poptrack"], progress=True)
    assert len(found.to_pandas()) == len(found) == 6 if _has("pandas") else True
    assert found.to_polars().height == 6 if _has("polars") else True
    assert found.to_latex().startswith("\\begin{tabular}{llllrr")
    assert "random & historical & inductive" in found.to_latex("ap")
    assert found.best()["model"] == "edgebank" and "<th>ap</th>" in found._repr_html_()


def _has(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def test_errors_are_pickled_with_their_fields():
    with pytest.raises(lstep.InputError) as caught:
        lstep.Stream([1, 2], [1, 2], [5, 4])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.row == 1


def test_results_are_pickled(stream, small_audit):
    for found in (
        lstep.evaluate(stream, Honest, progress=False),
        lstep.audit(Honest, stream, **small_audit),
        lstep.negatives(stream, "stream", negatives="random")[0],
        stream.inspect(),
    ):
        again = pickle.loads(pickle.dumps(found))
        assert repr(again) == repr(found) and type(again) is type(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_jobs_in_a_forked_process_are_refused_and_do_not_hang(stream):
    lstep.evaluate(stream, Honest, negatives="random", progress=False)
    with get_context("fork").Pool(1) as pool:
        for job in (_evaluate, _audit, _train):
            with pytest.raises(RuntimeError, match="spawn"):
                pool.apply_async(job, (stream,)).get(60)


def _evaluate(stream):
    lstep.evaluate(stream, Honest, progress=False)


def _audit(stream):
    lstep.audit(Honest, stream, progress=False)


def _train(stream):
    lstep.train(stream, "edgebank", progress=False)
