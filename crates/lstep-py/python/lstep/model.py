"""Training, trained models, and comparisons of models over seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import Any

import numpy as np

from . import _core
from ._columns import columns_of, form, table
from ._jobs import Names, asked, entry, evaluate
from ._progress import Progress
from .errors import InputError
from .results import Comparison, Evaluation, Recommendations, Report, Row
from .stream import Stream

Array = np.ndarray[Any, Any]


def models() -> dict[str, list[str]]:
    """The names of the library's models: those that learn, and those that only count.

    >>> "lstep-pair" in models()["learned"], "edgebank" in models()["counting"]
    (True, True)
    """
    learned, counting = _core.models()
    return {"learned": learned, "counting": counting}


class Model:
    """A trained model: evaluated, asked about pairs and sources, and following new events.

    Threads may share it. It is pickled as the file that `save` writes.
    """

    def __init__(self, core: _core.Model, text: bool) -> None:
        self._core, self._text = core, text

    @property
    def name(self) -> str:
        """What the model is called."""
        return self._core.name()

    @property
    def settings(self) -> str:
        """All settings, as TOML."""
        return self._core.settings()

    @property
    def events(self) -> int:
        """How many events it has observed."""
        return self._core.events()

    def evaluate(
        self,
        *,
        negatives: Names = None,
        parts: Names = None,
        settings: Names = None,
        baselines: bool = False,
        progress: bool | None = None,
    ) -> Evaluation:
        """Evaluates it under the protocol that it was trained for.

        With ``baselines`` the counting models answer the same questions.
        """
        what = asked(negatives=negatives, parts=parts, settings=settings)
        with Progress(progress) as told:
            return Evaluation._told(self._core.evaluate(what, baselines, told))

    def report(self, *, progress: bool | None = None) -> Report:
        """The page that the command writes as ``report.html``: a notebook shows it.

        The model and the counting models answer the questions of its protocol for it.
        """
        with Progress(progress) as told:
            page, numbers = self._core.report(told)
        return Report(page, Evaluation._told(numbers))

    def score(self, src: Any, dst: Any = None, time: Any = None) -> Array:
        """A score for each pair; higher is likelier, and only the order counts.

        Give columns, or a table with the columns ``src`` and ``dst`` and perhaps ``time``. Without
        times it is asked about the moment after the last event. A node that no event names is a
        newcomer.
        """
        if dst is None:
            columns = columns_of(src)
            for name in ("src", "dst"):
                if name not in columns:
                    remedy = "give a table with src and dst, or two columns"
                    raise InputError(f"the pairs have no column {name!r}: {remedy}", remedy=remedy)
            src, dst, time = columns["src"], columns["dst"], columns.get("time", time)
        moments = None if time is None else ("time", form(time, "time"))
        return self._core.score(("src", form(src, "src")), ("dst", form(dst, "dst")), moments)

    def top_k(
        self,
        sources: Any = None,
        k: int = 10,
        *,
        at: Any = None,
        candidates: Any = None,
        exclude_known: bool = False,
        explain: bool = False,
        progress: bool | None = None,
    ) -> Recommendations:
        """The ``k`` likeliest destinations of each source, of all of them if none is named.

        ``at`` is a time, ``candidates`` are ids; ``exclude_known`` leaves out whom a source has
        met, ``explain`` says why. A model for ranking gives a ``probability``, too: how likely the
        source's next event is with this destination, as validation taught.
        """
        with Progress(progress) as told:
            found = self._core.top_k(
                _texts(sources), k, _moment(at), _texts(candidates), exclude_known, explain, told
            )
        return Recommendations(found, self._text)

    def observe(self, src: Any, dst: Any, time: Any, features: Any = None) -> None:
        """Takes in events that have happened since, in the steps of its protocol."""
        sources = form(src, "src")
        rows = len(sources[1][1] if sources[0] == "text" else sources[1])
        columns = ("dst", form(dst, "dst")), ("time", form(time, "time"))
        self._core.observe(("src", sources), *columns, table(features, rows))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it to one file, with everything that it has observed.

        `load`, and the command's ``lstep score``, open it.
        """
        self._core.save(fspath(path))

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.events:,} events)"

    def __reduce__(self) -> tuple[Any, ...]:
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.lstep"
            self.save(path)
            return (_opened, (path.read_bytes(), self._text))


def _opened(content: bytes, text: bool) -> Model:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lstep"
        path.write_bytes(content)
        return Model(_core.load(fspath(path), None), text)


def _texts(ids: Any) -> list[str] | None:
    """Ids as the library names them."""
    if ids is None:
        return None
    if isinstance(ids, (str, int, np.integer)):
        return [str(ids)]
    kind, content = form(ids, "sources")
    if kind == "integer":
        return [str(number) for number in content.tolist()]
    if kind != "text" or (content[1] < 0).any():
        raise InputError("sources and candidates are ids: give integers or text")
    return [content[0][place] for place in content[1]]


def _moment(at: Any) -> str | None:
    if at is None or isinstance(at, str):
        return at
    if hasattr(at, "isoformat"):
        return str(at.isoformat())
    if isinstance(at, np.datetime64):
        return str(at) + ("Z" if "T" in str(at) else "")
    return repr(at.item() if isinstance(at, np.generic) else at)


def train(
    stream: Stream,
    model: str | None = None,
    *,
    epochs: int | None = None,
    seed: int | None = None,
    purpose: str | None = None,
    protocol: str | None = None,
    preset: str | None = None,
    settings: dict[str, Any] | None = None,
    out: str | PathLike[str] | None = None,
    on_epoch: Callable[[Row], object] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Model:
    """Trains a model of the library on a stream.

    ``purpose`` is ``"ranking"``, for the likeliest of all destinations, or ``"benchmark"``, for AP
    and AUC as published. As for the command, it is a benchmark with a preset or with the protocols
    ``dyglib`` and ``tgb``, else a ranking. The model is ``lstep-pair`` for a ranking, unless you
    name another, and ``lstep`` for a benchmark.

    ``settings`` are paths with values, as ``--set`` takes them: ``{"train.learning_rate": 1e-3}``.
    With ``out`` the run is kept in a folder, and the same call goes on where it stopped.
    ``on_epoch`` gets a dict after every epoch; if it raises, training ends. Other arguments are the
    protocol's.
    """
    keys = dict(settings or {})
    if epochs is not None:
        keys["train.epochs"] = epochs
    if seed is not None:
        keys["train.seed"] = seed
    named = keys.pop("purpose", None)
    published = (
        preset is not None or protocol not in (None, "stream") or "protocol.name" in keys
    )
    purpose = purpose or named or ("benchmark" if published else "ranking")
    given = [
        (path, value if isinstance(value, str) else json.dumps(value))
        for path, value in keys.items()
    ]
    what = None if protocol is None and not options else asked(protocol or "stream", **options)
    with Progress(progress) as told:

        def tell(kind: str, first: Any, second: Any) -> None:
            if isinstance(first, str):
                if on_epoch is not None:
                    on_epoch(json.loads(first))
            else:
                told(kind, first, second)

        folder = None if out is None else fspath(out)
        core = _core.train(stream._core, model, purpose, what, preset, given, folder, tell)
    return Model(core, stream._text)


def load(path: str | PathLike[str], stream: Stream | None = None) -> Model:
    """Opens a file that `Model.save` or the command wrote, or the folder of a run.

    A run that was trained on a stream in memory needs that stream.
    """
    return Model(_core.load(fspath(path), None if stream is None else stream._core), False)


def compare(
    stream: Stream,
    models: Iterable[Any],
    protocol: str = "stream",
    *,
    seeds: Iterable[int] = (0,),
    epochs: int | None = None,
    negatives: Names = None,
    settings: Names = None,
    progress: bool | None = None,
    **options: Any,
) -> Comparison:
    """Trains and evaluates models under one protocol, over seeds: means and deviations.

    Models that learn, yours and the library's, are trained for every seed; models that only count
    are asked once.
    """
    learned, runs = set(_core.models()[0]), []
    for model in models:
        for seed in seeds:
            name, given = entry(model)
            if name in learned and isinstance(model, (str, tuple)):
                keys = {f"model.{key}": json.loads(value) for key, value in given}
                trained = train(
                    stream, name, epochs=epochs, seed=seed, purpose="benchmark", protocol=protocol,
                    settings=keys, progress=progress, **options,
                )
                found = trained.evaluate(negatives=negatives, settings=settings, progress=progress)
            else:
                found = evaluate(
                    stream, model, protocol, negatives=negatives, settings=settings,
                    train_seed=seed, progress=progress, **options,
                )
            runs.append((seed, found))
            if isinstance(model, (str, tuple)) and name not in learned:
                break
    return Comparison(runs)
