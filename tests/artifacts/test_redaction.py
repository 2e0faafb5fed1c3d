"""Secrets in a session are found with their place and shown masked, and a redacted copy is free of them and replays."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.redact import redacted_copy
from cassettes.artifacts.redact_text import Redactor, filler
from cassettes.artifacts.secrets import SecretFinding, find_in, scan
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import InputRejected
from cassettes.playback.headless import replay
from cassettes.transcripts.importing import import_transcript
from tests.making import lines
from tests.samples import CLAUDE, CODEX, PROVIDERS, cassette_copy

AWS = "AKIA" + "Q7ZLMN4TRPX2WVCB"
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ANTHROPIC = "sk-ant-" + "api03-Zk29dLq71mXw5Vr8Tn3Yb"
KEY = "MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (f"export KEY={AWS} # mine", "AWS Access Key", AWS),
        (f"git clone https://x:{GITHUB}@example.org/a", "GitHub Token", GITHUB),
        (f"use {ANTHROPIC} please", "Anthropic API Key", ANTHROPIC),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----", "Private Key", KEY),
        ("curl -H 'Authorization: Bearer abcdef0123456789abcdef'", "Bearer Token", "abcdef0123456789abcdef"),
        ('password = "correct-horse-battery"', "Secret by its name", "correct-horse-battery"),
    ],
)
def test_a_secret_is_found_in_ordinary_text(text: str, kind: str, value: str) -> None:
    assert (kind, value) in {(found_kind, found) for found_kind, found, _ in find_in(text)}


@pytest.mark.parametrize(
    "text",
    [
        'password = "your-password-here"',
        'api_key: "${API_KEY}"',
        "commit 3f2a1b4c5d6e7f8091a2b3c4d5e6f70819a2b3c4",
        "the token was invalid",
        "sk-ant-short",
    ],
)
def test_ordinary_text_is_left_in_peace(text: str) -> None:
    assert list(find_in(text)) == []


@pytest.mark.parametrize("stem", [CLAUDE, CODEX])
def test_the_samples_hold_no_secret(stem: str, tmp_path: Path) -> None:
    assert scan(CassetteFolder(cassette_copy(stem, tmp_path))) == []


@pytest.fixture(params=[CLAUDE, CODEX])
def leaky(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A session in whose prompt, answer and output secrets stand."""
    text = (PROVIDERS / f"{request.param}.jsonl").read_text()
    text = text.replace("The tests fail.", f"The tests fail with {AWS}.")
    text = text.replace("I'll run the tests first.", f"I'll run the tests with {GITHUB} first.")
    text = text.replace("FAILED (failures=1)", f"FAILED ({ANTHROPIC})")
    source = tmp_path / f"{request.param}.jsonl"
    source.write_text(text)
    return import_transcript(source, ArtifactStore(tmp_path / "home")).path


def test_findings_name_kind_and_places_and_never_the_value(leaky: Path) -> None:
    found = scan(CassetteFolder(leaky))
    assert {finding.value for finding in found} == {AWS, GITHUB, ANTHROPIC}
    told = json.dumps([finding.as_dict() for finding in found])
    for secret in (AWS, GITHUB, ANTHROPIC):
        assert secret not in told
        assert secret[:4] in told
    prompt = next(finding for finding in found if finding.value == AWS)
    assert prompt.count >= 3
    assert any(place.startswith("activity-events.jsonl, line 1, $.payload") for place in prompt.places)


def test_a_redacted_copy_is_free_of_them_verifies_and_replays(leaky: Path, tmp_path: Path) -> None:
    folder = CassetteFolder(leaky)
    manifest = redacted_copy(folder, scan(folder), tmp_path / "copy")
    report = verify_static(tmp_path / "copy")
    assert report.notes == []
    assert replay(tmp_path / "copy").summary == "equal"
    assert scan(CassetteFolder(tmp_path / "copy")) == []
    everything = b"".join(path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    for frame in lines(tmp_path / "copy", "provider/frames.jsonl"):
        everything += base64.b64decode(frame.get("data", ""))
    for secret in (AWS, GITHUB, ANTHROPIC):
        assert secret.encode() not in everything
        assert filler(len(secret)).encode() in everything
    assert manifest.id != folder.manifest.id
    assert manifest.source_recording_id != folder.manifest.source_recording_id
    assert manifest.name.endswith("(redacted)")
    assert manifest.redaction is not None
    assert (manifest.redaction.of_cassette_id, manifest.redaction.secrets) == (folder.manifest.id, 3)
    assert CassetteFolder(tmp_path / "copy").manifest == manifest


def test_that_a_cassette_is_redacted_survives_a_new_name(leaky: Path, tmp_path: Path) -> None:
    folder = CassetteFolder(leaky)
    redacted_copy(folder, scan(folder), tmp_path / "copy")
    store = ArtifactStore(tmp_path / "published")
    made = store.adopt(tmp_path / "copy")
    assert store.rename(made.cassette_id, "Another").manifest.redaction is not None


def test_the_same_secrets_give_the_same_copy(leaky: Path, tmp_path: Path) -> None:
    folder = CassetteFolder(leaky)
    for name in ("one", "two"):
        redacted_copy(folder, scan(folder), tmp_path / name)
    names = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_nothing_to_redact_and_what_is_too_short_are_refused(tmp_path: Path) -> None:
    folder = CassetteFolder(cassette_copy(CODEX, tmp_path))
    for findings in ([], [SecretFinding("Short", "ab cd ef", True)]):
        with pytest.raises(InputRejected) as refused:
            redacted_copy(folder, findings, tmp_path / "copy")
        assert refused.value.code == "redaction_impossible"
        assert not (tmp_path / "copy").exists()


# ------------------------------------------------------------------------------------------------- the text
def test_a_secret_streamed_in_parts_is_replaced_in_each_part() -> None:
    redactor = Redactor([GITHUB])
    parts = ["My token is ", GITHUB[:9], GITHUB[9:20], GITHUB[20:] + ", take", " care"]
    stream = [json.dumps({"method": "item/delta", "params": {"id": 1, "delta": part}}).encode() for part in parts]
    shares = redactor.shares(stream)
    clean = [
        json.loads(redactor.json(line, shares.get(number)))["params"]["delta"] for number, line in enumerate(stream)
    ]
    assert "".join(clean) == f"My token is {filler(len(GITHUB))}, take care"
    assert [len(part) for part in clean] == [len(part) for part in parts]


def test_numbers_escapes_and_the_form_of_the_text_stay() -> None:
    redactor = Redactor([GITHUB])
    text = f'{{ "a" : "{GITHUB}" ,"n":1.0, "big":12345678901234567890,"e":"\\u00e9"}}\n'
    assert redactor.json(text.encode()).decode() == text.replace(GITHUB, filler(len(GITHUB)))


def test_a_secret_in_a_member_name_goes_as_well() -> None:
    assert GITHUB.encode() not in Redactor([GITHUB]).json(f'{{"{GITHUB}":1}}'.encode())


def test_an_escaped_secret_is_found_too() -> None:
    redactor = Redactor([AWS])
    escaped = AWS.replace("Q", "\\u0051")
    assert json.loads(redactor.json(f'{{"a":"{escaped}"}}'.encode())) == {"a": filler(len(AWS))}


def test_a_key_in_json_in_json_is_replaced_line_by_line() -> None:
    inner = json.dumps({"key": f"-----BEGIN PRIVATE KEY-----\n{KEY}\nabcdefgh\n-----END PRIVATE KEY-----"})
    ((_, value, _),) = list(find_in(json.loads(inner)["key"]))
    clean = Redactor([value]).json(json.dumps({"arguments": inner}).encode()).decode()
    assert KEY not in clean
    assert json.loads(json.loads(clean)["arguments"])["key"].splitlines()[0] == "-----BEGIN PRIVATE KEY-----"
