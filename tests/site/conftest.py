"""An installation of its own for each test: a home folder, two people, two Cassettes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from cassettes import catalog
from cassettes.artifacts.archives import import_folder
from cassettes.models import Cassette
from cassettes.viewing.launcher import LAUNCHER
from tests.samples import CLAUDE, CODEX, cassette_copy

PASSWORD = "a long enough sentence"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Settings) -> Path:
    """A closed house whose artifacts are this test's own."""
    settings.REPRISE_HOME = tmp_path / "home"
    settings.REPRISE_OPEN = False
    return tmp_path / "home"


@pytest.fixture
def two_cassettes(home: Path, tmp_path: Path, db: None) -> tuple[Cassette, Cassette]:
    """A Codex and a Claude Code Cassette, published and in the catalog."""
    rows = []
    for stem, name in ((CODEX, "A Codex session"), (CLAUDE, "Another session")):
        made = import_folder(cassette_copy(stem, tmp_path), catalog.store())
        catalog.store().rename(made.cassette_id, name)
        rows.append(catalog.add_from_artifact(made.cassette_id))
    return rows[0], rows[1]


@pytest.fixture
def admin(db: None) -> Client:
    """Somebody who may upload, share and delete."""
    return signed_in("ada", is_staff=True)


@pytest.fixture
def member(db: None) -> Client:
    """Somebody who may watch."""
    return signed_in("mel")


def signed_in(name: str, *, is_staff: bool = False) -> Client:
    """A browser of a person who signed in with a password."""
    User.objects.create_user(name, password=PASSWORD, is_staff=is_staff)
    client = Client()
    answer = client.post("/sign-in/", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302, "the password is right"
    return client


@pytest.fixture
def workers() -> Iterator[None]:
    """The fork server ends with the test."""
    yield
    LAUNCHER.close()
