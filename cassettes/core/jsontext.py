"""The JSON of the contract: exact bytes written, bounded strict reading (cassette-v7 §3, provider-tape §7.2)."""

from __future__ import annotations

import decimal
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from cassettes.core.errors import CassetteRejected, Place

MAX_DEPTH = 10_000
_DEEP_FRAMES = 4 * MAX_DEPTH
_CONTAINERS = (dict, list, tuple)
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_SPECIAL = re.compile("[<>&\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHITESPACE = b" \t\r\n"


class Number(str):
    """A number of a protocol value with its literal digits: `1`, `1.0` and `1e0` are three values."""

    __slots__ = ()


# ---------------------------------------------------------------------- writing


def compact(value: object) -> str:
    """Compact form: no spaces, members in the order given, HTML escapes."""
    if _has_float(value):
        return _escaped("".join(_written(value, "", "")))
    return _escaped(_COMPACT.encode(value))


def indented(value: object) -> str:
    """Indented form with one final newline; members in the order given."""
    if _has_float(value):
        return _escaped("".join(_written(value, "\n", "  "))) + "\n"
    return _escaped(_INDENTED.encode(value)) + "\n"


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_INDENTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ": "), indent=2, allow_nan=False)


def sorted_map(value: Any) -> Any:
    """A free value with every object's members sorted by code point."""
    if isinstance(value, dict):
        return {key: sorted_map(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_map(one) for one in value]
    return value


def through_double(value: Any) -> Any:
    """A free value whose numbers went through an IEEE double once (cassette-v7 §3.3)."""
    if isinstance(value, dict):
        return {key: through_double(one) for key, one in value.items()}
    if isinstance(value, list):
        return [through_double(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**53) <= value <= 2**53 else float(value)
    return value


def _escaped(text: str) -> str:
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    return _SPECIAL.sub(lambda match: _ESCAPES[match.group()], text)


def _has_float(value: object) -> bool:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, float):
            return True
        if isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list | tuple):
            pending.extend(one)
    return False


def _written(value: Any, line: str, step: str) -> Iterator[str]:
    """The value as text in pieces; `line` is newline + indentation, or empty for the compact form."""
    inner = line + step
    if isinstance(value, float):
        yield format_double(value)
    elif isinstance(value, dict) and value:
        yield "{"
        for index, (key, one) in enumerate(value.items()):
            yield f"{',' if index else ''}{inner}{_quote(str(key))}{': ' if step else ':'}"
            yield from _written(one, inner, step)
        yield line + "}"
    elif isinstance(value, list | tuple) and value:
        yield "["
        for index, one in enumerate(value):
            yield f"{',' if index else ''}{inner}"
            yield from _written(one, inner, step)
        yield line + "]"
    else:
        yield _COMPACT.encode(value)


def format_double(value: float) -> str:
    """A double as text: shortest digits, exponent form only below 1e-6 and from 1e21 (cassette-v7 §3.1)."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no JSON value")
    if value == 0:
        return "0"
    digits = repr(value)
    if 1e-6 <= abs(value) < 1e21:
        text = format(decimal.Decimal(digits), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = digits.partition("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-').lstrip('0')}"


# ---------------------------------------------------------------------- reading


def decode_strict(data: bytes, *, file: str = "", line: int = 0) -> Any:
    """One JSON value of a Cassette file.

    Duplicate member names, NaN, text after the value, a byte order mark and nesting beyond 10 000 are refused with
    their place; lone surrogates and invalid UTF-8 become U+FFFD (cassette-v7 §3.2, H3).
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise _bad("the text begins with a byte order mark", file, line)
    text = data.decode("utf-8", "replace")
    try:
        with deep_nesting():
            value = _STRICT.decode(text)
            if may_be_deep(text) and is_too_deep(value):
                raise _too_deep(file, line)
            return _clean(value) if "\\u" in text else value
    except _Duplicate as duplicate:
        raise CassetteRejected(
            f"member {duplicate.name!r} is given twice",
            code="json_duplicate_member",
            place=Place(file, line),
            hint="write each member once",
        ) from None
    except RecursionError:
        raise _too_deep(file, line) from None
    except ValueError as error:
        raise _bad(str(error), file, line) from None


def may_be_deep(text: str) -> bool:
    """Whether a text has so many brackets that its value could be nested too deeply."""
    return len(text) > MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH


def is_too_deep(value: Any) -> bool:
    """Whether a decoded value is nested deeper than 10 000; level by level, without recursion.

    A tuple is an object as its members in order.
    """
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner = list(one.values())
            else:
                inner = [member for _, member in one] if isinstance(one, tuple) else one
            below += [item for item in inner if isinstance(item, _CONTAINERS)]
        if not below:
            return False
        level = below
    return True


def _too_deep(file: str, line: int) -> CassetteRejected:
    return CassetteRejected("the value is nested too deeply", code="json_too_deep", place=Place(file, line))


@contextmanager
def deep_nesting() -> Iterator[None]:
    """Let the interpreter follow values as deep as a Cassette may hold them: 10 000 levels.

    The C stack of a thread (8 MiB) takes four times that; beyond Python's own limit a `RecursionError` would come.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Duplicate(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Duplicate(name)
            seen.add(name)
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is out of range")
    return value


def _bounded_int(text: str) -> int | float:
    return int(text) if len(text) <= 400 else _finite(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded_int, strict=True
)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return value


def _bad(detail: str, file: str, line: int) -> CassetteRejected:
    return CassetteRejected(f"this is not JSON: {detail}", code="json_invalid", place=Place(file, line))


# ---------------------------------------------------------------------- protocol values


def decode_values(data: bytes) -> list[Any]:
    """A whitespace separated sequence of JSON values, at least one; numbers keep their literal text.

    `protocol_json_invalid` when the bytes are anything else.
    """
    return list(iter_values(data, exact=True))


def iter_values(data: bytes, *, exact: bool) -> Iterator[Any]:
    """The values of a sequence. Without `exact`, numbers are Python numbers (fast)."""
    if not exact:
        try:
            yield orjson.loads(data)
            return
        except orjson.JSONDecodeError:
            pass
    text = data.decode("utf-8", "replace")
    deep = may_be_deep(text)
    decoder = _EXACT if exact else _STRICT
    position, end, found = 0, len(text), False
    while True:
        while position < end and text[position] in " \t\r\n":
            position += 1
        if position >= end:
            break
        try:
            value, position = decoder.raw_decode(text, position)
        except _Duplicate as duplicate:
            raise CassetteRejected(f"member {duplicate.name!r} is given twice", code="json_duplicate_member") from None
        except (ValueError, RecursionError) as error:
            raise CassetteRejected(f"not a JSON value: {error}", code="protocol_json_invalid") from None
        if deep and is_too_deep(value):
            raise _too_deep("", 0)
        found = True
        yield value
    if not found:
        raise CassetteRejected("no JSON value", code="protocol_json_invalid")


_EXACT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=Number, parse_int=Number, strict=True
)


def encode_values(values: list[Any]) -> bytes:
    """Values as written to a tape: compact, sorted keys, HTML escapes, one newline after each."""
    return b"".join(encode_value(value) + b"\n" for value in values)


def encode_value(value: Any) -> bytes:
    """One protocol value; `Number`s are written with their literal digits."""
    text = "".join(_parts(value))
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    return _SPECIAL.sub(lambda match: _ESCAPES[match.group()], text).encode()


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, Number):
        yield str(value)
    elif isinstance(value, dict):
        yield "{"
        for index, key in enumerate(sorted(value)):
            yield f"{',' if index else ''}{_quote(key)}:"
            yield from _parts(value[key])
        yield "}"
    elif isinstance(value, list):
        yield "["
        for index, one in enumerate(value):
            if index:
                yield ","
            yield from _parts(one)
        yield "]"
    elif isinstance(value, str):
        yield _quote(value)
    else:
        yield compact(value)


_quote: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode


def values_equal(left: Any, right: Any) -> bool:
    """Deep equality: member order irrelevant, numbers literal, `Number` never equal to text."""
    return first_difference(left, right) is None


def first_difference(left: Any, right: Any, path: str = "$") -> str | None:
    """JSON path of the first difference between two values, or None."""
    if type(left) is not type(right):
        return path
    if isinstance(left, dict):
        for key in sorted(left.keys() | right.keys()):
            if key not in left or key not in right:
                return f"{path}.{key}"
            found = first_difference(left[key], right[key], f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(left, list):
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            found = first_difference(one, other, f"{path}[{index}]")
            if found:
                return found
        return None if len(left) == len(right) else path
    return None if left == right else path
