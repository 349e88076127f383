"""An amended reward leads to the state that the right one would have led to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.unregularised import forget
from sightline.report.audit import audit
from tests.marks import without_compilation
from tests.stress.actor import bits

pytestmark = without_compilation

ROWS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
POLICIES: list[sl.extend.Policy] = [
    sl.Stakes(),
    sl.IDS(),
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.TopTwo(),
    sl.BayesianIDS(samples=100),
    sl.LinMED(),
    sl.EpsilonGreedy(),
]
ITEMS = {"A": [1.0, 0.0], "B": [0.0, 1.0], "C": [0.7, 0.7]}


def twins(make: Any, tell: Any, wrong: Any, count: int = 30) -> tuple[sl.Session, sl.Session]:
    """Two sessions with the same decisions, one of which is told a wrong reward first."""
    sessions = []
    for is_wrong in (True, False):
        session = make()
        made = session.ask(count)
        rewards = [tell(i, one) for i, one in enumerate(made)]
        for i, one in enumerate(made):
            session.tell(one, wrong if is_wrong and i == 3 else rewards[i])
        if is_wrong:
            session.amend(made[3], rewards[3])
        sessions.append(session)
    return sessions[0], sessions[1]


def require_same(one: sl.Session, other: sl.Session) -> None:
    """Everything reported about both is the same, up to rounding."""
    close: dict[str, Any] = {"rel": 1e-9, "abs": 1e-9}
    assert one._live.counters.totals == pytest.approx(other._live.counters.totals, **close)
    for field in ("t", "told", "asked", "explorations"):
        assert np.array_equal(
            getattr(one._live.counters, field), getattr(other._live.counters, field)
        )
    found, expected = one.estimates(), other.estimates()
    assert found is not None
    assert expected is not None
    for name in ("means", "standard_errors"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), **close)
    for name in ("evidence", "threshold", "expected_loss", "price"):
        here, there = getattr(one.status(), name), getattr(other.status(), name)
        assert here == pytest.approx(there, rel=1e-6, nan_ok=True), name
    effects = [session.effects()[["effect", "lower", "upper"]] for session in (one, other)]
    assert effects[0].to_numpy() == pytest.approx(effects[1].to_numpy(), **close)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_normal_rewards(policy: sl.extend.Policy) -> None:
    one, other = twins(
        lambda: sl.Session(ROWS, policy, 0.3, seed=2), lambda i, _: math.sin(i) / 3.0, 5.0
    )
    require_same(one, other)
    if policy.randomises:  # nothing else determines their next decisions
        draws = [[session.ask().arm for _ in range(20)] for session in (one, other)]
        assert draws[0] == draws[1]


@pytest.mark.parametrize("policy", [sl.Stakes(), sl.IDS(), sl.ThompsonSampling(), sl.LinUCB()])
@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Poisson()], ids=["clicks", "counts"])
def test_clicks_and_counts(policy: sl.extend.Policy, rewards: Any) -> None:
    one, other = twins(
        lambda: sl.Session(ROWS, policy, rewards=rewards, seed=2),
        lambda i, _: float(i % 3 == 1),
        1.0,
    )
    require_same(one, other)


@pytest.mark.filterwarnings("ignore:Rewards vary more")  # an amended one is far off
def test_noise_that_is_learned_levels_that_differ_and_duels() -> None:
    def sine(i: int, _: Any) -> float:
        return math.sin(i)

    learned = sl.Gaussian(std=None)
    one, other = twins(lambda: sl.Session(ROWS, rewards=learned, seed=2), sine, 9.0)
    require_same(one, other)
    levels = [0.1, 0.2, 0.3, 0.4]
    one, other = twins(lambda: sl.Session(ROWS, sl.IDS(), levels, seed=2), sine, 9.0)
    require_same(one, other)
    for policy in (sl.Stakes(), sl.ThompsonSampling()):
        one, other = twins(
            lambda policy=policy: sl.Session(sl.duel(ITEMS), policy, seed=2),
            lambda i, made: made.pair[i % 2],
            -1,
        )
        require_same(one, other)


def test_several_numbers() -> None:
    game = sl.game(np.eye(2), [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]])
    one, other = twins(
        lambda: sl.Session(game, sl.IDS(), 0.3, seed=2), lambda i, _: [0.1 * i, 0.2], [7.0, 7.0]
    )
    require_same(one, other)


def test_amending_is_idempotent_and_survives(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with sl.Session.open(path, ROWS, sl.IDS(), 0.3, seed=1) as session:
        made = [session.ask() for _ in range(5)]
        for one in made[:4]:
            session.tell(one, 0.5)
        session.amend(made[0], 0.75)
        before = len(session.events())
        session.amend(made[0], 0.75)
        assert len(session.events()) == before
        with pytest.raises(sl.types.ClosedDecisionError, match=r"was told before: 0\.75"):
            session.tell(made[0], 0.5)
        session.tell(made[0], 0.75)
        session.amend(made[0], 0.25)
        session.amend(made[4], 0.5)  # which was open
        session.give_up(session.ask())
        live = bits(session._live)
        session.export(tmp_path / "x.parquet")
        assert session.events()[-3].kind == "told"
    with sl.Session.open(path) as session:
        assert bits(session._live) == live
        closing = session._closing(made[0].id)
        assert closing is not None
        assert closing.reward == 0.25
        session._live.decisions.closed.clear()  # as after many more
        session.amend(made[0], 1.0)
        amended = bits(session._live)
    with sl.Session.open(path) as session:
        assert bits(session._live) == amended
    found = audit(tmp_path / "x.parquet")
    assert found.well, found
    import pandas as pd

    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert frame.policy_config_hash.nunique() == 1
    assert frame.amended.tolist() == [True, False, False, False, False, False]
    assert frame.reward.tolist()[:5] == [0.25, 0.5, 0.5, 0.5, 0.5]


def test_an_audit_notices_an_amended_reward_that_was_changed(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with sl.Session.open(tmp_path / "x.db", ROWS, sl.IDS(), 0.3, seed=1) as session:
        made = session.ask()
        session.tell(made, 0.5)
        session.amend(made, 0.75)
        session.export(tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    place = table.column_names.index("reward")
    changed = table.set_column(place, "reward", pa.array([0.5]))
    pq.write_table(changed, tmp_path / "y.parquet")
    assert audit(tmp_path / "x.parquet").well
    assert "was amended to 0.75" in str(audit(tmp_path / "y.parquet"))


def test_a_reward_that_was_not_learned_from_counts_in_effects_alone() -> None:
    session = sl.Session(ROWS[:2], sl.IDS(), 0.01, seed=1)
    while (decision := session.ask()).exploring:
        session.tell(decision, 0.5 * decision.features[0])
    session.tell(decision, 0.5)
    before = session.status().evidence
    session.amend(decision, 0.9)
    assert session.status().evidence == before
    assert session._live.counters.totals[decision.arm] % 0.5 == pytest.approx(0.4)


def test_what_cannot_be_amended() -> None:
    session = sl.Session(ROWS, sl.IDS(), 0.3, reward_window="1 round")
    first, second = session.ask(), session.ask()
    session.give_up(second)
    session.ask()
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.amend(first, 0.5)
    with pytest.raises(sl.types.ClosedDecisionError, match="was given up"):
        session.amend(second, 0.5)
    with pytest.raises(sl.types.UnknownDecisionError):
        session.amend("nobody", 0.5)
    stream = sl.Session(sl.stream(2, max_arms=4), sl.LinUCB(), 0.3)
    made = stream.ask(options=ROWS)
    stream.tell(made, 0.5)
    with pytest.raises(ValueError, match="new in every round"):
        stream.amend(made, 0.6)
    phased = sl.Session(ROWS, sl.PhasedElimination(horizon=1000), 0.3)
    made = phased.ask()
    phased.tell(made, 0.5)
    with pytest.raises(ValueError, match="keeps no sums of rewards"):
        phased.amend(made, 0.6)


def test_a_policy_that_has_discarded_data_says_so() -> None:
    session = sl.Session(ROWS, sl.ExploreThenAllocate(horizon=10_000), 0.05)
    made = [session.ask() for _ in range(5)]
    for one in made:
        session.tell(one, 0.5)
    forget(session._live.state.estimate)  # as when the data contradict its plan
    with pytest.raises(ValueError, match="keeps 0 of the 5 rewards that it has learned from"):
        session.amend(made[0], 0.1)
