"""Conformance cases B61-B65 of provider-tape: connections are held where the checkpoint stands."""

import pytest

from cassettes.core.checkpoints import ProviderPosition
from cassettes.core.errors import ReplayFailed
from cassettes.playback.barrier import InputBarrier
from cassettes.session.ports import Unit


def unit(connection: str, chunk: int, index: int) -> Unit:
    return Unit(connection_id=connection, chunk_seq=chunk, unit_index=index, kind="protocol-message", message={})


def target(connection: str, chunk: int, index: int) -> ProviderPosition:
    return ProviderPosition(connection_id=connection, chunk_seq=chunk, unit_index=index)


def test_b61_a_connection_at_its_target_is_held_while_another_goes_on() -> None:
    barrier = InputBarrier()
    barrier.install([target("c1", 4, 1), target("c2", 9, 2)])
    barrier.complete(unit("c1", 4, 1))
    assert not barrier.allows(unit("c1", 4, 2))
    assert barrier.allows(unit("c2", 9, 1))
    barrier.clear()
    assert barrier.allows(unit("c1", 4, 2))


def test_b62_a_unit_beyond_the_target_is_an_overshoot() -> None:
    barrier = InputBarrier()
    barrier.install([target("c1", 4, 1)])
    with pytest.raises(ReplayFailed) as caught:
        barrier.allows(unit("c1", 4, 2))
    assert caught.value.code == "checkpoint_provider_overshot"
    assert "4/1" in str(caught.value) and "4/2" in str(caught.value)


def test_b63_a_target_behind_what_was_handled_is_refused_and_the_old_one_stays() -> None:
    barrier = InputBarrier()
    barrier.install([target("c1", 4, 1)])
    barrier.complete(unit("c1", 4, 1))
    for bad in ([target("c1", 3, 1)], [target("c2", 1, 1)]):
        with pytest.raises(ReplayFailed) as caught:
            barrier.install(bad)
        assert caught.value.code == "checkpoint_provider_overshot"
    assert not barrier.allows(unit("c1", 5, 1))


def test_b64_a_later_target_lets_the_reader_go_on() -> None:
    barrier = InputBarrier()
    barrier.install([target("c1", 4, 1)])
    barrier.complete(unit("c1", 4, 1))
    barrier.install([target("c1", 6, 1)])
    assert barrier.allows(unit("c1", 5, 1))


def test_b65_target_zero_forbids_every_unit_of_the_connection() -> None:
    barrier = InputBarrier()
    barrier.install([target("c1", 0, 0)])
    assert not barrier.allows(unit("c1", 1, 1))
    assert barrier.missing() == {}
