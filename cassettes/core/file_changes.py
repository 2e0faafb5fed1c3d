"""The normal form of a Turn's file changes (spec: replay-state §14.4)."""

from __future__ import annotations

import re
from typing import Any

_PATHS = ("path", "filePath", "file_path", "relativePath")
_DIFFS = ("diff", "patch", "unifiedDiff", "unified_diff")
_OLD = ("oldString", "old_string", "oldText")
_NEW = ("newString", "new_string", "newText")
_CHANGE_MEMBERS = ("change", "status", "kind", "type")
_NESTED_CHANGE_MEMBERS = ("type", "change", "status", "kind")
_TEXTS = ("content", "diff", "newString", "oldString", "unifiedDiff")
_CHANGES = {
    **dict.fromkeys(("add", "added", "create", "created", "new", "write_file"), "added"),
    **dict.fromkeys(("delete", "deleted", "remove", "removed", "delete_file"), "deleted"),
    **dict.fromkeys(
        ("modify", "modified", "update", "updated", "edit", "edited", "change", "changed", "edit_file"), "modified"
    ),
}

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@(?:.*)")
_FILE_HEADERS = (
    "diff --git ",
    "index ",
    "--- ",
    "+++ ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
)
_ENVELOPE_BEGIN = "*** Begin Patch"
_ENVELOPE_FILES = ("*** Add File:", "*** Delete File:", "*** Update File:")


def is_unified_diff(text: str) -> bool:
    """Whether `text` is a real unified diff, or an apply-patch envelope with at least one changing hunk."""
    lines = text.replace("\r\n", "\n").strip().split("\n")
    if lines[0].startswith(_ENVELOPE_BEGIN) and any(line.startswith(_ENVELOPE_FILES) for line in lines):
        return _is_envelope(lines)
    return _is_counted_diff(lines)


def _is_counted_diff(lines: list[str]) -> bool:
    hunks = 0
    headers_allowed = True
    old = new = 0  # lines the current hunk still needs
    changed = True  # whether the current hunk changed something (no hunk yet: nothing to complain about)
    for line in lines:
        if old > 0 or new > 0:
            if line.startswith(" "):
                old, new = old - 1, new - 1
            elif line.startswith("-"):
                old, changed = old - 1, True
            elif line.startswith("+"):
                new, changed = new - 1, True
            elif not line.startswith("\\ "):
                return False
            if old < 0 or new < 0:
                return False
            continue
        if line.startswith("\\ "):
            continue
        header = _HUNK.fullmatch(line)
        if header:
            if not changed:
                return False
            old, new = (int(group) if group is not None else 1 for group in header.groups())
            hunks, changed, headers_allowed = hunks + 1, False, False
        elif line.startswith("diff --git "):
            headers_allowed = True
        elif not (headers_allowed and line.startswith(_FILE_HEADERS)):
            return False
    return hunks > 0 and changed and old == 0 and new == 0


def _is_envelope(lines: list[str]) -> bool:
    hunks = 0
    changed = True
    inside = False
    for line in lines:
        if line.startswith("*** "):
            inside = False
        elif line.startswith("@@"):
            if not changed:
                return False
            hunks, changed, inside = hunks + 1, False, True
        elif line.startswith(("+", "-")):
            changed = changed or inside
        elif not line.startswith((" ", "\\ ")):
            return False
    return hunks > 0 and changed


def _first_text(entry: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((entry[name] for name in names if isinstance(entry.get(name), str)), None)


def _change_word(value: object) -> str | None:
    if isinstance(value, str):
        return _CHANGES.get(value.strip().lower())
    if isinstance(value, dict):
        for name in _NESTED_CHANGE_MEMBERS:
            found = _change_word(value.get(name))
            if found:
                return found
    return None


def _normal_entry(entry: dict[str, Any]) -> dict[str, Any] | None:
    path = next(
        (entry[name] for name in _PATHS if isinstance(entry.get(name), str) and entry[name].strip()),
        None,
    )
    if path is None:
        return None
    diffs = [entry[name] for name in _DIFFS if isinstance(entry.get(name), str)]
    raw = diffs[0] if diffs else None
    valid = next((text for text in diffs if is_unified_diff(text)), None)
    old, new, content = _first_text(entry, _OLD), _first_text(entry, _NEW), _first_text(entry, ("content",))
    change = next((word for word in (_change_word(entry.get(name)) for name in _CHANGE_MEMBERS) if word), None)
    if change is None and content is not None:
        change = "added"
    if change != "deleted" and new is None and content is not None:
        new, content = content, None
    if raw is not None and valid is None:
        if change == "added" and new is None:
            new = raw
        elif change == "deleted" and old is None:
            old = raw
        elif old is None and new is None and content is None:
            new = raw
    if change is None:
        change = _change_from_evidence(old, new, valid, content)
        if change is None:
            return None
    result: dict[str, Any] = {"path": path, "change": change}
    for name, text in (("oldString", old), ("newString", new), ("diff", valid), ("unifiedDiff", valid)):
        if text is not None:
            result[name] = text
    if content is not None:
        result["content"] = content
    return result


def _change_from_evidence(old: str | None, new: str | None, valid: str | None, content: str | None) -> str | None:
    if old is not None and new is None:
        return "deleted"
    if new is not None and old is None:
        return "added"
    if old is not None or valid is not None or content is not None:
        return "modified"
    return None


def _merged(first: dict[str, Any], later: dict[str, Any]) -> dict[str, Any] | None:
    pair = (first["change"], later["change"])
    if pair == ("added", "deleted"):
        return None
    result = dict(later)
    if "oldString" in first:
        result["oldString"] = first["oldString"]
    if pair == ("added", "modified"):
        result["change"] = "added"
    elif pair == ("deleted", "added"):
        result["change"] = "modified"
    return result


def normal_file_changes(value: object) -> dict[str, Any] | None:
    """The normal form of a Turn's `fileChanges`, or None where nothing is left. The input is not modified."""
    if not isinstance(value, dict) or not value:
        return None
    files = value.get("files")
    folded: dict[str, dict[str, Any]] = {}
    for raw in files if isinstance(files, list) else []:
        entry = _normal_entry(raw) if isinstance(raw, dict) else None
        if entry is None:
            continue
        path = entry["path"]
        if path not in folded:
            folded[path] = entry
            continue
        merged = _merged(folded[path], entry)
        if merged is None:
            del folded[path]
        else:
            folded[path] = merged
    if not folded:
        return None
    for entry in folded.values():
        for name in _TEXTS:
            if name in entry:
                entry[name] = entry[name].rstrip("\r\n")
    result: dict[str, Any] = {"files": list(folded.values())}
    coverage = value.get("coverage")
    if isinstance(coverage, str) and coverage.strip():
        result["coverage"] = coverage
    return result
