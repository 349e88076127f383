"""Any finite rewards, amendments and restarts: a session stays readable, its estimates right."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sightline as sl
from sightline.core.estimate import LeastSquares
from sightline.core.posterior.gaussian import Posterior
from sightline.jit import parts_of
from sightline.sessions.decisions import ExactSums, RewardSums
from tests.marks import without_compilation
from tests.stress.actor import bits

Array = NDArray[np.float64]

pytestmark = [without_compilation, pytest.mark.filterwarnings("ignore::UserWarning")]

ROWS = {"a": [1.0, 2.27], "b": [-0.64, 0.0], "c": [1.33, 1.0]}
POLICIES: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(),
    "IDS": sl.IDS(),
    "LinUCB": sl.LinUCB(),
    "ThompsonSampling": sl.ThompsonSampling(),
    "BayesianIDS": sl.BayesianIDS(samples=50),
    "TopTwo": sl.TopTwo(),
}
KINDS: dict[str, dict[str, Any]] = {
    "learned": {},
    "noise told": {"noise_std": 1.0},
    "noise per option": {"noise_std": [1.0, 0.1, 3.0]},
    "as given": {"noise_std": 1.0, "units": "given"},
    "counts": {"rewards": sl.Poisson()},
    "clicks": {"rewards": sl.Bernoulli()},
}


def magnitudes(smallest: float, largest: float) -> st.SearchStrategy[float]:
    """Numbers of any sign, of a size between two powers of ten."""
    exponents = st.floats(math.log10(smallest), math.log10(largest))
    sized = exponents.map(lambda exponent: 10.0**exponent)
    return st.builds(math.copysign, sized, st.sampled_from([1.0, -1.0]))


REWARDS: dict[str, st.SearchStrategy[float]] = {
    "counts": st.one_of(
        st.integers(0, 5), st.integers(0, 2**53), st.sampled_from([0, 10**7, 2**53])
    ).map(float),
    "clicks": st.sampled_from([0.0, 1.0]),
}
FINITE = st.one_of(
    st.floats(-1.0, 1.0),
    magnitudes(1e-300, 1e70),
    st.sampled_from([0.0, -0.0, 1e13, -1e13, 1e18, 1e70, -1e70, 5e-324]),
)


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, str, list[Any]]:
    """Draw a policy, a kind of reward, and a course of events."""
    policy = draw(st.sampled_from(sorted(POLICIES)))
    learned = {"learned"} if policy == "TopTwo" else set()
    kind = draw(st.sampled_from(sorted(set(KINDS) - learned)))
    rewards = REWARDS.get(kind, FINITE)
    step = st.one_of(
        st.tuples(st.just("tell"), rewards),
        st.tuples(st.just("amend"), st.integers(0, 50), rewards),
        st.just(("reopen",)),
    )
    return policy, kind, draw(st.lists(step, max_size=12))


@settings(max_examples=60, deadline=None)
@example(("Stakes", "counts", [("tell", 1e7), ("reopen",)]))
@example(("IDS", "as given", [("tell", 1e13), ("tell", -1e13), ("tell", 1e13), ("reopen",)]))
@example(("LinUCB", "learned", [("tell", 1e18), ("tell", 0.6), ("amend", 0, 1.0), ("tell", 0.8)]))
@given(steps())
def test_any_sequence_stays_readable_and_right(case: tuple[str, str, list[Any]]) -> None:
    policy, kind, happens = case
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x.db"
        session = sl.Session.open(path, ROWS, POLICIES[policy], seed=1, **KINDS[kind])
        made: list[sl.types.Decision] = []
        log: dict[str, float] = {}
        for step in happens:
            if step[0] == "tell":
                made.append(session.ask())
                session.tell(made[-1], step[1])
                log[made[-1].id] = step[1]
            elif step[0] == "amend" and made:
                one = made[step[1] % len(made)]
                session.amend(one, step[2])
                log[one.id] = step[2]
            elif step[0] == "reopen":
                before = bits(session._live)
                session.close()
                session = sl.Session.open(path)
                assert bits(session._live) == before
        require_right(session, made, log)
        session.close()
        with sl.Session.open(path) as session:
            require_right(session, made, log)


def require_right(
    session: sl.Session, made: list[sl.types.Decision], log: dict[str, float]
) -> None:
    """Compare totals and estimates with those computed from the log."""
    live, found = session._live, session.estimates()
    assert found is not None
    assert np.isfinite(found.means).all()
    assert np.isfinite(found.standard_errors).all()
    session.status()
    session.effects()
    for arm in range(len(ROWS)):
        rewards = [log[one.id] for one in made if one.arm == arm]
        total = float(sum(map(Fraction, rewards), Fraction(0)))
        size = max(map(abs, log.values()), default=0.0)
        assert live.counters.totals[arm] == pytest.approx(total, rel=1e-12, abs=1e-13 * size)
        assert live.counters.told[arm] == len(rewards)
    learned = [(one.arm, log[one.id]) for one in made if one.exploring]
    parts = list(parts_of(live.state))
    for estimate in [one for one in parts if isinstance(one, LeastSquares)][:1]:
        _require_estimate(estimate, session, learned)  # others look ahead from it
    for part in parts:
        if isinstance(part, Posterior) and part.estimate is None:
            _require_posterior(part, session, learned)


def _outcomes(session: sl.Session, learned: list[tuple[int, float]]) -> list[tuple[int, float]]:
    live = session._live
    return [
        (arm, (reward - live.origin) / live.unit * live.table.weights[arm, 0])
        for arm, reward in learned
    ]


def _require_estimate(
    part: LeastSquares, session: sl.Session, learned: list[tuple[int, float]]
) -> None:
    likelihood, x, theta = (
        session._live.table.model.likelihood,
        part.arms.rewards,
        part.learned.theta,
    )
    n = np.bincount([arm for arm, _ in learned], minlength=len(x)).astype(float)
    assert np.array_equal(part.arms.pulls, n)
    if likelihood is not None:  # the slope of the cost vanishes, in units of the standard error
        sums = np.bincount([a for a, _ in learned], [r for _, r in learned], minlength=len(x))
        means = (
            np.exp(x @ theta)
            if isinstance(session._live.table.likelihood, sl.Poisson)
            else (1.0 / (1.0 + np.exp(-x @ theta)))
        )
        slope = x.T @ (n * means - sums) + part.regulariser * theta
        # of counts of 10^15 rounding leaves 10^-14 of each
        noise = 1e-13 * np.sqrt((n * means).max()) + 1e-4
        assert math.sqrt(abs(slope @ part.learned.gram_inverse @ slope)) < noise
        return
    rows = x * session._live.table.weights[:, :1]
    told = _outcomes(session, learned)
    _compare(theta, rows, n, told, part.regulariser)


def _require_posterior(
    part: Posterior, session: sl.Session, learned: list[tuple[int, float]]
) -> None:
    rows = part.rows
    n = np.bincount([arm for arm, _ in learned], minlength=len(rows)).astype(float)
    theta = np.asarray(np.linalg.solve(np.triu(part.factor), part.whitened), np.float64)
    _compare(theta, rows, n, _outcomes(session, learned), part.precision * part.noise_std**2)


def _compare(
    theta: Array, rows: Array, n: Array, told: list[tuple[int, float]], regulariser: float
) -> None:
    """Compare with ridge regression, to rounding errors of the largest outcome."""
    gram = regulariser * np.eye(rows.shape[1]) + (rows.T * n) @ rows
    sums = [math.fsum(z for arm, z in told if arm == a) for a in range(len(rows))]
    expected = np.linalg.solve(gram, rows.T @ np.array(sums))
    size = max((abs(z) for _, z in told), default=0.0)
    error = 1e-13 * size * np.linalg.cond(gram) * np.abs(rows).max() / regulariser + 1e-300
    np.testing.assert_allclose(theta, expected, rtol=1e-9, atol=error)


def test_sums_are_exact() -> None:
    rewards = [1e18, 0.1, -3e-300, 5e-324, 1e70, -7.25, 0.8]
    sums = ExactSums()
    for reward in rewards:
        sums = sums.plus(reward)
    for reward in (1e18, 1e70):
        sums = sums.plus(reward, -1)
    rest = [Fraction(reward) for reward in rewards if reward < 1e18]
    mean = sum(rest) / len(rest)
    assert sums.sum() == float(sum(rest))
    assert sums.sum(0.1) == float(sum(r - Fraction(0.1) for r in rest))
    assert sums.sum_of_squares(0.1) == float(sum((r - Fraction(0.1)) ** 2 for r in rest))
    assert sums.squared_deviations() == float(sum((r - mean) ** 2 for r in rest))
    data = RewardSums(1, offset=True)
    data._sums = {(2, True): sums, (0, False): ExactSums()}
    data.first = "id", 1e-300
    again = RewardSums(1, offset=True)
    again.fill(data.describe(), places=3)
    assert again.__dict__ == data.__dict__


@pytest.mark.parametrize("text", ["1p99999", "f" * 2000 + "p0", "zzp1", "1"])
def test_sums_that_no_session_has_are_refused(text: str) -> None:
    described = {"first": None, "other": None, "sums": [[0, True, 1, text, "1p0"]]}
    with pytest.raises(ValueError, match=r"sum|invalid literal"):
        RewardSums(1, offset=True).fill(described, places=1)


@pytest.mark.parametrize("position", [0, 1, 5])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_typo_leaves_no_trace_once_it_is_amended(policy: str, position: int) -> None:
    found = []
    for typo in (1e18, None):
        noise_std = 0.1 if policy == "TopTwo" else None  # the policy cannot learn it
        session = sl.Session(ROWS, POLICIES[policy], noise_std, seed=1)
        made = session.ask(12)
        rewards = [0.8 + 0.05 * math.sin(3 * i) for i in range(12)]
        for i, one in enumerate(made):
            session.tell(one, typo if typo is not None and i == position else rewards[i])
        session.amend(made[position], rewards[position])
        found.append(session)
    amended, right = found
    assert amended._live.counters.totals == pytest.approx(right._live.counters.totals, rel=1e-12)
    for name in ("means", "standard_errors"):
        pair = [getattr(session.estimates(), name) for session in found]
        assert pair[0] == pytest.approx(pair[1], rel=1e-9)
    effects = [session.effects()[["effect", "lower", "upper"]].to_numpy() for session in found]
    assert effects[0] == pytest.approx(effects[1], rel=1e-9)


def test_a_reward_that_cannot_be_learned_from_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(state: Any, name: str = "state") -> None:
        if name == "state" and not state.estimate.arms.sums.max() < 1e50:
            raise ValueError("state.theta must be finite")

    monkeypatch.setattr("sightline.sessions.state.check_consistency", check)
    path = tmp_path / "x.db"
    with sl.Session.open(path, ROWS, sl.LinUCB(), 1.0, seed=1, units="given") as session:
        made = session.ask(4)
        before = bits(session._live)
        with pytest.raises(ValueError, match=r"1e\+60 cannot be learned from"):
            session.tell(made[0], 1e60)
        assert bits(session._live) == before
        with pytest.raises(sl.types.RefusedRewardsError) as refused:
            session.tell_many([(made[0], 1e60), (made[1], 0.5)])
        assert list(refused.value.refused) == [made[0].id]
        session.tell(made[0], 0.25)
        after = bits(session._live)
    with sl.Session.open(path) as session:
        assert bits(session._live) == after


def test_such_a_reward_is_given_up_when_its_window_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(state: Any, name: str = "state") -> None:
        if name == "state" and not state.estimate.arms.sums.max() < 1e50:
            raise ValueError("state.theta must be finite")

    monkeypatch.setattr("sightline.sessions.state.check_consistency", check)
    time = [0.0]
    session = sl.Session(
        ROWS, sl.LinUCB(), 1.0, units="given", reward_window=10.0, now=lambda: time[0]
    )
    made = session.ask(2)
    session.tell_many([(made[0], 1e60), (made[1], 0.5)])
    time[0] = 20.0
    status = session.status()
    assert (status.told, status.given_up, status.waiting) == (1, 1, 0)
