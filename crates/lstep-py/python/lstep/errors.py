"""What can go wrong. Every exception is also one of Python's own."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """An error of lstep, with the fields behind its sentence.

    ``problem`` says what is wrong, ``remedy`` what to do. Where a table is wrong, ``row`` (from 0),
    ``column`` and ``value`` say where; where a setting is, ``setting`` and ``value``.
    """

    problem: str | None
    remedy: str | None
    setting: str | None
    value: str | None
    file: str | None
    row: int | None
    column: str | None

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        for name in ("problem", "remedy", "setting", "value", "file", "row", "column"):
            setattr(self, name, fields.get(name))
        self._fields = fields

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self.args[0], self._fields))


class SettingError(Error, ValueError):
    """An argument has a value it cannot have."""


class InputError(Error, ValueError):
    """Events, features or files cannot be used as asked."""


class NotFoundError(Error, KeyError):
    """Something is named that does not exist."""


class ConflictError(Error, RuntimeError):
    """The call is sound, but does not fit what is there already."""


class NumericError(Error, FloatingPointError):
    """A computation gave infinity or NaN."""


class FileError(Error, OSError):
    """The operating system refused."""


class MissingPackageError(Error, ImportError):
    """A package that the call needs is not installed."""


_KINDS: dict[str, type[Error]] = {
    "setting": SettingError,
    "input": InputError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "numeric": NumericError,
    "io": FileError,
}


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    return kind(message, **fields)


def _make(kind: str, message: str, fields: dict[str, Any]) -> BaseException:
    if kind == "interrupted":
        return KeyboardInterrupt(message)
    if fields.get("row") is not None:
        # Tables in memory have rows from 0, files have lines from 1.
        line, row = f", line {fields['row'] + 1}", f", row {fields['row']}"
        if "." not in str(fields.get("file")):
            message = message.replace(line, row, 1)
    return _KINDS.get(kind, Error)(message, **fields)
