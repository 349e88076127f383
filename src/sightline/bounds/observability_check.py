"""Witnesses of observability, recomputed from the game alone.

What is not recomputed: that no other arm is Pareto-optimal, that no other pairs are neighbours, and
that a parameter set is as flat as its ``directions`` say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sightline.bounds.observability import Neighbours, Observability

__all__ = ["largest_residual"]

Array = NDArray[np.float64]

_TOLERANCE = 1e-6  # of a residual, relative to its terms
_NOTHING = 1e-12  # a row that shows nothing, relative to the largest


def largest_residual(found: Observability) -> float:
    """Check all witnesses; return the largest residual among them."""
    residuals = [0.0]
    for members, theta in zip(found.classes, found.parameters, strict=True):
        residuals.append(_outside(found, theta))
        _check_best(found, theta, members, f"arm {members[0]} is not best where it should be")
    for pair in found.neighbours:
        residuals += _check_pair(found, pair)
    worst = max(residuals)
    if not worst <= _TOLERANCE:
        raise ArithmeticError(f"a witness has a residual of {worst:g}, allowed is {_TOLERANCE:g}")
    return worst


def _check_pair(found: Observability, pair: Neighbours) -> list[float]:
    """Residuals of what must be zero; what must be positive is checked here."""
    rewards, seen = found.problem.model.rewards, found.problem.model.observations
    difference = rewards[pair.first] - rewards[pair.second]
    what = f"neighbours {pair.first} and {pair.second}"
    _check_best(found, pair.tie, pair.between, f"{what} are not best where they tie")
    both = np.abs(rewards[pair.first]) + np.abs(rewards[pair.second])
    units = _units(found)
    sizes = np.abs(pair.tie) + units
    residuals = [_outside(found, pair.tie), _ratio(difference @ pair.tie, both @ sizes)]
    if pair.coefficients is not None:
        used = {int(c) for c in np.flatnonzero(pair.coefficients.any(axis=1))}
        if pair.seen == "local" and not used <= set(pair.between):
            raise ArithmeticError(f"{what}: a combination uses arms outside of their neighbourhood")
        shown = np.tensordot(pair.coefficients, seen, axes=2)
        terms = np.tensordot(np.abs(pair.coefficients), np.abs(seen), axes=2)
        left = np.abs((shown - difference) @ found.directions).max()
        scale = ((terms + np.abs(difference)) @ np.abs(found.directions)).max()
        residuals.append(_ratio(left, scale))
    if pair.step is not None:
        arms = list(pair.between if pair.seen == "global" else range(len(rewards)))
        changes = np.abs(seen @ pair.step)[arms]
        # how far the step goes in units of the width of Theta
        length = np.abs(np.linalg.lstsq(found.directions, pair.step, rcond=None)[0]).max()
        terms = length * (np.abs(seen) @ units)
        rows = terms[arms] > _NOTHING * terms.max()  # others are rounding errors themselves
        residuals += map(_ratio, changes[rows], terms[arms][rows])
        if not difference @ pair.step > 0:
            raise ArithmeticError(f"{what}: the step does not change which of them is better")
        for sign, arm in ((1.0, pair.first), (-1.0, pair.second)):
            residuals.append(_outside(found, pair.tie + sign * pair.step))
            differences = rewards[arm] - rewards
            # the step by itself: beside the tie it may be small
            leads = differences @ pair.tie + sign * (differences @ pair.step)
            terms = _terms(rewards, arm, sizes)
            least = np.full(len(rewards), -1e-12)
            least[list(pair.between)] = -_TOLERANCE  # which are nearly on a line
            if (leads < least * terms).any():
                raise ArithmeticError(f"{what}: arm {arm} is not best under its parameter")
    return residuals


def _check_best(found: Observability, theta: Array, best: tuple[int, ...], trouble: str) -> None:
    """Check that some arms are best: arms with cells of their own are worse, others not better."""
    rewards = found.problem.model.rewards
    leads = (rewards[best[0]] - rewards) @ theta
    terms = _terms(rewards, best[0], np.abs(theta) + _units(found))
    rivals = [members[0] for members in found.classes if members[0] not in best]
    if not (leads[rivals] > 0).all() or not (leads >= -_TOLERANCE * terms).all():
        raise ArithmeticError(trouble)


def _terms(rewards: Array, arm: int, sizes: Array) -> Array:
    """Sizes of what differences to an arm are made of; some arms are but rounding errors."""
    terms = (np.abs(rewards) + np.abs(rewards[arm])) @ sizes
    floored: Array = np.maximum(terms, 1e-3 * terms.max())
    return floored


def _units(found: Observability) -> Array:
    """Width of Theta in every coordinate: entries of parameters are known relative to it."""
    units: Array = np.abs(found.directions).sum(axis=1)
    return units


def _outside(found: Observability, theta: Array) -> float:
    """By how much theta violates a constraint of Theta, relative to its terms."""
    if found.parameter_set is None:
        return 0.0
    normals, offsets = found.parameter_set.arrays(len(theta))
    terms = np.abs(normals) @ (np.abs(theta) + _units(found)) + np.abs(offsets)
    return float(max(map(_ratio, np.maximum(normals @ theta - offsets, 0.0), terms)))


def _ratio(residual: float, terms: float) -> float:
    """Residual relative to its terms, none of which may be there."""
    return 0.0 if residual == 0.0 else float(abs(residual) / terms)
