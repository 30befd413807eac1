"""Scores on Ray: a model's answers for the rows of a ``ray.data.Dataset``, batch after batch.

The model is put into Ray's object store, which sends it to every machine once; each worker opens it
once. The scores are those of `lstep.Model`, to the last bit. Ray is not imported before it is used;
workers need this package, numpy and pyarrow.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from ._batches import Score, TopK, arrow_types, missing_package, opened, use_threads_of_a_task
from .errors import InputError
from .model import Model


def score(
    ds: Any,
    model: Model | str | PathLike[str],
    *,
    src: str = "src",
    dst: str = "dst",
    time: str | None = "time",
    into: str = "score",
    **options: Any,
) -> Any:
    """The dataset with a score for each row; higher is likelier, and only the order counts.

    ``model`` is a trained model, a file that `Model.save` or ``lstep export`` wrote, or the folder
    of a run. ``src``, ``dst`` and ``time`` name columns. Without a column of times it is asked
    about the moment after the last event. Other arguments are those of ``map_batches``:
    ``concurrency``, ``batch_size``.
    """
    return _mapped(ds, opened(model), Score(src, dst, time, into), options)


def top_k(
    ds: Any,
    model: Model | str | PathLike[str],
    k: int = 10,
    *,
    src: str = "src",
    at: Any = None,
    candidates: Any = None,
    exclude_known: bool = False,
    explain: bool = False,
    **options: Any,
) -> Any:
    """The ``k`` likeliest destinations of each row's source, as a dataset.

    It has the column ``src`` as it came, ``rank``, ``destination``, ``score``, ``probability`` if
    the model is for ranking, ``known``, and with ``explain`` also ``why``. Other arguments are those of `Model.top_k` and of
    ``map_batches``.
    """
    found = opened(model)
    job = TopK(src, k, at, candidates, exclude_known, explain).of(found)
    return _mapped(ds, found, job, options)


class _Worker:
    """Answers batches, in an actor of Ray."""

    def __init__(self, model: Any, job: Score | TopK) -> None:
        import ray

        use_threads_of_a_task()
        self._model, self._job = ray.get(model), job

    def __call__(self, table: Any) -> Any:
        self._job.check(arrow_types(table.schema))
        return self._job(self._model, table)


def _mapped(ds: Any, model: Model, job: Score | TopK, options: dict[str, Any]) -> Any:
    try:
        import ray
    except ImportError:
        raise missing_package("ray[data]") from None
    if not hasattr(ds, "map_batches"):
        remedy = "give a ray.data.Dataset, or ask the model itself about tables in memory"
        raise InputError(
            f"{type(ds).__module__}.{type(ds).__name__} is not Ray's: {remedy}",
            problem="is not Ray's", remedy=remedy,
        )
    # What is known of the columns is checked here; else the workers do it.
    schema = getattr(ds.schema(fetch_if_missing=False), "base_schema", None)
    if type(schema).__module__.startswith("pyarrow"):
        job.check(arrow_types(schema))
    asked: dict[str, Any] = {"batch_size": 10_000, **options}
    arguments = ray.put(model), job
    return ds.map_batches(_Worker, fn_constructor_args=arguments, batch_format="pyarrow", **asked)
