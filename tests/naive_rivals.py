"""Brute-force truths for rivals of IDS, round by round, from the whole data in plain NumPy."""

import math

import numpy as np
import numpy.typing as npt

from sightline.core.allocation.design import design, optimal_design
from tests import naive, naive_design
from tests.naive import Array, Ints


def a_design(actions: Array, arms: list[int], tolerance: float) -> Array:
    """Return the weights of a design on some arms.

    Designs are not unique, so this is the product's; that it is one is checked where it is made.
    """
    work = design(*actions.shape)
    optimal_design(work, actions, np.isin(np.arange(len(actions)), arms).astype(float), tolerance)
    return work.weights


# --- phased elimination -------------------------------------------------------------------------


def phase_plan(
    actions: Array, arms: list[int], phase: int, horizon: int, noise_to_accuracy: float
) -> Ints:
    """Return T_l(x) = ceil(2 pi(x) g (sigma / eps_l)^2 log(k l (l + 1) n)), g = max leverage."""
    weights = a_design(actions, arms, 0.01)
    worst = naive_design.leverages(actions[arms], weights[arms]).max()
    level = math.log(len(actions)) + math.log(phase * (phase + 1)) + math.log(horizon)
    plan: Ints = np.ceil(2.0 * weights * worst * noise_to_accuracy**2 * level).astype(np.int64)
    return plan


def phased_elimination(
    world: naive.World, horizon: int, gap_bound: float, rounds: int
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the arms played and whether they were learned from."""
    actions = world.actions
    arms = list(range(len(actions)))
    played: list[int] = []
    phase = 0
    while len(played) < rounds and len({tuple(actions[x]) for x in arms}) > 1:
        phase += 1
        accuracy = gap_bound * 2.0**-phase
        plan = phase_plan(actions, arms, phase, horizon, world.noise_std / accuracy)
        block = np.repeat(np.arange(len(actions)), plan)[: rounds - len(played)].tolist()
        rewards = np.array([world.pull(x) for x in block])
        played += block
        theta = np.linalg.pinv(actions[block]) @ rewards
        best = max(actions[x] @ theta for x in arms)
        arms = [x for x in arms if best - actions[x] @ theta <= 2.0 * accuracy]
    explored = np.arange(rounds) < len(played)
    return np.array(played + arms[:1] * (rounds - len(played))), explored


# --- LinMED -------------------------------------------------------------------------------------


def divergence_weights(actions: Array, theta: Array, V: Array, beta: float) -> Array:
    """Return f(x) = exp(-gap(x)^2 / (beta ||xhat - x||^2)); 1 for xhat and its equals."""
    xhat = int(np.argmax(actions @ theta))
    _, distances = naive.alternatives(actions, theta, V, xhat)
    exponents = np.where(np.isfinite(distances), distances, 0.0) / beta
    weights: Array = np.exp(-exponents)
    return weights


def lin_med_probabilities(
    f: Array, weights: Array, xhat: int | None, empirical: float, optimal: float
) -> Array:
    """Return p ~ q f; without xhat, before any data, its share goes to all arms."""
    k = len(f)
    if xhat is None:
        q = optimal * weights + (1.0 - optimal) / k
    else:
        q = optimal * weights + (1.0 - optimal - empirical) / k
        q[xhat] += empirical
    p: Array = q * f / (q * f).sum()
    return p


# --- LinIMED ------------------------------------------------------------------------------------


def lin_imed_indices(
    actions: Array, theta: Array, V: Array, beta: float, variant: int, cap: float
) -> Array:
    """Return gap^2 / (beta w^2) - log(beta w^2) for every arm; variant 3 limits the best's."""
    values = naive.ucb_scores(actions, theta, V, beta) if variant == 3 else actions @ theta
    gaps = values.max() - values
    widths = np.array([beta * naive.squared_norm(x, V) for x in actions])
    with np.errstate(divide="ignore", invalid="ignore"):
        indices: Array = gaps**2 / widths - np.log(widths)
    indices[widths == 0.0] = math.inf
    if variant == 3 and gaps.max() > 0.0:
        leader = int(np.argmax(values))
        indices[leader] = min(indices[leader], math.log(cap / gaps.max() ** 2))
    return indices


def lin_imed(world: naive.World, beta: naive.Beta, variant: int, cap: float, rounds: int) -> Ints:
    """Play the least index at level 1 / (t log t), learning from every round."""
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, rounds + 1):
        xs = world.actions[played]
        V = naive.covariance(xs, beta.regulariser)
        theta = naive.ridge(xs, np.array(rewards), beta.regulariser)
        coefficient = beta.exploitation(V, t)
        indices = lin_imed_indices(world.actions, theta, V, coefficient, variant, cap)
        played.append(int(np.argmin(indices)))
        rewards.append(world.pull(played[-1]))
    return np.array(played)
