"""SOLID in contexts against its definition, step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sightline as sl
from sightline.core.clock import clock_at
from sightline.policies.base import choose, update, write_probabilities
from sightline.simulation.loop import context_stream, streams
from tests import naive, naive_contexts
from tests.naive import Array
from tests.naive_rivals_solid import UNIFORM_SHARE

SHARES = np.array([0.6, 0.4])


def _information(
    sets: list[Array], theta: Array, joint: Array, noise_std: float
) -> tuple[float, Array]:
    """Return the least information of the joint weights against any nu, and its derivative."""
    rows = np.vstack(sets)
    mixed = (1.0 - UNIFORM_SHARE) * joint + UNIFORM_SHARE / len(joint)
    V = (rows.T * mixed) @ rows
    best, gradient = math.inf, np.zeros(len(rows))
    for X in sets:
        xhat = int(np.argmax(X @ theta))
        for z in range(len(X)):
            if z != xhat:
                shift = naive.alternative_kkt(theta, V, X[xhat], X[z]) - theta
                value = float(shift @ V @ shift) / (2.0 * noise_std**2)
                if value < best:
                    best, gradient = value, (rows @ shift) ** 2 / (2.0 * noise_std**2)
    return best, gradient


@pytest.mark.parametrize("policy", [sl.SOLID(), sl.SOLID(reset=False, constraint_bonus=0.05)])
@pytest.mark.parametrize("seed", range(2))
def test_every_step_is_that_of_the_definition(policy: sl.SOLID, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sets, sigma = [rng.standard_normal((3, 2)), rng.standard_normal((4, 2))], 0.4
    world = sl.ContextualBandit(sets, [1.0, 0.0], SHARES, sigma)
    assert world.model.contexts is not None
    state = policy.start(world.model)
    decisions, noise = streams(seed)
    drawn = naive_contexts.contexts_drawn(SHARES, context_stream(seed).random(60))
    rows = np.vstack(sets)
    kappa = state.steps.bonus
    weights = [np.full(len(X), 1.0 / len(X)) for X in sets]
    multiplier, s, inside, phase = 0.0, 0, 0, 0
    counts, xs, ys = np.zeros(2), np.zeros((0, 2)), np.zeros(0)
    beta = naive.Beta(noise_std=sigma)
    for t, c in enumerate(drawn, 1):
        offer = world.model.contexts.offer(c)
        V, theta = naive.covariance(xs, 1.0), naive.ridge(xs, ys, 1.0)
        explores = naive_contexts.evidence(sets, theta, V) < beta.exploitation(V, t)
        probabilities = np.zeros(7)
        write_probabilities(state, clock_at(t), offer, np.random.default_rng(0), probabilities)
        own = probabilities[offer.start : offer.stop]
        expected = weights[c] if explores else np.eye(len(own))[(sets[c] @ theta).argmax()]
        np.testing.assert_allclose(own, expected, atol=1e-9, err_msg=f"round {t}")
        assert probabilities.sum() == pytest.approx(1.0)
        arm = choose(state, clock_at(t), offer, decisions).arm
        counts[c] += 1
        if explores:
            shares = (counts + 1) / (counts.sum() + 2)
            s, inside = s + 1, inside + 1
            z = math.exp(phase)
            length = z * math.exp(2 * phase)
            steps = (
                (0.5, 0.1) if not policy.reset else (1 / math.sqrt(length), 1 / math.sqrt(length))
            )
            joint = np.concatenate([p * w for p, w in zip(shares, weights, strict=True)])
            gamma = beta.local(V, s)
            cw = np.array([math.sqrt(gamma * naive.squared_norm(x, V)) for x in rows])
            value, gradient = _information(sets, theta, joint, sigma)
            q = rows @ theta + cw + multiplier * (gradient + kappa * cw)
            for i, part in enumerate(np.split(q, [3])):
                moved = weights[i] * np.exp(steps[0] * (part - part.max()))
                weights[i] = moved / moved.sum()
            slack = value + kappa * float(joint @ cw) - 1.0 / z
            bound = state.steps.multiplier_bound * z
            multiplier = min(max(multiplier - steps[1] * slack, 0.0), bound)
            if inside >= length:
                inside, phase = 0, phase + 1
                if policy.reset:
                    weights = [np.full(len(X), 1.0 / len(X)) for X in sets]
                    multiplier = 0.0
        reward = world.means[arm] + sigma * noise.standard_normal()
        update(state, clock_at(t), arm, reward)
        assert state.pair.multiplier[0] == pytest.approx(multiplier, abs=1e-9)
        xs, ys = np.vstack([xs, rows[arm]]), np.append(ys, reward)
    assert s > 10
