"""Cassettes with one fault each: the static verification gives the required verdict."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cassettes.artifacts.archives import import_archive
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import RepriseError
from tests.samples import CASSETTES

MUTANTS = CASSETTES / "mutants"


def _cases() -> list[dict[str, str]]:
    with (MUTANTS / "verdicts.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["case"])
def test_a_mutant_gets_the_required_verdict(case: dict[str, str], tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    code = ""
    try:
        import_archive(MUTANTS / f"{case['case']}.tar.gz", store)
    except RepriseError as refused:
        code = refused.code
    verdict = "reject" if code else "accept"
    assert verdict == case["required"], f"{case['fault']}: {case['why']} ({code})"
    assert len(list(store.ids())) == (verdict == "accept")
    assert not any(store.incoming.iterdir())
