"""The conformance cases B1-B20 of provider-tape §15: one change of the example's tape each, and the verdict."""

# ruff: noqa: E501  # one case a line

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cassettes.artifacts.audit import verify_static
from cassettes.core.errors import CassetteRejected
from tests.making import edit, lines, reseal, write_lines
from tests.samples import CASSETTES

JsonObject = dict[str, Any]
Change = Callable[[Path], None]

FRAMES = "provider/frames.jsonl"
ACCEPT = ""


def manifest(**members: Any) -> Change:
    """Members of the tape's manifest; None takes one away."""

    def change(value: JsonObject) -> None:
        for name, member in members.items():
            if member is None:
                value.pop(name, None)
            else:
                value[name] = member

    return lambda cassette: edit(cassette, "provider/manifest.json", change)


def connection(**members: Any) -> Change:
    """Members of the first connection."""
    return lambda cassette: edit(
        cassette, "provider/manifest.json", lambda value: value["connections"][0].update(members)
    )


def frames(change: Callable[[list[JsonObject]], Any]) -> Change:
    """The frames."""

    def apply(cassette: Path) -> None:
        taken = lines(cassette, FRAMES)
        changed = change(taken)
        write_lines(cassette, FRAMES, taken if changed is None else changed)

    return apply


def added(content: bytes | None, kind: str = "stdout", **members: Any) -> Change:
    """One frame more."""

    def change(taken: list[JsonObject]) -> None:
        number = len(taken) + 1
        last = {**taken[-1], "chunkSeq": number, "globalSeq": number, "kind": kind}
        del last["data"]
        if content is not None:
            last["data"] = base64.b64encode(content).decode()
        taken.append({**last, **members})

    return frames(change)


def value(**params: Any) -> Change:
    """One message more."""
    return added(json.dumps({"method": "x", "params": params}).encode() + b"\n")


def no_frames(cassette: Path) -> None:
    """An empty tape, which the plan knows of."""
    (cassette / FRAMES).write_bytes(b"")


CASES: list[tuple[str, Change, str]] = [
    ("B1 the example", lambda cassette: None, ACCEPT),
    ("B2 another version", manifest(schemaVersion=3), "tape_version"),
    ("B2 not projected", manifest(projectionVersion=None), "tape_version"),
    ("B2 not finished", manifest(status="incomplete"), "tape_unfinished"),
    ("B4 a gap of the tape", frames(lambda taken: taken[2].update(globalSeq=4)), "tape_sequence_gap"),
    ("B4 a gap of the connection", frames(lambda taken: taken[2].update(chunkSeq=4)), "tape_sequence_gap"),
    ("B5 an unknown provider", connection(provider="cursor"), "tape_provider_unknown"),
    ("B5 untrimmed and in capitals", connection(provider=" Codex "), ACCEPT),
    ("B6 no origin", connection(captureOrigin=""), "tape_connection_invalid"),
    ("B6 an unknown origin", connection(captureOrigin="resumed"), "tape_connection_invalid"),
    ("B7 launch 0", connection(launchOrdinal=0), "tape_connection_invalid"),
    ("B8 a frame of 8 MiB", added(b'"' + b"x" * (8_388_608 - 3) + b'"\n'), ACCEPT),
    ("B8 a larger frame", added(b'"' + b"x" * (8_388_608 - 2) + b'"\n'), "tape_frame_too_large"),
    ("B9 an empty tape", no_frames, ACCEPT),
    ("B10 an empty frame", added(None), ACCEPT),
    ("B11 no padding", added(b"{}\n", data=base64.b64encode(b'{"a":1}\n').decode().rstrip("=")), "tape_base64_invalid"),
    ("B11 a line break inside", added(b"{}\n", data="eyJh\nIjoxfQ=="), ACCEPT),
    ("B12 a plain line", added(b"hello\n"), "tape_protocol_json_invalid"),
    ("B13 a path in a log line", added(b"hello /Users/x\n", "stderr"), ACCEPT),
    ("B14 an address in a JSON log", added(b'{"email":"a@b.c"}\n', "stderr"), "tape_sensitive_field"),
    ("B15 an address", value(email="a@b.c"), "tape_sensitive_field"),
    ("B15 no address", value(email=""), ACCEPT),
    ("B15 a number", value(email=5), ACCEPT),
    ("B15 the portable address", value(email="replay-user@example.invalid"), ACCEPT),
    ("B16 a token object", value(accessToken={}), "tape_sensitive_field"),
    ("B16 a token", value(accessToken="x"), "tape_sensitive_field"),
    ("B16 no token", value(accessToken=""), ACCEPT),
    ("B16 a number", value(accessToken=1), ACCEPT),
    ("B17 account 0", value(accountId=0), "tape_sensitive_field"),
    ("B17 no account", value(accountId=None), ACCEPT),
    ("B17 a blank account", value(accountId=" "), ACCEPT),
    ("B18 an absolute path", value(path="/a"), "tape_non_portable_path"),
    ("B18 a file address", value(path="file:///a"), "tape_non_portable_path"),
    ("B18 a drive path", value(path="C:\\a"), "tape_non_portable_path"),
    ("B18 a home path", value(path="~/a"), ACCEPT),
    ("B18 nested lists", value(path=[["/a"]]), "tape_non_portable_path"),
    ("B18 text", value(text="/a"), ACCEPT),
    ("B19 a credential method", added(b'{"method":"account/login/start"}\n'), "tape_credential_method"),
    ("B19 in capitals", added(b'{"method":"Account/Login/Start"}\n'), "tape_credential_method"),
    ("B20 a stranger", added(b"{}\n", connectionId="connection-9"), "tape_connection_unknown"),
    ("B20 a stranger's exit", added(None, "exit", exitCode=0, connectionId="connection-9"), "tape_connection_unknown"),
    ("an exit without a code", added(None, "exit"), "tape_frame_invalid"),
    ("an unknown kind", added(b"{}\n", "noise"), "tape_frame_invalid"),
    ("a secret in the message of a frame", added(None, "exit", exitCode=1, message='{"apiKey":"x"}'), "tape_sensitive_field"),
    ("a duplicate that hides a path", added(b'{"path":"/a","path":"b"}\n'), "tape_non_portable_path"),
    ("snake case", value(access_token="x"), "tape_sensitive_field"),
    ("a drive without a slash", value(cwd="C:x"), "tape_non_portable_path"),
    ("a message cut off", added(b'{"a":'), "tape_protocol_json_invalid"),
]  # fmt: skip


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example of the spec, to be changed."""
    return Path(shutil.copytree(CASSETTES / "example", tmp_path / "example"))


def code_of(cassette: Path) -> str:
    """The code of the rejection, or ""."""
    try:
        verify_static(cassette)
    except CassetteRejected as rejected:
        assert rejected.place.file.startswith("provider/")
        return rejected.code
    return ACCEPT


@pytest.mark.parametrize(("change", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_change_of_the_tape_gets_its_verdict(change: Change, code: str, example: Path) -> None:
    change(example)
    reseal(example)
    assert code_of(example) == code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (manifest(framesSha256=""), "tape_hash_mismatch"),
        (lambda c: edit(c, "provider/manifest.json", lambda v: v.update(framesSha256=v["framesSha256"].upper())), "tape_hash_mismatch"),
        (manifest(frameCount=10), "tape_frame_count"),
    ],
)  # fmt: skip
def test_b3_b4_hash_and_count_must_hold(change: Change, code: str, example: Path) -> None:
    change(example)
    reseal(example, tape=False)
    assert code_of(example) == code


def test_b7_two_connections_are_not_the_same_launch(example: Path) -> None:
    def twice(value: JsonObject) -> None:
        value["connections"].append({**value["connections"][0], "connectionId": "connection-2"})

    edit(example, "provider/manifest.json", twice)
    reseal(example, tape=False)
    assert code_of(example) == "tape_connection_invalid"


def test_b8_an_over_long_line_is_refused_before_it_is_read_whole(example: Path) -> None:
    with (example / FRAMES).open("ab") as file:
        file.write(b" " * 16_777_216 + b"\n")
    reseal(example)
    assert code_of(example) == "tape_line_too_long"
