"""Temporal link prediction that cannot see the future.

>>> import lstep
>>> stream = lstep.Stream([1, 2, 1, 3], [2, 3, 3, 1], [0.0, 1.5, 1.5, 4.0], name="letters")
>>> stream
Stream('letters', 4 events, 3 nodes)

`Stream` takes tables, arrays and files. `evaluate` asks models, yours among them, under one
protocol. `audit` checks whether a model could have known what it should not. `train` trains one of
the models here.
"""

from __future__ import annotations

from . import dyglib, errors, ray, spark
from ._core import Batch, Batches, Events, Past, Queries, __version__
from ._jobs import audit, evaluate, leak_check, negatives, split
from .errors import (
    ConflictError,
    Error,
    FileError,
    InputError,
    MissingPackageError,
    NotFoundError,
    NumericError,
    SettingError,
)
from .model import Model, compare, load, models, train
from .results import (
    Audit,
    Comparison,
    Evaluation,
    Inspection,
    LawResult,
    QuerySet,
    Recommendations,
    Report,
)
from .stream import Stream, read

__all__ = [
    "Audit",
    "Batch",
    "Batches",
    "Comparison",
    "ConflictError",
    "Error",
    "Evaluation",
    "Events",
    "FileError",
    "InputError",
    "Inspection",
    "LawResult",
    "MissingPackageError",
    "Model",
    "NotFoundError",
    "NumericError",
    "Past",
    "Queries",
    "QuerySet",
    "Recommendations",
    "Report",
    "SettingError",
    "Stream",
    "__version__",
    "audit",
    "compare",
    "dyglib",
    "errors",
    "evaluate",
    "leak_check",
    "load",
    "models",
    "negatives",
    "ray",
    "read",
    "spark",
    "split",
    "train",
]
