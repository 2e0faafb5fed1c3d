"""The redact job: a copy without secrets, which must keep the contract and replay before anybody gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.files import remove_tree
from cassettes.artifacts.redact import redacted_copy
from cassettes.artifacts.secrets import scan
from cassettes.core.errors import ReplayFailed
from cassettes.playback.headless import replay

JsonObject = dict[str, Any]


def redact_cassette(request: JsonObject, folder: Path) -> JsonObject:
    """Write the redacted copy of the Cassette `request["path"]` to `request["target"]`; nothing is left on failure.

    Raises `redaction_impossible`, `redaction_incomplete` or `redaction_not_equal`, or what the contract says.
    """
    source, target = CassetteFolder(Path(request["path"])), Path(request["target"])
    verify_static(source.path)
    findings = scan(source)
    try:
        manifest = redacted_copy(source, findings, target)
        verify_static(target)
        secrets = {finding.value for finding in findings}
        if any(finding.value in secrets for finding in scan(CassetteFolder(target))):
            raise ReplayFailed("A secret is still in the copy.", code="redaction_incomplete")
        report = replay(target, scratch=folder)
        if not report.equal:
            raise ReplayFailed(
                "The redacted copy does not replay as recorded.",
                code="redaction_not_equal",
                found=report.summary,
                hint="Discard the Cassette, or publish it as it is.",
            )
    except BaseException:
        remove_tree(target)
        raise
    return {"cassetteId": manifest.id, "secrets": len(findings), "replay": report.summary}
