"""What `verify` does: many Cassettes at once, and what it tells people and machines about them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cassettes import catalog
from cassettes.core.errors import InputRejected, RepriseError
from cassettes.viewing import imports

JsonObject = dict[str, Any]

AT_ONCE = 2  # a replay keeps one core busy
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class Verified:
    """What came out for one source. `missing`: there is no such thing, so nothing was judged."""

    source: str
    verdict: str
    code: str
    place: str
    replay: str
    error: JsonObject | None
    seconds: float
    missing: bool = False
    size: JsonObject | None = field(default=None)

    def as_dict(self) -> JsonObject:
        """The object that `--json` prints."""
        told = {name: getattr(self, name) for name in ("source", "verdict", "code", "place", "replay")}
        return {**told, "size": self.size} if self.size is not None else told


def verify_all(sources: list[str], *, static_only: bool, size: bool) -> Iterator[Verified]:
    """Verify folders, archives and ids, several at once; told in the order they were given."""

    def verified(source: str) -> Verified:
        return _verified(source, static_only, size)

    with ThreadPoolExecutor(min(AT_ONCE, len(sources))) as pool:
        yield from pool.map(verified, sources)


def _verified(source: str, static_only: bool, size: bool) -> Verified:
    started = time.monotonic()
    path = Path(source)
    missing = False
    try:
        if not path.exists():
            missing = True
            path = catalog.artifact_path(source)
            missing = False
        told = imports.run_verify(path, static_only=static_only, size=size)
    except RepriseError as failure:
        error = failure.as_dict()
        told = {"verdict": "reject", "code": error["code"], "place": error["place"], "replay": "not replayed"}
        told["error"] = error
    return Verified(
        source=source,
        verdict=told["verdict"],
        code=told["code"],
        place=told["place"],
        replay=told["replay"],
        error=told.get("error"),
        seconds=time.monotonic() - started,
        missing=missing,
        size=told.get("size"),
    )


def exit_status(outcomes: Iterable[Verified]) -> int:
    """0: all accepted; 1: something was rejected; 2: something is not there at all."""
    found = list(outcomes)
    if any(one.missing for one in found):
        return 2
    return 1 if any(one.verdict != "accept" for one in found) else 0


# ------------------------------------------------------------------------------------------------- for people
def line(outcome: Verified) -> str:
    """One outcome as people read it."""
    if outcome.verdict == "accept":
        return f"accept  {outcome.source}: replay {outcome.replay} ({outcome.seconds:.1f} s)"
    error = outcome.error or {}
    place = f" ({outcome.place})" if outcome.place else ""
    text = f"reject  {outcome.source}\n    {outcome.code}: {error.get('message', '')}{place}"
    text += "".join(f"\n    {side:8} {error[side]}" for side in ("expected", "found") if side in error)
    if error.get("hint"):
        text += f"\n    {error['hint']}"
    return text


def summary(outcomes: list[Verified]) -> str:
    """One line about all of them."""
    rejected = sum(one.verdict != "accept" for one in outcomes)
    noun = "Cassette" if len(outcomes) == 1 else "Cassettes"
    return f"{len(outcomes)} {noun}: {len(outcomes) - rejected} accepted, {rejected} rejected"


# ------------------------------------------------------------------------------------------------- for machines
def write_junit(outcomes: list[Verified], target: Path) -> None:
    """The outcomes as a JUnit report: one test case a source; what is not there is an error, a rejection a failure."""
    suite = ElementTree.Element("testsuite", name="reprise verify")
    suite.set("tests", str(len(outcomes)))
    suite.set("errors", str(sum(one.missing for one in outcomes)))
    suite.set("failures", str(sum(one.verdict != "accept" and not one.missing for one in outcomes)))
    suite.set("time", f"{sum(one.seconds for one in outcomes):.3f}")
    for outcome in outcomes:
        case = ElementTree.SubElement(suite, "testcase", classname="cassette", name=_xml(outcome.source))
        case.set("time", f"{outcome.seconds:.3f}")
        if outcome.verdict != "accept":
            message = str((outcome.error or {}).get("message", ""))
            problem = ElementTree.SubElement(case, "error" if outcome.missing else "failure", type=_xml(outcome.code))
            problem.set("message", _xml(message))
            problem.text = _xml(line(outcome))
    ElementTree.indent(suite)
    try:
        ElementTree.ElementTree(suite).write(target, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InputRejected(f"{target}: {error.strerror}", code="report_not_written") from None


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
