"""Evaluation, audit and negatives."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from . import _core
from ._foreign import as_scores
from ._progress import Progress
from .errors import SettingError
from .results import Audit, Evaluation, LawResult, QuerySet, Row
from .stream import Stream

#: Changes of at most this share of a row's spread are rounding, not a leak.
TOLERANCE = 1e-3
#: Below this share nobody need hear of rounding.
NOISE = 1e-6

Names = str | Sequence[str] | None


def asked(
    protocol: str = "stream",
    *,
    negatives: Names = None,
    parts: Names = None,
    settings: Names = None,
    step: int | str | None = None,
    visibility: str | None = None,
    split: tuple[float, float] | None = None,
    held_out: float | None = None,
    per_event: int | None = None,
    questions: int | None = None,
    seed: int | None = None,
    ties: str | None = None,
    folder: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """What is asked, as the library takes it."""

    def listed(names: Names) -> list[str] | None:
        return [names] if isinstance(names, str) else None if names is None else list(names)

    return {
        "protocol": protocol,
        "negatives": listed(negatives),
        "parts": listed(parts),
        "settings": listed(settings),
        "step": step,
        "visibility": visibility,
        "split": split,
        "held_out": held_out,
        "per_event": per_event,
        "questions": questions,
        "seed": seed,
        "ties": ties,
        "folder": folder,
    }


def entry(model: Any, name: str | None = None) -> tuple[str, Any]:
    """A model as the library takes it: a name with settings, or an object with a name."""
    if isinstance(model, str):
        return model, []
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], str):
        given, settings = model
        if isinstance(settings, dict):
            return given, [(key, json.dumps(value)) for key, value in settings.items()]
        return given, settings
    own = name or getattr(model, "name", None)
    kind = model if isinstance(model, type) else type(model)
    if kind.__name__ in ("function", "method", "partial"):
        kind = model
    return own if isinstance(own, str) else getattr(kind, "__name__", "model"), model


def evaluate(
    stream: Stream,
    models: Any = "edgebank",
    protocol: str = "stream",
    *,
    negatives: Names = None,
    parts: Names = None,
    settings: Names = None,
    train_seed: int = 0,
    progress: bool | None = None,
    **options: Any,
) -> Evaluation:
    """Asks models about the end of a stream, all of them the same questions.

    A model is a name (``lstep.models()``), a pair of a name and settings, or one of yours: an
    object with ``score(past, queries)`` and ``observe(events)``, a class, or a function that makes
    one. Give one model or a list. Candidates come mixed and without labels.

    ``protocol`` is ``"stream"``, ``"dyglib"`` or ``"tgb"``; ``step``, ``visibility``, ``split``,
    ``held_out``, ``per_event``, ``questions``, ``seed``, ``ties`` and ``folder`` are its options.
    ``negatives``, ``parts`` and ``settings`` say what is asked; without them it is what the
    command asks. ``train_seed`` draws the negatives of a model's own ``train``.
    """
    given = list(models) if isinstance(models, (list, set, frozenset)) else [models]
    what = asked(
        protocol, negatives=negatives, parts=parts, settings=settings, **_known(options)
    )
    with Progress(progress) as told:
        entries = [entry(model) for model in given]
        report = _core.evaluate(stream._core, entries, what, train_seed, told)
    return Evaluation._told(report)


_OPTIONS = (
    "step",
    "visibility",
    "split",
    "held_out",
    "per_event",
    "questions",
    "seed",
    "ties",
    "folder",
)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"unknown argument {name}=: a protocol has {', '.join(_OPTIONS)}")
    return options


def audit(
    model: Any,
    stream: Stream,
    *,
    events: int = 10_000,
    rounds: int = 1,
    seed: int = 0,
    step: int = 200,
    steps: int = 4,
    rows: int = 100,
    candidates: int = 101,
    tolerance: float = TOLERANCE,
    progress: bool | None = None,
) -> Audit:
    """Checks whether a model could have known what it should not.

    Each law changes something on which a score may not depend: the other rows of a call, events of
    the future, the numbers of nodes. A score that changes with it breaks the law, and the result
    has the smallest example. Models of yours may round: changes up to ``tolerance`` of a row's
    spread break nothing. Models of the library are compared to the last bit.

    The model may have further methods: ``reset()``; ``train(past, batches)``; ``prepare(events)``,
    which gets all events, as pipelines do that take statistics of their data; ``save(path)`` and
    ``load(path)``; ``fork()``, else copies are made by ``copy.deepcopy``.
    """
    size = {
        "events": events,
        "rounds": rounds,
        "seed": seed,
        "step": max(1, min(step, len(stream) // 4)),
        "steps": steps,
        "rows": rows,
        "candidates": candidates,
        "tolerance": tolerance,
    }
    if not (isinstance(tolerance, (int, float)) and 0 <= tolerance < 1):
        raise SettingError(
            f"tolerance is {tolerance}: it is a share of a row's spread, at least 0 and below 1",
            setting="tolerance",
            value=str(tolerance),
        )
    with Progress(progress) as told:
        report = json.loads(_core.audit(stream._core, entry(model), size, told))
    return as_audit(report, stream)


def as_audit(report: Row, stream: Stream, only: Iterable[str] | None = None) -> Audit:
    """A report with ids instead of numbers, and verdicts."""
    ids = stream.ids
    laws = []
    for law in report["laws"]:
        why = law.get("not_checked")
        if only is not None and law["law"] not in only:
            why = "says nothing of a function that keeps its own data"
        changed, largest = law["changed"], law.get("largest_change")
        if changed and why is None:
            verdict = "BROKEN"
        elif why is not None:
            verdict = "not checked"
        elif largest is not None and largest > NOISE:
            verdict = "not bit-exact"
        else:
            verdict = "kept"
        example = law.get("example") if verdict == "BROKEN" else None
        if verdict == "BROKEN" and example is None:
            why = law.get("evidence")
        laws.append(
            LawResult(
                law=law["law"],
                says=law["says"],
                verdict=verdict,
                compared=law["compared"],
                changed=changed,
                rounded=law.get("rounded", 0),
                largest_change=largest,
                why=why,
                example=None if example is None else _named(example, ids, stream),
            )
        )
    return Audit(report, laws)


def _named(example: Row, ids: Any, stream: Stream) -> Row:
    def node(number: int) -> Any:
        if number >= len(ids):
            return f"a node that nobody has seen ({number})"
        found = ids[number]
        return found.item() if isinstance(found, np.generic) else found

    def time(value: float) -> str:
        return stream._core.show_times(np.array([value]))[0]

    named = dict(example, time=time(example["time"]))
    named["source"], named["destination"] = node(example["source"]), node(example["destination"])
    if example.get("context"):
        call = [
            {
                "source": node(row["source"]),
                "time": time(row["time"]),
                "candidates": [node(number) for number in row["candidates"]],
            }
            for row in example["context"]["call"]
        ]
        named["context"] = dict(example["context"], call=call)
    return named


#: What can be seen of a function that keeps its own data: how it depends on its call.
_CALL_LAWS = ("again", "place", "row-length", "split", "other-rows", "scoring", "own-state")
_BUILT_LAWS = (*_CALL_LAWS, "future", "after-training")


class _Function:
    """A function of sources, destinations and times as a model."""

    def __init__(self, score_fn: Any, stream: Stream, build: Any = None) -> None:
        self._score_fn, self._build = score_fn, build
        self._ids, self._times = stream.ids, stream._core.columns()[2]

    def fork(self) -> _Function:
        return copy.copy(self)

    def score(self, past: _core.Past, queries: _core.Queries) -> Any:
        sources, destinations, times = queries.pairs()
        asked = (sources < len(self._ids)) & (destinations < len(self._ids))
        if self._build is not None:
            # It knows all events before its time: a question that may see fewer is not for it.
            asked &= np.searchsorted(self._times, times) <= past.horizon
        scores = np.zeros(len(sources))
        if asked.any():
            nodes = self._ids[sources[asked]], self._ids[destinations[asked]]
            scores[asked] = as_scores(self._score_fn(*nodes, times[asked]))
        return scores

    def observe(self, events: _core.Events) -> None:
        pass


class _Built(_Function):
    """A function that is made from all events of a stream."""

    def prepare(self, events: _core.Events) -> None:
        nodes = self._ids[events.sources], self._ids[events.destinations]
        self._score_fn = self._build(*nodes, events.times)


def leak_check(
    score_fn: Callable[[Any, Any, Any], Any] | None,
    stream: Stream,
    *,
    build: Callable[[Any, Any, Any], Callable[[Any, Any, Any], Any]] | None = None,
    **options: Any,
) -> Audit:
    """Audits a function ``score_fn(sources, destinations, times) -> scores`` as it is.

    This is how evaluators of DyGLib and TGB call a model. It gets ids of the stream and times as
    numbers. Such a function keeps its own data, so only its dependence on the call can be checked:
    a pair's score may not change with the other pairs of the call. With ``build(sources,
    destinations, times)``, which makes the function from all events, the audit also changes the
    future behind it. Other arguments are those of `audit`.
    """
    if (score_fn is None) == (build is None):
        raise TypeError("give a function, or build=, which makes one: one of the two")
    model = _Function(score_fn, stream) if build is None else _Built(None, stream, build)
    found = audit(model, stream, **options)
    found.report["model"] = getattr(score_fn or build, "__name__", "score_fn")
    return as_audit(found.report, stream, _CALL_LAWS if build is None else _BUILT_LAWS)


def negatives(
    stream: Stream,
    protocol: str = "dyglib",
    *,
    negatives: Names = None,
    parts: Names = None,
    settings: Names = None,
    **options: Any,
) -> list[QuerySet]:
    """The exact questions of a protocol as arrays, for an evaluation loop of your own.

    >>> from lstep import Stream
    >>> stream = Stream([1, 2] * 50, [3, 4] * 50, range(100))
    >>> questions = negatives(stream, "stream", negatives="random")[0]
    >>> len(questions), questions.part
    (15, 'test')
    """
    what = asked(protocol, negatives=negatives, parts=parts, settings=settings, **_known(options))
    ids = stream.ids
    sets = []
    for found in _core.negatives(stream._core, what):
        sources, destinations = found["sources"], found["destinations"]
        sets.append(
            QuerySet(
                part=found["part"],
                setting=found["setting"],
                negatives=found["negatives"],
                events=found["events"],
                # A step in which nothing is asked begins where it ends.
                steps=np.unique(found["steps"]),
                offsets=found["offsets"],
                sources=ids[sources],
                destinations=ids[destinations],
                source_numbers=sources,
                destination_numbers=destinations,
                sha256=found["sha256"],
            )
        )
    return sets


def split(stream: Stream, protocol: str = "dyglib", **options: Any) -> dict[str, Any]:
    """The numbers of the events of each part: ``train``, ``validation``, ``test``.

    Events of validation and test with a node that training does not know are
    ``new_node_validation`` and ``new_node_test``.
    """
    return _core.split(stream._core, asked(protocol, **_known(options)))
