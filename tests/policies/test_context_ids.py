"""IDS in contexts against its definition, round by round."""

import itertools
import math

import numpy as np
import pytest

import sightline as sl
from sightline.core.clock import clock_at, is_before
from sightline.core.gains import LEAST_M
from sightline.policies.base import choose, inspect, update, write_probabilities
from sightline.simulation.loop import context_stream, streams
from tests import naive, naive_contexts
from tests.naive import Array

FREQUENCIES = np.array([0.6, 0.4])


def problem(seed: int, noise_std: float = 0.5) -> sl.ContextualBandit:
    rng = np.random.default_rng(seed)
    sets = [rng.standard_normal((3, 2)), rng.standard_normal((3, 2))]
    return sl.ContextualBandit(sets, [1.0, 0.0], FREQUENCIES, noise_std)


def exact_probabilities(gaps: list[Array], gains: list[Array], p: Array) -> list[Array]:
    """Return distributions of the least ratio, by search over pairs of choices."""
    best, found = math.inf, None
    choices = [
        [np.eye(3)[a] for a in arms] for arms in itertools.product(range(3), repeat=len(gaps))
    ]
    for a, b in itertools.product(choices, repeat=2):
        low, high = (naive_contexts.expected(p, gaps, gains, mu) for mu in (a, b))
        if low.gap > high.gap:
            continue
        q = naive.best_probability((low.gap, high.gap), (low.gain, high.gain))
        mu = [(1 - q) * x + q * y for x, y in zip(a, b, strict=True)]
        ratio = naive_contexts.expected(p, gaps, gains, mu).ratio
        if ratio < best * (1 - 1e-12):
            best, found = ratio, mu
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(4))
def test_contextual_ids_by_its_definition(seed: int) -> None:
    world, policy = problem(seed), sl.IDS()
    state = policy.start(world.model)
    decisions, noise = streams(seed)
    contexts, blocks = context_stream(seed), world.model.contexts
    assert blocks is not None
    xs: list[Array] = []
    ys: list[float] = []
    largest_m, sigma, explored = LEAST_M, float(world.noise_std), 0
    beta = naive.Beta(noise_std=sigma)
    for t in range(1, 200):
        c = int(naive_contexts.contexts_drawn(FREQUENCIES, contexts.random(1))[0])
        offer = blocks.offer(c)
        probabilities = np.zeros(world.k)
        write_probabilities(state, clock_at(t), offer, np.random.default_rng(0), probabilities)
        choice = choose(state, clock_at(t), offer, decisions)
        assert choice.probability == pytest.approx(probabilities[choice.arm], abs=1e-12)
        if is_before(clock_at(t), choice.wake):
            continue
        explored += 1
        X = np.array(xs).reshape(-1, 2)
        V, theta = naive.covariance(X, 1.0), naive.ridge(X, np.array(ys), 1.0)
        weighed = naive_contexts.weigh(
            list(world.action_sets), theta, V, beta.local(V, len(ys) + 1), largest_m, sigma
        )
        assert weighed.least < beta.exploitation(V, t)
        truth = exact_probabilities(weighed.gaps, weighed.gains, FREQUENCIES)[c]
        np.testing.assert_allclose(
            probabilities[offer.start : offer.stop], truth, atol=1e-6, err_msg=f"round {t}"
        )
        largest_m = max(largest_m, weighed.least / 2.0 / sigma**2)
        reward = world.means[choice.arm] + sigma * noise.standard_normal()
        update(state, clock_at(t), choice.arm, reward)
        xs.append(world.actions[choice.arm])
        ys.append(reward)
    assert explored > 20


@pytest.mark.parametrize("seed", range(3))
def test_conditional_ids_looks_at_the_present_context_alone(seed: int) -> None:
    world, policy = problem(seed), sl.IDS(contexts="conditional")
    state = policy.start(world.model)
    decisions, noise = streams(seed)
    contexts, blocks = context_stream(seed), world.model.contexts
    assert blocks is not None
    idle = 0
    for t in range(1, 300):
        c = int(naive_contexts.contexts_drawn(FREQUENCIES, contexts.random(1))[0])
        offer = blocks.offer(c)
        now = clock_at(t)
        probabilities = np.zeros(world.k)
        write_probabilities(state, now, offer, np.random.default_rng(0), probabilities)
        choice = choose(state, now, offer, decisions)
        X = world.action_sets[c]
        V = np.linalg.inv(state.estimate.learned.gram_inverse)
        theta = state.estimate.learned.theta
        beta = naive.Beta(noise_std=0.5)
        own = naive_contexts.evidence([X], theta, V)
        others = naive_contexts.evidence(list(world.action_sets), theta, V)
        level = beta.exploitation(V, t)
        assert inspect(state, now, offer).evidence == pytest.approx(others / 2)
        assert is_before(now, choice.wake) == (own >= level)
        if own >= level:
            assert choice.arm == offer.start + (X @ theta).argmax()
            if others < level:
                assert choice.wake.t == t + 1
                idle += 1
            continue
        assert probabilities[offer.start : offer.stop].sum() == pytest.approx(1.0)
        reward = world.means[choice.arm] + 0.5 * noise.standard_normal()
        update(state, now, choice.arm, reward)
    assert idle > 0 or seed > 0


def test_estimated_frequencies_come_close_to_known_ones() -> None:
    world = problem(0)
    state = sl.IDS(context_probabilities="estimated").start(world.model)
    rng, blocks = context_stream(0), world.model.contexts
    assert blocks is not None
    for t in range(1, 2001):
        c = int(naive_contexts.contexts_drawn(FREQUENCIES, rng.random(1))[0])
        choose(state, clock_at(t), blocks.offer(c), rng)
    np.testing.assert_allclose(state.frequencies.probabilities, FREQUENCIES, atol=0.05)
    assert state.frequencies.probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"contexts": "joint"}, "contexts must be one of"),
        ({"context_probabilities": "guessed"}, "context_probabilities must be one of"),
    ],
)
def test_bad_options(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sl.IDS(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{"information": "directed"}, {"sampling": "deterministic"}, {"gaps": "thresholded"}]
)
def test_what_is_not_defined_over_several_contexts(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"contextual IDS needs .* conditional IDS takes others"):
        sl.IDS(**options).start(problem(0).model)  # type: ignore[arg-type]
    sl.IDS(**options, contexts="conditional").start(problem(0).model)  # type: ignore[arg-type]
