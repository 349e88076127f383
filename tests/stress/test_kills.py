"""kill -9 at random moments, and processes that contend for one journal."""

from __future__ import annotations

import pytest

from tests.stress.program import run


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("LinUCB", "EpsilonGreedy"),
        ("IDS in contexts",),
        ("IDS on a stream",),
        ("Stakes in a game",),
    ],
    ids=str,
)
def test_what_was_acknowledged_survives_kill_9(names: tuple[str, ...]) -> None:
    ended = run("killed", 25, *(part for name in names for part in ("--policy", name)))
    assert ended.well, ended
    assert ended.found["kills"] == 25
    assert ended.found["acknowledged"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "threads"), [(2, 1), (1, 4)])
def test_one_session_at_a_time_has_a_journal(processes: int, threads: int) -> None:
    ended = run("racing", 40, "--processes", processes, "--threads", threads)
    assert ended.well, ended
