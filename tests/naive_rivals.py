"""Brute-force truths for rivals of IDS, round by round, from the whole data in plain NumPy."""

import math

import numpy as np
import numpy.typing as npt

from sightline.core.design import design, optimal_design
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
    """Return the arms played and whether they were learnt from."""
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
