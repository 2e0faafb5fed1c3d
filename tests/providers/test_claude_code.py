"""The Claude Code adapter alone (provider-adapters §5)."""

from __future__ import annotations

import pytest

from cassettes.providers import registry
from cassettes.providers.ports import GoalControl
from tests.providers.driving import SESSION, Driven


@pytest.fixture
def claude() -> Driven:
    """A sidecar session that is open and idle."""
    driven = Driven("claude-code")
    driven.start()
    driven.receive(version=8, id=driven.sent[0]["id"], type="ok", payload={"providerSessionId": "p-session"})
    assert driven.kinds == ["session.started"]
    assert driven.outcomes == {"start": "succeeded"}
    return driven


def told(claude: Driven, kind: str, **payload: object) -> None:
    """An event of the sidecar."""
    claude.receive(version=8, type=kind, payload={"agentSessionId": SESSION, **payload})


def running(claude: Driven, turn_id: str = "turn-1") -> None:
    """A prompt, accepted, and its Turn begun."""
    claude.prompt(turn_id, "hello")
    claude.receive(version=8, id=claude.sent[0]["id"], type="ok", payload={})
    told(claude, "provider_turn_identity_resolved", turnId=turn_id, providerTurnId=f"provider-{turn_id}")


def test_a_session_starts_with_the_recorded_envelope_version() -> None:
    driven = Driven("claude-code")
    driven.start(protocol_version=7)
    assert (driven.sent[0]["version"], driven.sent[0]["type"]) == (7, "start")
    assert driven.sent[0]["payload"]["restore"] is False


def test_a_refused_start_tells_the_code_of_the_sidecar() -> None:
    driven = Driven("claude-code")
    driven.start()
    driven.receive(version=8, id=driven.sent[0]["id"], type="error", payload={"code": "no_login", "error": "sign in"})
    assert (driven.settled[0].error_code, driven.settled[0].error_message) == ("no_login", "sign in")


def test_a_prompt_becomes_an_exec_with_its_turn(claude: Driven) -> None:
    claude.prompt("turn-1", "hello")
    (request,) = claude.sent
    assert request["type"] == "exec"
    assert (request["payload"]["turnId"], request["payload"]["prompt"]) == ("turn-1", "hello")


def test_the_session_is_told_once(claude: Driven) -> None:
    told(claude, "session_started", providerSessionId="p-session")
    assert claude.events == []


def test_a_turn_begins_when_its_identity_is_known_and_ends_once(claude: Driven) -> None:
    running(claude)
    assert claude.kinds == ["root_provider_turn.started"]
    told(claude, "turn_completed", turnId="turn-1")
    assert claude.kinds[-1] == "root_provider_turn.completed"
    told(claude, "turn_completed", turnId="turn-1")
    assert claude.events == []


def test_an_event_of_another_turn_is_ignored(claude: Driven) -> None:
    running(claude)
    told(claude, "assistant_completed", turnId="turn-0", messageId="m", text="late")
    assert claude.events == []


def test_an_interrupt_waits_for_the_terminal_event(claude: Driven) -> None:
    running(claude)
    claude.cancel("turn-1")
    assert [message["type"] for message in claude.sent] == ["cancel"]
    assert claude.outcomes == {}
    told(claude, "turn_canceled", turnId="turn-1")
    assert claude.outcomes == {"cancel:turn-1": "succeeded"}


def test_an_interrupt_before_the_turn_has_a_name_is_sent_when_it_has_one(claude: Driven) -> None:
    claude.prompt("turn-1", "hello")
    claude.cancel("turn-1")
    assert claude.sent == []
    told(claude, "provider_turn_identity_resolved", turnId="turn-1", providerTurnId="p-1")
    assert [message["type"] for message in claude.sent] == ["cancel"]


def test_a_tool_that_fails_is_told_with_its_output(claude: Driven) -> None:
    running(claude)
    call = {"toolCallId": "c-1", "name": "Bash", "toolName": "Bash", "input": {"command": "false"}}
    told(claude, "tool_started", turnId="turn-1", **call)
    assert claude.kinds == ["call.started"]
    told(claude, "tool_failed", turnId="turn-1", **call, output={"text": "exit 1"})
    assert claude.kinds == ["call.failed"]


def test_guidance_without_a_turn_fails(claude: Driven) -> None:
    claude.prompt("turn-1", "faster", guidance=True)
    assert claude.settled[0].error_code == "agent.no_active_turn"


def test_a_goal_is_refused_with_its_reason(claude: Driven) -> None:
    control = GoalControl(session_id=SESSION, operation_id="o", action="set", objective="x")
    claude.take(claude.adapter.control_goal(control, "goal"))
    assert claude.settled[0].error_code == "method_not_allowed"


def test_settings_are_named_as_the_sidecar_names_them(claude: Driven) -> None:
    claude.take(claude.adapter.update_settings(SESSION, {"permissionModeId": "plan", "reasoningEffort": "high"}, "t"))
    assert claude.sent[0]["type"] == "apply_settings"
    assert claude.sent[0]["payload"] == {"agentSessionId": SESSION, "permissionMode": "plan", "effort": "high"}


def test_settings_that_the_sidecar_does_not_have_are_done_at_once(claude: Driven) -> None:
    claude.take(claude.adapter.update_settings(SESSION, {}, "t"))
    assert (claude.sent, claude.outcomes) == ([], {"t": "succeeded"})


def test_the_end_of_the_process_fails_what_was_open(claude: Driven) -> None:
    claude.prompt("turn-1", "hello")
    claude.exit(137, "killed")
    assert claude.outcomes == {"prompt:turn-1": "failed"}
    assert claude.kinds[-1] == "root_provider_turn.completed"
    assert claude.events[-1].error == {"message": "killed", "code": "provider_exited"}


@pytest.mark.parametrize("message", [{"type": "nobody_knows", "payload": {}}, {"type": "ok"}, {}])
def test_what_the_adapter_does_not_know_does_nothing(claude: Driven, message: dict[str, object]) -> None:
    claude.receive(**message)
    assert claude.events == claude.sent == claude.settled == []


# ------------------------------------------------------------------------------------------------- the envelopes
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"version":9,"type":"ok"}', "envelope version 9"),
        (b'{"version":true,"type":"ok"}', "envelope version True"),
        (b'{"version":8}', "no envelope"),
        (b"[]", "no envelope"),
        (b"not json", "no JSON"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_a_line_that_is_no_envelope_is_fatal(line: bytes, said: str) -> None:
    assert said in registry.codec("claude-code").decode_line(line).fatal


def test_the_version_stays_that_of_the_first_envelope() -> None:
    codec = registry.codec("claude-code")
    assert codec.decode_line(b'{"version":7,"type":"ok"}').message is not None
    assert "after 7" in codec.decode_line(b'{"version":8,"type":"ok"}').fatal


def test_a_blank_line_is_no_message() -> None:
    line = registry.codec("claude-code").decode_line(b"  \r\n")
    assert (line.message, line.fatal) == (None, "")
