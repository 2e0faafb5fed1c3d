"""Restoring a state and capturing it again gives the same bytes."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cassettes.core.state import CWD_TOKEN, encode_state, from_wire
from tests.host.conftest import open_host

Draw = Any

_name = st.text("abcdefgh-_ é日🎬", min_size=1, max_size=8).filter(str.strip)
_text = st.text(max_size=12)
_scalar = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
_plain = st.recursive(
    _scalar | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list("abcde")), inner, max_size=3),
    max_leaves=6,
)
_object = st.dictionaries(st.sampled_from(["status", "reason", "x", "text", "content"]), _plain, max_size=4)
_segment = st.sampled_from(["src", "a.py", "…", "with space"])
_place = st.lists(_segment, max_size=3).map(lambda parts: "/".join([CWD_TOKEN, *parts]))
_tool = st.fixed_dictionaries(
    {"callId": _name},
    optional={
        "input": st.fixed_dictionaries({"command": st.just("zsh -c x"), "filePath": _place}),
        "output": _object,
        "locations": st.lists(st.fixed_dictionaries({"path": _place}), max_size=2),
        "paths": st.lists(_place, max_size=2),
        "error": _object,
    },
)


def _omit(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: item for name, item in document.items() if name not in names or item}


@st.composite
def turns(draw: Draw, prefix: str) -> list[dict[str, Any]]:
    result = []
    for number in range(draw(st.integers(0, 3))):
        outcome = draw(st.sampled_from(["completed", "failed", "canceled", "interrupted"]))
        watermark = {"finalAssistantMessageResolved": True, "finalAssistantMessageId": draw(_name)}
        command = {"kind": "compact"} if outcome == "canceled" else watermark
        turn = {
            "id": f"{prefix}-turn-{number}",
            "capabilityRefs": draw(st.lists(st.fixed_dictionaries({"capability": _name, "source": _name}), max_size=2)),
            "phase": "settled",
            "outcome": outcome,
            "error": draw(st.just({}) | st.fixed_dictionaries({"message": _text})),
            "fileChanges": draw(
                st.just({}) | st.fixed_dictionaries({"files": st.lists(st.fixed_dictionaries({"path": _place}))})
            ),
            "completedCommand": command,
            "origin": draw(st.sampled_from(["user_prompt", "goal_arm", "goal_continuation", "provider_initiated"])),
            "sourceGoalRevision": draw(st.integers(0, 3)),
            "rootProviderTurnId": draw(st.just("") | st.just(f"{prefix}-provider-{number}")),
        }
        result.append(_omit(turn, "error", "fileChanges", "sourceGoalRevision", "rootProviderTurnId"))
    return result


@st.composite
def messages(draw: Draw, turn_ids: list[str]) -> list[dict[str, Any]]:
    result = []
    for number in range(draw(st.integers(0, 4))):
        tool = draw(st.booleans()) and bool(turn_ids)
        audit = not turn_ids
        message = {
            "id": f"message-{number}",
            "turnId": draw(st.sampled_from(turn_ids)) if turn_ids else "",
            "role": "system" if audit else draw(st.sampled_from(["user", "assistant"])),
            "kind": "tool_call" if tool else "session_audit" if audit else draw(st.sampled_from(["text", "reasoning"])),
            "status": draw(st.sampled_from(["", "completed", "failed", "streaming"])),
            "semantics": draw(st.just({}) | st.fixed_dictionaries({"userVisibleAssistantResponse": st.booleans()})),
            "payload": draw(_tool if tool else _object),
        }
        result.append(_omit(message, "turnId", "status", "semantics"))
    return result


@st.composite
def sessions(draw: Draw, index: int) -> dict[str, Any]:
    own_turns = draw(turns(f"s{index}"))
    turn_ids = [turn["id"] for turn in own_turns]
    asked = []
    for turn_id in turn_ids:
        for number in range(draw(st.integers(0, 2))):
            interaction = {
                "requestId": f"{turn_id}-request-{number}",
                "turnId": turn_id,
                "kind": draw(st.sampled_from(["approval", "question", "plan"])),
                "status": draw(st.sampled_from(["pending", "answered", "superseded"])),
                "toolName": draw(_text),
                "input": draw(st.fixed_dictionaries({}, optional={"filePath": _place, "x": _plain})),
                "output": draw(_object),
                "metadata": draw(_object),
            }
            asked.append(_omit(interaction, "toolName"))
    project = draw(_place)
    rail = {"railSectionKind": "project", "railProjectPath": project, "railSectionKey": f"project:{project}"}
    document: dict[str, Any] = {
        "id": f"session-{index}",
        "kind": "child" if index else "root",
        "origin": "WORKSPACE_AGENT_SESSION_ORIGIN_RUNTIME",
        "agentTargetId": "local:codex",
        "provider": "codex",
        "providerSessionId": f"thread-{index}",
        "model": draw(_text),
        "settings": draw(st.fixed_dictionaries({}, optional={"model": _text, "planMode": st.booleans()})),
        "cwd": draw(_place) if index else CWD_TOKEN,
        "title": draw(_text),
        "pinned": draw(st.booleans()),
        "turns": own_turns,
        "messages": draw(messages(turn_ids)),
        "interactions": asked,
        **draw(st.sampled_from([rail, {"railSectionKind": "conversations", "railSectionKey": "conversations"}])),
    }
    if index:
        document["rootSessionId"] = "session-0"
        document["parentSessionId"] = f"session-{draw(st.integers(0, index - 1))}"
        document["parentToolCallId"] = draw(_name)
    if draw(st.booleans()):
        document["goal"] = {
            "desired": draw(_object),
            "observed": draw(_object),
            "revision": draw(st.integers(0, 9)),
            "tombstoned": draw(st.booleans()),
            "syncStatus": draw(st.sampled_from(["pending", "synced", "diverged", "unknown", "failed"])),
            "lastEvidence": draw(_object),
        }
    return _omit(document, "model", "title")


@st.composite
def documents(draw: Draw) -> dict[str, Any]:
    graph = [draw(sessions(index)) for index in range(draw(st.integers(1, 3)))]
    shots = [
        {
            "sessionId": session["id"],
            "turnId": turn["id"],
            "revision": 0,
            "state": "inactive",
            "preferenceVersion": 0,
            "effect": 0,
            "speed": 0,
            "dispatchState": draw(st.sampled_from(["prepared", "accepted"])),
        }
        for session in graph
        for turn in session["turns"]
        if draw(st.booleans())
    ]
    issue_ids = draw(st.lists(st.sampled_from(["issue-1", "issue-2"]), unique=True))
    task = {"id": "task", "title": draw(_text), "status": "running", "priority": "low", "position": 0}
    flow = {
        "id": "flow",
        "type": "tutti_mode_plan",
        "triggerKind": "agent_cli",
        "sourceSessionId": "session-0",
        "sourceTurnId": "",
        "sourceToolCallId": "",
        "status": "in_progress",
        "currentRevisionId": "revision",
        "issueIds": issue_ids,
    }
    return {
        "schemaVersion": 1,
        "agent": {"rootSessionId": "session-0", "sessions": graph},
        "tuttiMode": {"activations": [], "turnSnapshots": shots},
        "workflows": [flow],
        "issues": [{"id": name, "title": "t", "status": "running", "tasks": [task]} for name in issue_ids],
    }


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
@given(documents())
def test_capture_undoes_restore(document: dict[str, Any]) -> None:
    state = from_wire(document)
    before = encode_state(state)
    host = open_host(":memory:")  # type: ignore[arg-type]
    host.restore(state, replay_root="/run/place")
    host.flush()
    assert encode_state(host.capture("session-0")) == before
    assert host.restore(state, replay_root="/run/place").txn_id == ""
    assert encode_state(state) == before
    host.close()
