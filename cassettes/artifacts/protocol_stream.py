"""Provider protocol bytes as a stream of JSON values, audited as they arrive (spec: provider-tape §6.1, §7.2).

A stream is the data of one connection and kind, in tape order. It is cut at places where no value is open, so only
an unfinished value is ever held. Objects are read as their members in order: a duplicate member hides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from cassettes.core.jsontext import MAX_DEPTH, is_too_deep, may_be_deep
from cassettes.providers.value_audit import Members

_SPACE = " \t\n\r"
_BLANKS = re.compile(rb"[ \t\n\r]*\Z")
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')
_TOKEN = re.compile(r"[ \t\n\r]*(?:([\[\]{},:])|(\")|(true|false|null)|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?))")
_WORDS = {"true": True, "false": False, "null": None}


class MalformedError(ValueError):
    """The bytes are not a sequence of JSON values."""


def _members(pairs: list[tuple[str, Any]]) -> Members:
    return tuple(pairs)


def _number(_: str) -> int:
    return 0  # which number it is never matters to the audit, and a huge literal costs time


def _constant(name: str) -> Any:
    raise MalformedError(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_number, parse_float=_number, parse_constant=_constant
)


def parse_values(data: bytes) -> list[Any]:
    """The values of a byte sequence; objects are `Members`, every number is 0. Raises `MalformedError`."""
    text = data.decode("utf-8", "replace")
    values: list[Any] = []
    at = 0
    deep = may_be_deep(text)
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at == len(text):
            return values
        try:
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            value, end = _parse_deep(text, at)
        except ValueError:
            raise MalformedError("not JSON") from None
        if deep and is_too_deep(value):
            raise MalformedError("too deep")
        if not isinstance(value, tuple | list) and end < len(text) and text[end] not in _SPACE:
            raise MalformedError("text after a value")
        values.append(value)
        at = end


def _parse_deep(text: str, at: int) -> tuple[Any, int]:
    """One value without recursion, for nesting that the fast parser cannot follow."""
    stack: list[tuple[list[Any], bool]] = []  # open containers: their items or pairs, and whether it is an object
    key: str | None = None
    keys: list[str | None] = []
    expect = "value"  # value, first (value or end), key, first-key, colon, comma
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise MalformedError("not JSON")
        at = token.end()
        mark, quote, word, number = token.groups()
        value: Any
        if quote:
            try:
                value, at = scanstring(text, at, True)
            except ValueError:
                raise MalformedError("not JSON") from None
            if expect in ("key", "first-key"):
                key, expect = value, "colon"
                continue
        elif word or number:
            value = _WORDS[word] if word else 0
        elif mark in ("[", "{"):
            if expect not in ("value", "first") or len(stack) >= MAX_DEPTH:
                raise MalformedError("too deep or misplaced")
            keys.append(key)
            stack.append(([], mark == "{"))
            expect = "first-key" if mark == "{" else "first"
            continue
        elif mark in ("]", "}"):
            if not stack or stack[-1][1] != (mark == "}") or expect not in ("first", "first-key", "comma"):
                raise MalformedError("misplaced end")
            items, is_object = stack.pop()
            value = tuple(items) if is_object else items
            key = keys.pop()
            expect = "value"
        elif mark == "," and expect == "comma":
            expect = "key" if stack[-1][1] else "value"
            continue
        elif mark == ":" and expect == "colon":
            expect = "value"
            continue
        else:
            raise MalformedError("misplaced mark")
        if expect not in ("value", "first"):
            raise MalformedError("misplaced value")
        if not stack:
            return value, at
        items, is_object = stack[-1]
        items.append((key, value) if is_object else value)
        expect = "comma"


class ValueStream:
    """Bytes in, decoded values out; holds only an unfinished value."""

    def __init__(self, parse: Callable[[bytes], list[Any]] = parse_values) -> None:
        self._parse = parse
        self._held = bytearray()  # complete up to `_safe`, then an open value
        self._scanned = 0
        self._safe = 0
        self._depth = 0
        self._in_string = False
        self._scanning = False  # whether lines are not values: then every byte is scanned for value borders

    def lines_with(self, data: bytes) -> tuple[bytes, bytes] | None:
        """What complete lines and what rest there would be with these bytes; None: lines are not values here."""
        if self._scanning:
            return None
        cut = data.rfind(b"\n") + 1
        return (bytes(self._held) + data[:cut], data[cut:]) if cut else (b"", data)

    def pass_over(self, lines: bytes, rest: bytes) -> None:
        """Move on as `feed` would; the caller took the values of the lines from `lines_with`."""
        if lines:
            self._held.clear()
        self._held += rest

    def feed(self, data: bytes) -> Iterator[Any]:
        """Add bytes; yields the values that are now complete. Raises `MalformedError`."""
        before = len(self._held)
        self._held += data
        if not self._scanning:
            cut = self._held.rfind(b"\n", before) + 1  # what was held before has no end of a line
            if not cut:
                return
            try:
                values = self._parse(bytes(self._held[:cut]))
            except MalformedError:
                self._scanning = True
            else:
                del self._held[:cut]
                yield from values
                return
        self._scan()
        if self._safe:
            complete = bytes(self._held[: self._safe])
            del self._held[: self._safe]
            self._scanned -= self._safe
            self._safe = 0
            yield from self._parse(complete)

    def finish(self) -> Iterator[Any]:
        """The values of the rest. Raises `MalformedError` when the last one is cut off."""
        rest = bytes(self._held)
        self._held.clear()
        if not _BLANKS.match(rest):
            yield from self._parse(rest)

    def _scan(self) -> None:
        """Move over the new bytes and remember the last place where no value is open."""
        held, at = self._held, self._scanned
        while at < len(held):
            if self._in_string:
                found = _INSIDE.search(held, at)
                if found is None:
                    at = len(held)
                    break
                at = found.end()
                if found.group() == b"\\":
                    if at == len(held):  # the escaped byte comes later: look at the backslash again
                        at -= 1
                        break
                    at += 1
                else:
                    self._in_string = False
                continue
            found = _OUTSIDE.search(held, at)
            if found is None:
                at = len(held)
                break
            at = found.end()
            mark = found.group()
            if mark == b'"':
                self._in_string = True
            elif mark in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth < 0:
                    raise MalformedError("misplaced end")
                if self._depth == 0:
                    self._safe = at
        self._scanned = at
