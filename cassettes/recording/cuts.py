"""Which fact makes which checkpoint (cassette-v7 §9.6, provider-adapters §3.3)."""

from __future__ import annotations

import msgspec

from cassettes.core.activity import ActivityEvent
from cassettes.core.checkpoints import fold_turn_phase
from cassettes.session.observe import ObservedFact

_CALLS = {"call.started": "tool.started", "call.completed": "tool.completed", "call.failed": "tool.completed"}
_WORKING = {"turn.started", "turn.updated", "root_provider_turn.started"}
_COMPACTION = {
    "running": "compaction.running",
    "completed": "compaction.completed",
    "failed": "compaction.completed",
    "canceled": "compaction.canceled",
}


class ObservedCut(msgspec.Struct, frozen=True):
    """A checkpoint at a provider observation: its kind and the fact that must hold."""

    kind: str
    predicate: str
    equals: str


class BoundaryCut(msgspec.Struct, frozen=True):
    """A checkpoint behind an activity event. The first kind is the primary one."""

    kinds: tuple[str, ...]
    subject: str  # session, turn, interaction
    predicates: tuple[tuple[str, str], ...]


def observed_cut(fact: ObservedFact) -> ObservedCut | None:
    """The checkpoint of a provider observation, or None."""
    kind = fact.type
    if kind in _CALLS:
        equals = {"call.started": "running", "call.completed": "completed", "call.failed": "failed"}[kind]
        return ObservedCut(_CALLS[kind], "call.status", fact.status if kind == "call.failed" else equals)
    if kind in ("interaction.requested", "interaction.superseded"):
        status = "pending" if kind == "interaction.requested" else "superseded"
        return ObservedCut(f"interaction.{status}", "interaction.status", status)
    if kind == "plan.proposed":
        return ObservedCut("plan.waiting", "plan.status", fact.status or "completed")
    if kind == "compaction.updated":
        found = _COMPACTION.get(fact.status)
        return ObservedCut(found, "compaction.status", fact.status) if found else None
    if kind == "attachment.materialized":
        return ObservedCut(kind, kind, "true")
    if kind.startswith("session."):
        return ObservedCut(f"child-session.{fact.status}", "child-session.status", fact.status)
    if kind == "turn.canceled":
        return ObservedCut("turn.canceled", "turn.status", "canceled")
    if fact.terminal:
        default = "failed" if kind == "turn.failed" else "completed"
        return ObservedCut("turn.terminal", "turn.status", fact.outcome or fact.status or default)
    if kind in _WORKING:
        return ObservedCut("turn.working", "turn.phase", fold_turn_phase(fact.phase or "running"))
    return None


def boundary_cut(event: ActivityEvent) -> BoundaryCut | None:
    """The checkpoint behind the last event of a complete batch, or None. Effects count only when they succeeded."""
    payload = event.payload or {}
    if event.kind == "effect" and payload.get("outcome") != "succeeded":
        return None
    match event.type:
        case "session/activate":
            rail = payload.get("railPlacement")
            project = isinstance(rail, dict) and rail.get("kind") == "project"
            kinds = ("session.ready", *(("project.binding-ready",) if project else ()))
            bound = (("project.binding", "recorded"),) if project else ()
            return BoundaryCut(kinds, "session", (("session.exists", "true"), *bound))
        case "interaction/respond" | "interactive.response":
            return BoundaryCut(("interaction.resolved",), "interaction", (("interaction.status", "answered"),))
        case "turn/cancel" | "turn.cancel":
            return BoundaryCut(("turn.canceled",), "turn", (("turn.status", "canceled"),))
        case "session/updateSettings" | "session.settings.update":
            return BoundaryCut(("settings.applied",), "session", (("settings.equal", "recorded"),))
        case "session.send" | "submit/requested":
            return BoundaryCut(("submission.accepted",), "session", (("session.status", "working"),))
        case "plan/submitDecision" | "plan.decision":
            return BoundaryCut(("plan.confirmed",), "session", (("session.status", "working"),))
        case "plan/feedbackRequested":
            return BoundaryCut(("plan.feedback-submitted",), "session", (("session.status", "working"),))
        case _:
            return None
