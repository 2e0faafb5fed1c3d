import pytest

from cassettes.core.errors import InputRejected
from cassettes.playback.clock import PlaybackClock


def test_playback_time_is_wall_time_times_speed() -> None:
    clock = PlaybackClock()
    clock.tick(1_000)
    clock.set_speed(4)
    clock.tick(2_000)
    assert clock.elapsed == 4_000


def test_a_change_of_speed_acts_at_once() -> None:
    clock = PlaybackClock()
    clock.tick(0)
    clock.tick(100)
    clock.set_speed(64)
    clock.tick(110)
    assert clock.elapsed == 100 + 640


def test_pause_freezes_playback_time() -> None:
    clock = PlaybackClock()
    clock.tick(0)
    clock.tick(50)
    clock.paused = True
    clock.tick(60_000)
    clock.paused = False
    clock.tick(60_010)
    assert clock.elapsed == 60


def test_a_jump_never_goes_back() -> None:
    clock = PlaybackClock()
    clock.jump(500)
    clock.jump(100)
    assert clock.elapsed == 500


@pytest.mark.parametrize("speed", [0.1, -1, 65, 1000])
def test_an_unsupported_speed_is_refused_and_changes_nothing(speed: float) -> None:
    clock = PlaybackClock()
    with pytest.raises(InputRejected) as caught:
        clock.set_speed(speed)
    assert caught.value.code == "speed_unsupported"
    assert clock.speed == 1


def test_unbounded_speed_waits_for_nothing() -> None:
    clock = PlaybackClock()
    clock.set_speed(0)
    assert clock.wall_until(1e9) == 0
