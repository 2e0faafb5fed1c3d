"""Protocol bytes as values: any chunking gives the same values, and nothing hides (provider-tape §6.1, §7.2)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.artifacts.protocol_stream import MalformedError, ValueStream, parse_values
from cassettes.providers.value_audit import audit_value

JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return {name: plain(member) for name, member in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def streamed(pieces: list[bytes]) -> list[Any]:
    stream = ValueStream()
    values = [value for piece in pieces for value in stream.feed(piece)]
    return values + list(stream.finish())


@given(st.lists(JSON, max_size=4), st.data(), st.sampled_from([None, 2]), st.sampled_from(["\n", " ", "\r\n"]))
def test_any_chunking_gives_the_same_values(values: list[Any], data: st.DataObject, indent: Any, gap: str) -> None:
    whole = gap.join(json.dumps(value, indent=indent, ensure_ascii=False) for value in values).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    edges = [0, *cuts, len(whole)]
    pieces = [whole[left:right] for left, right in itertools.pairwise(edges)]
    assert [plain(value) for value in streamed(pieces)] == values


@pytest.mark.parametrize(
    "data",
    [b"hello", b'{"a":', b'{"a":1}}', b"[1,]", b"NaN", b"-Infinity", b"01", b'"a""b"', b'{"a" 1}', b"tru", b'"\n"'],
)
def test_bytes_that_are_no_json_values_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        streamed([data])
    with pytest.raises(MalformedError):
        streamed([data[:1], data[1:]])


def test_adjacent_objects_need_no_space_between_them() -> None:
    assert [plain(value) for value in streamed([b'{"a":true}{"b":[]}[null]'])] == [{"a": True}, {"b": []}, [None]]


def test_nesting_is_read_down_to_ten_thousand() -> None:
    assert parse_values(b"[" * 10_000 + b"]" * 10_000)
    with pytest.raises(MalformedError):
        parse_values(b"[" * 10_001 + b"]" * 10_001)


@pytest.mark.parametrize("tail", [b"]" * 1_999 + b"}", b"," + b"]" * 2_000, b"]" * 1_999, b"]" * 2_001])
def test_deep_but_broken_values_are_refused(tail: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_values(b"[" * 2_000 + b'{"a":[true,null,-1.5e3,"x\\n"],"b":{}}' + tail)


def test_a_duplicate_member_hides_nothing_even_when_deeply_nested() -> None:
    hidden = b'{"email":"a@b.c","email":""}'
    assert audit_value(parse_values(hidden)[0])
    deep = parse_values(b"[" * 5_000 + hidden + b"]" * 5_000)[0]
    assert audit_value(deep)


def test_lone_surrogates_bad_utf8_and_huge_numbers_are_values() -> None:
    assert len(parse_values(b'"\\ud800" "\xff" ' + b"9" * 10_000)) == 3


def test_only_an_unfinished_value_is_held() -> None:
    stream = ValueStream()
    for _ in range(200):
        assert len(list(stream.feed(b'{"a":\n"' + b"x" * 1_000 + b'"}\n'))) == 1
    assert len(stream._held) < 10
