"""Which tests the compiled run of ``make test`` leaves to ``make thorough``.

Compiling kernels takes most of the time of the tests, and the run without compilation does almost
all of them as well.  So the compiled run keeps

- all tests that need compiled kernels, but for settings in which another policy or configuration
  stands for the one left out (``STOOD_FOR``),
- of the others, those that tie compiled sessions to simulations (``TIES``); simulations are tied to
  the interpreter by ``tests/test_recorded_runs.py``.

The service calls the same kernels as sessions.  ``tests/service/test_adversity.py``, with kills,
and the examples run it compiled; requests and answers are tested without compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import sightline as sl

__all__ = ["PATTERNS", "is_thorough", "standing_in"]

# Where a test that does not need compiled kernels is left to the run without compilation.
_INTERPRETED = (
    "tests/bounds/",
    "tests/contracts/",
    "tests/core/",
    "tests/evaluation/",
    "tests/policies/",
    "tests/problems/",
    "tests/report/",
    "tests/service/",
    "tests/sessions/",
    "tests/simulation/",
    "tests/stress/test_adversity.py",
    "tests/test_site.py",
    "tests/test_own_likelihoods.py",
)
TIES = (
    "tests/sessions/test_live_contexts.py::test_a_session_decides_as_the_loop_does[0-or=1.0",
    "tests/sessions/test_live_games.py::test_a_session_decides_as_a_simulation_does[duel-IDS",
    "tests/sessions/test_live_streams.py::test_a_session_decides_as_the_formulas_do[0-or=1.0",
    "tests/sessions/test_session.py::test_a_session_decides_as_the_simulation_does",
)
_INTERRUPTED = (
    "tests/stress/test_signals.py::test_an_interrupted_session_is_as_before_the_call_or_as_after_it"
)
STOOD_FOR = (
    # the examples of the README, and tests of parts of one's own
    "tests/test_examples.py::test_website",
    "tests/test_examples.py::test_own_parts",
    # runs, and the gain
    "tests/test_own_parts.py::test_copies_serve_as_the_library_does",
    "tests/test_own_parts.py::test_what_is_no_gain_gap_or_beta_is_refused_in_its_first_round[gap",
    "tests/test_own_parts.py::test_what_is_no_gain_gap_or_beta_is_refused_in_its_first_round[overall",
    # figures of the paper
    "tests/simulation/test_trajectory.py::test_the_informative_arm_prevails_on_end_of_optimism",
    # other policies and settings
    "tests/contracts/test_likelihoods.py::test_regret_is_sublinear[IDS",
    "tests/core/posterior/test_gains.py::",
    "tests/policies/test_games.py::",
    "tests/policies/test_oam.py::",
    "tests/policies/test_top_two.py::",
    "tests/policies/test_ids_games.py::",
    "tests/policies/test_unknown_noise.py::",
    "tests/sessions/test_propensities.py::",
    "tests/sessions/test_streams.py::",
    "tests/stress/test_kills.py::test_what_was_acknowledged_survives_kill_9[('IDS",
    f"{_INTERRUPTED}[('IDS",
    f"{_INTERRUPTED}[('Stakes', 60)]",
    "tests/test_own_likelihoods.py::test_compiled_or_plain_the_run_is_the_same[Stakes]",
    "tests/test_benchmark_streams.py::test_a_classification_stream_is_learned",
)
PATTERNS = TIES + STOOD_FOR


def is_thorough(name: str, is_slow: bool) -> bool:
    """Whether ``make thorough`` has a test, of this id, that the compiled run leaves out."""
    if name.startswith(STOOD_FOR):
        return True
    return not is_slow and name.startswith(_INTERPRETED) and not name.startswith(TIES)


# Policies that the compiled run compiles: every estimator, every solver, every kind of choice.
_COMPILED = (
    sl.BayesianIDS,
    sl.E4,
    sl.IDS,
    sl.LinUCB,
    sl.OSSB,
    sl.PrimalDual,
    sl.SOLID,
    sl.Stakes,
    sl.ThompsonSampling,
)


def standing_in(policies: Iterable[tuple[Any, sl.extend.Policy]]) -> list[Any]:
    """Parameters of a test of compiled policies; the compiled run has one of each kept class.

    Parameters
    ----------
    policies : iterable of pairs
        What the test gets, and its policy.
    """
    seen: set[type] = set()
    found = []
    for value, policy in policies:
        is_first = isinstance(policy, _COMPILED) and type(policy) not in seen
        keeps = is_first or policy == sl.IDS(information="cell")
        seen.add(type(policy))
        marks = () if keeps else pytest.mark.thorough
        found.append(pytest.param(value, marks=marks, id=str(value)))
    return found
