"""What jobs give: tables that print, that a notebook shows, and that other libraries take."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from . import _core

Array = np.ndarray[Any, Any]
Row = dict[str, Any]

_LAW_ORDER = ("BROKEN", "not checked", "not bit-exact", "kept")


def column_dict(values: Array) -> Any:
    """A column as polars takes it: text as a list."""
    return values.tolist() if values.dtype == object else values


def arrow_stream(columns: Mapping[str, Any]) -> Any:
    """A capsule with columns for any library that takes Arrow's."""
    return _core.arrow_stream(list(columns), [_arrow_column(cells) for cells in columns.values()])


def _arrow_column(cells: Any) -> tuple[str, Any]:
    kind = cells.dtype.kind if isinstance(cells, np.ndarray) else "O"
    if kind == "M":
        return np.datetime_data(cells.dtype)[0], np.ascontiguousarray(cells).view(np.int64)
    if kind in "iu":
        return "integer", cells.astype(np.int64)
    if kind == "f":
        return "float", cells.astype(np.float64)
    cells = cells.tolist() if isinstance(cells, np.ndarray) else cells
    kinds = {type(cell) for cell in cells if cell is not None}
    for name, known in (("bool", {bool}), ("integer", {int}), ("float", {int, float})):
        if kinds and kinds <= known:
            return name, cells
    return "text", [cell if cell is None else str(cell) for cell in cells]


class Table:
    """Rows of named values. Whatever takes Arrow's capsules takes it: ``pyarrow.table(found)``."""

    rows: list[Row]

    def _columns(self) -> list[str]:
        names: dict[str, None] = {}
        for row in self.rows:
            names.update(dict.fromkeys(row))
        return list(names)

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        names = self._columns()
        return names, [[_text(row.get(name)) for name in names] for row in self.rows]

    def to_pandas(self) -> Any:
        """The rows as a pandas table."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self._columns())

    def to_polars(self) -> Any:
        """The rows as a polars table."""
        import polars

        names = self._columns()
        return polars.DataFrame(
            {name: [row.get(name) for row in self.rows] for name in names}, strict=False
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The rows as a capsule of Arrow's C stream interface."""
        return arrow_stream(
            {name: [row.get(name) for row in self.rows] for name in self._columns()}
        )

    def to_latex(self) -> str:
        """The rows as a LaTeX table with booktabs' rules."""
        names, rows = self._shown()
        aligned = "".join("r" if _numeric(self.rows, name) else "l" for name in names)
        lines = [f"\\begin{{tabular}}{{{aligned}}}", "\\toprule"]
        lines.append(" & ".join(_latex(name) for name in names) + r" \\")
        lines.append("\\midrule")
        lines += [" & ".join(_latex(cell) for cell in row) + r" \\" for row in rows]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        names, rows = self._shown()
        widths = [max(map(len, column)) for column in zip(names, *rows)]
        numeric = [_numeric(self.rows, name) for name in names]

        def line(cells: list[str]) -> str:
            placed = zip(cells, widths, numeric)
            return "  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in placed).rstrip()

        return "\n".join([line(names), *map(line, rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        names, rows = self._shown()

        def cells(values: list[str], tag: str) -> str:
            return "".join(f"<{tag}>{html.escape(value)}</{tag}>" for value in values)

        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
        return f"<table><thead><tr>{cells(names, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _numeric(rows: list[Row], name: str) -> bool:
    values = [row[name] for row in rows if row.get(name) is not None]
    return bool(values) and all(isinstance(value, (int, float)) for value in values)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def _latex(text: str) -> str:
    return text.translate(_LATEX)


class Inspection(Table):
    """Counts and shares of a stream. ``inspection["events"]`` is one of them."""

    def __init__(self, report: Row) -> None:
        self.report = report
        self.rows = [{"what": name, "value": value} for name, value in report.items()]

    def __getitem__(self, name: str) -> Any:
        return self.report[name]

    def keys(self) -> list[str]:
        """What it counts."""
        return list(self.report)


_METRICS = ("ap", "auc", "mrr", "hits_1", "hits_10", "ndcg_10", "ap_pooled", "auc_pooled")
#: Those that a comparison shows.
_COMPARED = _METRICS[:6]


class Evaluation(Table):
    """Metrics of models under a protocol, a row for each model, part, setting and negatives.

    ``report`` is everything behind them: the protocol's settings and the hash of the negatives.
    """

    def __init__(self, report: Row, labels: list[str]) -> None:
        self.report = report
        answered = [*report["results"], *report.get("baselines", [])]
        self.rows = [self._row(row, label) for row, label in zip(answered, labels)]

    @classmethod
    def _told(cls, told: tuple[str, list[str]]) -> Evaluation:
        return cls(json.loads(told[0]), told[1])

    @staticmethod
    def _row(row: Row, label: str) -> Row:
        shown: Row = {"model": label}
        for name in ("part", "setting", "negatives"):
            shown[name] = row[name]
        for name in _METRICS:
            if row.get(name) is not None:
                shown[name] = row[name]
        shown["events"] = row["events"]
        shown["seconds"] = row["seconds"]
        return shown

    def __getitem__(self, place: int) -> Row:
        return self.rows[place]

    @property
    def verdict(self) -> str | None:
        """Whether a trained model is better than counting, for its first kind of question.

        Nothing where the counting models were not asked: ``model.evaluate(baselines=True)``.
        """
        if not self.report.get("against_counting"):
            return None
        told = self.report["against_counting"][0]
        metric = told["metric"].upper()
        words = {"better": "better than", "worse": "worse than"}
        compared = words.get(told["verdict"], "not told apart from")
        value, (low, high) = told["value"] + told["difference"], told["own"]
        counted = [row["model"] for row in self.report["baselines"]].index(told["model"])
        counting = self.rows[len(self.report["results"]) + counted]["model"]
        return (
            f"{self.rows[0]['model']} has {metric} {value:.4f} (95 % interval {low:.4f} to "
            f"{high:.4f}): {compared} counting ({counting}, {told['value']:.4f}), by "
            f"{told['difference']:+.4f} ({told['low']:+.4f} to {told['high']:+.4f})"
        )

    def __str__(self) -> str:
        said = self.verdict
        return super().__str__() + (f"\n\n{said}" if said else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = self.verdict
        return super()._repr_html_() + (f"<p>{html.escape(said)}</p>" if said else "")

    def best(self, metric: str = "ap") -> Row:
        """The row with the highest value of a metric."""
        return max(self.rows, key=lambda row: row.get(metric, float("-inf")))

    def to_latex(self, metric: str | None = None) -> str:
        """A LaTeX table. With a metric, models are rows and kinds of negatives are columns."""
        if metric is None:
            return super().to_latex()
        kinds = list(dict.fromkeys((row["setting"], row["negatives"]) for row in self.rows))
        pivot = _Pivot([])
        for model in dict.fromkeys(row["model"] for row in self.rows):
            line: Row = {"model": model}
            for row in self.rows:
                if row["model"] == model and row.get(metric) is not None:
                    key = (row["setting"], row["negatives"])
                    line[" ".join(key) if len({k[0] for k in kinds}) > 1 else key[1]] = (
                        f"{100 * row[metric]:.2f}"
                    )
            pivot.rows.append(line)
        return pivot.to_latex()


class _Pivot(Table):
    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows


@dataclass(frozen=True)
class LawResult:
    """How one law fared."""

    law: str
    says: str
    verdict: str
    compared: int
    changed: int
    rounded: int
    largest_change: float | None
    why: str | None = None
    example: Row | None = None

    @property
    def broken(self) -> bool:
        """Whether the model breaks it."""
        return self.verdict == "BROKEN"

    def explain(self) -> str:
        """The law, and the smallest example that shows its breach."""
        lines = [f"{self.law}: {self.says}: {self.verdict}"]
        if self.why:
            lines.append(f"  {self.why}")
        example = self.example
        if example is None:
            return "\n".join(lines)
        pair = f"{example['source']!r} with {example['destination']!r} at {example['time']}"
        context = example.get("context")
        if context is None:
            lines.append(f"  {pair}: {example['expected']:.9g} became {example['found']:.9g}")
            return "\n".join(lines)
        lines.append(f"  {pair}: {context['alone']:.9g} if it is asked alone,")
        lines.append(f"  {context['together']:.9g} if it is asked in this call:")
        for number, row in enumerate(context["call"]):
            here = "  <- this row" if number == context["row"] else ""
            shown = ", ".join(repr(one) for one in row["candidates"][:8])
            more = f", and {len(row['candidates']) - 8} more" if len(row["candidates"]) > 8 else ""
            lines.append(f"    {row['source']!r} at {row['time']} with {shown}{more}{here}")
        return "\n".join(lines)


@dataclass
class Audit(Table):
    """Which laws a model keeps.

    A law names something that may not change a score. ``bool(audit)`` says whether all are kept.
    """

    report: Row
    laws: list[LawResult]
    rows: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [
            {
                "law": law.law,
                "verdict": law.verdict,
                "compared": law.compared,
                "changed": law.changed,
                "largest change": law.largest_change,
                "says": law.says if law.why is None else law.why,
            }
            for law in self.laws
        ]

    @property
    def broken(self) -> list[str]:
        """The names of the laws that are broken."""
        return [law.law for law in self.laws if law.broken]

    def __bool__(self) -> bool:
        return not self.broken

    def __getitem__(self, law: str) -> LawResult:
        for one in self.laws:
            if one.law == law:
                return one
        raise KeyError(law)

    def explain(self) -> str:
        """The broken laws, each with the smallest example that shows it."""
        if self:
            return "every law that was checked is kept"
        return "\n".join(law.explain() for law in self.laws if law.broken)

    def raise_if_broken(self) -> Audit:
        """Raises ``AssertionError`` with the examples, for tests."""
        if not self:
            raise AssertionError(self.explain())
        return self

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}\n\n{self.explain()}" if self.broken else said

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = f"<pre>{html.escape(self.explain())}</pre>" if self.broken else ""
        return super()._repr_html_() + said


@dataclass(frozen=True)
class QuerySet:
    """The questions of one part, setting and kind of negatives.

    Event ``events[i]`` is asked against the pairs ``sources[k], destinations[k]`` for ``k`` from
    ``offsets[i]`` to ``offsets[i + 1]``, at its own time. Step ``s`` asks the events from place
    ``steps[s]`` to ``steps[s + 1]``. ``source_numbers`` and ``destination_numbers`` are the same
    nodes as models see them.
    """

    part: str
    setting: str
    negatives: str
    events: Array
    steps: Array
    offsets: Array
    sources: Array
    destinations: Array
    source_numbers: Array
    destination_numbers: Array
    sha256: str

    def __len__(self) -> int:
        return len(self.events)

    def _table(self) -> dict[str, Array]:
        events = np.repeat(self.events, np.diff(self.offsets))
        return {"event": events, "source": self.sources, "destination": self.destinations}

    def to_pandas(self) -> Any:
        """The negatives as a pandas table, a row for each: an event's number and the pair."""
        import pandas

        return pandas.DataFrame(self._table())

    def to_polars(self) -> Any:
        """The same as a polars table."""
        import polars

        return polars.DataFrame(
            {name: column_dict(values) for name, values in self._table().items()}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The same as a capsule of Arrow's C stream interface."""
        return arrow_stream(self._table())


class Report:
    """The report of a trained model: a page of its own, which a notebook shows in a frame.

    ``html`` is the page, ``evaluation`` has the numbers in it.
    """

    def __init__(self, page: str, evaluation: Evaluation) -> None:
        self.html, self.evaluation = page, evaluation

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the page to a file, which needs no network."""
        Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Report({len(self.html) // 1000} kB of HTML)\n{self.evaluation}"

    def _repr_html_(self) -> str:
        # Its styles stay within the frame, and its script works there.
        page = html.escape(self.html, quote=True)
        size = "width:100%;height:80vh;min-height:600px;border:0"
        return f'<iframe srcdoc="{page}" style="{size}" sandbox="allow-scripts"></iframe>'


class Comparison(Table):
    """Means and deviations of models over seeds. ``runs`` has the evaluation of every seed."""

    def __init__(self, runs: list[tuple[int, Evaluation]]) -> None:
        self.runs = runs
        groups: dict[tuple[str, ...], list[Row]] = {}
        for _, found in runs:
            for row in found.rows:
                key = row["model"], row["part"], row["setting"], row["negatives"]
                groups.setdefault(key, []).append(row)
        self.rows = []
        for (model, part, setting, kind), rows in groups.items():
            shown: Row = {"model": model, "part": part, "setting": setting, "negatives": kind}
            shown["seeds"] = len(rows)
            for metric in _COMPARED:
                values = [row[metric] for row in rows if row.get(metric) is not None]
                if values:
                    shown[metric] = float(np.mean(values))
                    if len(values) > 1:
                        shown[f"{metric} std"] = float(np.std(values, ddof=1))
            self.rows.append(shown)

    def to_latex(self, metric: str | None = None) -> str:
        """A LaTeX table. With a metric, models are rows and kinds of negatives are columns."""
        if metric is None:
            return super().to_latex()
        pivot: dict[str, Row] = {}
        for row in self.rows:
            if row.get(metric) is None:
                continue
            value = f"{100 * row[metric]:.2f}"
            if row.get(f"{metric} std") is not None:
                value += f" ± {100 * row[f'{metric} std']:.2f}"
            line = pivot.setdefault(row["model"], {"model": row["model"]})
            line[f"{row['setting']} {row['negatives']}"] = value
        return _Pivot(list(pivot.values())).to_latex()


class Recommendations(Table):
    """The likeliest destinations of sources, as columns: ``found["destination"]``."""

    def __init__(self, found: Row, text: bool) -> None:
        self.at = found.pop("at")
        self.columns: dict[str, Any] = found
        for side in ("source", "destination"):
            ids = found[side]
            if text or not isinstance(ids, np.ndarray):
                found[side] = np.empty(len(ids), dtype=object)
                found[side][:] = [str(one) for one in ids]

    @property
    def rows(self) -> list[Row]:  # type: ignore[override]
        """One dict for each destination."""
        plain = {
            name: values.tolist() if isinstance(values, np.ndarray) else values
            for name, values in self.columns.items()
        }
        return [dict(zip(plain, row)) for row in zip(*plain.values())]

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.columns["rank"])

    def to_pandas(self) -> Any:
        """The columns as a pandas table."""
        import pandas

        return pandas.DataFrame(self.columns)

    def to_polars(self) -> Any:
        """The columns as a polars table."""
        import polars

        return polars.DataFrame(
            {
                name: column_dict(values) if isinstance(values, np.ndarray) else values
                for name, values in self.columns.items()
            }
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The columns as a capsule of Arrow's C stream interface."""
        return arrow_stream(self.columns)
