"""All rows of one host in memory, and their file: reads are look-ups, writes reach SQLite in groups.

The memory is authoritative while the host is open. `flush` writes every row that changed since the last one in one
transaction, so a message that grew a thousand times is written once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from cassettes.core.errors import Conflict, Place, RepriseError
from cassettes.host.model import GoalRow, InteractionRow, MessageRow, SessionRow, TurnRow
from cassettes.host.records import OPEN_OPERATION, OperationRow, SubmitRow

SCHEMA = "reprise.host.1"
Key = tuple[str, ...]
R = TypeVar("R", bound=msgspec.Struct)


class ProductRow(msgspec.Struct, kw_only=True):
    """One entity of Tutti Mode, Workflows or Issues: `body` is its document form (replay-state §4-§6)."""

    domain: str  # activation, snapshot, workflow, issue
    id: str
    session_id: str = ""
    body: dict[str, Any] = msgspec.field(default_factory=dict)


class _Codec:
    """One table: rows of one type to column values and back. The type's members are the columns."""

    def __init__(self, table: str, row_type: type[msgspec.Struct], key: tuple[str, ...]) -> None:
        names = row_type.__struct_fields__
        hints = get_type_hints(row_type)
        self.row_type = row_type
        self._json = [index for index, name in enumerate(names) if _is_open(hints[name])]
        self._flags = [index for index, name in enumerate(names) if hints[name] is bool]
        self._values: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
        self._names = names
        changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
        marks = ", ".join("?" * len(names))
        columns = ", ".join(names)
        self.select = f"SELECT {columns} FROM {table} ORDER BY rowid"  # noqa: S608 - names of this module
        self.upsert = (
            f"INSERT INTO {table} ({columns}) VALUES ({marks}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        )

    def encode(self, row: msgspec.Struct) -> list[Any]:
        values = list(self._values(row))
        for index in self._json:
            values[index] = _json_text(values[index])
        return values

    def encode_plainly(self, row: msgspec.Struct) -> list[Any]:
        """As `encode`, for rows with half surrogate pairs, which no UTF-8 text can hold."""
        return [
            value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in self.encode(row)
        ]

    def decode(self, values: tuple[Any, ...]) -> msgspec.Struct:
        found = list(values)
        for index in self._json:
            found[index] = json.loads(found[index])
        for index in self._flags:
            found[index] = bool(found[index])
        return self.row_type(**dict(zip(self._names, found, strict=True)))


def _is_open(hint: Any) -> bool:
    text = str(hint)
    return "dict" in text or "list" in text


def _json_text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError):
        return json.dumps(value, separators=(",", ":"))  # numbers beyond 64 bits, half surrogate pairs


_CODECS = {
    "session": _Codec("sessions", SessionRow, ("id",)),
    "turn": _Codec("turns", TurnRow, ("session_id", "id")),
    "message": _Codec("messages", MessageRow, ("session_id", "id")),
    "interaction": _Codec("interactions", InteractionRow, ("session_id", "turn_id", "request_id")),
    "goal": _Codec("goals", GoalRow, ("session_id",)),
    "operation": _Codec("operations", OperationRow, ("id",)),
    "submit": _Codec("submits", SubmitRow, ("session_id", "client_submit_id")),
    "product": _Codec("products", ProductRow, ("domain", "id")),
}


class Store:
    """The rows, the look-ups over them, and the file. Only a transaction changes rows."""

    def __init__(self, database: Path | str, *, workspace_id: str, user_id: str) -> None:
        self.sessions: dict[str, SessionRow] = {}
        self.graphs: dict[str, list[str]] = {}  # root id -> sessions of the graph, in order of creation
        self.turns: dict[str, dict[str, TurnRow]] = {}
        self.messages: dict[str, dict[str, MessageRow]] = {}  # inner order: version
        self.turn_messages: dict[tuple[str, str], dict[str, MessageRow]] = {}
        self.calls: dict[tuple[str, str, str], MessageRow] = {}
        self.interactions: dict[str, dict[tuple[str, str], InteractionRow]] = {}
        self.goals: dict[str, GoalRow] = {}
        self.operations: dict[str, OperationRow] = {}
        self.submits: dict[tuple[str, str], SubmitRow] = {}
        self.products: dict[tuple[str, str], ProductRow] = {}
        self.provider_turns: dict[tuple[str, str], str] = {}
        self.output_bytes: dict[tuple[str, str], int] = {}  # live output of calls; derived
        self.dirty: dict[Key, msgspec.Struct] = {}
        self.log: list[tuple[int, str, str, str, int]] = []
        self.last_commit = 0
        self._file = str(database)
        try:
            self._connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
            self._prepare(workspace_id, user_id)
        except sqlite3.Error as error:
            raise self._failed(error) from error

    # ------------------------------------------------------------------ rows

    def add(self, key: Key, row: msgspec.Struct) -> None:
        """Take in a new row with all its look-ups."""
        match row:
            case SessionRow():
                self.sessions[row.id] = row
                self.graphs.setdefault(row.root_id, []).append(row.id)
                self.turns.setdefault(row.id, {})
                self.messages.setdefault(row.id, {})
                self.interactions.setdefault(row.id, {})
            case TurnRow():
                self.turns[row.session_id][row.id] = row
                if row.root_provider_turn_id:
                    self.provider_turns[row.session_id, row.root_provider_turn_id] = row.id
            case MessageRow():
                self.messages[row.session_id][row.id] = row
                self.turn_messages.setdefault((row.session_id, row.turn_id), {})[row.id] = row
                self.index_call(row)
            case InteractionRow():
                self.interactions[row.session_id][row.turn_id, row.request_id] = row
            case GoalRow():
                self.goals[row.session_id] = row
            case OperationRow():
                self.operations[row.id] = row
            case SubmitRow():
                self.submits[row.session_id, row.client_submit_id] = row
            case ProductRow():
                self.products[row.domain, row.id] = row

    def index_call(self, row: MessageRow) -> None:
        """A message whose `payload.callId` is present is a tool call."""
        call = row.payload.get("callId")
        if isinstance(call, str) and call.strip():
            self.calls[row.session_id, row.turn_id, call] = row

    def rows(self) -> Iterator[tuple[Key, msgspec.Struct]]:
        """Every row with its key, in order of creation within its kind."""
        for session in self.sessions.values():
            yield ("session", session.id), session
        for turns in self.turns.values():
            for turn in turns.values():
                yield ("turn", turn.session_id, turn.id), turn
        for messages in self.messages.values():
            for message in sorted(messages.values(), key=attrgetter("version")):
                yield ("message", message.session_id, message.id), message
        for interactions in self.interactions.values():
            for one in interactions.values():
                yield ("interaction", one.session_id, one.turn_id, one.request_id), one
        for goal in self.goals.values():
            yield ("goal", goal.session_id), goal
        for operation in self.operations.values():
            yield ("operation", operation.id), operation
        for submit in self.submits.values():
            yield ("submit", submit.session_id, submit.client_submit_id), submit
        for product in self.products.values():
            yield ("product", product.domain, product.id), product

    def reindex(self, without: set[Key]) -> None:
        """Build all look-ups anew from the rows, leaving some out (after a transaction was undone)."""
        kept = [(key, row) for key, row in self.rows() if key not in without]
        for table in (
            self.sessions,
            self.graphs,
            self.turns,
            self.messages,
            self.turn_messages,
            self.calls,
            self.interactions,
            self.goals,
            self.operations,
            self.submits,
            self.products,
            self.provider_turns,
            self.output_bytes,
        ):
            table.clear()
        for key, row in kept:
            self.add(key, row)
        for key in without:
            self.dirty.pop(key, None)

    def open_operation(self, session_id: str, kind: str, turn_id: str) -> OperationRow | None:
        """The unfinished operation of a kind on a Turn."""
        wanted = (session_id, kind, turn_id)
        for row in self.operations.values():
            if row.state in OPEN_OPERATION and (row.session_id, row.kind, row.turn_id) == wanted:
                return row
        return None

    # ------------------------------------------------------------------ file

    def flush(self) -> None:
        """Write what changed, in one transaction."""
        if not self.dirty and not self.log:
            return
        groups: dict[str, list[msgspec.Struct]] = {}
        for key, row in self.dirty.items():
            groups.setdefault(key[0], []).append(row)
        try:
            self._connection.execute("BEGIN")
            for name, rows in groups.items():
                codec = _CODECS[name]
                try:
                    self._connection.executemany(codec.upsert, map(codec.encode, rows))
                except UnicodeEncodeError:
                    self._connection.executemany(codec.upsert, map(codec.encode_plainly, rows))
            self._connection.executemany(
                "INSERT INTO commits (seq, txn_id, cause, cause_ref, at_ms) VALUES (?, ?, ?, ?, ?)", self.log
            )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise self._failed(error) from error
        self.dirty.clear()
        self.log.clear()

    def close(self) -> None:
        """Flush and let go of the file."""
        self.flush()
        self._connection.close()

    def meta(self, key: str) -> str:
        found = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found else ""

    def set_meta(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def _prepare(self, workspace_id: str, user_id: str) -> None:
        # The file dies with its runtime: nothing of it has to survive a crash of the machine.
        self._connection.execute("PRAGMA journal_mode = MEMORY")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA temp_store = MEMORY")
        schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
        self._connection.executescript(schema)
        for name, wanted in (("schema", SCHEMA), ("workspace_id", workspace_id), ("user_id", user_id)):
            found = self.meta(name)
            if found and found != wanted:
                raise Conflict(
                    f"The store belongs to another {name}.",
                    code="host_store_foreign",
                    place=Place(file=self._file),
                    expected=wanted,
                    found=found,
                    hint="Open every workspace with a database of its own.",
                )
            self.set_meta(name, wanted)
        self._load()

    def _load(self) -> None:
        self.last_commit = self._connection.execute("SELECT coalesce(max(seq), 0) FROM commits").fetchone()[0]
        for name, codec in _CODECS.items():
            rows = [codec.decode(values) for values in self._connection.execute(codec.select)]
            if name == "message":
                rows.sort(key=lambda row: getattr(row, "version", 0))
            for row in rows:
                self.add((name,), row)

    def _failed(self, error: sqlite3.Error) -> RepriseError:
        return RepriseError(
            f"The canonical store cannot be used: {error}",
            code="host_store_failed",
            place=Place(file=self._file),
            hint="Check that the disk has room and that the folder can be written.",
        )
