"""Training, trained models in use, and the same bits as the command."""

import csv
import json
import os
import pickle
import subprocess
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from models import Learned, Stateful

import lstep

SETTINGS = {"protocol.step": 100}


@pytest.fixture(scope="module")
def trained(stream):
    epochs = []
    model = lstep.train(
        stream, "lstep-pair", epochs=1, settings=SETTINGS, on_epoch=epochs.append, progress=False
    )
    assert len(epochs) == 1 and epochs[0]["epoch"] == 1
    return model


def test_a_trained_model_is_evaluated(trained):
    found = trained.evaluate(baselines=True)
    assert [row["negatives"] for row in found] == ["random"] * len(found)
    assert {"lstep-pair", "heuristics", "edgebank (unlimited)"} <= {row["model"] for row in found}
    best = max(row["mrr"] for row in found.rows[1:])
    assert found.verdict.startswith(f"lstep-pair has MRR {found[0]['mrr']:.4f} (95 % interval ")
    assert "counting (heuristics, " in found.verdict and f"{best:.4f}), by " in found.verdict
    assert str(found).endswith(found.verdict) and "<p>lstep-pair has MRR" in found._repr_html_()
    assert trained.evaluate().verdict is None
    assert found[0]["mrr"] > 0.3 and 0 < found[0]["hits_1"] < found[0]["hits_10"] <= 1
    assert repr(trained) == "Model('lstep-pair', 4,000 events)"
    assert "epochs = 1" in trained.settings and 'purpose = "ranking"' in trained.settings


def test_a_report_is_a_page_that_a_notebook_shows(trained, tmp_path):
    report = trained.report(progress=False)
    assert report.html.startswith("<!doctype html>") and "lstep-pair on letters" in report.html
    assert "Learning" in report.html and len(report.evaluation) > 1
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;') and shown.count("<") == 2
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html


def test_a_benchmark_is_what_a_protocol_of_benchmarks_makes(stream):
    asked = {"epochs": 1, "progress": False}
    model = lstep.train(stream, "heuristics", protocol="dyglib", **asked)
    assert "ranking" not in model.settings
    assert {row["negatives"] for row in model.evaluate()} == {"random", "historical", "inductive"}
    model = lstep.train(stream, "heuristics", purpose="benchmark", step=100, **asked)
    assert "ranking" not in model.settings and "events = 100" in model.settings
    model = lstep.train(stream, "heuristics", step=100, per_event=50, **asked)
    assert "per_event = 50" in model.settings and "questions = 2000" in model.settings
    with pytest.raises(lstep.SettingError, match="ranking or benchmark"):
        lstep.train(stream, purpose="winning")


def test_pairs_are_scored_in_their_order_at_any_time(trained, stream):
    pairs = stream.sources[:50], stream.destinations[:50]
    scores = trained.score(*pairs)
    assert scores.shape == (50,) and np.isfinite(scores).all()
    backwards = trained.score(pairs[0][::-1], pairs[1][::-1])
    assert (backwards[::-1] == scores).all()
    times = stream.times[-1] + 1 + np.arange(50)[::-1]
    later = trained.score(*pairs, times)
    assert (later == trained.score({"src": pairs[0], "dst": pairs[1], "time": times})).all()
    assert np.isfinite(trained.score([10**9], [10**9 + 1])).all(), "newcomers"
    with pytest.raises(lstep.InputError, match="ask about a later time"):
        trained.score([0], [150], [0.5])
    with pytest.raises(lstep.InputError, match="sources and destinations"):
        trained.score([0, 1], [150])
    with pytest.raises(lstep.InputError, match="no column 'dst'"):
        trained.score({"src": [1]})


def test_the_likeliest_destinations_have_names_and_reasons(trained, stream):
    found = trained.top_k([0, 1, 2], 5, explain=True)
    assert len(found) == 15 and found["source"].tolist()[::5] == [0, 1, 2]
    assert (np.diff(found["score"].reshape(3, 5)) <= 0).all()
    assert set(found["destination"].tolist()) <= set(stream.destinations.tolist())
    assert all(found["why"]) and found.rows[0]["rank"] == 1
    later = trained.top_k(0, 3, at=5_000.0, candidates=[150, 151])
    assert len(later) == 2 and later.at == "5000.0"
    with pytest.raises(lstep.ConflictError, match="later time"):
        trained.top_k(0, at=1.0)


def test_new_events_are_observed_and_the_model_travels(trained, stream, tmp_path):
    before = trained.events
    copy = pickle.loads(pickle.dumps(trained))
    path = tmp_path / "model.lstep"
    trained.save(path)
    loaded = lstep.load(path)
    assert (loaded.score([0, 1], [150, 151]) == trained.score([0, 1], [150, 151])).all()
    old = loaded.score([0], [150])
    loaded.observe([0, 0], [150, 999], [2_000.0, 2_001.0])
    assert loaded.events == before + 2 and trained.events == before
    assert loaded.score([0], [150])[0] != old[0]
    assert copy.events == before
    with pytest.raises(lstep.InputError, match="since"):
        loaded.observe([0], [150], [3.0])
    assert loaded.events == before + 2
    with pytest.raises(lstep.SettingError, match="folder of its run"):
        loaded.evaluate()
    with pytest.raises(lstep.Error):
        lstep.load(tmp_path / "absent")


def test_threads_share_a_model(trained):
    found = []

    def ask():
        found.append(trained.score([0, 1, 2], [150, 151, 152]).tolist())

    threads = [threading.Thread(target=ask) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 6 and all(scores == found[0] for scores in found)


def _ask_in_a_process(model):
    return model.score([0, 1], [150, 151]).tolist()


def test_processes_get_a_model(trained):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(_ask_in_a_process, trained).result(120)
    assert found == trained.score([0, 1], [150, 151]).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_process_is_told_to_be_spawned(trained):
    trained.score([0], [150])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            trained.score([0], [150])
            os.write(writer, b"no error")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"spawn" in os.read(reader, 1_000)


def test_a_run_in_a_folder_goes_on_where_it_was_stopped(stream, tmp_path, trained):
    class Enough(Exception):
        pass

    def stop(epoch):
        raise Enough

    with pytest.raises(Enough):
        lstep.train(stream, epochs=2, settings=SETTINGS, out=tmp_path / "run", on_epoch=stop)
    again = lstep.train(stream, epochs=2, settings=SETTINGS, out=tmp_path / "run")
    straight = lstep.train(stream, epochs=2, settings=SETTINGS)
    pairs = [0, 1, 2], [150, 151, 152]
    assert (again.score(*pairs) == straight.score(*pairs)).all()
    opened = lstep.load(tmp_path / "run", stream)
    assert (opened.score(*pairs) == straight.score(*pairs)).all()
    with pytest.raises(lstep.SettingError, match="other settings"):
        lstep.train(stream, epochs=2, out=tmp_path / "run")


def test_what_cannot_be_trained_is_refused(stream):
    with pytest.raises(lstep.SettingError, match="choose one of lstep, lstep-pair"):
        lstep.train(stream, "no such model")
    with pytest.raises(lstep.SettingError, match="train.epoch"):
        lstep.train(stream, settings={"train.epoch": 3})
    with pytest.raises(lstep.SettingError, match="at least 1"):
        lstep.train(stream, epochs=0)


def test_models_are_compared_over_seeds(stream):
    found = lstep.compare(
        stream, ["edgebank", "lstep-pair", Learned, Stateful()], seeds=[0, 1], epochs=1,
        negatives=["random"], step=100, progress=False,
    )
    rows = {row["model"]: row for row in found}
    assert rows["edgebank"]["seeds"] == 1 and rows["lstep-pair"]["seeds"] == 2
    assert rows["Learned"]["seeds"] == 2 and rows["lstep-pair"]["ap std"] >= 0
    assert "±" in found.to_latex("ap")


class TestTheCommandAndPython:
    """The same settings give the same weights, scores and report, to the last bit."""

    @pytest.fixture
    def table(self, stream, tmp_path):
        columns = zip(stream.sources, stream.destinations, stream.times)
        lines = [f"{source},{target},{time}" for source, target, time in columns]
        path = tmp_path / "letters.csv"
        path.write_text("\n".join(["source,target,time", *lines]) + "\n")
        return str(path)

    @pytest.fixture
    def run(self, command, tmp_path):
        def run(*arguments):
            arguments = [str(argument) for argument in arguments]
            done = subprocess.run(
                [command, *arguments], capture_output=True, text=True, cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        return run

    @staticmethod
    def without_times(report):
        """What does not depend on how fast a machine is."""
        for row in [*report["results"], *report.get("baselines", [])]:
            for name in ("seconds", "events_per_second"):
                row.pop(name)
        settings = {**report.get("settings", {})}
        settings.pop("data", None)
        others = ("digest", "threads", "summary", "training", "settings")
        kept = {name: value for name, value in report.items() if name not in others}
        return {**kept, "settings": settings}

    @pytest.mark.parametrize("protocol", ["stream", "dyglib"])
    def test_counting_models_answer_alike(self, protocol, stream, table, run):
        for model in ("edgebank", "poptrack", "heuristics"):
            asked = "--model", model, "--protocol", protocol, "--json"
            theirs = json.loads(run("evaluate", table, *asked))
            ours = lstep.evaluate(stream, model, protocol).report
            assert self.without_times(ours)["results"] == self.without_times(theirs)["results"]

    @pytest.mark.parametrize("protocol", ["stream", "dyglib"])
    def test_a_trained_model_is_the_same(self, protocol, stream, table, run, tmp_path):
        sets = ["--epochs", 1, "--step", 100, "--protocol", protocol]
        run("train", table, "--model", "lstep-pair", *sets, "--out", "run")
        asked = {"epochs": 1, "settings": SETTINGS, "protocol": protocol}
        model = lstep.train(stream, "lstep-pair", out=tmp_path / "ours", **asked)
        ours, theirs = (tmp_path / folder / "best.safetensors" for folder in ("ours", "run"))
        assert ours.read_bytes() == theirs.read_bytes(), "weights"
        report = json.loads((tmp_path / "run" / "report.json").read_text())
        assert self.without_times(model.report().evaluation.report) == self.without_times(report)

        draw = np.random.default_rng(3)
        sources, targets = draw.integers(0, 160, 300), draw.integers(140, 360, 300)
        times = stream.times[-1] + 1.0 + np.arange(300) // 3
        lines = [f"{a},{b},{t}" for a, b, t in zip(sources, targets, times)]
        (tmp_path / "pairs.csv").write_text("\n".join(["source,target,time", *lines]) + "\n")
        run("score", "run", "--pairs", "pairs.csv", "--out", "scores.csv")
        header, *rows = (tmp_path / "scores.csv").read_text().splitlines()
        place = header.split(",").index("score")
        told = np.array([float(row.split(",")[place]) for row in rows])
        assert (model.score(sources, targets, times) == told).all(), "scores"
        assert (lstep.load(tmp_path / "run").score(sources, targets, times) == told).all()

        run("score", "run", "--all", "--top", 5, "--out", "top.csv")
        with open(tmp_path / "top.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        in_memory = lstep.train(stream, "lstep-pair", **asked)
        in_memory.save(tmp_path / "ours.lstep")
        opened = lstep.load(tmp_path / "ours", stream), lstep.load(tmp_path / "ours.lstep")
        numbers = ["score", "probability"] if protocol == "stream" else ["score"]
        for asked_model in (model, in_memory, *opened):
            found = asked_model.top_k(k=5).rows
            assert len(rows) == len(found) == 5 * 150
            assert ("probability" in found[0]) == ("probability" in rows[0])
            for theirs, ours in zip(rows, found):
                names = "source", "rank", "destination"
                assert [theirs[name] for name in names] == [str(ours[name]) for name in names]
                assert [float(theirs[name]) for name in numbers] == [ours[name] for name in numbers]
