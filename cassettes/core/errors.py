"""The errors of the product: each has a stable code, an exact place and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SHOWN = 512  # characters of an expected or found value that an error repeats


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is wrong: a file of the artifact, a 1-based line in it, a JSON path (`$.a.b[0]`)."""

    file: str = ""
    line: int = 0
    path: str = ""

    def __str__(self) -> str:
        parts = [self.file] if self.file else []
        if self.line:
            parts.append(f"line {self.line}")
        if self.path:
            parts.append(self.path)
        return ", ".join(parts)


def shown(value: object) -> str:
    """A value as an error shows it: at most 512 characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


class RepriseError(Exception):
    """Base of every error that a person may see.

    `code` is stable and machine readable, `message` is one sentence, `hint` says what to do. `expected` and
    `found` are both sides where the error is a difference.
    """

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        place: Place | None = None,
        expected: object = None,
        found: object = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        if code:
            self.code = code
        self.place = place or Place()
        self.expected = expected
        self.found = found
        self.hint = hint

    def as_dict(self) -> dict[str, Any]:
        """The error as CLI, API and page show it."""
        result: dict[str, Any] = {"code": self.code, "message": self.message, "place": str(self.place)}
        if self.expected is not None:
            result["expected"] = shown(self.expected)
        if self.found is not None:
            result["found"] = shown(self.found)
        if self.hint:
            result["hint"] = self.hint
        return result

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        if str(self.place):
            text += f" ({self.place})"
        if self.expected is not None or self.found is not None:
            text += f"; expected {shown(self.expected)}, found {shown(self.found)}"
        return text


class CassetteRejected(RepriseError):
    """A Cassette breaks its contract (spec: cassette-v7, provider-tape, replay-state)."""

    code = "cassette_rejected"


class InputRejected(RepriseError):
    """Something given by a person (an upload, a transcript, an option) cannot be used."""

    code = "input_rejected"


class RecordingError(RepriseError):
    """A step of the recording workflow failed (codes: cassette-v7 §15)."""

    code = "recording_failed"


class ReplayFailed(RepriseError):
    """A replay stopped closed (codes: replay-runtime §11.4, provider-tape §12.3)."""

    code = "replay_failed"


class Conflict(RepriseError):
    """A state already exists with other content."""

    code = "conflict"
