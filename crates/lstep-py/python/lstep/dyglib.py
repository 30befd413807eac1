"""Splits, negatives and metrics for a loop in the manner of DyGLib, bit for bit.

>>> import lstep
>>> stream = lstep.Stream([1, 2] * 300, [3, 4] * 300, range(600))
>>> data = lstep.dyglib.splits(stream)
>>> len(data["train"]), len(data["test"])
(420, 90)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._foreign import as_scores
from ._jobs import negatives as _negatives
from ._jobs import split as _split
from .results import QuerySet
from .stream import Stream

Array = np.ndarray[Any, Any]


def splits(stream: Stream) -> dict[str, Array]:
    """DyGLib's parts as numbers of events, its held-out nodes taken out of training."""
    return _split(stream, "dyglib")


def negatives(
    stream: Stream,
    strategy: str = "random",
    part: str = "test",
    setting: str = "transductive",
    step: int = 200,
) -> QuerySet:
    """The negatives that DyGLib's ``NegativeEdgeSampler`` draws with the seed of that part.

    ``part`` is ``"validation"`` or ``"test"``, ``setting`` ``"transductive"`` or ``"inductive"``.
    """
    return _negatives(
        stream, "dyglib", negatives=strategy, parts=part, settings=setting, step=step
    )[0]


def link_prediction_metrics(predicts: Any, labels: Any) -> dict[str, float]:
    """Average precision and ROC-AUC of one batch, as DyGLib's function of this purpose gives.

    >>> link_prediction_metrics([0.9, 0.2, 0.6], [1, 0, 1])
    {'average_precision': 1.0, 'roc_auc': 1.0}
    """
    scores = as_scores(predicts)
    truth = np.ascontiguousarray(as_scores(labels) > 0.5)
    precision, area = _core.areas(scores, truth)
    return {"average_precision": precision, "roc_auc": area}


def reciprocal_ranks(positives: Any, negatives: Any) -> Array:
    """The reciprocal rank of each positive among its row of negatives, ties in the middle."""
    table = np.asarray(negatives.detach().cpu() if hasattr(negatives, "detach") else negatives)
    scores = as_scores(positives)
    return _core.ranks(scores, np.ascontiguousarray(table, dtype=np.float64))[0]
