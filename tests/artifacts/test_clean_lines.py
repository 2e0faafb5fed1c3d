"""The quick proof that lines hold nothing to report never says more than the exact audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassettes.artifacts import audit_tape
from cassettes.artifacts.audit_tape import TapeAudit
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.clean_lines import WORDS, clean_values
from cassettes.artifacts.protocol_stream import MalformedError, parse_values
from cassettes.core.errors import CassetteRejected
from cassettes.core.tape import TapeManifest
from cassettes.providers import value_audit
from cassettes.providers.value_audit import audit_values
from tests.making import edit, lines, reseal, write_lines
from tests.samples import CODEX, cassette_copy, change_data

METHODS = frozenset({"account/login/start", "account/chatgptAuthTokens/refresh"})


def exact(text: bytes) -> int | None:
    """What the exact audit says: the number of values, or None for a finding or for no JSON."""
    try:
        values = parse_values(text)
    except MalformedError:
        return None
    return None if audit_values(values, METHODS) is not None else len(values)


@pytest.mark.parametrize("name", sorted(value_audit.PATH_FIELDS | value_audit._SECRETS | value_audit._ACCOUNTS))
def test_every_audited_name_holds_one_of_the_words(name: str) -> None:
    assert any(word.decode() in name for word in WORDS)


@pytest.mark.parametrize(
    "text",
    [
        '{"cwd":"/home/x"}',
        '{ "cwd" : "/home/x" }',
        '{" CWD\\t":"/home/x"}',
        '{"\\u0063wd":"/home/x"}',
        '{"c\\u0077d":"/home/x"}',
        '{"cw\\u0064":"/home/x"}',
        '{"cwd":"\\u002fhome/x"}',
        '{"cwd":["/home/x"]}',
        '{"cwd":[[["a","/home/x"]]]}',
        '{"api_key":"secret"}',
        '{"a-p-i-k-e-y":"secret"}',
        '{"access_t_oken":"secret"}',
        '{"api\u212aey":"secret"}',
        '{"api\\u212aey":"secret"}',
        '{"\\u00a0apikey":"secret"}',
        '{"\u00a0apikey":"secret"}',
        '{"authorization":{}}',
        '{"accountId":7}',
        '{"email":"someone@example.org"}',
        '{"a":{"b":[{"email":"someone@example.org"}]}}',
        '{"cwd":"a","cwd":"/home/x"}',
        '{"x":"\\"","cwd":"/home/x"}',
        '{"x":":","cwd":"/home/x"}',
        '{"method":"account/login/start"}',
        '{"method":"account\\/login\\/start"}',
        '{"method":" ACCOUNT/LOGIN/START "}',
        '{"method":"account/log\\u0069n/start"}',
        '{"a":"\\ud800"',
        '{"a":"\ufffd',
        '{"a":1}{"cwd":"/home/x"}',
        '[{"cwd":"/home/x"}]',
    ],
)
def test_what_the_exact_audit_reports_is_never_clean(text: str) -> None:
    data = text.encode() + b"\n"
    assert exact(data) is None
    assert clean_values(data, METHODS) is None
    assert clean_values(b'{"a":1}\n' + data, METHODS) is None
    assert clean_values(b'{"long":"' + b"x" * 3000 + b'"}\n' + data, METHODS) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"method":"turn/started","params":{"threadId":"t"}}',
        '{"cwd":"${SESSION_CWD:s:1}"}',
        '{"path":"src/a.py","email":"replay-user@example.invalid"}',
        '{"text":"cd /home/x && cat path: \\"cwd\\":\\"/home/x\\" token=1"}',
        '{"accountId":null,"apiKey":1}',
        '{"account_name":"x","tokens":5,"total_token_count":{"a":1}}',
        '{"text":"log in, login"}',
    ],
)
def test_harmless_traffic_is_proven_clean(text: str) -> None:
    data = text.encode() + b"\n"
    assert clean_values(data, METHODS) == exact(data) == 1


_NAMES = st.sampled_from(
    ["cwd", "Path", "email", "api_key", "accountId", "a-uthorization", "method", "text", "x", " cwd ", "pathway", ":"]
)
_TEXTS = st.one_of(
    st.sampled_from(["/home/x", "${REPLAY_HOME}/x", "C:x", "file:///x", "", " ", "account/login/start", '"cwd":"/x"']),
    st.text(max_size=12),
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), _TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=4)),
    max_leaves=8,
)
_ENCODERS = st.sampled_from(
    [
        lambda value: json.dumps(value, ensure_ascii=True),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        lambda value: json.dumps(value, indent=1, ensure_ascii=False),
        lambda value: json.dumps(value).replace("w", "\\u0077"),
        lambda value: json.dumps(value).replace("/", "\\/"),
        lambda value: json.dumps(value).replace('"', '" ', 1),
        lambda value: json.dumps(value)[:-1],
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.dictionaries(_NAMES, _VALUES, max_size=4), _ENCODERS), min_size=1, max_size=4))
def test_the_quick_proof_agrees_with_the_exact_audit(
    taken: list[tuple[dict[str, object], Callable[[object], str]]],
) -> None:
    data = b"".join(encode(value).encode("utf-8", "replace") + b"\n" for value, encode in taken)
    quick = clean_values(data, METHODS)
    assert quick is None or quick == exact(data)


# ------------------------------------------------------------------------------------------------- the whole tape
@pytest.mark.parametrize("quick", [True, False])
def test_an_untouched_tape_passes_both_ways(quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cassette = cassette_copy(CODEX, tmp_path)
    report = audit(cassette, quick, monkeypatch)
    assert report.frame_count == len(lines(cassette, "provider/frames.jsonl"))
    assert report.notes == []


def spoil(frames: list[dict[str, object]], number: int) -> None:
    """A machine path in the protocol bytes of one frame."""
    change_data(frames[number], lambda data: data.replace(b'"method"', b'"cwd":"/home/x","method"', 1))


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        (lambda frames: spoil(frames, 0), "tape_non_portable_path", 1),
        (lambda frames: frames[9].update(globalSeq=11), "tape_sequence_gap", 10),
        (lambda frames: frames[9].update(chunkSeq=11), "tape_sequence_gap", 10),
        (lambda frames: frames[9].update(connectionId="connection-9"), "tape_connection_unknown", 10),
        (lambda frames: frames[9].update(kind="noise"), "tape_frame_invalid", 10),
        (lambda frames: frames[9].update(kind="exit"), "tape_frame_invalid", 10),
        (lambda frames: frames[9].update(elapsedMs=-1), "cassette_rejected", 10),
        (lambda frames: frames[9].update(data="?"), "tape_base64_invalid", 10),
        (lambda frames: frames[9].update(message='{"email":"someone@example.org"}'), "tape_sensitive_field", 10),
    ],
)
def test_a_fault_has_the_same_place_both_ways(
    change: Callable[[list[dict[str, object]]], None],
    code: str,
    line: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cassette = cassette_copy(CODEX, tmp_path)
    frames = lines(cassette, "provider/frames.jsonl")
    change(frames)
    write_lines(cassette, "provider/frames.jsonl", frames)
    reseal(cassette)
    told = []
    for quick in (True, False):
        with pytest.raises(CassetteRejected) as refused:
            audit(cassette, quick, monkeypatch)
        told.append(refused.value.as_dict())
    assert told[0] == told[1]
    assert refused.value.place.line == line
    if code != "cassette_rejected":
        assert refused.value.code == code


def test_statistics_that_lie_are_noted_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cassette = cassette_copy(CODEX, tmp_path)
    edit(cassette, "provider/manifest.json", lambda manifest: manifest.update(payloadBytes=1))
    notes = [audit(cassette, quick, monkeypatch).notes for quick in (True, False)]
    assert notes[0] == notes[1] == ["provider/manifest.json: payload_bytes differs from the frames"]


def audit(cassette: Path, quick: bool, monkeypatch: pytest.MonkeyPatch) -> audit_tape.TapeReport:
    """The tape audit, with or without the quick way."""
    folder = CassetteFolder(cassette)
    manifest: TapeManifest = folder.tape_manifest()
    with monkeypatch.context() as patch:
        if not quick:
            patch.setattr(audit_tape, "decode_frame_block", lambda block: None)
        return TapeAudit(folder, manifest).run(frames_sha256=manifest.frames_sha256)
