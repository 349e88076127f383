"""Signals at random moments: nothing crashes, no lock is stuck, no call is half done."""

from __future__ import annotations

import pytest

from tests.marks import thorough
from tests.stress.program import run


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("IDS", 60), marks=pytest.mark.slow),
        pytest.param(("BayesianIDS", 60), marks=[pytest.mark.slow, thorough]),
        pytest.param(("Stakes", 60), marks=pytest.mark.slow),
        pytest.param(("IDS in contexts", 60, "--journal"), marks=pytest.mark.slow),
        pytest.param(("IDS on a stream", 60), marks=[pytest.mark.slow, thorough]),
        pytest.param(("Stakes in a game", 60, "--journal"), marks=pytest.mark.slow),
        pytest.param(("IDS on a stream", 60, "--journal"), marks=pytest.mark.slow),
        pytest.param(("LinUCB", 60, "--journal"), marks=[pytest.mark.slow, thorough]),
        pytest.param(("ThompsonSampling", 60, "--journal", "--threads", 3), marks=pytest.mark.slow),
        ("EpsilonGreedy", 60),
        ("EpsilonGreedy", 60, "--journal"),
    ],
    ids=str,
)
def test_an_interrupted_session_is_as_before_the_call_or_as_after_it(
    arguments: tuple[object, ...],
) -> None:
    ended = run("interrupted_session", *arguments)
    assert ended.well, ended
    assert ended.found["raised"] >= 60


@pytest.mark.slow
def test_an_interrupted_opening_leaves_the_journal_free() -> None:
    ended = run("interrupted_opening", 50)
    assert ended.well, ended


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("simulate", 10), ("threads", 15), ("processes", 1)])
def test_an_interrupted_run_stops_and_the_next_is_right(kind: str, count: int) -> None:
    ended = run("interrupted_runs", kind, count)
    assert ended.well, ended


@pytest.mark.slow
def test_an_interrupted_compilation_leaves_no_lock() -> None:
    """Kernels are read from the cache, under the same locks; benchmarks/survival.py compiles."""
    ended = run("interrupted_compilation", 2, "--cached")
    assert ended.well, ended
    assert ended.found["ended with 0"] == 2
    assert not ended.found["other decisions"] + ended.found["no thread could compile"]
