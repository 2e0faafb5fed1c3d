"""One canonical transaction: every change of rows goes through it, and all of it can be undone."""

from __future__ import annotations

import copy
from typing import Any, Literal, cast

import msgspec

from cassettes.host.model import Commit, Mutation, SessionRow
from cassettes.host.store import Key, Store

Cause = Literal["restore", "activity", "provider", "operation", "recovery"]
_CANONICAL = frozenset({"session", "turn", "message", "interaction", "goal"})


class _Change:
    __slots__ = ("appended", "kind", "row")

    def __init__(self, kind: Literal["insert", "update"], row: Any) -> None:
        self.kind = kind
        self.row = row
        self.appended: list[str] | None = None  # only texts were appended so far


class Transaction:
    """Collects changes. A row must be announced (`edit`, `keep`, `append`) before it is changed."""

    __slots__ = ("_changes", "_grown", "_saved", "at", "store")

    def __init__(self, store: Store, at: int) -> None:
        self.store = store
        self.at = at  # epoch milliseconds of everything that happens in it
        self._changes: dict[Key, _Change] = {}
        self._saved: dict[Key, tuple[msgspec.Struct, msgspec.Struct | None]] = {}
        self._grown: list[tuple[dict[str, Any], str, int]] = []

    def insert(self, key: Key, row: msgspec.Struct) -> None:
        """Add a new row."""
        self._saved[key] = (row, None)
        self.store.add(key, row)
        self.store.dirty[key] = row
        if key[0] in _CANONICAL:
            self._changes[key] = _Change("insert", row)

    def edit(self, key: Key, row: msgspec.Struct) -> None:
        """The row is about to change."""
        self.keep(key, row)
        if key[0] in _CANONICAL:
            change = self._changes.get(key)
            if change is None:
                self._changes[key] = _Change("update", row)
            else:
                change.appended = None

    def keep(self, key: Key, row: msgspec.Struct) -> None:
        """The row is about to change in a way that nobody is told of."""
        if key not in self._saved:
            self._saved[key] = (row, copy.copy(row))
        self.store.dirty[key] = row

    def append(self, key: Key, row: msgspec.Struct, text: str) -> None:
        """Text is about to be added at the end of a message, and nothing else."""
        self.keep(key, row)
        change = self._changes.get(key)
        if change is None:
            change = self._changes[key] = _Change("update", row)
            change.appended = [text]
        elif change.appended is not None:
            change.appended.append(text)

    def grown(self, shrink: list[tuple[dict[str, Any], str, int]]) -> None:
        """Texts were extended in place; this is how to shrink them again."""
        self._grown += shrink

    def touch(self, session: SessionRow) -> None:
        """Something of the session changed: its time moves on."""
        self.keep(("session", session.id), session)
        session.updated_at_ms = self.at

    def next_version(self, session: SessionRow) -> int:
        """The version of a message change (replay-state §7)."""
        self.touch(session)
        session.message_version += 1
        return session.message_version

    def commit(self, cause: Cause, cause_ref: str) -> Commit:
        """End it. `txn_id` is empty when nothing changed."""
        if not self._saved:
            return Commit(txn_id="", cause=cause, cause_ref=cause_ref)
        store = self.store
        store.last_commit += 1
        txn_id = f"txn-{store.last_commit}"
        store.log.append((store.last_commit, txn_id, cause, cause_ref, self.at))
        mutations = tuple(
            [
                Mutation(
                    entity=cast(Any, key[0]),
                    key=key[1:],
                    change=change.kind,
                    value=change.row,
                    appended="".join(change.appended) if change.appended else "",
                )
                for key, change in self._changes.items()
            ]
        )
        return Commit(txn_id=txn_id, cause=cause, cause_ref=cause_ref, mutations=mutations)

    def undo(self) -> None:
        """Give every row back the value it had before."""
        for holder, name, length in reversed(self._grown):
            holder[name] = holder[name][:length]
        for row, before in self._saved.values():
            if before is not None:
                for name in row.__struct_fields__:
                    setattr(row, name, getattr(before, name))
        if self._saved:
            self.store.reindex({key for key, (_, before) in self._saved.items() if before is None})
