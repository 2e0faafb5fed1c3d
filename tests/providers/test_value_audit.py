"""The value audit: which members give a finding, and that a finding never shows a value (provider-tape §6.2)."""

from __future__ import annotations

from typing import Any

import pytest

from cassettes.providers.value_audit import audit_value, audit_values, credential_method, findings


@pytest.mark.parametrize(
    "value",
    [
        {"email": "a@b.c"},
        {" Email ": "a@b.c"},
        {"accessToken": "x"},
        {"accessToken": {}},
        {"accessToken": []},
        {"access_token": "x"},
        {"API-Key": "x"},
        {"refresh_token": "x"},
        {"Authorization": "Bearer x"},
        {"accountId": 0},
        {"accountId": "x"},
        {"chatgptAccountId": {}},
        {"path": "/a"},
        {"path": " file:///a"},
        {"PATH": "C:\\a"},
        {"path": "C:a"},
        {"cwd": "\\\\server\\share"},
        {"path": [["/a"]]},
        {"savedPaths": ["a", "/b"]},
        {"a": [{"b": {"working_directory": "/x"}}]},
        (("email", "a@b.c"), ("email", "")),
    ],
)
def test_secrets_accounts_and_machine_paths_are_found(value: Any) -> None:
    assert audit_value(value) is not None


@pytest.mark.parametrize(
    "value",
    [
        {"email": ""},
        {"email": 5},
        {"email": None},
        {"email": "replay-user@example.invalid"},
        {"accessToken": ""},
        {"accessToken": 1},
        {"accessToken": True},
        {"accountId": None},
        {"accountId": " "},
        {"path": "~/a"},
        {"path": "a/b"},
        {"path": "${REPLAY_HOME}/x"},
        {"text": "/a"},
        {"text": "my accessToken is x"},
        "a@b.c",
        {"path": {"text": "/a"}},
    ],
)
def test_blank_portable_and_free_text_values_pass(value: Any) -> None:
    assert audit_value(value) is None


def test_a_finding_names_the_place_and_never_the_value() -> None:
    value = {"result": {"items": [{}, {"account": {"email": "person@example.org"}}], "cwd": "/home/person"}}
    found = list(findings(value))
    assert [(finding.kind, finding.path) for finding in found] == [
        ("non_portable_path", "$.result.cwd"),
        ("sensitive_field", "$.result.items[1].account.email"),
    ]
    assert "person" not in repr(found)


def test_credential_methods_are_recognised_in_any_letter_case_and_inside_a_batch() -> None:
    methods = {"account/login/start"}
    assert credential_method({"method": " Account/Login/Start"}, methods)
    assert credential_method([{"method": "ok"}, {"method": "account/login/start"}], methods)
    assert credential_method({"params": {"method": "account/login/start"}}, methods) is None
    assert credential_method({"method": "account/login/start"}, ()) is None


def test_a_sequence_stops_at_its_first_finding() -> None:
    found = audit_values([{"a": 1}, {"method": "x", "path": "/a"}, {"email": "a@b.c"}], {"y"})
    assert found is not None
    assert found.path == "$.path"


def test_very_deep_values_are_audited() -> None:
    value: Any = {"email": "a@b.c"}
    for _ in range(50_000):
        value = [value]
    found = audit_value(value)
    assert found is not None
    assert found.path.endswith("[0].email")
