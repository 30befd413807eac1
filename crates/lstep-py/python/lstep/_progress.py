"""Progress bars by tqdm, where it is installed."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Progress:
    """Shows what is done. Without a choice, bars appear in terminals and notebooks."""

    def __init__(self, wanted: bool | None) -> None:
        self._tqdm: Any = None
        self._bar: Any = None
        self._what: str | None = None
        if wanted is False or (wanted is None and not _watched()):
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._tqdm = tqdm

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __call__(self, what: str, done: Any, of: Any) -> None:
        if self._tqdm is None or not isinstance(done, int):
            return
        if what != self._what or self._bar is None:
            self._close()
            self._what = what
            self._bar = self._tqdm(total=of, desc=what, leave=False)
        self._bar.update(done - self._bar.n)


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
