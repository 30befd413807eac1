"""How objects of Python become models: made, copied, saved and loaded."""

from __future__ import annotations

import copy
import inspect
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def fresh(given: Any) -> Any:
    """A model that has observed nothing: a copy of an object, or what a class or function makes."""
    makes = isinstance(given, type) or (callable(given) and not hasattr(given, "score"))
    model = given() if makes else fork(given)
    for name in ("score", "observe"):
        if not callable(getattr(model, name, None)):
            raise TypeError(
                f"{type(model).__name__} has no {name}: a model has score(past, queries) and "
                "observe(events)"
            )
    reset(model)
    return model


def reset(model: Any) -> None:
    """Lets a model forget what it has observed, if it knows how."""
    forget = getattr(model, "reset", None)
    if callable(forget):
        forget()


def fork(model: Any) -> Any:
    """A copy that goes its own way."""
    own = getattr(model, "fork", None)
    return own() if callable(own) else copy.deepcopy(model)


def abilities(given: Any) -> dict[str, bool]:
    """What a model can do beside scoring. PyTorch's own ``train(mode)`` is not a hook."""
    kind: Any = given
    if not isinstance(given, type) and not hasattr(given, "score") and callable(given):
        kind = given()
    return {
        "prepare": callable(getattr(kind, "prepare", None)),
        "train": _takes(kind, "train", 2),
        "save": _takes(kind, "save", 1) and _takes(kind, "load", 1),
    }


def _takes(kind: Any, name: str, arguments: int) -> bool:
    method = getattr(kind, name, None)
    if not callable(method):
        return False
    given = [None] * (arguments + isinstance(kind, type))
    try:
        inspect.signature(method).bind(*given)
    except (TypeError, ValueError):
        return False
    return True


def reopened(given: Any, model: Any) -> Any:
    """A model that was saved to a file and loaded by another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        other = fresh(given)
        loaded = other.load(path)
    return other if loaded is None else loaded


def as_scores(given: Any) -> np.ndarray[Any, Any]:
    """Scores as a flat array of doubles, from arrays, tensors and lists."""
    if hasattr(given, "detach"):
        # numpy has no bfloat16.
        given = given.detach().cpu().double().numpy()
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"score() gave {type(given).__name__}, not numbers: {error}") from None
    return np.ascontiguousarray(array.reshape(-1))
