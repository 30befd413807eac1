"""Arrow tables through a model: what `lstep.spark` and `lstep.ray` do on their workers.

A job says which columns are asked about. It is sent to workers, so it holds plain values. The rows
of a table change no score of the others, so it does not matter how an engine cuts its data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .errors import InputError, MissingPackageError
from .model import Model, load
from .stream import missing_column

#: Types of Spark and of Arrow, by their names.
_INTEGERS = re.compile(r"(tiny|small|big)?int|u?int\d+")
_IDS = re.compile(
    _INTEGERS.pattern
    + r"|(large_)?string(_view)?( collate .*)?|(var)?char\(\d+\)|dictionary<values=string.*"
)
_TIMES = re.compile(r"float|double|date.*|timestamp.*")


@dataclass(frozen=True)
class Score:
    """A score for each row, in a column of its own."""

    src: str
    dst: str
    time: str | None
    into: str

    def _has_times(self, columns: Container[str]) -> bool:
        """Whether a column of times is asked for. That of the default name need not be there."""
        return self.time is not None and (self.time != "time" or self.time in columns)

    def check(self, types: Mapping[str, str]) -> None:
        """Refuses columns that are missing, or of types that are no ids and no times."""
        _check_ids(types, self.src, "src")
        _check_ids(types, self.dst, "dst")
        if self._has_times(types):
            found = _known(types, str(self.time), "time")
            if not (_TIMES.fullmatch(found) or _IDS.fullmatch(found)):
                raise _no(str(self.time), found, "time", "numbers, dates or ISO 8601 as text")
        if self.into in types:
            remedy = "name another with into="
            raise InputError(
                f"the table has a column {self.into!r} already: {remedy}",
                problem="is there already", remedy=remedy, column=self.into,
            )

    def __call__(self, model: Model, table: Any) -> Any:
        """The table with its scores."""
        import pyarrow

        times = table.column(self.time) if self._has_times(table.schema.names) else None
        scores = model.score(table.column(self.src), table.column(self.dst), times)
        schema = table.schema.append(pyarrow.field(self.into, pyarrow.float64()))
        columns = [*table.columns, pyarrow.array(scores)]
        return type(table).from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class TopK:
    """The likeliest destinations of each row's source, a row for each of them."""

    src: str
    k: int
    at: Any
    candidates: Any
    exclude_known: bool
    explain: bool
    calibrated: bool = False

    def of(self, model: Model) -> TopK:
        """The job with the columns that a model's answers have.

        The model is asked about nobody, so that what it would refuse is refused here.
        """
        return replace(self, calibrated="probability" in self._asked(model, []).columns)

    def gives_integers(self, model: Model, sources: str) -> bool:
        """Whether destinations are integers, for sources of a type."""
        found = self._asked(model, [])["destination"]
        return found.dtype.kind == "i" and _INTEGERS.fullmatch(sources) is not None

    def _asked(self, model: Model, sources: Any) -> Any:
        return model.top_k(
            sources, self.k, at=self.at, candidates=self.candidates,
            exclude_known=self.exclude_known, explain=self.explain,
        )

    @property
    def columns(self) -> list[str]:
        """What it gives for each destination."""
        likely = ["probability"] if self.calibrated else []
        why = ["why"] if self.explain else []
        return ["rank", "destination", "score", *likely, "known", *why]

    def check(self, types: Mapping[str, str]) -> None:
        """Refuses a column that is missing, or whose type is no id, or whose name is taken."""
        _check_ids(types, self.src, "src")
        if self.src in self.columns:
            remedy = "rename it"
            raise InputError(
                f"the answers have a column {self.src!r} of their own: {remedy}",
                problem="is a column of the answers", remedy=remedy, column=self.src,
            )

    def __call__(self, model: Model, table: Any) -> Any:
        """The answers, source after source. Sources are of the type that they came in."""
        import pyarrow

        sources = table.column(self.src)
        found = self._asked(model, sources)
        kind = sources.type
        if pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        if not pyarrow.types.is_integer(kind):
            other = kind
        elif found["destination"].dtype.kind == "i":
            other = pyarrow.int64()
        else:
            other = pyarrow.string()

        def ids(side: str, kind: Any) -> Any:
            cast = int if pyarrow.types.is_integer(kind) else str
            return pyarrow.array([cast(one) for one in found[side].tolist()], type=kind)

        columns = {
            self.src: ids("source", kind),
            "rank": pyarrow.array(found["rank"]),
            "destination": ids("destination", other),
        }
        for name in self.columns[2:]:
            kind = pyarrow.string() if name == "why" else None
            columns[name] = pyarrow.array(found[name], type=kind)
        return type(table).from_pydict(columns)


def arrow_types(schema: Any) -> dict[str, str]:
    """The types of an Arrow schema by their names."""
    return {field.name: str(field.type) for field in schema}


def opened(model: Any) -> Model:
    """A model, or the one of a file or of the folder of a run."""
    return model if isinstance(model, Model) else load(model)


def use_threads_of_a_task() -> None:
    """Lets a worker compute with as many threads as its engine gives to a task.

    Spark and Ray say it in ``OMP_NUM_THREADS``. It counts if nothing was computed before.
    """
    os.environ.setdefault("RAYON_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))


def missing_package(name: str) -> MissingPackageError:
    """What is said where an engine is not installed."""
    remedy = f"pip install {name}"
    return MissingPackageError(
        f"{name} is not installed here: {remedy}", problem="is not installed", remedy=remedy
    )


def _known(types: Mapping[str, str], name: str, argument: str) -> str:
    if name not in types:
        raise missing_column(name, list(types), argument)
    return types[name]


def _check_ids(types: Mapping[str, str], name: str, argument: str) -> None:
    found = _known(types, name, argument)
    if not _IDS.fullmatch(found):
        raise _no(name, found, "id", "integers or text")


def _no(column: str, found: str, what: str, wanted: str) -> InputError:
    problem, remedy = f"is of type {found}, which is no {what}", f"give {wanted}"
    return InputError(
        f"column {column!r} {problem}: {remedy}", problem=problem, remedy=remedy, column=column
    )
