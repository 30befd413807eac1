"""Streams of events from tables, arrays and files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._columns import columns_of, form, node_table, numbers, table
from .errors import InputError
from .results import Inspection, arrow_stream, column_dict

Array = np.ndarray[Any, Any]


class Stream:
    """Events in the order of time: who acted, with whom, when, and with what features.

    Columns may be numpy arrays, lists, PyTorch tensors, and columns of pandas, polars or pyarrow.
    Ids are integers or text, and come back as they were given. Times are integers, decimals, dates
    (with or without a time zone) or ISO 8601 as text.

    >>> stream = Stream(["ann", "bob"], ["bob", "cid"], ["2021-03-04", "2021-03-05T12:00:00Z"])
    >>> stream.destinations.tolist()
    ['bob', 'cid']
    >>> stream.times[1]
    np.datetime64('2021-03-05T12:00:00')

    ``bipartite=True`` tells sources and destinations apart even where they share ids; ``sort=True``
    sorts events that are not in the order of time, which are refused otherwise.

    ``features`` has a row for each event. ``node_features`` has one for each node: a table with ids
    in its first column (and a column ``side`` where sources and destinations are told apart), a
    dict by id, or an array with the features of node ``i`` in row ``i``.
    """

    def __init__(
        self,
        src: Any,
        dst: Any,
        time: Any,
        features: Any = None,
        *,
        node_features: Any = None,
        name: str = "stream",
        bipartite: bool = False,
        sort: bool = False,
        _columns: tuple[str, str, str] = ("src", "dst", "time"),
    ) -> None:
        forms = [form(values, column) for values, column in zip((src, dst, time), _columns)]
        rows = len(forms[0][1][1] if forms[0][0] == "text" else forms[0][1])
        source, destination, moment = zip(_columns, forms)
        self._core = _core.Stream.from_columns(
            name,
            source,
            destination,
            moment,
            table(features, rows),
            node_table(node_features),
            bipartite,
            sort,
        )
        self._text = any(kind == "text" for kind, _ in forms[:2])

    @classmethod
    def _of(cls, core: _core.Stream, text: bool) -> Stream:
        stream = cls.__new__(cls)
        stream._core, stream._text = core, text
        return stream

    @classmethod
    def from_table(
        cls,
        data: Any,
        src: str = "src",
        dst: str = "dst",
        time: str = "time",
        features: Sequence[str] | str | None = None,
        **options: Any,
    ) -> Stream:
        """A stream from a table: pandas, a dict, or what gives Arrow's capsules.

        Polars, pyarrow and DuckDB give them (``__arrow_c_stream__``), and many others; their
        columns are read where they lie.
        """
        columns = columns_of(data)

        def column(name: str, argument: str) -> Any:
            if name not in columns:
                raise missing_column(name, list(columns), argument)
            return columns[name]

        names = [features] if isinstance(features, str) else list(features or [])
        found = [column(name, key) for name, key in ((src, "src"), (dst, "dst"), (time, "time"))]
        for name in (src, dst, time):
            if name in names:
                raise InputError(
                    f"column {name!r} is a feature and something else: take it out of features=",
                    column=name,
                    remedy="take it out of features=",
                )
        rows = [numbers(column(name, "features"), name) for name in names]
        return cls(
            found[0],
            found[1],
            found[2],
            np.stack(rows, axis=1) if rows else None,
            _columns=(src, dst, time),
            **options,
        )

    from_pandas = from_polars = from_arrow = from_table

    @classmethod
    def from_numpy(
        cls, src: Any, dst: Any, time: Any, features: Any = None, **options: Any
    ) -> Stream:
        """The same as ``Stream(src, dst, time, features)``."""
        return cls(src, dst, time, features, **options)

    @classmethod
    def from_pyg(cls, data: Any, **options: Any) -> Stream:
        """A stream from PyTorch Geometric's ``TemporalData``."""
        options.setdefault("name", "temporal-data")
        message = getattr(data, "msg", None)
        return cls(data.src, data.dst, data.t, message, **options)

    @classmethod
    def from_tgb(cls, dataset: Any, **options: Any) -> Stream:
        """A stream from TGB's ``LinkPropPredDataset``, or PyG's version of it."""
        options.setdefault("name", getattr(dataset, "name", "tgb"))
        options.setdefault("node_features", getattr(dataset, "node_feat", None))
        if hasattr(dataset, "get_TemporalData"):
            return cls.from_pyg(dataset.get_TemporalData(), **options)
        full = dataset.full_data
        features = full.get("edge_feat")
        return cls(full["sources"], full["destinations"], full["timestamps"], features, **options)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._core.name

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return self._core.nodes

    @property
    def bipartite(self) -> bool:
        """Whether the same id as source and as destination names two nodes."""
        return self._core.bipartite

    @property
    def ids(self) -> Array:
        """The ids of all nodes, in the order of their numbers."""
        found = self._core.ids()
        if isinstance(found, np.ndarray):
            if not self._text:
                return found
            found = [str(number) for number in found.tolist()]
        ids = np.empty(len(found), dtype=object)
        ids[:] = found
        return ids

    @property
    def source_numbers(self) -> Array:
        """The number of each event's source: what models see."""
        return self._core.columns()[0]

    @property
    def destination_numbers(self) -> Array:
        """The number of each event's destination."""
        return self._core.columns()[1]

    @property
    def sources(self) -> Array:
        """The id of each event's source."""
        return self.ids[self.source_numbers]

    @property
    def destinations(self) -> Array:
        """The id of each event's destination."""
        return self.ids[self.destination_numbers]

    @property
    def times(self) -> Array:
        """The time of each event, in the type that was given: numbers or dates."""
        return self._shown(self._core.columns()[2])

    @property
    def features(self) -> Array:
        """A row of features for each event; no columns where there are none."""
        return self._core.features()

    @property
    def node_features(self) -> Array:
        """A row of features for each node; no columns where there are none."""
        return self._core.node_features()

    def _shown(self, times: Array) -> Array:
        return shown(times, *self._core.clock())

    def inspect(self) -> Inspection:
        """Counts, repetition and surprise: what the command ``lstep inspect`` says."""
        return Inspection(json.loads(self._core.inspect()))

    def to_pandas(self) -> Any:
        """The events as a pandas table."""
        import pandas

        return pandas.DataFrame(self._table())

    def to_polars(self) -> Any:
        """The events as a polars table."""
        import polars

        columns = {name: column_dict(values) for name, values in self._table().items()}
        return polars.DataFrame(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The events as a capsule of Arrow's C stream interface."""
        return arrow_stream(self._table())

    def _table(self) -> dict[str, Array]:
        columns = {"src": self.sources, "dst": self.destinations, "time": self.times}
        features = self.features
        columns.update({f"f{n}": features[:, n] for n in range(features.shape[1])})
        return columns

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {len(self):,} events, {self.nodes:,} nodes)"

    def _repr_html_(self) -> str:
        return self.inspect()._repr_html_()

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.sources, self.destinations, self.times)
        options: dict[str, Any] = {"name": self.name, "bipartite": self.bipartite}
        if self.node_features.shape[1]:
            sides = self._core.sides()
            destination = None if sides is None else sides == 1
            options["node_features"] = (self.ids, destination, self.node_features)
        features = self.features
        return (_again, (*columns, features if features.shape[1] else None, options, self._text))


def _again(src: Array, dst: Array, time: Array, features: Any, options: Any, text: bool) -> Stream:
    stream = Stream(src, dst, time, features, **options)
    stream._text = text
    return stream


def shown(times: Array, kind: str, start: int) -> Array:
    """Numbers of a clock as the stream's own times."""
    if kind == "float":
        return times
    counted = times.astype(np.int64) + start
    return counted if kind == "integer" else counted.astype(f"M8[{kind}]")


def missing_column(name: str, known: list[str], argument: str) -> InputError:
    """What is said of a table without a column that is named by an argument."""
    remedy = f"name it with {argument}="
    problem = f"has no column {name!r}; it has {', '.join(map(repr, known))}"
    return InputError(
        f"the table {problem}: {remedy}", problem=problem, remedy=remedy, column=name
    )


def read(
    path: str | os.PathLike[str],
    *,
    src: str | None = None,
    dst: str | None = None,
    time: str | None = None,
    features: str | Iterable[str] | None = None,
    node_features: str | os.PathLike[str] | None = None,
    bipartite: bool = False,
    sort: bool = False,
    skip_bad: bool = False,
    dedup: bool = False,
    separator: str | None = None,
    no_header: bool = False,
    time_format: str | None = None,
    **settings: Any,
) -> Stream:
    """Reads events from CSV, Parquet, JODIE's, DGB's or TGB's files, as the command does.

    ``features`` names columns; ``"none"`` and ``"all"`` are words of their own. ``skip_bad`` leaves
    out rows with a fault, ``dedup`` events that repeat an earlier one; ``inspect()`` counts them.
    ``separator``, ``no_header`` and ``time_format`` (as in ``strptime``) help with text that is not
    understood by itself. Further arguments are settings of ``data`` in a run's ``config.toml``.
    """
    if features is not None and not isinstance(features, str):
        features = ",".join(features)
    options = {
        "events": "",
        "src": src,
        "dst": dst,
        "time": time,
        "features": features,
        "node_features": None if node_features is None else os.fspath(node_features),
        "bipartite": bipartite,
        "sort": sort,
        "skip_bad": skip_bad,
        "dedup": dedup,
        "separator": separator,
        "no_header": no_header,
        "time_format": time_format,
        **settings,
    }
    given = {name: value for name, value in options.items() if value is not None}
    core = _core.Stream.read(os.fspath(path), json.dumps(given))
    return Stream._of(core, not isinstance(core.ids(), np.ndarray))
