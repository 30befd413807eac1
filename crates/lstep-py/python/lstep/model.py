"""Training, and trained models."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

from . import _core
from ._jobs import Names, asked, evaluate
from ._progress import Progress
from .results import Evaluation, Row
from .stream import Stream


def models() -> dict[str, list[str]]:
    """The names of the library's models: those that learn, and those that only count.

    >>> "lstep-pair" in models()["learned"], "edgebank" in models()["counting"]
    (True, True)
    """
    learned, counting = _core.models()
    return {"learned": learned, "counting": counting}


class Model:
    """A trained model."""

    def __init__(self, core: _core.Model) -> None:
        self._core = core

    @property
    def settings(self) -> str:
        """All settings, as TOML."""
        return self._core.settings()

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
            return Evaluation(json.loads(self._core.evaluate(what, baselines, told)))


def train(
    stream: Stream,
    model: str = "lstep-pair",
    *,
    epochs: int | None = None,
    seed: int | None = None,
    protocol: str | None = None,
    preset: str | None = None,
    settings: dict[str, Any] | None = None,
    out: str | PathLike[str] | None = None,
    on_epoch: Callable[[Row], object] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Model:
    """Trains a model of the library on a stream.

    ``settings`` are paths with values, as ``--set`` takes them: ``{"train.learning_rate": 1e-3}``.
    With ``out`` the run is kept in a folder, and the same call goes on where it stopped.
    ``on_epoch`` gets a dict after every epoch; if it raises, training ends.
    """
    keys = dict(settings or {})
    if epochs is not None:
        keys["train.epochs"] = epochs
    if seed is not None:
        keys["train.seed"] = seed
    given = [(path, value if isinstance(value, str) else json.dumps(value)) for path, value in keys.items()]
    what = None if protocol is None and not options else asked(protocol or "stream", **options)
    with Progress(progress) as told:

        def tell(kind: str, first: Any, second: Any) -> None:
            if isinstance(first, str):
                if on_epoch is not None:
                    on_epoch(json.loads(first))
            else:
                told(kind, first, second)

        folder = None if out is None else fspath(out)
        return Model(_core.train(stream._core, model, what, preset, given, folder, tell))


def load(path: str | PathLike[str]) -> Model:
    """Opens the folder of a run."""
    return Model(_core.load(fspath(path)))


def compare(stream: Stream, models: Any, **options: Any) -> Evaluation:
    """The same as `evaluate` with a list of models."""
    return evaluate(stream, models, **options)
