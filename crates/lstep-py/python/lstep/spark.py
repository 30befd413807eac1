"""Scores on Spark: a model's answers for the rows of a DataFrame, partition after partition.

The model's file is sent to every executor once and opened once by each of its Python workers. The
scores are those of `lstep.Model`, to the last bit, however the rows are partitioned. Spark is not
imported before it is used; executors need this package, numpy, pandas and pyarrow.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ._batches import Score, TopK, missing_package, opened, use_threads_of_a_task
from .errors import FileError, InputError
from .model import Model, load


def score(
    df: Any,
    model: Model | str | PathLike[str],
    *,
    src: str = "src",
    dst: str = "dst",
    time: str | None = "time",
    into: str = "score",
) -> Any:
    """The DataFrame with a score for each row; higher is likelier, and only the order counts.

    ``model`` is a trained model, a file that `Model.save` or ``lstep export`` wrote, the folder of
    a run, or the address of a file that Spark can fetch (``hdfs://...``). ``src``, ``dst`` and
    ``time`` name columns. Without a column of times it is asked about the moment after the last
    event. All columns stay as they are; ``into`` names the new one.
    """
    job = Score(src, dst, time, into)
    job.check(_types(df))
    from pyspark.sql.types import DoubleType, StructField, StructType

    _, name = _shipped(df.sparkSession, model)
    schema = StructType([*df.schema.fields, StructField(into, DoubleType())])
    return df.mapInArrow(_OnWorker(name, job), schema)


def top_k(
    df: Any,
    model: Model | str | PathLike[str],
    k: int = 10,
    *,
    src: str = "src",
    at: Any = None,
    candidates: Any = None,
    exclude_known: bool = False,
    explain: bool = False,
) -> Any:
    """The ``k`` likeliest destinations of each row's source, as a DataFrame.

    It has the column ``src`` as it came, ``rank``, ``destination``, ``score``, ``probability`` if
    the model is for ranking, ``known``, and with ``explain`` also ``why``. A source that stands in two rows is answered twice: give
    ``df.select(src).distinct()``. The model is given as in `score`, all else as in `Model.top_k`.
    """
    types = _types(df)
    job = TopK(src, k, at, candidates, exclude_known, explain)
    job.check(types)
    from pyspark.sql import types as sql

    loaded, name = _shipped(df.sparkSession, model)
    job = job.of(loaded)
    job.check(types)
    integers = job.gives_integers(loaded, types[src])
    kinds: dict[str, Any] = {
        "rank": sql.LongType(),
        "destination": sql.LongType() if integers else sql.StringType(),
        "score": sql.DoubleType(),
        "probability": sql.DoubleType(),
        "known": sql.BooleanType(),
        "why": sql.StringType(),
    }
    answers = [sql.StructField(column, kinds[column]) for column in job.columns]
    quoted = "`" + src.replace("`", "``") + "`"
    schema = sql.StructType([df.schema[src], *answers])
    return df.select(quoted).mapInArrow(_OnWorker(name, job), schema)


@dataclass(frozen=True)
class _OnWorker:
    """Answers the batches of a partition, in a Python worker of Spark."""

    model: str
    job: Score | TopK

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        model = None
        for batch in batches:
            if batch.num_rows:
                model = model or _loaded(self.model)
                yield self.job(model, batch)


@lru_cache(maxsize=2)
def _loaded(name: str) -> Model:
    from pyspark import SparkFiles

    use_threads_of_a_task()
    return load(SparkFiles.get(name))


def _types(df: Any) -> dict[str, str]:
    """The types of the columns by name, of what has to be a DataFrame of Spark."""
    if not hasattr(df, "mapInArrow"):
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise missing_package("pyspark") from None
        remedy = "give a DataFrame of Spark, or ask the model itself about tables in memory"
        raise InputError(
            f"{type(df).__module__}.{type(df).__name__} is not Spark's: {remedy}",
            problem="is not Spark's", remedy=remedy,
        )
    return {field.name: field.dataType.simpleString() for field in df.schema.fields}


#: Names of files that applications of Spark have, by application and content.
_SHIPPED: dict[tuple[str, str], str] = {}


def _shipped(session: Any, model: Model | str | PathLike[str]) -> tuple[Model, str]:
    """The model, and the name of its file on the executors."""
    if not isinstance(model, Model) and "://" in fspath(model):
        return _fetched(session, fspath(model))
    found, folder = opened(model), _folder()
    path = folder / "model.lstep"
    found.save(path)
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    name, key = f"lstep-{content}.lstep", (_application(session), content)
    path.replace(folder / name)
    if key not in _SHIPPED:
        if _is_remote(session):
            session.addArtifacts(str(folder / name), file=True)
        else:
            session.sparkContext.addFile(str(folder / name))
        _SHIPPED[key] = name
    return found, name


def _fetched(session: Any, address: str) -> tuple[Model, str]:
    """A model that Spark itself fetches, on every executor."""
    name = address.rstrip("/").rpartition("/")[2]
    if _is_remote(session):
        remedy = "give a file of this machine: Spark Connect sends no others"
        raise InputError(f"{address}: {remedy}", problem="is no file here", remedy=remedy)
    try:
        session.sparkContext.addFile(address)
    except Exception as error:
        remedy = "check the address, and that it is one file (lstep export)"
        first = str(error).strip().partition("\n")[0]
        raise FileError(
            f"Spark cannot fetch {address} ({first}): {remedy}",
            problem="cannot be fetched", remedy=remedy, file=address,
        ) from error
    from pyspark import SparkFiles

    return load(SparkFiles.get(name)), name


def _is_remote(session: Any) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def _application(session: Any) -> str:
    if _is_remote(session):
        return str(session.session_id)
    return str(session.sparkContext.applicationId)


@lru_cache(maxsize=1)
def _folder() -> Path:
    """Files that executors fetch from here, until this process ends."""
    folder = tempfile.mkdtemp(prefix="lstep-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
