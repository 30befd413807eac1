"""Training, trained models in use, and the same bits as the command."""

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
    found = trained.evaluate(negatives="random", baselines=True)
    assert {"lstep-pair", "edgebank"} <= {row["model"] for row in found} | {"edgebank"}
    assert found[0]["ap"] > 0.5
    assert repr(trained) == 'Model("lstep-pair")' or "lstep" in repr(trained)
    assert "epochs = 1" in trained.settings


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


def test_the_command_and_python_give_the_same_bits(stream, tmp_path, command):
    table = tmp_path / "letters.csv"
    columns = zip(stream.sources, stream.destinations, stream.times)
    lines = [f"{source},{target},{time}" for source, target, time in columns]
    table.write_text("\n".join(["source,target,time", *lines]) + "\n")

    def run(*arguments):
        done = subprocess.run([command, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    asked = "--model", "edgebank", "--protocol", "dyglib", "--json"
    theirs = json.loads(run("evaluate", str(table), *asked))
    ours = lstep.evaluate(stream, "edgebank", "dyglib").report
    timing = ("seconds", "events_per_second")
    for row in [*theirs["results"], *ours["results"]]:
        [row.pop(name) for name in timing]
    assert ours["results"] == theirs["results"]

    sets = ["--set", "train.epochs=1", "--set", "protocol.step=100"]
    run("train", str(table), "--model", "lstep-pair", *sets, "--out", "run")
    lstep.train(stream, "lstep-pair", epochs=1, settings=SETTINGS, out=tmp_path / "ours")
    name = "best.safetensors"
    ours, theirs = (tmp_path / folder / name for folder in ("ours", "run"))
    assert ours.read_bytes() == theirs.read_bytes()
    model = lstep.load(tmp_path / "run")
    pairs = stream.sources[:20], stream.destinations[:20]
    expected = lstep.load(tmp_path / "ours", stream).score(*pairs)
    assert (model.score(*pairs) == expected).all()
