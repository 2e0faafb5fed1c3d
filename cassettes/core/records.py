"""Reading and writing of fixed records: lenient where the reference is, strict about types (cassette-v7 §3.2).

A member name may be written in another letter case, a missing or `null` member is the zero value, an unknown member is
ignored; a wrong type is refused with its JSON path.
"""

from __future__ import annotations

import re
import types
import typing
from functools import cache
from typing import Any, ClassVar, TypeVar

import msgspec

from cassettes.core import jsontext
from cassettes.core.errors import CassetteRejected, Place

_INTEGER_LIMIT = 1 << 63
_ODD_NUMBER = re.compile(rb"[:\[,]\s*(?:-\d|\d{19,}\s*[,}\]])")  # perhaps negative, or out of range


class Record(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of the records of the contract. `omit_empty` names the members left out at their zero value."""

    omit_empty: ClassVar[frozenset[str]] = frozenset()


class Value(msgspec.Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    """Base of the records that are values: hashable, never changed."""

    omit_empty: ClassVar[frozenset[str]] = frozenset()


AnyRecord = Record | Value
T = TypeVar("T", bound=Record | Value)


@cache
def _fields(kind: type[AnyRecord]) -> list[tuple[str, str, Any]]:
    hints = typing.get_type_hints(kind)
    return [(one.name, one.encode_name, hints[one.name]) for one in msgspec.structs.fields(kind)]


def to_wire(record: AnyRecord) -> dict[str, Any]:
    """The record as it is written: members in the order of the spec, omit-empty members left out."""
    result: dict[str, Any] = {}
    for name, wire, _ in _fields(type(record)):
        value = getattr(record, name)
        if wire in record.omit_empty and (value is None or value == "" or value == 0 or value == {}):
            continue
        result[wire] = _wire_value(value)
    return result


def _wire_value(value: Any) -> Any:
    if isinstance(value, Record | Value):
        return to_wire(value)
    if isinstance(value, list):
        return [_wire_value(one) for one in value]
    if isinstance(value, dict):
        return {key: _wire_value(value[key]) for key in sorted(value)}
    return value


def decode_record(kind: type[T], data: bytes, *, file: str) -> T:
    """The bytes of a whole file as a record: at once when it is written as we write it, else member by member."""
    value = jsontext.decode_strict(data, file=file)
    if not _ODD_NUMBER.search(data):
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, RecursionError):
            pass
    return read_record(kind, value, file=file)


def read_record(kind: type[T], value: Any, *, file: str, line: int = 0, path: str = "$") -> T:
    """`value` (decoded JSON) as a record; `record_type_invalid` names the member with a wrong type."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _wrong(path, "an object", value, file, line)
    folded: dict[str, Any] | None = None
    members: dict[str, Any] = {}
    for name, wire, hint in _fields(kind):  # type: ignore[arg-type]  # a class is hashable
        given = value.get(wire)
        if given is None and wire not in value:
            folded = folded if folded is not None else {key.lower(): one for key, one in value.items()}
            given = folded.get(wire.lower())
        if given is not None:
            members[name] = _read(hint, given, file, line, f"{path}.{wire}")
    return kind(**members)


def _read(hint: Any, value: Any, file: str, line: int, path: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        (hint,) = [one for one in typing.get_args(hint) if one is not type(None)]
        origin = typing.get_origin(hint)
    if origin is list:
        if not isinstance(value, list):
            raise _wrong(path, "an array", value, file, line)
        (item,) = typing.get_args(hint)
        return [_read_item(item, one, file, line, f"{path}[{index}]") for index, one in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value, file, line)
        item = typing.get_args(hint)[1]
        if item is Any:
            return value
        return {key: _read_item(item, one, file, line, f"{path}.{key}") for key, one in value.items()}
    if isinstance(hint, type) and issubclass(hint, Record | Value):
        return read_record(hint, value, file=file, line=line, path=path)
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _INTEGER_LIMIT:
            raise _wrong(path, "a non-negative integer", value, file, line)
        return value
    if hint is str and not isinstance(value, str):
        raise _wrong(path, "text", value, file, line)
    if hint is bool and not isinstance(value, bool):
        raise _wrong(path, "true or false", value, file, line)
    return value


def _read_item(hint: Any, value: Any, file: str, line: int, path: str) -> Any:
    """An element that is `null` is the zero value of its type."""
    if value is None and isinstance(hint, type):
        return hint()
    return _read(hint, value, file, line, path)


def _wrong(path: str, expected: str, value: Any, file: str, line: int) -> CassetteRejected:
    found = {dict: "an object", list: "an array", str: "text", bool: "true or false"}.get(type(value), repr(value))
    return CassetteRejected(
        f"{path} has the wrong type",
        code="record_type_invalid",
        place=Place(file, line, path),
        expected=expected,
        found=found,
    )


def compact_bytes(record: AnyRecord) -> bytes:
    """The record in compact form, without a newline."""
    return jsontext.compact(to_wire(record)).encode()


def indented_bytes(record: AnyRecord) -> bytes:
    """The record in indented form, with its final newline."""
    return jsontext.indented(to_wire(record)).encode()


def present(text: str) -> bool:
    """Non-empty after trimming."""
    return bool(text.strip())
