"""Secrets in what people and agents said: the text of a Cassette searched with the detectors of detect-secrets.

The structural audit refuses credentials in known members; this looks into free text (prompts, answers, output), where
nothing may be refused: an admin decides. A finding is shown masked; its value never leaves this process.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

from cassettes.artifacts.cassette import FILES, CassetteFolder
from cassettes.core.errors import Place
from cassettes.core.tape import FRAMES_FILE, decode_frame_line

JsonObject = dict[str, Any]

MIN_LENGTH = 8  # characters; what is shorter would be found everywhere
MAX_FINDINGS = 200
_MAX_PLACES = 5
_BATCH = 1 << 16
_NOISY = {"Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)", "Secret Keyword"}
_OWN = {
    "Anthropic API Key": re.compile(r"sk-ant-[A-Za-z0-9_-]{20,}"),
    "Private Key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.+?)(?:-----END|\Z)", re.DOTALL),
    "Bearer Token": re.compile(r"\b[Bb]earer\s+([A-Za-z0-9._~+/=-]{20,})"),
}
_KEYWORD = re.compile(
    r"""(?i)\b[\w.-]*(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token)['"]?\s*[:=]\s*"""
    r"""(?:"([^"\s]{8,})"|'([^'\s]{8,})')"""
)
_PLACEHOLDER = re.compile(r"(?i)^[<${\[*x.]|example|placeholder|your[_-]|changeme|redacted")


@dataclass(slots=True)
class SecretFinding:
    """One secret, wherever it occurs. `certain`: a known form; otherwise only its name says so."""

    kind: str
    value: str
    certain: bool
    count: int = 0
    places: list[str] = field(default_factory=list)

    @property
    def finding_id(self) -> str:
        """Names the finding without telling its value."""
        return hashlib.sha256(self.value.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def masked(self) -> str:
        """The first characters, and how long it is."""
        shown = " ".join(self.value.split())[:4]
        return f"{shown}… ({len(self.value)} characters)"

    def as_dict(self) -> JsonObject:
        """The finding as people see it."""
        return {
            "id": self.finding_id,
            "kind": self.kind,
            "masked": self.masked,
            "certain": self.certain,
            "count": self.count,
            "places": self.places,
        }


@dataclass(frozen=True, slots=True)
class _Detector:
    kind: str
    pattern: re.Pattern[str]
    certain: bool = True

    def values(self, text: str) -> Iterator[str]:
        """The secrets in a text: the part that the pattern captures, or all of it."""
        for match in self.pattern.finditer(text):
            captured = [group for group in match.groups() if group and len(group.strip()) >= MIN_LENGTH]
            value = (captured[-1] if captured else match.group()).strip()
            if len(value) >= MIN_LENGTH and (self.certain or not _PLACEHOLDER.search(value)):
                yield value


def _detectors() -> list[_Detector]:
    found = [_Detector(kind, pattern) for kind, pattern in _OWN.items()]
    plugins: dict[str, Any] = get_mapping_from_secret_type_to_class()
    for kind in sorted(plugins.keys() - _NOISY - _OWN.keys()):
        found += [_Detector(kind, pattern) for pattern in plugins[kind]().denylist]
    return [*found, _Detector("Secret by its name", _KEYWORD, certain=False)]


DETECTORS = _detectors()


def find_in(text: str) -> Iterator[tuple[str, str, bool]]:
    """(kind, value, certain) of every secret in a text."""
    for detector in DETECTORS:
        for value in detector.values(text):
            yield detector.kind, value, detector.certain


def scan(folder: CassetteFolder) -> list[SecretFinding]:
    """The secrets of a Cassette, certain ones first, each with its first places. At most `MAX_FINDINGS`."""
    scanner = _Scanner()
    for place, strings in _documents(folder):
        scanner.add(place, strings)
    scanner.flush()
    found = sorted(scanner.findings.values(), key=lambda one: (not one.certain, -one.count, one.kind, one.value))
    return found[:MAX_FINDINGS]


class _Scanner:
    """Searches many strings at once: only a batch in which something was found is looked at string by string."""

    def __init__(self) -> None:
        self.findings: dict[str, SecretFinding] = {}
        self._batch: list[tuple[Callable[[str], Place], str, str]] = []
        self._size = 0

    def add(self, place: Callable[[str], Place], strings: Iterator[tuple[str, str]]) -> None:
        """Add the strings of one document; `place` makes the place of one of its paths."""
        for path, text in strings:
            if len(text) >= MIN_LENGTH:
                self._batch.append((place, path, text))
                self._size += len(text)
        if self._size > _BATCH:
            self.flush()

    def flush(self) -> None:
        """Search what is waiting."""
        joined = "\n\x00\n".join(text for _, _, text in self._batch)
        if any(True for _ in find_in(joined)):
            for place, path, text in self._batch:
                for kind, value, certain in find_in(text):
                    self._note(kind, value, certain, place(path))
        self._batch, self._size = [], 0

    def _note(self, kind: str, value: str, certain: bool, place: Place) -> None:
        if value not in self.findings and len(self.findings) >= 10 * MAX_FINDINGS:
            return
        finding = self.findings.setdefault(value, SecretFinding(kind, value, certain))
        finding.count += 1
        if len(finding.places) < _MAX_PLACES and str(place) not in finding.places:
            finding.places.append(str(place))


# ------------------------------------------------------------------------------------------------- where text is
def _documents(folder: CassetteFolder) -> Iterator[tuple[Callable[[str], Place], Iterator[tuple[str, str]]]]:
    """(place of a path, strings) of every document of a Cassette."""
    name = FILES.cassette_manifest.path
    yield _at(name, 0), iter([("$.name", folder.manifest.name)])
    for number, line in folder.activity_lines():
        yield _at(FILES.activity_events.path, number), strings_of(orjson_or_json(line))
    for name, data in (
        (FILES.initial_state.path, folder.initial_state_bytes()),
        (FILES.expected_state.path, folder.expected_state_bytes()),
    ):
        if data is not None:
            yield _at(name, 0), strings_of(orjson_or_json(data))
    yield from _tape(folder)


def _tape(folder: CassetteFolder) -> Iterator[tuple[Callable[[str], Place], Iterator[tuple[str, str]]]]:
    rests: dict[tuple[str, str], list[bytes]] = {}
    line = 0
    for block in folder.frame_blocks():
        for text in io.BytesIO(block):
            line += 1
            frame = decode_frame_line(text, line)
            if frame.message:
                yield _at(FRAMES_FILE, line), iter([("$.message", frame.message)])
            held = rests.setdefault((frame.connection_id, frame.kind), [])
            head, newline, tail = frame.data.rpartition(b"\n")
            held.append(head if newline else tail)
            if newline:
                for message in b"".join(held).split(b"\n"):
                    yield _at(FRAMES_FILE, line), strings_of(orjson_or_json(message))
                held[:] = [tail]
    for held in rests.values():
        yield _at(FRAMES_FILE, line), strings_of(orjson_or_json(b"".join(held)))


def _at(file: str, line: int) -> Callable[[str], Place]:
    return lambda path: Place(file, line, path)


def orjson_or_json(data: bytes) -> Any:
    """A value, or its text where it is none (stderr)."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


def strings_of(value: Any) -> Iterator[tuple[str, str]]:
    """(JSON path, text) of every string in a value, member names not among them."""
    pending: list[tuple[str, Any]] = [("$", value)]
    while pending:
        path, one = pending.pop()
        if isinstance(one, str):
            yield path, one
        elif isinstance(one, dict):
            pending.extend((f"{path}.{name}", member) for name, member in reversed(one.items()))
        elif isinstance(one, list):
            pending.extend((f"{path}[{index}]", one[index]) for index in range(len(one) - 1, -1, -1))
