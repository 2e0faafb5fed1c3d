"""The verification report of a replay: what was checked, layer by layer, and what could not be asserted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cassettes.playback.surface import Surface

JsonObject = dict[str, Any]
_STATE_MISMATCH = "agent_session_replay_transport_mismatch"


def verification_event(surface: Surface) -> JsonObject:
    """The `verification` event of a finished Surface."""
    failure = surface.failure
    different = failure is not None and failure.code == _STATE_MISMATCH
    verdict = "equal" if surface.phase == "complete" else "different" if different else "failed"
    event: JsonObject = {
        "type": "verification",
        "verdict": verdict,
        "layers": layers(surface),
        "notAsserted": surface.transport.not_asserted(),
    }
    if failure is not None:
        described = failure.as_dict()
        event.update({"path": failure.place.path, "code": failure.code})
        event.update({name: described[name] for name in ("expected", "found") if name in described})
    return event


def layers(surface: Surface) -> list[JsonObject]:
    """The five layers of proof, each with what was counted (replay-runtime §11.1)."""
    failed = surface.failure.code if surface.failure is not None else ""
    done = surface.phase == "complete"
    transport = surface.transport
    rows = (
        ("checkpoints reached", len(surface.landed), len(surface.plan.checkpoints), failed.startswith("checkpoint_")),
        ("effects verified", surface.effects.verified, _effects(surface), failed.startswith("effect_")),
        ("outbound messages asserted", transport.asserted, None, failed.startswith("outbound_")),
        ("tape frames consumed", transport.consumed, transport.frame_count, failed == "incomplete_consumption"),
        ("final state", 1 if done else 0, 1, failed == _STATE_MISMATCH),
    )
    return [
        {
            "name": name,
            "count": count,
            "total": total,
            "verdict": "failed" if broken else "verified" if done or count == total else "open",
        }
        for name, count, total, broken in rows
    ]


def _effects(surface: Surface) -> int:
    return sum(1 for event in surface.events if event.kind == "effect")
