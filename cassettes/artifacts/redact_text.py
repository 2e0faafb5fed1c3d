"""Secrets in JSON text replaced by filler, everything else left as it is, byte for byte.

A secret is taken apart at its white space; each piece becomes filler of the same number of characters. A provider may
stream a text in parts: messages that differ in one streamed member only are read as one text, and the filler is given
back to each in its share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cassettes.core.errors import CassetteRejected
from cassettes.core.jsontext import compact, iter_values

MIN_PIECE = 6  # characters; shorter pieces of a secret tell nothing, and would be found in ordinary words
FILLER = "redacted-"
STREAMED = frozenset({"delta", "text", "content", "output", "chunk", "partialJson", "partial_json"})
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')
_SPACE = re.compile(r"(?:\s|\\+[nrt])+")


def pieces_of(secret: str) -> list[str]:
    """What a secret is taken apart into. Empty when it is too short to be replaced."""
    return [piece for piece in _SPACE.split(secret) if len(piece) >= MIN_PIECE]


def filler(length: int) -> str:
    """Filler of so many characters."""
    return (FILLER * (length // len(FILLER) + 1))[:length]


@dataclass(slots=True)
class _Share:
    """A streamed text's part in one line."""

    line: int
    token: int
    text: str


@dataclass(slots=True)
class _Streamed:
    shares: list[_Share] = field(default_factory=list)


class Redactor:
    """Replaces the secrets it was made with."""

    def __init__(self, secrets: Iterable[str]) -> None:
        pieces = sorted({piece for secret in secrets for piece in pieces_of(secret)}, key=lambda one: (-len(one), one))
        self.pieces = pieces
        self._pattern = re.compile("|".join(map(re.escape, pieces)) or r"(?!)")

    def text(self, text: str) -> str:
        """A text without the secrets, of the same length."""
        return self._pattern.sub(lambda match: filler(len(match.group())), text)

    def json(self, data: bytes, shares: dict[int, str] | None = None) -> bytes:
        """JSON text without the secrets in its strings; `shares` gives the text of streamed tokens.

        Text that is no JSON (stderr) is searched as it is.
        """
        source = data.decode("utf-8", "surrogateescape")
        if not _is_json(data):
            return self.text(source).encode("utf-8", "surrogateescape")
        parts: list[str] = []
        at = 0
        for number, match in enumerate(_TOKEN.finditer(source)):
            old = _value(match.group(1))
            new = (shares or {}).get(number, self.text(old))
            if new != old:
                parts += [source[at : match.start()], compact(new)]
                at = match.end(1)
        return "".join([*parts, source[at:]]).encode("utf-8", "surrogateescape")

    def shares(self, lines: Iterable[bytes]) -> dict[int, dict[int, str]]:
        """For lines of one stream: (line → token → text) of streamed texts whose secrets cross lines."""
        streamed: dict[str, _Streamed] = {}
        for line_number, line in enumerate(lines):
            if not _is_json(line):
                continue
            for key, token, text in _streamed_tokens(line.decode("utf-8", "surrogateescape")):
                streamed.setdefault(key, _Streamed()).shares.append(_Share(line_number, token, text))
        result: dict[int, dict[int, str]] = {}
        for one in streamed.values():
            whole = "".join(share.text for share in one.shares)
            clean = self.text(whole)
            at = 0
            for share in one.shares if clean != whole else ():
                result.setdefault(share.line, {})[share.token] = clean[at : at + len(share.text)]
                at += len(share.text)
        return result


def _is_json(data: bytes) -> bool:
    try:
        return any(True for _ in list(iter_values(data, exact=False)))
    except CassetteRejected:
        return False


def _value(token: str) -> str:
    value: str = json.loads(token, strict=False)
    return value


def _streamed_tokens(line: str) -> Iterator[tuple[str, int, str]]:
    """(the line without the token, number of the token, its text) of every streamed member."""
    name = ""
    for number, match in enumerate(_TOKEN.finditer(line)):
        if match.group(2):
            name = match.group(1).strip('"')
            continue
        if name in STREAMED:
            text = _value(match.group(1))
            if text:
                yield line[: match.start()] + line[match.end() :], number, text
        name = ""
