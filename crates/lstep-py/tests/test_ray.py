"""Scores on a local Ray: the same bits as without it."""

import os
import sys

import numpy as np
import pytest

import lstep

ray = pytest.importorskip("ray", reason="ray is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed, which Ray's data need")
pytest.importorskip("pandas", reason="pandas is not installed, which Ray's data need")

pytestmark = pytest.mark.filterwarnings("ignore:::ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # A machine that is busy starts Ray's agents late.
    os.environ["RAY_agent_register_timeout_ms"] = "120000"
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def model(stream):
    settings = {"protocol.step": 100}
    return lstep.train(stream, "lstep-pair", epochs=1, settings=settings, progress=False)


def dataset(**columns):
    return ray.data.from_arrow(pyarrow.table(columns)).repartition(3)


def test_the_likeliest_destinations_are_those_of_the_model(model):
    sources = [*range(150), 7, 100_000]
    users = dataset(user=pyarrow.array(sources, type=pyarrow.int32()))
    found = lstep.ray.top_k(users, model, 5, src="user", batch_size=40).to_pandas()
    expected = model.top_k(sources, 5)
    names = ("source", "rank", "destination", "score", "probability", "known")
    rows = sorted(zip(*(expected[name].tolist() for name in names)))
    assert sorted(found.itertuples(index=False, name=None)) == rows
    assert list(found) == ["user", *names[1:]]


def test_scores_are_those_of_the_model(model, tmp_path):
    draw = np.random.default_rng(1)
    src, dst = draw.integers(0, 160, 500), draw.integers(150, 360, 500)
    times = 2_000.0 + draw.integers(0, 100, 500) / 4
    model.save(tmp_path / "model.lstep")
    pairs = dataset(src=src.astype(str), dst=dst.astype(str), time=times)
    found = lstep.ray.score(pairs, tmp_path / "model.lstep").to_pandas()
    assert (found["score"] == model.score(found["src"], found["dst"], found["time"])).all()
    assert sorted(found["score"]) == sorted(model.score(src, dst, times))


def test_what_cannot_be_asked_is_refused(model):
    table = dataset(user=[1, 2], price=[0.5, 1.0])
    with pytest.raises(Exception, match="no column 'src'; it has 'user'"):
        lstep.ray.top_k(table, model).to_pandas()
    with pytest.raises(Exception, match="'price' is of type double, which is no id"):
        lstep.ray.top_k(table, model, src="price").to_pandas()
    with pytest.raises(lstep.InputError, match="is not Ray's"):
        lstep.ray.score({"src": [1]}, model)
    with pytest.raises(lstep.ConflictError, match="later time"):
        lstep.ray.top_k(table, model, src="user", at=1.0)
    with pytest.raises(lstep.Error, match="absent"):
        lstep.ray.top_k(table, "absent", src="user")
