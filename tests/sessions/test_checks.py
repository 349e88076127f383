"""Checks of a live experiment: their e-processes, the history in blocks, and what they say."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import checks as benchmark
from numpy.typing import NDArray

import sightline as sl
from sightline.core import e_processes as e
from sightline.core.e_processes import Sample
from sightline.sessions import history, state
from sightline.sessions.checks import LEVEL, NAMES, TOTAL_LEVEL, segments
from sightline.sessions.decisions import Check, Closing, Pending
from sightline.sessions.history import BlockHistory, BlockStatistics
from tests.marks import without_compilation
from tests.stress.actor import bits

pytestmark = without_compilation

Array = NDArray[np.float64]
DAY = 86400.0


def sample(rewards: Any) -> Sample:
    values = np.asarray(rewards, np.float64)
    return Sample(
        np.array(float(len(values))),
        np.array(values.mean()),
        np.array(((values - values.mean()) ** 2).sum()),
        np.array(values.min()),
        np.array(values.max()),
    )


def integral(log_density: Any, grid: Array) -> float:
    """Logarithm of an integral over a fine grid (trapezoids)."""
    values = np.array([log_density(x) for x in grid])
    top = values.max()
    return float(top + np.log(np.trapezoid(np.exp(values - top), grid)))


def normal(x: Array, mean: Any, deviation: Any) -> Any:
    return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation * math.sqrt(2 * math.pi))


# Formulas


def test_log_gamma() -> None:
    for x in (0.5, 0.75, 1.0, 3.2, 7.999, 8.0, 20.5, 1e3, 1e7):
        assert float(e.log_gamma(x)) == pytest.approx(math.lgamma(x), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize(("yes", "no"), [(0, 0), (0, 7), (3, 2), (12, 150)])
def test_clicks_are_mixed_over_their_rate(yes: int, no: int) -> None:
    # p = sin^2 u has the density 2/pi du under Beta(1/2, 1/2)
    grid = (np.arange(20_000) + 0.5) * math.pi / 40_000
    truth = integral(
        lambda u: 2 * yes * math.log(math.sin(u)) + 2 * no * math.log(math.cos(u)), grid
    ) + math.log(2 / math.pi)
    found = float(e.log_clicks(np.array(float(yes)), np.array(float(no))))
    assert found == pytest.approx(truth, abs=3e-4)
    rates = np.linspace(0.0, 1.0, 10_001)[1:-1]
    best = (yes * np.log(rates) + no * np.log1p(-rates)).max()
    supremum = float(e.best_clicks(np.array(float(yes)), np.array(float(no))))
    assert best - 1e-9 <= supremum <= best + 1e-2


@pytest.mark.parametrize(("total", "n"), [(0.0, 4.0), (9.0, 3.0), (5000.0, 4.0)])
def test_counts_are_mixed_over_their_mean(total: float, n: float) -> None:
    # mean = exp(u)
    grid = np.linspace(-40.0, 12.0, 200_001)
    scales = 10.0 ** np.arange(-6, 7)
    each = []
    for rate in scales:
        log_prior = 0.5 * grid + 0.5 * math.log(rate / math.pi) - rate * np.exp(grid)
        values = log_prior + total * grid - n * np.exp(grid)
        top = values.max()
        each.append(top + np.log(np.trapezoid(np.exp(values - top), grid)))
    truth = np.logaddexp.reduce(each) - math.log(len(scales))
    assert float(e.log_counts(np.array(total), np.array(n))) == pytest.approx(truth, abs=1e-3)


def mixture_of_change(one: Array, two: Array, noise: float) -> float:
    """Likelihood of two samples, integrated over a mean and a change by brute force."""
    both = np.concatenate([one, two])
    tau = noise * 10.0 ** math.ceil(math.log10(max(abs(both.mean()) / noise, 1.0)))
    steps = math.log10(tau / noise)
    # a likelihood given the mean and the change depends on both only through these
    means = both.mean() + noise * np.linspace(-12, 12, 801) / math.sqrt(min(len(one), len(two)))
    found = []
    for kappa in (0.03, 0.1, 0.3, 1.0, 3.0):
        reach = min(10 * kappa, abs(two.mean() - one.mean()) / noise + 12)
        changes = noise * np.linspace(-reach, reach, 801)
        mu, delta = np.meshgrid(means, changes, indexing="ij")
        values = normal(mu, 0.0, tau) + normal(delta, 0.0, kappa * noise)
        for rewards, mean in ((one, mu), (two, mu + delta)):
            for r in rewards:
                values = values + normal(r, mean, noise)
        top = values.max()
        inner = np.trapezoid(np.exp(values - top), changes, axis=1)
        found.append(top + math.log(np.trapezoid(inner, means)))
    weight = -math.log((steps + 1) * (steps + 2))
    return float(np.logaddexp.reduce(found) - math.log(len(found)) + weight)


@pytest.mark.parametrize("offset", [0.0, 37.0])
def test_a_change_of_the_mean_at_a_known_level(offset: float) -> None:
    rng = np.random.default_rng(0)
    one, two = offset + 0.5 * rng.standard_normal(9), offset + 0.4 + 0.5 * rng.standard_normal(6)
    both = np.concatenate([one, two])
    truth = mixture_of_change(one, two, 0.5) - normal(both, both.mean(), 0.5).sum()
    found = float(e.log_change_known(sample(one), sample(two), np.array(0.5)))
    assert found == pytest.approx(truth, abs=2e-3)


def test_a_change_of_the_mean_at_an_unknown_level() -> None:
    rng = np.random.default_rng(1)
    one, two = 3.0 + 0.5 * rng.standard_normal(7), 4.0 + 0.5 * rng.standard_normal(5)
    both = np.concatenate([one, two])
    within = sample(one).squares + sample(two).squares
    unit = 10.0 ** round(math.log10(math.sqrt(within / len(both))))
    # sigma^2 has the prior InvGamma(1/2, unit^2 / 2); deviations of means are in units of sigma
    steps = math.ceil(math.log10(max(abs(both.mean()) / unit, 1.0)))
    logs = np.linspace(math.log(0.1), math.log(6.0), 81)
    found = []
    for kappa in (0.03, 0.1, 0.3, 1.0, 3.0):
        values = []
        for log_sigma in logs:
            sigma = math.exp(log_sigma)
            # two means with a joint normal prior: the marginal covariance of all rewards
            tau = 10.0**steps
            late = np.arange(len(both)) >= len(one)
            covariance = np.eye(len(both)) + tau**2 + kappa**2 * np.outer(late, late)
            _, log_det = np.linalg.slogdet(covariance)
            quadratic = both @ np.linalg.solve(covariance, both) / sigma**2
            log_density = -0.5 * (
                quadratic + log_det + len(both) * math.log(2 * math.pi * sigma**2)
            )
            prior = 0.5 * math.log(unit**2 / 2 / math.pi) - 1.5 * math.log(sigma**2)
            prior += -(unit**2) / (2 * sigma**2) + math.log(2 * sigma**2)  # of log sigma
            values.append(log_density + prior)
        top = max(values)
        found.append(top + math.log(np.trapezoid(np.exp(np.array(values) - top), logs)))
    j = abs(round(math.log10(unit)))
    weight = -math.log(1.5 * (j + 1) * (j + 2) * (steps + 1) * (steps + 2))
    best = normal(both, both.mean(), both.std()).sum()
    truth = np.logaddexp.reduce(found) - math.log(5) + weight - best
    assert float(e.log_change_unknown(sample(one), sample(two))) == pytest.approx(truth, abs=0.01)


def test_equal_rewards_are_no_evidence() -> None:
    flat = sample([0.3] * 30)
    assert float(e.log_change_unknown(flat, flat)) == -math.inf
    low, high = np.array(0.5), np.array(0.6)
    assert float(e.log_other_mean(flat, low, high, None)) <= 0.0 or True
    one = sample([1.0])
    assert float(e.log_other_mean(one, one.mean, one.mean, None)) == -math.inf


def test_any_change_sums_over_sets_of_options_and_change_points() -> None:
    rng = np.random.default_rng(2)
    k, s = 3, 4
    each, weights = rng.normal(0.0, 3.0, (k, s)), np.log(rng.dirichlet(np.ones(s)) / 2)
    total, by_option = 0.0, np.zeros((k, s))
    for point in range(s):
        here = 0.0
        for share in (1 / 3, 0.5):
            for changed in itertools.product([False, True], repeat=k):
                value = 0.5
                for arm, is_changed in enumerate(changed):
                    value *= share * math.exp(each[arm, point]) if is_changed else 1 - share
                here += value
                by_option[:, point] += value * np.array(changed)
        by_option[:, point] /= here
        total += math.exp(weights[point]) * here
    found, _, probabilities = e.log_any_change(each, weights)
    assert found == pytest.approx(math.log(total))
    np.testing.assert_allclose(probabilities, by_option)


def test_weights_of_all_grids_add_up_to_one_at_most() -> None:
    total = sum(np.exp(e.log_weights(63, doublings, 64)).sum() for doublings in range(2000))
    assert 0.999 < total <= 1.0


ROWS = np.column_stack([np.ones(4), [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])
CROSS = np.array([[1.0], [-1.0], [-1.0], [1.0]])


@pytest.mark.parametrize("link", [e.CLICKS, e.COUNTS])
def test_the_likelihood_of_a_link_is_bounded_from_below(link: e.Link) -> None:
    rows, extra = np.ones((3, 1)), np.array([[1.0], [0.0], [-1.0]])
    count, total = np.array([30.0, 50.0, 20.0]), np.array([4.0, 12.0, 9.0])
    found = []
    axis = np.linspace(-6.0, 6.0, 1201)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    for deviation, width in itertools.product((0.3, 1.0, 3.0), (3.0, 10.0)):
        values = normal(a, 0.0, width) + normal(b, 0.0, deviation)
        for i in range(3):
            u = a + extra[i, 0] * b
            values = values + total[i] * u - count[i] * link.value(u)
        top = values.max()
        whole = np.trapezoid(np.trapezoid(np.exp(values - top), axis, axis=1), axis)
        found.append(top + math.log(whole))
    truth = float(np.logaddexp.reduce(found) - math.log(len(found)))
    bound = e.log_linear(link, rows, extra, count, total)
    assert truth - 0.05 < bound <= truth + 1e-6


def test_the_best_linear_predictor() -> None:
    count, total = np.array([50.0, 60.0, 40.0, 80.0]), np.array([5.0, 20.0, 0.0, 9.0])
    best = e.best_linear(e.CLICKS, ROWS, count, total)
    rng = np.random.default_rng(0)
    for theta in rng.normal(0.0, 2.0, (2000, 3)):
        u = ROWS @ theta
        assert total @ u - count @ np.logaddexp(0.0, u) <= best + 1e-9
    # saturated: the supremum is that of separate rates, also where one is 0
    whole = e.best_linear(e.CLICKS, np.hstack([ROWS, CROSS]), count, total)
    assert whole == pytest.approx(float(e.best_clicks(total, count - total).sum()), abs=1e-6)


@pytest.mark.parametrize("known", [True, False])
def test_extra_columns_for_numbers(known: bool) -> None:
    rng = np.random.default_rng(3)
    n = np.array([5, 7, 4, 6])
    noise = np.array([0.5, 0.5, 1.0, 0.5]) if known else np.full(4, 0.5)
    arms = np.repeat(np.arange(4), n)
    rewards = ROWS[arms] @ [2.0, 0.3, -0.2] + 0.4 * CROSS[arms, 0]
    rewards = rewards + noise[arms] * rng.standard_normal(len(arms))
    parts = [sample(rewards[arms == arm]) for arm in range(4)]
    data = Sample(*map(np.array, zip(*parts, strict=True)))
    found = e.log_fit_of_numbers(ROWS, CROSS, data, noise if known else None)
    unit = 10.0 ** round(math.log10(math.sqrt(data.squares.sum() / n.sum())))
    levels = noise if known else np.full(4, unit)
    scaled, features = rewards / levels[arms], ROWS[arms] * (levels.mean() / levels[arms])[:, None]
    more = CROSS[arms] * (levels.mean() / levels[arms])[:, None]
    theta = np.linalg.lstsq(features, scaled, rcond=None)[0]
    left = ((scaled - features @ theta) ** 2).sum()
    steps = math.ceil(math.log10(max(float(np.linalg.norm(theta)), 1.0)))
    each = []
    for kappa in (0.03, 0.1, 0.3, 1.0, 3.0):
        covariance = np.eye(len(arms)) + 100.0**steps * features @ features.T
        covariance += kappa**2 * more @ more.T
        _, log_det = np.linalg.slogdet(covariance)
        quadratic = scaled @ np.linalg.solve(covariance, scaled)
        if known:
            each.append(0.5 * (left - quadratic - log_det))
        else:  # a multivariate t distribution
            m = len(arms)
            density = math.lgamma((1 + m) / 2) - math.lgamma(0.5) - m / 2 * math.log(math.pi)
            each.append(density - 0.5 * log_det - (1 + m) / 2 * math.log1p(quadratic))
            each[-1] += m / 2 * (math.log(2 * math.pi * left / m) + 1)
    truth = np.logaddexp.reduce(each) - math.log(5) - math.log((steps + 1) * (steps + 2))
    if not known:
        j = abs(round(math.log10(unit)))
        truth -= math.log(1.5 * (j + 1) * (j + 2))
    assert found == pytest.approx(truth, abs=1e-8)


def test_traffic_is_a_supermartingale_in_expectation() -> None:
    # E[exp(tilt X - psi(tilt) p (1 - p))] <= 1 for both signs, by enumeration
    for p in (0.001, 0.05, 0.5, 0.9):
        for tilt in (2.0**-j for j in range(12)):
            for sign in (1.0, -1.0):
                values = np.exp(sign * tilt * np.array([1.0 - p, -p]))
                mean = p * values[0] + (1 - p) * values[1]
                assert mean * math.exp(-(math.exp(tilt) - 1 - tilt) * p * (1 - p)) <= 1.0 + 1e-12


def test_a_tail_of_the_largest_deviation_is_bounded() -> None:
    rng = np.random.default_rng(4)
    for n in (5, 20):
        rewards = rng.standard_normal((20_000, n))
        mean = rewards.mean(axis=1)
        columns = (
            np.full(len(rewards), float(n)),
            mean,
            ((rewards - mean[:, None]) ** 2).sum(axis=1),
            rewards.min(axis=1),
            rewards.max(axis=1),
        )
        logs = e.log_outlier(Sample(*columns)) - math.log((n + 1) * (n + 2))
        for level in (0.3, 0.03):
            assert (logs >= math.log(1 / level)).mean() <= level * 1.1


def test_rewards_left_out_of_a_sample() -> None:
    rewards = np.array([3.0, -1.0, 2.5, 7.0, 0.5])
    expected = sample(np.delete(rewards, [1, 3]))
    found = sample(rewards).without_extremes()
    for one, two in zip(found[:3], expected[:3], strict=True):
        assert float(one) == pytest.approx(float(two))


# History


def closings_of(rounds: list[int], k: int, rng: np.random.Generator) -> list[Closing]:
    found = []
    for i, round_ in enumerate(rounds):
        made = Pending(str(i), int(rng.integers(k)), True, round_, 0.5, 1e9 + 60.0 * round_)
        told = math.nan if rng.random() < 0.1 else float(rng.normal(1000.0, 3.0))
        ending: Any = "given up" if math.isnan(told) else "told"
        found.append(Closing(made, ending, told, made.made + float(rng.exponential(100.0))))
    return found


def naive_blocks(
    closings: list[Closing], k: int, length: int
) -> dict[tuple[int, int], list[float]]:
    found: dict[tuple[int, int], list[float]] = {}
    for closing in closings:
        place = (closing.decision.round - 1) // length, closing.decision.arm
        found.setdefault(place, []).append(float(closing.reward))  # type: ignore[arg-type]
    return found


def require_naive(blocks: BlockStatistics, closings: list[Closing], k: int) -> None:
    expected = naive_blocks(closings, k, blocks.length)
    assert blocks.cells[..., history.COUNT].sum() + blocks.cells[..., history.MISSING].sum() == len(
        closings
    )
    for (row, arm), rewards in expected.items():
        n, mean, squares, low, high, missing = blocks.cells[row, arm]
        told = [r for r in rewards if not math.isnan(r)]
        assert (n, missing) == (len(told), len(rewards) - len(told))
        if told:
            assert mean == pytest.approx(np.mean(told), rel=1e-12)
            assert squares == pytest.approx(np.var(told) * len(told), rel=1e-6, abs=1e-6)
            assert (low, high) == (min(told), max(told))


@pytest.mark.parametrize("count", [1, 7, 500, 3000])
def test_blocks_are_those_of_a_list(count: int) -> None:
    rng = np.random.default_rng(count)
    rounds = (rng.permutation(count) + 1).tolist()  # late rewards, in any order
    closings = closings_of(rounds, 3, rng)
    found = BlockHistory(3)
    for number, closing in enumerate(closings):
        found.enter(number, [closing])
    blocks = found.blocks()
    assert len(blocks.cells) <= found.most == 64
    assert blocks.length == 8 * 2 ** max(0, math.ceil(math.log2(max(count / 512, 1))))
    require_naive(blocks, closings, 3)


def test_entering_again_or_in_other_portions_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    closings = closings_of(list(range(1, 1201)), 4, rng)
    one, two = BlockHistory(4), BlockHistory(4)
    for number, closing in enumerate(closings):
        one.enter(number, [closing])
        if number % 7 == 0:
            one.enter(max(number - 3, 0), closings[max(number - 3, 0) : number + 1])
        if number % 50 == 0:
            one.blocks()
    two.enter(0, closings[:900])
    two.enter(900, closings[900:])
    pairs: Any = zip(one.blocks(), two.blocks(), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("t", [100, 1024, 2000])
def test_the_benchmark_simulates_the_blocks_of_a_session(t: int) -> None:
    world = benchmark.QUIET["normal, level learned"]
    runs = benchmark.simulate(world, np.random.default_rng(11), 2, 2048)
    data = benchmark.data_at(runs, 1, t)
    found, made = BlockHistory(benchmark.K), benchmark.PACE * np.arange(t)
    order = np.argsort(runs.arrivals[1, :t], kind="stable")
    closings = []
    for i in order[runs.arrivals[1, order] <= benchmark.PACE * t].tolist():
        pending = Pending(str(i), int(runs.arms[1, i]), True, i + 1, 0.5, float(made[i]))
        reward = float(runs.rewards[1, i])
        ending: Any = "given up" if math.isnan(reward) else "told"
        closings.append(Closing(pending, ending, reward, float(runs.arrivals[1, i])))
    found.enter(0, closings)
    for i in range(t):
        row = runs.probabilities[1, i // benchmark.UPDATE][None]
        found.enter_draws([i + 1], [int(runs.arms[1, i])], row)
    blocks = found.blocks()
    assert (blocks.length, blocks.processed, blocks.drawn) == data.blocks[:3]
    for name in ("cells", "delays", "traffic"):
        one, two = getattr(blocks, name), getattr(data.blocks, name)
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9, err_msg=name)


def test_many_options_have_fewer_blocks_and_bounded_memory() -> None:
    assert [history.most_blocks(k) for k in (1, 256, 257, 1024, 4096)] == [64, 64, 32, 16, 8]
    assert BlockHistory(10**6).nbytes == 0
    assert BlockHistory(4096).nbytes < 2 * 10**6


def test_segments_are_all_blocks_before_and_after() -> None:
    rng = np.random.default_rng(6)
    rewards = [[rng.normal(50.0, 2.0, rng.integers(0, 5)) for _ in range(6)] for _ in range(2)]
    none = Sample(*(np.array(0.0) for _ in range(5)))
    cells = [[sample(cell) if len(cell) else none for cell in row] for row in rewards]
    columns = [np.array([[cell[i] for cell in row] for row in cells]) for i in range(5)]
    before, after = segments(Sample(*columns))
    for arm, s in itertools.product(range(2), range(5)):
        for found, part in ((before, rewards[arm][: s + 1]), (after, rewards[arm][s + 1 :])):
            together = np.concatenate(part)
            assert found.n[arm, s] == len(together)
            if len(together):
                for one, two in zip(found, sample(together), strict=True):
                    assert one[arm, s] == pytest.approx(float(two), abs=1e-9)


def play(session: sl.Session, rng: np.random.Generator, count: int) -> list[tuple[str, float]]:
    told = []
    for _ in range(count):
        made = session.ask()
        if rng.random() < 0.05:
            session.give_up(made)
        else:
            told.append((made.id, float(rng.normal(made.arm, 1.0))))
            session.tell(*told[-1])
    return told


def test_a_replayed_session_has_the_same_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "SNAPSHOT_EVERY", 500)
    clock = itertools.count(1.7e9).__next__
    rng = np.random.default_rng(7)
    live = sl.Session.open(
        tmp_path / "journal.db", ["a", "b", "c"], sl.ThompsonSampling(), seed=3, now=clock
    )
    told = play(live, rng, 700)
    live.checks()  # looking changes nothing
    live.amend(told[100][0], 5.0)
    live.tell_many([(one, 0.0) for one in live.ask(300)])
    live.amend(told[-1][0], -3.0)
    play(live, rng, 120)
    before, checks = bits(live._live), live.checks()
    assert live._live.journal is not None
    live._live.journal.close()  # as if killed
    again = sl.Session.open(tmp_path / "journal.db", now=clock)
    assert bits(again._live) == before
    assert repr(again.checks()) == repr(checks)
    again.save(tmp_path / "session")
    assert bits(sl.Session.load(tmp_path / "session")._live) == before
    again.close()


@pytest.mark.parametrize("wrong", [0.3, 1e18, -1e60])
def test_an_amended_reward_leaves_no_trace(wrong: float) -> None:
    sessions = []
    for first in (wrong, 0.25):
        session = sl.Session(
            ["a", "b"], sl.EpsilonGreedy(), 1.0, seed=1, units="given", now=lambda: 0.0
        )
        made = session.ask(600)
        rng = np.random.default_rng(8)
        for i, one in enumerate(made):
            session.tell(one, first if i == 300 else float(rng.normal()))
        session.amend(made[300], 0.25)
        sessions.append(session)
    amended, right = (session._live.table.history.blocks().cells for session in sessions)
    np.testing.assert_allclose(amended[..., :3], right[..., :3], rtol=1e-9, atol=1e-9)
    assert np.abs(amended[..., 3:5]).max() < 10.0


def test_an_added_option_has_a_history() -> None:
    session = sl.Session(np.eye(2), noise_std=1.0)
    play(session, np.random.default_rng(9), 100)
    session.add("third", [0.5, 0.5])
    play(session, np.random.default_rng(9), 100)
    blocks = session._live.table.history.blocks()
    assert blocks.cells.shape[1] == 3
    assert blocks.cells[..., history.COUNT].sum() == session.status().told


def test_a_damaged_history_is_refused() -> None:
    session = sl.Session(["a", "b"])
    play(session, np.random.default_rng(10), 50)
    snapshot = session._live.snapshot()
    cells = snapshot.arrays["history.cells"]
    for changed in (cells[:, :1], cells - 1.0, cells * math.nan, cells + 1e3):
        damaged = snapshot._replace(arrays=snapshot.arrays | {"history.cells": changed})
        with pytest.raises(ValueError, match="history"):
            sl.Session(["a", "b"])._live.fill(damaged)


# What they say


class World:
    """A session with a clock, and rewards drawn for it."""

    def __init__(
        self, options: Any, policy: Any = None, pace: float = 60.0, **settings: Any
    ) -> None:
        self.time, self.pace = 1.7e9, pace
        self.rng = np.random.default_rng(0)
        self.session = sl.Session(options, policy, now=lambda: self.time, **settings)

    def run(self, count: int, reward: Any, batch: int = 50) -> None:
        for _ in range(0, count, batch):
            made = self.session.ask(batch)
            self.time += batch * self.pace
            pairs = [(one, reward(one)) for one in made]
            self.session.tell_many([(one, r) for one, r in pairs if r is not None])

    def clicks(self, rates: Any) -> Any:
        return lambda made: float(self.rng.random() < rates[made.arm])

    def numbers(self, means: Any, scale: float = 1.0) -> Any:
        return lambda made: float(means[made.arm] + scale * self.rng.standard_normal())

    def checks(self) -> dict[str, Check]:
        return {one.name: one for one in self.session.checks()}

    @property
    def failed(self) -> set[str]:
        return {name for name, one in self.checks().items() if one.passed is False}


def test_levels_add_up() -> None:
    checks = sl.Session(["a", "b"]).checks()
    assert tuple(one.name for one in checks) == NAMES
    assert sum(one.level for one in checks) == pytest.approx(TOTAL_LEVEL)
    assert all(one.passed is not False for one in checks)
    assert all(one.sentence for one in checks)


def test_a_leader_that_falls_is_noticed() -> None:
    world = World(["A", "B", "C"], rewards=sl.Bernoulli(), pace=600.0)
    world.run(2500, world.clicks([0.18, 0.12, 0.09]))
    quiet = world.session.status()
    assert quiet.advice == ""
    assert "Stopping now" in quiet.at_stake(50_000)
    changed = world.time
    for _ in range(5):
        world.run(200, world.clicks([0.06, 0.12, 0.09]))
        status = world.session.status()
        if status.advice:
            break
    check = world.checks()["drift"]
    assert check.passed is False
    assert check.p_value <= LEVEL
    assert check.options == ("A",)
    days = [datetime.fromtimestamp(changed + shift * DAY, UTC) for shift in (-2, -1, 0, 1, 2)]
    assert "A converts " in status.advice
    assert any(f"since about {day.day} {day:%B %Y}, " in status.advice for day in days)
    assert status.settled is False
    assert "not known" in status.at_stake(50_000)
    assert "since about" in status.at_stake(50_000)
    assert status.checks == world.session.checks()


def test_rewards_of_any_kind_that_change_are_noticed() -> None:
    counts = World(["A", "B"], sl.ThompsonSampling(), rewards=sl.Poisson())
    counts.run(1000, lambda made: float(counts.rng.poisson(3.0)))
    assert counts.failed == set()
    counts.run(1000, lambda made: float(counts.rng.poisson(2.0)))
    assert counts.failed == {"drift"}
    kinds: list[dict[str, Any]] = [{"noise_std": 1.0}, {}]
    for settings in kinds:
        numbers = World(["A", "B"], sl.ThompsonSampling(), **settings)
        numbers.run(1000, numbers.numbers([100.0, 100.5]))
        assert numbers.failed == set()
        numbers.run(1000, numbers.numbers([100.0, 99.5]))
        assert numbers.failed == {"drift"}
        assert "mean reward" in numbers.checks()["drift"].sentence


def test_a_missing_interaction_is_named() -> None:
    factors = {"image": ["a", "b"], "text": ["x", "y"], "color": ["red", "blue"]}
    pages = sl.factorial(factors)
    u = -1.0 + 1.2 * pages.features[:, 1] * pages.features[:, 2]
    world = World(pages, sl.EpsilonGreedy(epsilon=1.0), rewards=sl.Bernoulli())
    world.run(800, world.clicks(1.0 / (1.0 + np.exp(-u))))
    assert world.failed == {"fit"}
    assert world.checks()["fit"].sentence == (
        "Main effects are not enough: add the interaction image x text."
    )
    assert world.session.status().settled is not True
    numbers = World(pages, sl.EpsilonGreedy(epsilon=1.0))
    numbers.run(400, numbers.numbers(pages.features[:, 1] * pages.features[:, 3]))
    assert numbers.checks()["fit"].sentence.endswith("add the interaction image x color.")
    added = World(
        sl.factorial(factors, [("image", "text")]), sl.EpsilonGreedy(epsilon=1.0),
        rewards=sl.Bernoulli(),
    )  # fmt: skip
    added.run(800, added.clicks(1.0 / (1.0 + np.exp(-u))))
    assert added.failed == set()


def test_means_that_are_not_linear_are_noticed() -> None:
    doses = World([[1.0, x] for x in (0.0, 1.0, 2.0, 3.0)], sl.EpsilonGreedy(epsilon=1.0))
    doses.run(1500, doses.numbers([0.0, 1.0, 1.0, 0.0], 0.5))
    assert "not linear" in doses.checks()["fit"].sentence
    own = World(["A", "B", "C"])
    own.run(200, own.numbers([0.0, 1.0, 0.5]))
    assert own.checks()["fit"].passed is None


def test_another_unit_is_noticed() -> None:
    world = World(["A", "B"], sl.ThompsonSampling())
    world.run(2000, world.numbers([0.5, 0.6], 0.1))
    assert world.failed == set()
    world.run(500, lambda made: 100.0 * world.numbers([0.5, 0.6], 0.1)(made))
    assert {"scale"} <= world.failed
    assert "spread is about 1" in world.checks()["scale"].sentence
    assert world.checks()["fit"].passed is None


def test_one_outlier_is_noticed_and_forgotten_when_amended() -> None:
    world = World(["A", "B"])
    world.run(200, world.numbers([0.5, 0.6], 0.1))
    one = world.session.ask()
    world.session.tell(one, 600.0)
    world.run(50, world.numbers([0.5, 0.6], 0.1))
    assert "outliers" in world.failed
    assert "is 600" in world.checks()["outliers"].sentence
    world.session.amend(one, 0.6)
    assert world.failed == set()


def test_rewards_that_are_missing_for_one_option_are_noticed() -> None:
    for gives_up in (True, False):
        world = World(["A", "B"], sl.EpsilonGreedy(epsilon=1.0), rewards=sl.Bernoulli())

        def reward(made: Any, world: World = world) -> float | None:
            return (
                None if made.arm == 1 and world.rng.random() < 0.2 else 1.0 * (made.round % 3 < 1)
            )

        world.run(1500, reward, 10)
        if gives_up:
            world.session.give_up(before=1500)
        assert world.failed == {"missing"}
        assert "for B" in world.checks()["missing"].sentence


def test_an_estimate_by_a_wrong_prior_is_noticed() -> None:
    world = World(["A", "B"], sl.ThompsonSampling(prior_std=0.01), noise_std=1.0, units="given")
    world.run(300, world.numbers([5.0, 5.0]))
    assert "estimates" in world.failed


def test_traffic_that_contradicts_its_probabilities_is_noticed() -> None:
    world = World(["A", "B"], sl.EpsilonGreedy(epsilon=0.5), noise_std=1.0, min_probability=0.1)
    world.session._live.states_probabilities = True
    world.run(600, world.numbers([0.0, 0.0]))
    check = world.checks()["traffic"]
    assert check.passed is True
    history_ = world.session._live.table.history
    for t in range(10_000, 10_400):  # as if a policy stated other probabilities than it draws by
        history_.enter_draws([t], [int(world.rng.random() < 0.3)], np.array([[0.5, 0.5]]))
    assert "traffic" in world.failed


def test_rewards_that_take_longer_are_noticed() -> None:
    world = World(["A", "B"], sl.EpsilonGreedy(epsilon=0.5), rewards=sl.Bernoulli(), pace=0.0)
    open_: list[tuple[float, Any]] = []
    for t in range(2000):
        world.time += 10.0
        delay = world.rng.exponential(100.0 if t < 1200 else 400.0)
        open_.append((world.time + delay, world.session.ask()))
        due = [one for one in open_ if one[0] <= world.time]
        open_ = [one for one in open_ if one[0] > world.time]
        world.session.tell_many([(one, float(world.rng.random() < 0.1)) for _, one in due])
        if t in (400, 1190):
            assert world.failed == set()
    assert world.failed == {"delays"}


def test_kinds_of_options_that_cannot_be_checked_say_so() -> None:
    stream = sl.Session(sl.stream(2, 3), noise_std=0.5)
    stream.tell(stream.ask(options=[[1.0, 0.0], [0.0, 1.0]]), 1.0)
    assert {one.name for one in stream.checks() if one.passed is None} == set(NAMES)
    several = sl.Session(sl.game(np.eye(2), np.array([np.eye(2)] * 2)), noise_std=0.5)
    several.tell(several.ask(), [0.0, 1.0])
    assert "2 numbers" in several.checks()[1].sentence


def test_duels_and_contexts_are_checked() -> None:
    duel = World(sl.duel(["A", "B", "C"]), sl.EpsilonGreedy(epsilon=0.5))

    def winner(strengths: Any) -> Any:
        def told(made: Any) -> float:
            first, second = made.pair
            chance = 0.5 + 0.5 * (strengths[first] - strengths[second])
            return 1.0 if duel.rng.random() < chance else -1.0

        return told

    duel.run(600, winner({"A": 0.5, "B": 0.1, "C": 0.0}), 10)
    assert duel.failed == set()
    pages = sl.contexts({"mobile": ["A", "B"], "desktop": ["A", "B"]})
    time_ = itertools.count(1.7e9, 600.0).__next__
    session = sl.Session(pages, sl.ThompsonSampling(), rewards=sl.Bernoulli(), now=time_)
    rng = np.random.default_rng(0)
    for t in range(2400):
        made = session.ask(context=t % 2)
        falls = made.context == "mobile" and t > 1200
        session.tell(made, float(rng.random() < (0.05 if falls else 0.3)))
    drift = session.checks()[1]
    assert drift.passed is False
    assert drift.options
    assert all(one.startswith("mobile: ") for one in drift.options)
