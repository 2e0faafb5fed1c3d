"""`make bench`: how long the main jobs take here, side by side in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.store import ArtifactStore
from cassettes.playback.headless import replay
from cassettes.transcripts.importing import import_transcript
from cassettes.transcripts.reading import read_transcript
from tests.bench import host_apply, validate
from tests.samples import transcripts

ROUNDS = 5


def median_ms(work: Callable[[], object]) -> float:
    """Median of several rounds, in milliseconds."""
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def main() -> None:
    """Print one line a transcript: reading, importing, auditing, replaying."""
    print(f"{'transcript':44} {'read':>8} {'import':>8} {'audit':>8} {'replay':>8}  (median of {ROUNDS}, ms)")
    for path in transcripts():
        with tempfile.TemporaryDirectory() as folder:
            made = import_transcript(path, ArtifactStore(Path(folder) / "kept")).path
            rounds = iter(range(1000))

            def fresh(path: Path = path, folder: str = folder, rounds: object = rounds) -> object:
                return import_transcript(path, ArtifactStore(Path(folder) / str(next(rounds))))  # type: ignore[call-overload]

            times = [
                median_ms(lambda path=path: read_transcript(path)),  # type: ignore[misc]
                median_ms(fresh),
                median_ms(lambda made=made: verify_static(made)),  # type: ignore[misc]
                median_ms(lambda made=made: replay(made)),  # type: ignore[misc]
            ]
        print(f"{path.stem:44} " + " ".join(f"{one:8.1f}" for one in times))
    host_apply.main()
    print()
    validate.report(validate.SIZES)


if __name__ == "__main__":
    main()
