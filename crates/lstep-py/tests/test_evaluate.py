"""Python models under every protocol, and what a model may not do."""

import pickle
import threading

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
