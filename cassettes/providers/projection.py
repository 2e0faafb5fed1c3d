"""Provider traffic in portable form, as it goes on the tape (provider-tape §5.4, §5.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.jsontext import decode_values, encode_values
from cassettes.providers.ports import Provider
from cassettes.providers.value_audit import PORTABLE_EMAIL, audit_values, folded
from cassettes.providers.values import (
    HOME_TOKEN,
    id_key,
    map_paths,
    neutral_request,
    swap_root,
    without_environment,
)

JsonObject = dict[str, Any]
_USER_HOME = re.compile(r"(/(?:Users|home)/[^/]+)(?:/|$)")


class TapeProjection:
    """Projects the messages of one connection. The live stream itself is never altered."""

    def __init__(self, provider: Provider, *, cwd: str, cwd_token: str, environment: Mapping[str, str]) -> None:
        self._provider = provider
        self._cwd = cwd.rstrip("/") or cwd
        self._token = cwd_token
        self._homes = personal_roots(provider, environment, cwd)
        self._asked: dict[str, str] = {}  # id -> method of our requests

    def outbound(self, data: bytes) -> bytes:
        """One send; bytes that are no JSON are kept as they are."""
        return self._project(data, outbound=True)

    def line(self, data: bytes) -> bytes:
        """One line of stdout."""
        return self._project(data, outbound=False)

    def _project(self, data: bytes, *, outbound: bool) -> bytes:
        try:
            values = decode_values(data)
        except CassetteRejected:
            return data
        projected = [self._message(value, outbound) for value in values]
        for number, value in enumerate(projected):
            finding = audit_values([value], self._provider.credential_methods)
            if finding is not None:
                raise CassetteRejected(
                    "A protocol message holds what a Cassette must not hold.",
                    code=f"provider_{finding.kind}",
                    place=Place(path=finding.path if len(projected) == 1 else f"{finding.path} of value {number + 1}"),
                )
        if all(new is old for new, old in zip(projected, values, strict=True)):
            return data
        return encode_values(projected)

    def _message(self, value: Any, outbound: bool) -> Any:
        value = self._account(value, outbound)
        value = neutral_request(value, self._provider)
        value = without_environment(value, self._provider)
        return map_paths(value, self._path)

    def _account(self, value: Any, outbound: bool) -> Any:
        """Remember what was asked; mask the address in the answer of the account-read method."""
        if not isinstance(value, dict):
            return value
        method = value.get("method")
        if outbound:
            if isinstance(method, str) and "id" in value:
                self._asked[id_key(value["id"])] = folded(method)
            return value
        if method is not None or "id" not in value or not ("result" in value or "error" in value):
            return value
        asked = self._asked.pop(id_key(value["id"]), "")
        result = value.get("result")
        account = result.get("account") if isinstance(result, dict) else None
        email = account.get("email") if isinstance(account, dict) else None
        if not self._provider.account_read_method or asked != folded(self._provider.account_read_method):
            return value
        if not isinstance(email, str) or not email.strip() or email == PORTABLE_EMAIL:
            return value
        assert isinstance(result, dict) and isinstance(account, dict)
        return {**value, "result": {**result, "account": {**account, "email": PORTABLE_EMAIL}}}

    def _path(self, text: str) -> str:
        found = swap_root(text, self._cwd, self._token)
        for home in self._homes:
            found = swap_root(found, home, HOME_TOKEN)
        return found


def personal_roots(provider: Provider, environment: Mapping[str, str], *folders: str) -> list[str]:
    """Personal folders in the order in which they are replaced (§5.5)."""
    given = {name.upper(): value for name, value in environment.items()}
    roots = [given.get(name, "") for name in (*provider.home_variables, "HOME", "USERPROFILE")]
    for folder in folders:
        found = _USER_HOME.match(folder)
        if found:
            roots.append(found.group(1))
    return [root for root in dict.fromkeys(one.rstrip("/") for one in roots) if root]
