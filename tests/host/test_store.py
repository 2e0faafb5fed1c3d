"""What is in memory is what is in the file; a refused change leaves neither changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cassettes.core.errors import Conflict, RepriseError
from cassettes.host.events import GoalEvent, MessageEvent, SessionEvent
from cassettes.host.host import Host, NewOperation
from cassettes.host.store import Store
from tests.host.conftest import CHILD, ROOT, TURN, Speaker, create_root, open_host, submit

_TURNS = st.sampled_from([TURN, "turn-2"])
_NAMES = st.sampled_from(["a", "b", "c"])
_TEXTS = st.text(max_size=6)


def rows(store: Store) -> dict[tuple[str, ...], Any]:
    return {key: msgspec.to_builtins(row) for key, row in store.rows()}


def order(store: Store) -> list[Any]:
    return [
        [list(messages) for messages in store.messages.values()],
        [list(turns) for turns in store.turns.values()],
        [list(asked) for asked in store.interactions.values()],
        store.graphs,
        {key: row.id for key, row in store.calls.items()},
        store.provider_turns,
    ]


class HostMachine(RuleBasedStateMachine):
    """Anything may happen in any order. What contradicts the state is refused as a whole."""

    @initialize()
    def begin(self) -> None:
        self.host = open_host(":memory:")  # type: ignore[arg-type]
        create_root(self.host)
        self.speaker = Speaker(self.host)

    def do(self, step: Any) -> None:
        before = rows(self.host._store), order(self.host._store)
        try:
            commit = step()
        except Conflict:
            assert (rows(self.host._store), order(self.host._store)) == before
            return
        changed = rows(self.host._store) != before[0]
        assert changed == bool(commit.txn_id)
        for mutation in commit.mutations:
            assert rows(self.host._store)[(mutation.entity, *mutation.key)] == msgspec.to_builtins(mutation.value)
            if mutation.appended:
                old, new = before[0][(mutation.entity, *mutation.key)], msgspec.to_builtins(mutation.value)
                assert new["payload"]["text"] == old["payload"].get("text", "") + mutation.appended

    @rule(turn=_TURNS)
    def submit(self, turn: str) -> None:
        self.do(lambda: submit(self.host, turn))

    @rule(turn=_TURNS, refused=st.booleans())
    def answered(self, turn: str, refused: bool) -> None:
        name = f"submit-{turn}"
        if refused:
            self.do(lambda: self.host.reject_submit(ROOT, name, "no"))
        else:
            self.do(lambda: self.host.accept_submit(ROOT, name))

    @rule(turn=_TURNS, kind=st.sampled_from(["started", "completed"]), name=_NAMES)
    def provider_turn(self, turn: str, kind: str, name: str) -> None:
        outcome = "completed" if kind == "completed" else ""
        self.do(lambda: self.speaker.provider(kind, turn, provider_turn_id=name, outcome=outcome))

    @rule(turn=_TURNS, kind=st.sampled_from(["started", "updated", "completed", "failed", "canceled"]), word=_TEXTS)
    def turn_event(self, turn: str, kind: str, word: str) -> None:
        changes = {"files": [{"path": word}]} if word else None
        self.do(lambda: self.speaker.turn(kind, turn, file_changes=changes))

    @rule(name=_NAMES, turn=_TURNS, delta=_TEXTS, status=st.sampled_from(["streaming", "completed"]))
    def text(self, name: str, turn: str, delta: str, status: str) -> None:
        self.do(
            lambda: self.speaker.say(
                name, turn_id=turn, delta=delta, status=status, payload={"content": ""} if delta else {"text": "w"}
            )
        )

    @rule(
        name=_NAMES,
        status=st.sampled_from(["running", "completed", "failed"]),
        delta=_TEXTS,
        payload=st.fixed_dictionaries({}, optional={"error": _TEXTS, "output": st.just({"stdout": "x"})}),
    )
    def call(self, name: str, status: str, delta: str, payload: dict[str, Any]) -> None:
        self.do(lambda: self.speaker.call(status, name, output_delta=delta, payload=payload))

    @rule(turn=_TURNS, name=_NAMES, kind=st.sampled_from(["interaction.requested", "interaction.superseded"]))
    def interaction(self, turn: str, name: str, kind: str) -> None:
        self.do(lambda: self.speaker.ask(name, turn_id=turn, type=kind))

    @rule(kind=st.sampled_from(["started", "updated", "completed"]), title=_TEXTS)
    def child(self, kind: str, title: str) -> None:
        self.do(lambda: self.speaker.child(kind, title=title))

    @rule(name=_NAMES, kind=st.sampled_from(["cancel_turn", "interactive_response"]), turn=_TURNS, request=_NAMES)
    def operation(self, name: str, kind: Any, turn: str, request: str) -> None:
        new = NewOperation(id=name, session_id=ROOT, kind=kind, turn_id=turn, request_id=request)
        self.do(lambda: self.host.begin_operation(new))

    @rule(name=_NAMES, failed=st.booleans())
    def operation_ends(self, name: str, failed: bool) -> None:
        if failed:
            self.do(lambda: self.host.fail_operation(name, "no"))
        else:
            self.do(lambda: self.host.complete_operation(name, {"output": {"optionId": "x"}}))

    @rule(name=_NAMES, action=st.sampled_from(["set", "pause", "clear"]))
    def goal(self, name: str, action: str) -> None:
        self.do(lambda: self.host.control_goal(ROOT, f"goal-{name}", action, "do"))

    @rule(name=_NAMES, revision=st.integers(0, 2), error=st.sampled_from(["", "no"]))
    def goal_event(self, name: str, revision: int, error: str) -> None:
        names = {"session_id": ROOT, "operation_id": f"goal-{name}", "revision": revision}
        event = GoalEvent(type="goal.control_applied", error=error, goal={"status": "active"}, **names)
        self.do(lambda: self.speaker.unit(event))

    @rule(name=_NAMES, delta=_TEXTS.filter(bool))
    def broken_unit(self, name: str, delta: str) -> None:
        good = MessageEvent(
            type="message.appended", session_id=ROOT, turn_id=TURN, message_id=name, status="streaming", delta=delta
        )
        bad = SessionEvent(type="session.updated", session_id="nowhere", title="x")
        self.do(lambda: self.speaker.unit(good, bad))

    @rule()
    def flush(self) -> None:
        self.host.flush()

    @invariant()
    def at_most_one_live_turn(self) -> None:
        for session in self.host.sessions():
            live = [turn.id for turn in self.host.turns(session.id) if turn.phase != "settled"]
            assert live == ([session.active_turn_id] if session.active_turn_id else [])

    @invariant()
    def messages_are_in_order_of_their_last_change(self) -> None:
        for session in self.host.sessions():
            versions = [row.version for row in self.host.messages(session.id)]
            assert versions == sorted(set(versions))
            assert session.message_version >= (versions or [0])[-1]

    @invariant()
    def a_settled_turn_has_an_outcome_and_nothing_pending(self) -> None:
        for session in self.host.sessions():
            for turn in self.host.turns(session.id):
                assert (turn.phase == "settled") == bool(turn.outcome)
            for one in self.host.interactions(session.id, pending_only=True):
                assert self.host.turn(session.id, one.turn_id).phase != "settled"  # type: ignore[union-attr]

    def teardown(self) -> None:
        if not hasattr(self, "host"):
            return
        self.host.flush()
        store = self.host._store
        again = Store.__new__(Store)
        again.__dict__.update(
            {name: type(value)() for name, value in store.__dict__.items() if isinstance(value, dict | list)}
        )
        again._connection, again._file = store._connection, store._file
        again._load()
        assert rows(again) == rows(store)
        assert order(again) == order(store)
        assert again.last_commit == store.last_commit
        self.host.close()


TestHostMachine = HostMachine.TestCase


def test_rows_come_back_from_the_file(tmp_path: Path) -> None:
    host = open_host(tmp_path / "state.sqlite3")
    create_root(host)
    submit(host)
    speaker = Speaker(host)
    speaker.provider("started", provider_turn_id="p")
    speaker.child()
    speaker.say("m", status="streaming", payload={"content": ""}, delta="Hel")
    host.flush()
    speaker.say("m", status="streaming", delta="lo")
    before = rows(host._store)
    host.close()
    again = open_host(tmp_path / "state.sqlite3")
    assert rows(again._store) == before
    assert [one.id for one in again.graph(ROOT)] == [ROOT, CHILD]
    assert again.submit  # it can go on
    assert Speaker(again).say("m", status="streaming", delta="!").txn_id == "txn-8"
    assert again.message(ROOT, "m").payload["text"] == "Hello!"  # type: ignore[union-attr]
    again.close()


@pytest.mark.parametrize("text", ["half \ud83c", "nul \x00", "🎬"])
def test_any_text_can_be_stored(tmp_path: Path, text: str) -> None:
    host = open_host(tmp_path / "state.sqlite3")
    create_root(host)
    submit(host)
    event = SessionEvent(type="session.updated", session_id=ROOT, title=text, settings={"big": 2**80, "text": text})
    host.apply([event], cause_ref="unit")
    host.close()
    row = open_host(tmp_path / "state.sqlite3").session(ROOT)
    assert row is not None
    assert row.settings == {"big": 2**80, "text": text}
    assert row.title == text.replace("\ud83c", "?")


def test_a_store_belongs_to_one_user(tmp_path: Path) -> None:
    open_host(tmp_path / "state.sqlite3").close()
    with pytest.raises(Conflict) as refused:
        open_host(tmp_path / "state.sqlite3", user_id="somebody else")
    assert refused.value.code == "host_store_foreign"


@pytest.mark.parametrize("content", [b"this is no database" * 100, None])
def test_a_file_that_cannot_be_used_is_an_error_with_its_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "state.sqlite3"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(RepriseError) as refused:
        open_host(path)
    assert (refused.value.code, refused.value.place.file) == ("host_store_failed", str(path))


def test_a_long_run_is_written_on_the_way(tmp_path: Path) -> None:
    host: Host = open_host(tmp_path / "state.sqlite3")
    create_root(host)
    submit(host)
    speaker = Speaker(host)
    for _ in range(5000):
        speaker.say("m", status="streaming", payload={"content": ""}, delta="x")
    assert len(host._store.log) < 5000
    host.close()
