"""Columns of tables in the four forms that the library reads, without copies where possible.

A form is a pair: ``("integer", array of int64)``, ``("float", array of float64)``, ``("text",
(values, numbers of values))`` with -1 for an empty cell, or a unit of time (``"s"``, ``"ms"``,
``"us"``, ``"ns"``) with integers counted from 1970. Polars, pyarrow, DuckDB and others are read
through Arrow's C interface, so none of them is imported here. Only pandas is known by its type.
"""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import numpy as np

from . import _core
from .errors import InputError

Form = tuple[str, Any]
UNITS = ("s", "ms", "us", "ns")


def origin(values: object) -> str:
    """The library that a value is from."""
    return type(values).__module__.partition(".")[0]


class ArrowColumn:
    """A column of a table that was taken through Arrow's C interface."""

    def __init__(self, table: _core.ArrowTable, place: int | None) -> None:
        self._table, self._place = table, place

    def form(self, column: str) -> Form:
        """It in one of the forms."""
        return _arrow(self._table.column(self._place), column)


def form(values: Any, column: str) -> Form:
    """A column in one of the forms."""
    if isinstance(values, ArrowColumn):
        return values.form(column)
    if origin(values) == "pandas":
        return _pandas(values, column)
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if not isinstance(values, np.ndarray) and is_arrow(values):
        opened = _core.ArrowTable(values)
        if opened.names() is not None:
            raise _refuse(column, "is a whole table", "give one column")
        return ArrowColumn(opened, None).form(column)
    array = values if isinstance(values, np.ndarray) else _of_sequence(values, column)
    return _numpy(array, column)


def is_arrow(values: object) -> bool:
    """Whether something gives Arrow's capsules."""
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def numbers(values: Any, column: str) -> np.ndarray[Any, Any]:
    """A column of features as doubles."""
    kind, content = form(values, column)
    if kind not in ("integer", "float"):
        raise _refuse(
            column, "holds no numbers, so it cannot be a feature",
            "choose other columns with features=",
        )
    return np.asarray(content, dtype=np.float64)


def columns_of(data: Any) -> Any:
    """The columns of a table by name: of pandas, of a dict, or of whatever gives Arrow's capsules.

    A stream of Arrow is read to its end once.
    """
    if origin(data) != "pandas" and is_arrow(data):
        opened = _core.ArrowTable(data)
        columns: dict[str, ArrowColumn] = {}
        for place, name in enumerate(opened.names() or []):
            columns.setdefault(name, ArrowColumn(opened, place))
        if columns:
            return columns
    elif hasattr(data, "keys") and hasattr(data, "get"):
        return data
    lazy = type(data).__name__ == "LazyFrame"
    remedy = "call collect() first" if lazy else "give a table, or Stream(src, dst, time)"
    problem = "is not computed yet" if lazy else "has no columns by name"
    raise InputError(f"{type(data).__name__} {problem}: {remedy}", problem=problem, remedy=remedy)


NodeTable = tuple[tuple[str, Form], Any, np.ndarray[Any, Any]]


def node_table(given: Any) -> NodeTable | None:
    """Features of nodes: ids, which of them are destinations, and a row of features for each.

    A table has ids in its first column, perhaps a column ``side``, and features in the others. A
    dict has ids as keys. A plain array has the features of node ``i`` in row ``i``.
    """
    if given is None:
        return None
    if isinstance(given, tuple) and len(given) == 3:
        # What a pickled stream has.
        ids, sides, rows = given
        return ("id", form(ids, "id")), sides, np.ascontiguousarray(rows, dtype=np.float64)
    if isinstance(given, dict):
        ids = list(given)
        rows = [as_array(row, f"node_features[{name!r}]") for name, row in given.items()]
        if len({row.shape for row in rows}) > 1:
            raise _no_table("has rows of different lengths", "give each node as many features")
        features = table(np.array(rows).reshape(len(rows), -1), len(rows))
        return ("id", form(ids, "id")), None, features
    if isinstance(given, np.ndarray) or hasattr(given, "detach"):
        rows = as_array(given, "node_features")
        if rows.ndim != 2:
            raise _no_table(f"has the shape {rows.shape}", "give one row for each node")
        numbered = np.arange(len(rows), dtype=np.int64)
        return ("id", ("integer", numbered)), None, np.ascontiguousarray(rows)
    columns = columns_of(given)
    names = list(columns)
    others = [name for name in names[1:] if str(name).lower() != "side"]
    if not others:
        raise _no_table("has no features", "give a table with ids first, then features")
    ids = form(columns[names[0]], str(names[0]))
    sides = [columns[name] for name in names[1:] if name not in others]
    destination = None if not sides else _is_destination(form(sides[0], "side"))
    features = np.stack([numbers(columns[name], str(name)) for name in others], axis=1)
    return (str(names[0]), ids), destination, np.ascontiguousarray(features)


def _is_destination(sides: Form) -> np.ndarray[Any, Any]:
    kind, content = sides
    if kind != "text" or not {*content[0]} <= {"source", "destination"}:
        raise _refuse("side", "has other values", "write source or destination")
    values = np.array([value == "destination" for value in content[0]] + [False])
    return np.ascontiguousarray(values[content[1]])


def _no_table(problem: str, remedy: str) -> InputError:
    return InputError(f"node_features {problem}: {remedy}", problem=problem, remedy=remedy)


def as_array(given: Any, what: str) -> np.ndarray[Any, Any]:
    """Numbers of any library as an array of doubles."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().double().numpy()
    elif not isinstance(given, np.ndarray) and hasattr(given, "to_numpy"):
        given = given.to_numpy()
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        remedy = "choose other columns with features="
        raise InputError(
            f"{what} are not numbers ({error}): {remedy}",
            problem=f"{what} are not numbers",
            remedy=remedy,
        ) from None


def table(features: Any, rows: int) -> Any:
    """Features as a table of doubles, one row for each event; nothing if there are none."""
    if features is None:
        return None
    array = as_array(features, "features")
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[0] != rows:
        raise InputError(
            f"features have the shape {array.shape}, but there are {rows} events: give one row "
            "for each event",
            problem="features do not fit the events",
            remedy="give one row for each event",
        )
    return np.ascontiguousarray(array) if array.shape[1] else None


def _refuse(column: str, problem: str, remedy: str, row: int | None = None) -> InputError:
    place = f'column "{column}"' if row is None else f'row {row}, column "{column}"'
    return InputError(
        f"{place}: {problem}; {remedy}", problem=problem, remedy=remedy, row=row, column=column
    )


def _of_sequence(values: Any, column: str) -> np.ndarray[Any, Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise _refuse(column, f"is {type(values).__name__}", "give an array, a list or a Series")
    cells = list(values)
    kinds = {type(cell) for cell in cells}
    # numpy would make text of a mixture, and doubles of large integers.
    if kinds <= {bool, int} or kinds <= {bool, int, float}:
        try:
            return np.asarray(cells) if float in kinds else np.asarray(cells, dtype=np.int64)
        except OverflowError:
            pass
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def _numpy(array: np.ndarray[Any, Any], column: str) -> Form:
    if array.ndim != 1:
        remedy = "give one value for each event"
        raise _refuse(column, f"has the shape {array.shape}", remedy)
    kind = array.dtype.kind
    if kind == "u" and array.size and array.dtype.itemsize == 8 and array.max() > 2**63 - 1:
        return _distinct(array.astype(str))
    if kind in "iub":
        return "integer", np.ascontiguousarray(array, dtype=np.int64)
    if kind == "f":
        return "float", np.ascontiguousarray(array, dtype=np.float64)
    if kind == "M":
        unit = np.datetime_data(array.dtype)
        if unit[1] != 1 or unit[0] not in UNITS:
            finer = "ns" if unit[0] in ("ps", "fs", "as") else "s"
            array = array.astype(f"M8[{finer if unit[1] == 1 else 'ns'}]")
            unit = np.datetime_data(array.dtype)
        return unit[0], np.ascontiguousarray(array).view(np.int64)
    if kind in "UT":
        return _distinct(array)
    if kind == "S":
        return _distinct(np.char.decode(array, "utf-8"))
    if kind == "O":
        return _objects(array, column)
    remedy = "give integers, decimals, text or dates"
    raise _refuse(column, f"has the type {array.dtype}", remedy)


def _distinct(array: np.ndarray[Any, Any]) -> Form:
    values, numbers = np.unique(array, return_inverse=True)
    return "text", (values.tolist(), np.ascontiguousarray(numbers.reshape(-1), dtype=np.int64))


def _objects(array: np.ndarray[Any, Any], column: str) -> Form:
    """A column of Python objects, each of which says what it is."""
    whole = (int, np.integer)
    if all(isinstance(cell, whole) for cell in array):
        try:
            return "integer", np.array([int(cell) for cell in array], dtype=np.int64)
        except OverflowError:
            pass
    if all(isinstance(cell, (float, np.floating, *whole)) for cell in array):
        return "float", np.array([float(cell) for cell in array], dtype=np.float64)
    places: dict[str, int] = {}
    numbers = np.empty(len(array), dtype=np.int64)
    for row, cell in enumerate(array):
        if type(cell) is str:
            text = cell
        elif isinstance(cell, (*whole, str, uuid.UUID)):
            text = str(int(cell)) if isinstance(cell, whole) else str(cell)
        elif cell is None or type(cell).__name__ in ("NAType", "NaTType") or (
            isinstance(cell, float) and cell != cell
        ):
            numbers[row] = -1
            continue
        elif isinstance(cell, (datetime.datetime, np.datetime64)):
            text = str(cell) if isinstance(cell, np.datetime64) else cell.isoformat()
        elif isinstance(cell, datetime.date):
            text = cell.isoformat()
        else:
            problem = f"holds {type(cell).__name__}, which is no id and no time"
            remedy = "give integers, text or dates"
            raise _refuse(column, problem, remedy, row)
        numbers[row] = places.setdefault(text, len(places))
    return "text", (list(places), numbers)


def _pandas(series: Any, column: str) -> Form:
    import pandas

    if isinstance(series, pandas.DataFrame):
        raise _refuse(column, "is a whole table", "give one column")
    series = pandas.Series(series)
    kind = series.dtype
    if isinstance(kind, pandas.DatetimeTZDtype):
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    elif isinstance(kind, pandas.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int64)
        categories = _pandas(series.cat.categories.to_series(), column)
        return _coded(codes, categories, column)
    elif type(kind).__name__ == "ArrowDtype":
        import pyarrow

        return form(pyarrow.chunked_array(pyarrow.array(series)), column)
    elif not isinstance(kind, np.dtype):
        if kind.kind in "iubf" and not series.isna().any():
            return _numpy(series.to_numpy(dtype=kind.numpy_dtype), column)
        if kind.kind in "iub":
            row = int(np.flatnonzero(series.isna())[0])
            raise _refuse(column, "is empty", "fill it or drop the row", row)
        return _factorized(series, column)
    elif kind.kind == "O":
        return _factorized(series, column)
    return _numpy(series.to_numpy(), column)


def _factorized(series: Any, column: str) -> Form:
    """A column of objects, of which pandas knows fast which are equal."""
    import pandas

    try:
        codes, values = pandas.factorize(series)
    except TypeError:
        # Lists and dicts cannot be compared so; what they are is said below.
        return _objects(series.to_numpy(dtype=object), column)
    objects = _objects(np.asarray(values, dtype=object), column)
    return _coded(codes.astype(np.int64), objects, column)


def _coded(codes: np.ndarray[Any, Any], values: Form, column: str) -> Form:
    """A column from the numbers of its values, -1 for an empty cell."""
    name, content = values
    if name == "text":
        distinct, numbers = content
        wide = np.append(np.asarray(numbers, dtype=np.int64), -1)
        return "text", (distinct, np.ascontiguousarray(wide[codes]))
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise _refuse(column, "is empty", "fill it or drop the row", row)
    return name, np.ascontiguousarray(content[codes])


#: Types that are no ids, times or features, by how Arrow's C interface writes them.
_ARROW_TYPES = {
    "d:": "decimal",
    "z": "binary",
    "Z": "binary",
    "vz": "binary",
    "w:": "binary",
    "+w:": "list",
    "+l": "list",
    "+L": "list",
    "+vl": "list",
    "+vL": "list",
    "+s": "struct",
    "+m": "map",
    "tt": "time of day",
    "tD": "duration",
    "ti": "interval",
}


def _arrow(found: tuple[str, Any], column: str) -> Form:
    """A column as Rust has read it: a form, or what stands in the way of one."""
    kind, content = found
    if kind == "coded":
        codes, values = content
        return _coded(codes, _arrow(values, column), column)
    if kind == "half":
        return _numpy(content.view(np.float16), column)
    if kind == "unsigned":
        return _numpy(content, column)
    if kind == "empty":
        raise _refuse(column, "is empty", "fill it or drop the row", content)
    if kind == "unknown":
        names = (name for start, name in _ARROW_TYPES.items() if content.startswith(start))
        problem = f"has the type {next(names, content)}"
        raise _refuse(column, problem, "give integers, decimals, text or dates")
    return kind, content
