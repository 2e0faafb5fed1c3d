"""The providers that exist. Behaviour is chosen by declaration, never by a provider's name in shared code.

Adding a provider means adding one folder and one entry here (provider-tape §7.1). Look-up trims and ignores case.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cassettes.core.errors import CassetteRejected, Place
from cassettes.providers.acp.adapter import AcpAdapter
from cassettes.providers.acp.codec import AcpCodec
from cassettes.providers.acp.declared import ACP
from cassettes.providers.claude_code.adapter import ClaudeAdapter
from cassettes.providers.claude_code.codec import SidecarCodec
from cassettes.providers.claude_code.declared import CLAUDE_CODE
from cassettes.providers.codex.adapter import CodexAdapter
from cassettes.providers.codex.codec import JsonRpcCodec
from cassettes.providers.codex.declared import CODEX
from cassettes.providers.ports import Adapter, Codec, IdSource, Provider


class _Entry(msgspec.Struct, frozen=True):
    provider: Provider
    adapter: Callable[[IdSource], Adapter]
    codec: Callable[[], Codec]


_ENTRIES = (
    _Entry(CODEX, CodexAdapter, JsonRpcCodec),
    _Entry(CLAUDE_CODE, ClaudeAdapter, SidecarCodec),
    _Entry(ACP, AcpAdapter, AcpCodec),
)
_BY_ID = {entry.provider.id: entry for entry in _ENTRIES}
_BY_TARGET = {entry.provider.target: entry for entry in _ENTRIES}


def providers() -> list[Provider]:
    """Every registered provider."""
    return [entry.provider for entry in _ENTRIES]


def find(provider_id: str) -> Provider | None:
    """The provider with this id, or None."""
    entry = _BY_ID.get(provider_id.strip().lower())
    return entry.provider if entry is not None else None


def target_provider(target: str) -> Provider | None:
    """The provider of an Agent Target, or None."""
    entry = _BY_TARGET.get(target.strip().lower())
    return entry.provider if entry is not None else None


def provider(provider_id: str) -> Provider:
    """The provider with this id; `provider_unsupported` without one."""
    return _entry(provider_id).provider


def provider_for_target(target: str) -> Provider:
    """The provider of an Agent Target; `agent_target_unsupported` without one."""
    found = target_provider(target)
    if found is None:
        raise CassetteRejected(
            f"The Agent Target {target!r} is not supported.",
            code="agent_target_unsupported",
            place=Place(path="$.agentTargetId"),
            expected=", ".join(_BY_TARGET),
            found=target,
        )
    return found


def resolve(target: str, provider_id: str) -> Provider:
    """The provider that target and id both name; `provider_conflict` when they name two."""
    if not target.strip():
        return provider(provider_id)
    by_target = provider_for_target(target)
    if provider_id.strip() and provider(provider_id).id != by_target.id:
        raise CassetteRejected(
            "Agent Target and provider name two adapters.",
            code="provider_conflict",
            expected=by_target.id,
            found=provider_id,
        )
    return by_target


def new_adapter(provider_id: str, ids: IdSource) -> Adapter:
    """A fresh adapter for one connection."""
    return _entry(provider_id).adapter(ids)


def codec(provider_id: str) -> Codec:
    """A fresh codec for one connection."""
    return _entry(provider_id).codec()


def _entry(provider_id: str) -> _Entry:
    entry = _BY_ID.get(provider_id.strip().lower())
    if entry is None:
        raise CassetteRejected(
            f"The provider {provider_id!r} is not supported.",
            code="provider_unsupported",
            expected=", ".join(_BY_ID),
            found=provider_id,
        )
    return entry
