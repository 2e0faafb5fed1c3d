"""JSON text as the artifact needs it: exact bytes out, lenient but unambiguous in (spec: cassette-v7 §3, provider-tape §7.2)."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable
from json.decoder import scanstring
from typing import Any

import msgspec
import orjson

from cassettes.core.errors import CassetteRejected, Place

MAX_DEPTH = 10_000
_DOUBLE_EXACT = 1 << 53
_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
_HOT = re.compile("[<>&\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(r"[ \t\n\r]*(?:([\[\]{},:])|(\")|(true|false|null)|(-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?))")
_WORDS = {"true": True, "false": False, "null": None}
# A number that may change when it goes through a double: a fraction, an exponent, 16 digits or more, minus zero.
_INEXACT = re.compile(rb"[:,\[\s](?:-?\d+(?:\d{15}|[.eE])|-0)")


class Number(msgspec.Struct, frozen=True):
    """A JSON number by its literal digits: `1`, `1.0` and `1e0` are three different values (provider-tape §7.2)."""

    text: str


class _Fault(ValueError):
    """Something the parser refuses: code, sentence, offset in the text, JSON path."""

    def __init__(self, code: str, message: str, at: int, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.at = at
        self.path = path


def json_path(*parts: str | int) -> str:
    """`$.a.b[0]` from member names and array indexes."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


# ------------------------------------------------------------------------------------------------- writing


def number_text(value: float) -> str:
    """A double as the artifact writes it: no fraction when integral, an exponent below 1e-6 or from 1e21 only."""
    if value != value or value in (float("inf"), float("-inf")):
        raise CassetteRejected("A number is not finite.", code="json_malformed", found=repr(value))
    mantissa, _, exponent = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0"
    if not -6 < point <= 21:
        tail = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _plain(value: Any) -> Any:
    """The value with every float and literal number replaced by its text."""
    kind = type(value)
    if kind is dict:
        return {name: _plain(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    if kind is float:
        return msgspec.Raw(number_text(value).encode())
    if kind is Number:
        return msgspec.Raw(value.text.encode())
    if isinstance(value, msgspec.Struct):
        changed = {}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if not isinstance(item, str | int | None):
                changed[name] = _plain(item)
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _string(value: str) -> str:
    text = json.dumps(_SURROGATE.sub("\0surrogate\0", value), ensure_ascii=False)
    return text.replace("\\u0000surrogate\\u0000", "\\ufffd")


def _slow_text(value: Any, sort: bool) -> str:
    """Compact text of builtin values without recursion, for depth or characters that the fast writer refuses."""
    out: list[str] = []
    stack: list[Any] = [value]  # values still to write, and text (as bytes) between them

    while stack:
        item = stack.pop()
        if isinstance(item, bytes):
            out.append(item.decode())
        elif isinstance(item, msgspec.Raw):
            out.append(bytes(item).decode())
        elif isinstance(item, str):
            out.append(_string(item))
        elif isinstance(item, bool) or item is None:
            out.append({True: "true", False: "false", None: "null"}[item])
        elif isinstance(item, int):
            out.append(str(item))
        elif isinstance(item, float):
            out.append(number_text(item))
        elif isinstance(item, Number):
            out.append(item.text)
        elif isinstance(item, dict):
            names = sorted(item) if sort else list(item)
            parts: list[Any] = [b"{"]
            for index, name in enumerate(names):
                parts += [("," * bool(index) + _string(name) + ":").encode(), item[name]]
            stack.extend(reversed([*parts, b"}"]))
        elif isinstance(item, list | tuple):
            parts = [b"["]
            for index, inner in enumerate(item):
                parts += [b"," * bool(index), inner]
            stack.extend(reversed([*parts, b"]"]))
        else:
            raise TypeError(f"{type(item).__name__} is not a JSON value")
    return "".join(out)


def compact(value: Any, *, keep_order: bool = False) -> str:
    """The compact text of a value, without a newline (cassette-v7 §3.1).

    Records (msgspec structs) keep the order of their members; plain maps are sorted by name unless `keep_order`.
    """
    try:
        text = msgspec.json.encode(_plain(value), order=None if keep_order else "deterministic").decode()
    except (RecursionError, UnicodeEncodeError):
        text = _slow_text(value, not keep_order)
    if _HOT.search(text):
        for character, escape in _ESCAPES:
            text = text.replace(character, escape)
    return text


def indented(value: Any, *, keep_order: bool = False) -> str:
    """The indented text of a value: two spaces a level, one final newline (cassette-v7 §3.1)."""
    try:
        return msgspec.json.format(compact(value, keep_order=keep_order), indent=2) + "\n"
    except RecursionError:
        message = "A value is nested too deeply to be written with indentation."
        raise CassetteRejected(message, code="json_too_deep") from None


# ------------------------------------------------------------------------------------------------- reading


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("one-replacement-per-byte", _replace_bytes)


def _whole(text: str) -> int | float:
    """An integer as written; outside 64 bits it is a double."""
    if len(text) > 20:
        return _fraction(text)
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 64 else float(value)


def _fraction(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return value


def _double(text: str) -> int | float:
    """A number that went through a double (cassette-v7 §3.3): an int where that is the same value and text."""
    value = _fraction(text)
    exact = value.is_integer() and abs(value) <= _DOUBLE_EXACT and (value != 0 or not text.startswith("-"))
    return int(value) if exact else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate member")
    return result


_PLAIN_DECODER = json.JSONDecoder(
    parse_int=_whole, parse_float=_fraction, parse_constant=_refuse_constant, object_pairs_hook=_unique
)
_DOUBLE_DECODER = json.JSONDecoder(
    parse_int=_double, parse_float=_double, parse_constant=_refuse_constant, object_pairs_hook=_unique
)
_LITERAL_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)


def _path_of(stack: list[tuple[Any, str | None]], key: str | None) -> str:
    parts: list[str | int] = []
    for container, name in [*stack[1:], (None, key)]:
        before = stack[len(parts)][0] if len(parts) < len(stack) else None
        if isinstance(before, list):
            parts.append(len(before))
        elif name is not None:
            parts.append(name)
        del container
    return json_path(*parts)


def _parse(text: str, at: int, number: Callable[[str], Any], *, unique: bool) -> tuple[Any, int]:
    """One value from `at`, without recursion; exact about what is wrong. Raises `_Fault`."""
    stack: list[tuple[Any, str | None]] = []  # open containers, and the member name under which each one stands
    key: str | None = None
    expect = "value"  # value | first (value or end) | first-key | key | colon | comma
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise _Fault("json_malformed", "This is not a JSON value.", at, _path_of(stack, key))
        start, at = at, token.end()
        mark, quote, word, digits = token.group(1, 2, 3, 4)
        if quote:
            try:
                value, at = scanstring(text, at, True)
            except ValueError:
                raise _Fault(
                    "json_malformed", "A string is not closed or not valid.", start, _path_of(stack, key)
                ) from None
            value = _SURROGATE.sub("\ufffd", value)
            if expect in ("key", "first-key"):
                key, expect = value, "colon"
                if unique and key in stack[-1][0]:
                    message = "A member is given twice."
                    raise _Fault("json_duplicate_member", message, start, _path_of(stack, key))
                continue
        elif word:
            value = _WORDS[word]
        elif digits:
            try:
                value = number(digits)
            except ValueError:
                raise _Fault("json_malformed", "A number is out of range.", start, _path_of(stack, key)) from None
        elif mark in "[{" and expect in ("value", "first"):
            if len(stack) >= MAX_DEPTH:
                raise _Fault("json_too_deep", f"Values are nested deeper than {MAX_DEPTH}.", start)
            stack.append(({} if mark == "{" else [], key))
            key, expect = None, "first-key" if mark == "{" else "first"
            continue
        elif mark in "]}" and stack and expect in ("first", "first-key", "comma"):
            if isinstance(stack[-1][0], dict) != (mark == "}"):
                raise _Fault("json_malformed", "A bracket closes what it did not open.", start, _path_of(stack, None))
            value, key = stack.pop()
            expect = "value"
        elif mark == "," and expect == "comma":
            expect = "key" if isinstance(stack[-1][0], dict) else "value"
            continue
        elif mark == ":" and expect == "colon":
            expect = "value"
            continue
        else:
            raise _Fault("json_malformed", f"`{mark}` stands in the wrong place.", start, _path_of(stack, key))
        if expect not in ("value", "first"):
            raise _Fault("json_malformed", "A value stands in the wrong place.", start, _path_of(stack, key))
        if not stack:
            return value, at
        container = stack[-1][0]
        if isinstance(container, dict):
            container[key] = value
        else:
            container.append(value)
        key, expect = None, "comma"


def _document(text: str, number: Callable[[str], Any]) -> Any:
    value, end = _parse(text, 0, number, unique=True)
    end = _space_end(text, end)
    if end != len(text):
        raise _Fault("json_malformed", "There is text after the value.", end)
    return value


def _space_end(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _fast(data: bytes) -> Any:
    """Decode when it is certain that no member is given twice; raises `ValueError` when it is not.

    A dropped duplicate takes the quotes of its name with it, so equal numbers of quotes before and after mean that
    nothing was dropped. The one other spelling of a quote (`\\u0022`) makes the count useless.
    """
    value = orjson.loads(data)
    if b"\\u0022" in data or orjson.dumps(value).count(b'"') != data.count(b'"'):
        raise ValueError("perhaps a duplicate member")
    return value


def decode_strict(data: bytes, *, file: str, line: int = 0, doubles: bool = False) -> Any:
    """One JSON value by the reading rules of cassette-v7 §3.2; duplicate members are rejected (H3).

    With `doubles` every number goes through a double (§3.3). `line` is the line of the file when `data` is one line
    of a JSONL file. Raises `CassetteRejected` (`json_malformed`, `json_duplicate_member`, `json_too_deep`).
    """
    if not (doubles and _INEXACT.search(data)):
        try:
            return _fast(data)
        except (ValueError, TypeError, RecursionError):
            pass
    text = data.decode("utf-8", "one-replacement-per-byte")
    decoder = _DOUBLE_DECODER if doubles else _PLAIN_DECODER
    try:
        if not _SURROGATE_ESCAPE.search(text):
            return decoder.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _document(text, _double if doubles else _whole)
    except _Fault as fault:
        place = Place(file, line or text.count("\n", 0, fault.at) + 1, fault.path)
        hint = "Write every member once." if fault.code == "json_duplicate_member" else ""
        raise CassetteRejected(str(fault), code=fault.code, place=place, hint=hint) from None


# ------------------------------------------------------------------------------------------------- protocol values


def decode_values(data: bytes) -> list[Any]:
    """A sequence of JSON values to the end of the data, numbers literal (`Number`); of equal members the last wins.

    Raises `ValueError` when the data is no such sequence, or is empty (provider-tape §7.2).
    """
    text = data.decode("utf-8", "one-replacement-per-byte")
    literal = bool(_SURROGATE_ESCAPE.search(text))
    values: list[Any] = []
    at = _space_end(text, 0)
    while at < len(text):
        start = at
        try:
            if literal:
                value, at = _parse(text, at, Number, unique=False)
            else:
                value, at = _LITERAL_DECODER.raw_decode(text, at)
        except RecursionError:
            value, at = _parse(text, at, Number, unique=False)
        end = _space_end(text, at)
        if end == at and end < len(text) and not (text[at - 1] in '"]}' or text[end] in '"[{') and start < end:
            raise ValueError("values run into each other")
        values.append(value)
        at = end
    if not values:
        raise ValueError("no value")
    return values


def encode_values(values: Iterable[Any]) -> bytes:
    """Values as protocol bytes: compact, members sorted, one newline after each (provider-tape §5.4 step 8)."""
    return "".join(compact(value) + "\n" for value in values).encode()


def values_equal(left: Any, right: Any) -> bool:
    """Deep equality: the order of members is irrelevant, numbers are compared by their digits."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys():
                return False
            pairs.extend((item, other[name]) for name, item in one.items())
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True
