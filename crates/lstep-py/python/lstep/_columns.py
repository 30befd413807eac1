"""Columns of tables in the four forms that the library reads, without copies where possible.

A form is a pair: ``("integer", array of int64)``, ``("float", array of float64)``, ``("text",
(values, numbers of values))`` with -1 for an empty cell, or a unit of time (``"s"``, ``"ms"``,
``"us"``, ``"ns"``) with integers counted from 1970. No table library is imported here: a column
says by its type where it is from.
"""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import numpy as np

from .errors import InputError

Form = tuple[str, Any]
UNITS = ("s", "ms", "us", "ns")
NOT_A_TIME = np.iinfo(np.int64).min


def origin(values: object) -> str:
    """The library that a value is from."""
    return type(values).__module__.partition(".")[0]


def form(values: Any, column: str) -> Form:
    """A column in one of the forms."""
    readers = {"polars": _polars, "pyarrow": _pyarrow, "pandas": _pandas}
    reader = readers.get(origin(values))
    if reader is not None:
        return reader(values, column)
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if not isinstance(values, np.ndarray) and hasattr(values, "__arrow_c_array__"):
        import pyarrow

        return _pyarrow(pyarrow.array(values), column)
    array = values if isinstance(values, np.ndarray) else _of_sequence(values, column)
    return _numpy(array, column)


def table(features: Any, rows: int) -> Any:
    """Features as a table of doubles, one row for each event; nothing if there are none."""
    if features is None:
        return None
    if hasattr(features, "detach"):
        features = features.detach().cpu().numpy()
    elif hasattr(features, "to_numpy"):
        features = features.to_numpy()
    try:
        array = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"features are not numbers ({error}): choose other columns with features=",
            problem="features are not numbers",
            remedy="choose other columns with features=",
        ) from None
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
        return _coded(codes, categories)
    elif type(kind).__name__ == "ArrowDtype":
        import pyarrow

        return _pyarrow(pyarrow.chunked_array(pyarrow.array(series)), column)
    elif not isinstance(kind, np.dtype):
        if kind.kind in "iubf" and not series.isna().any():
            return _numpy(series.to_numpy(dtype=kind.numpy_dtype), column)
        if kind.kind in "iub":
            row = int(np.flatnonzero(series.isna())[0])
            raise _refuse(column, "is empty", "fill it or drop the row", row)
        codes, values = pandas.factorize(series)
        return _coded(codes.astype(np.int64), _objects(np.asarray(values, dtype=object), column))
    elif kind.kind == "O":
        codes, values = pandas.factorize(series)
        return _coded(codes.astype(np.int64), _objects(np.asarray(values, dtype=object), column))
    return _numpy(series.to_numpy(), column)


def _coded(codes: np.ndarray[Any, Any], values: Form) -> Form:
    """A column from the numbers of its values, -1 for an empty cell."""
    name, content = values
    if name == "text":
        distinct, numbers = content
        wide = np.append(np.asarray(numbers, dtype=np.int64), -1)
        return "text", (distinct, np.ascontiguousarray(wide[codes]))
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(
            f"row {row} is empty: fill it or drop the row",
            problem="is empty",
            remedy="fill it or drop the row",
            row=row,
        )
    return name, np.ascontiguousarray(content[codes])


def _polars(series: Any, column: str) -> Form:
    import polars

    kind = series.dtype
    if kind in (polars.String, polars.Categorical) or isinstance(kind, polars.Enum):
        text = series.cast(polars.String)
        values = text.drop_nulls().unique(maintain_order=True)
        numbers = polars.Series(range(len(values)), dtype=polars.Int64)
        codes = text.replace_strict(values, numbers, default=-1, return_dtype=polars.Int64)
        return "text", (values.to_list(), np.ascontiguousarray(codes.to_numpy()))
    if kind == polars.Date:
        series, kind = series.cast(polars.Datetime("ms")), polars.Datetime("ms")
    if isinstance(kind, polars.Datetime):
        counted = series.to_physical().fill_null(int(NOT_A_TIME))
        return str(kind.time_unit), np.ascontiguousarray(counted.to_numpy())
    if series.null_count():
        row = int(series.is_null().arg_max() or 0)
        raise _refuse(column, "is empty", "fill it or drop the row", row)
    return _numpy(series.to_numpy(), column)


def _pyarrow(values: Any, column: str) -> Form:
    import pyarrow

    kind, types = values.type, pyarrow.types
    if isinstance(values, pyarrow.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pyarrow.ChunkedArray):
            values = pyarrow.concat_arrays(values.chunks)
    if types.is_date(kind):
        kind = pyarrow.timestamp("ms")
        values = values.cast(kind)
    if types.is_timestamp(kind):
        counted = values.cast(pyarrow.int64()).fill_null(int(NOT_A_TIME))
        return str(kind.unit), np.ascontiguousarray(counted.to_numpy(zero_copy_only=False))
    if not types.is_dictionary(kind) and (
        types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
    ):
        if str(kind) == "string_view":
            values = values.cast(pyarrow.large_string())
        values = values.dictionary_encode()
    if types.is_dictionary(values.type):
        codes = values.indices.cast(pyarrow.int64()).fill_null(-1)
        codes = np.array(codes.to_numpy(zero_copy_only=False), dtype=np.int64)
        return _coded(codes, form(np.array(values.dictionary.to_pylist(), dtype=object), column))
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise _refuse(column, "is empty", "fill it or drop the row", row)
    return _numpy(values.to_numpy(zero_copy_only=False), column)
