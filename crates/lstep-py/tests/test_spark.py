"""Scores on a local Spark: the same bits as without it."""

import datetime
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import lstep

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pandas", reason="pandas is not installed, which Spark needs")
pytest.importorskip("pyarrow", reason="pyarrow is not installed, which Spark needs")
pytestmark = pytest.mark.filterwarnings("ignore:::pyspark")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("there is no Java, which Spark needs", allow_module_level=True)


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = pyspark.sql.SparkSession.builder.master("local[2]").appName("lstep")
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "40")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def model(stream):
    settings = {"protocol.step": 100}
    return lstep.train(stream, "lstep-pair", epochs=1, settings=settings, progress=False)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.lstep"
    model.save(path)
    return path


def frame(spark, rows, schema, partitions=3):
    return spark.createDataFrame(rows, schema).repartition(partitions)


def test_the_likeliest_destinations_are_those_of_the_model(spark, model, path):
    sources = [*range(150), 7, 100_000]
    users = frame(spark, [(source,) for source in sources], "user int")
    found = lstep.spark.top_k(users, path, 5, src="user")
    assert found.dtypes == [
        ("user", "int"), ("rank", "bigint"), ("destination", "bigint"), ("score", "double"),
        ("probability", "double"), ("known", "boolean"),
    ]
    expected = model.top_k(sources, 5)
    names = ("source", "rank", "destination", "score", "probability", "known")
    rows = sorted(zip(*(expected[name].tolist() for name in names)))
    assert sorted(tuple(row) for row in found.collect()) == rows
    assert len(rows) == 5 * 152 and not rows[-1][-1], "a newcomer, and one who is asked twice"


def test_scores_are_those_of_the_model_however_rows_are_partitioned(spark, model, path):
    draw = np.random.default_rng(1)
    pairs = np.stack([draw.integers(0, 160, 500), draw.integers(150, 360, 500)])
    times = 2_000.0 + draw.integers(0, 100, 500) / 4
    rows = list(zip(range(500), *pairs.tolist(), times.tolist()))
    for partitions in (1, 4):
        table = frame(spark, rows, "row int, src long, dst long, time double", partitions)
        found = lstep.spark.score(table, path).orderBy("row").toPandas()
        assert list(found) == ["row", "src", "dst", "time", "score"]
        assert (found["score"].to_numpy() == model.score(*pairs, times)).all()
        found = lstep.spark.score(table, model, time=None, into="now").orderBy("row").toPandas()
        assert (found["now"].to_numpy() == model.score(*pairs)).all()


def test_text_and_dates_stay_as_they_came(spark, tmp_path):
    draw = np.random.default_rng(2)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    times = [start + datetime.timedelta(minutes=minute) for minute in range(400)]
    src = [f"{number:03}" for number in draw.integers(0, 20, 400)]
    dst = [f"page {number}" for number in draw.integers(0, 9, 400)]
    letters = lstep.Stream(src, dst, np.array([time.replace(tzinfo=None) for time in times], "M8"))
    settings = {"protocol.step": 20}
    model = lstep.train(letters, "lstep-pair", epochs=1, settings=settings, progress=False)
    users = frame(spark, [(one,) for one in sorted(set(src))], "`the user` string")
    found = lstep.spark.top_k(users, model, 3, src="the user", explain=True, exclude_known=True)
    assert found.dtypes[0] == ("the user", "string") and found.dtypes[2][1] == "string"
    expected = model.top_k(sorted(set(src)), 3, explain=True, exclude_known=True)
    rows = sorted(zip(*(list(expected[name]) for name in ("source", "rank", "destination", "why"))))
    columns = ("`the user`", "rank", "destination", "why")
    assert sorted(tuple(row) for row in found.select(*columns).collect()) == rows
    later = [time + datetime.timedelta(days=1) for time in times[:50]]
    rows = list(zip(src[:50], dst[:50], later))
    table = frame(spark, rows, "who string, what string, at timestamp")
    found = lstep.spark.score(table, model, src="who", dst="what", time="at").toPandas()
    asked = model.score(found["who"], found["what"], found["at"])
    assert (found["score"] == asked).all()
    # A file does not say that its ids were text, but the column of sources does.
    digits = lstep.Stream(["1", "2"] * 100, ["3", "4"] * 100, range(200))
    path = tmp_path / "digits.lstep"
    # Two destinations are too few for a ranking.
    asked = {"purpose": "benchmark", "epochs": 1, "settings": settings, "progress": False}
    lstep.train(digits, "lstep-pair", **asked).save(path)
    found = lstep.spark.top_k(frame(spark, [("1",)], "src string", 1), path, 1).collect()
    assert [(row["src"], row["destination"]) for row in found] == [("1", "3")]


def test_the_command_writes_the_same_file(spark, path, tmp_path, command):
    import pyarrow.parquet

    out = tmp_path / "recs.parquet"
    arguments = [command, "score", str(path), "--all", "--top", "10", "--out", str(out), "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = pyarrow.parquet.read_table(out)
    assert json.loads(done.stdout)["rows"] == theirs.num_rows
    users = spark.createDataFrame(theirs.select(["source"]).to_pandas().drop_duplicates())
    found = lstep.spark.top_k(users.repartition(3), path, 10, src="source")
    ours = found.orderBy("source", "rank").toPandas()
    expected = theirs.to_pandas().sort_values(["source", "rank"], ignore_index=True)
    assert list(ours) == list(expected) and (ours == expected).all(axis=None)


def test_what_cannot_be_asked_is_refused_before_spark_starts(spark, model, path, tmp_path):
    table = frame(spark, [(1, 150, 0.5)], "user int, item int, price double", 1)
    with pytest.raises(lstep.InputError, match="no column 'src'; it has 'user'.* src=") as error:
        lstep.spark.top_k(table, path)
    assert error.value.column == "src"
    with pytest.raises(lstep.InputError, match="'price' is of type double, which is no id"):
        lstep.spark.top_k(table, path, src="price")
    with pytest.raises(lstep.InputError, match="no column 'when'"):
        lstep.spark.score(table, path, src="user", dst="item", time="when")
    with pytest.raises(lstep.InputError, match="'score' already.*into="):
        scored = table.withColumnRenamed("price", "score")
        lstep.spark.score(scored, path, src="user", dst="item")
    with pytest.raises(lstep.InputError, match="'rank' of their own"):
        lstep.spark.top_k(table.withColumnRenamed("user", "rank"), path, src="rank")
    with pytest.raises(lstep.Error, match="absent"):
        lstep.spark.top_k(table, tmp_path / "absent", src="user")
    with pytest.raises(lstep.FileError, match="cannot fetch file:///absent.lstep"):
        lstep.spark.top_k(table, "file:///absent.lstep", src="user")
    with pytest.raises(lstep.ConflictError, match="later time"):
        lstep.spark.top_k(table, path, src="user", at=1.0)
    with pytest.raises(lstep.SettingError, match="at least one"):
        lstep.spark.top_k(table, path, 0, src="user")
    with pytest.raises(lstep.InputError, match="is not Spark's"):
        lstep.spark.top_k(table.toPandas(), path, src="user")


def test_an_empty_cell_is_told_by_the_worker(spark, path):
    table = frame(spark, [(1,), (None,)], "src int", 1)
    with pytest.raises(Exception, match='row 1, column "sources": is empty'):
        lstep.spark.top_k(table, path).collect()


def test_spark_fetches_a_model_by_its_address(spark, model, path):
    table = frame(spark, [(0,), (1,)], "src int", 1)
    found = lstep.spark.top_k(table, path.as_uri(), 2, candidates=[150, 151]).toPandas()
    assert (found["score"] == model.top_k([0, 1], 2, candidates=[150, 151])["score"]).all()


def test_a_model_is_sent_once(spark, model, path):
    table = frame(spark, [(0,)], "src int", 1)
    lstep.spark.top_k(table, path)
    sent = len(lstep.spark._SHIPPED)
    lstep.spark.top_k(table, model)
    lstep.spark.score(table.selectExpr("src", "150 as dst"), path)
    assert len(lstep.spark._SHIPPED) == sent
