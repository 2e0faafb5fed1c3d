"""Quick proof that protocol lines hold nothing to report; whatever is not proven is left to the exact audit.

The exact audit (`protocol_stream`, `value_audit`) builds every value. Nearly all traffic holds no audited member at
all, which a search in its bytes shows at a fraction of the cost. The proof errs to one side only: it may fail for
clean lines, and never succeeds for others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

import msgspec

from cassettes.artifacts.protocol_stream import MalformedError, parse_values
from cassettes.providers.value_audit import audit_values, folded, is_audited, is_reported

WORDS = (b"email", b"token", b"key", b"authorization", b"account", b"cwd", b"path", b"directory")
"""Every audited member name holds one of these, once case, `_` and `-` are taken away."""


class _AnyObject(msgspec.Struct):
    """An object whose members are checked for their syntax and skipped."""


_LONG = 2000  # bytes of a line from which on building its value costs less than searching its text
_SYNTAX = msgspec.json.Decoder(_AnyObject)
_ESCAPED_LETTER = re.compile(rb"\\u00(?:[4-7]|2d|5f)")  # a name could be spelled with these
_ESCAPED_KEY = re.compile(rb'\\[^"\\]+"\s*:')
_KELVIN = (b"\xe2\x84\xaa", b"\\u212a")  # its lower case is an ASCII k
_ANY_KEY = re.compile(rb'"[^"\\]*("\s*:\s*)')
_KEY_WITH = {word: re.compile(word + rb'[^"\\]*("\s*:\s*)') for word in WORDS}


def clean_values(text: bytes, credential_methods: Collection[str]) -> int | None:
    """How many values complete lines hold, when each is one JSON object without a finding; None: not proven."""
    if len(text) < _LONG * text.count(b"\n"):
        lines = text.split(b"\n")
        long = [line for line in lines if len(line) >= _LONG]
        short = b"\n".join([line for line in lines if len(line) < _LONG]) if long else text
    else:
        long, short = [text], b""
    try:
        values = [value for line in long for value in parse_values(line)]
    except MalformedError:
        return None
    if audit_values(values, credential_methods) is not None:
        return None
    count = _clean_short(short, credential_methods)
    return None if count is None else count + len(values)


def _clean_short(text: bytes, credential_methods: Collection[str]) -> int | None:
    try:
        text.decode()  # the decoder does not look into what it skips
        count = len(_SYNTAX.decode_lines(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    lowered = text.lower()
    if _may_hide_names(lowered):
        return None
    for start, end in _suspect_lines(text, lowered, credential_methods):
        try:
            if audit_values(parse_values(text[start:end]), credential_methods) is not None:
                return None
        except MalformedError:
            return None
    return count


def _may_hide_names(lowered: bytes) -> bool:
    """Whether a member name may be spelled with escapes or with a letter that only looks like another."""
    if any(one in lowered for one in _KELVIN):
        return True
    if b"\\" not in lowered:
        return False
    if b"\\u00" in lowered and _ESCAPED_LETTER.search(lowered):
        return True
    return _ESCAPED_KEY.search(lowered) is not None


def _suspect_lines(text: bytes, lowered: bytes, credential_methods: Collection[str]) -> Iterator[tuple[int, int]]:
    """(start, end) of the lines that only the exact audit can judge; a line may come more than once."""
    for method in credential_methods:
        word = max(folded(method).split("/"), key=len).encode()
        at = lowered.find(word)
        while at >= 0:
            line = _line_at(text, at)
            yield line
            at = lowered.find(word, line[1])
    plain = lowered.translate(None, b"_-")
    present = [word for word in WORDS if word in plain]
    if not present:
        return
    if any(plain.count(word) != lowered.count(word) for word in present):  # a word may be cut by `_` or `-`
        patterns = [_ANY_KEY]
    else:
        patterns = [_KEY_WITH[word] for word in present]
    for pattern in patterns:
        for match in pattern.finditer(lowered):
            end = match.start(1)
            name = text[text.rfind(b'"', 0, end) + 1 : end]
            if _is_audited(name) and not _is_clean(name, text, match.end(1)):
                yield _line_at(text, match.start())


def _line_at(text: bytes, at: int) -> tuple[int, int]:
    end = text.find(b"\n", at)
    return text.rfind(b"\n", 0, at) + 1, len(text) if end < 0 else end


@lru_cache(4096)
def _is_audited(name: bytes) -> bool:
    return is_audited(name.decode())


def _is_clean(name: bytes, text: bytes, at: int) -> bool:
    """Whether the plain value that begins here may stand under this name; anything else is not for us to say."""
    mark = text[at : at + 1]
    if mark == b'"':
        value = text[at + 1 : text.find(b'"', at + 1)]
        return b"\\" not in value and not _is_reported(name, value)
    return mark not in (b"[", b"{") and text[at : at + 4] == b"null"


@lru_cache(4096)
def _is_reported(name: bytes, value: bytes) -> bool:
    return is_reported(name.decode(), value.decode())
