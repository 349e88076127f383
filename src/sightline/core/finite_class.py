"""Likelihoods of a finite class of models, and the confidence set around the likeliest.

| symbol                                             | here              | shape   |
|----------------------------------------------------|-------------------|---------|
| g_a, mean reward of arm a in model g               | ``models``        | (M, k)  |
| the same by arm                                    | ``columns``       | (k, M)  |
| max_a g_a, and the first arm that attains it       | ``values``, ``bests`` | (M,) |
| L_g, negative log-likelihood, up to a common term  | ``losses``        | (M,)    |
| f-hat, the likeliest model                         | ``likeliest``     |         |
| rho_a, where arm a shows rho_a g_a and noise sigma | ``weights``       | (k,)    |
| rho_a^2 / (2 sigma^2)                              | ``precisions``    | (k,)    |

A pull of arm a shows KL_a(f, g) = rho_a^2 (f_a - g_a)^2 / (2 sigma^2) nats about f and g.

An outcome y of arm a changes all L_g by the same term and (rho_a g_a)^2 / 2 - y rho_a g_a, over
sigma^2: O(M).  Means are taken relative to their average over the models, so that sums stay small.

The evidence against g is L_g - L_f-hat.  The likelihood ratio of the models' average to the true
model is a martingale with mean 1.  By Ville's inequality the evidence against the true model stays
below log(M / delta) in all rounds at once, with probability 1 - delta; for sub-Gaussian noise it is
a supermartingale, which suffices.  In the notation of
:mod:`sightline.core.confidence` this is the coefficient with 2 log M in place of log det V, and
S = 0; distances are 2 sigma^2 times the evidence.

A *rival* of an arm is a model under which another arm is better, by more than rounding errors.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import FixedBeta, LogDet
from sightline.core.linalg import Array, Ints
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.validation import shown

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
_FARTHEST = 1e50  # largest mean over the noise, whose powers fit a float


@persists("losses", "pulls", "rounds")
class ClassEstimate(NamedTuple):
    """Likelihoods of all models of a class."""

    models: Array  # (M, k)
    columns: Array  # (k, M)
    centres: Array  # (k,): average of every column
    values: Array  # (M,)
    bests: Ints  # (M,)
    weights: Array  # (k,)
    precisions: Array  # (k,)
    noise_variance: float
    losses: Array  # (M,)
    pulls: Array  # (k,)
    rounds: Ints  # (1,): outcomes learned


def class_estimate(model: Model, policy: str) -> ClassEstimate:
    """Likelihoods before any data."""
    models, weights = model.models, model.needs_weights(policy)
    assert models is not None
    signal = float((np.abs(models) * weights).max()) / model.noise_std
    if not signal <= _FARTHEST:
        raise ValueError(
            f"models must not exceed {_FARTHEST:g} times noise_std, got {signal:g} times"
        )
    count, k = models.shape
    return ClassEstimate(
        models=models,
        columns=np.ascontiguousarray(models.T),
        centres=models.mean(axis=0),
        values=models.max(axis=1),
        bests=models.argmax(axis=1),
        weights=weights,
        precisions=0.5 * (weights / model.noise_std) ** 2,
        noise_variance=model.noise_std**2,
        losses=np.zeros(count),
        pulls=np.zeros(k),
        rounds=np.zeros(1, dtype=np.int64),
    )


def class_confidence(rule: ConfidenceRule, estimate: ClassEstimate) -> Any:
    """Confidence coefficient of a class, which ``2 log M`` completes in place of log det V."""
    k = estimate.models.shape[1]
    if isinstance(rule, LogDet):  # no prior and no bound on a norm
        rule = dataclasses.replace(rule, norm_bound=0.0)
    elif not isinstance(rule, FixedBeta):
        raise ValueError(
            f"confidence must be LogDet or FixedBeta on a finite class, got {shown(rule)}"
        )
    return rule.build(k, math.sqrt(estimate.noise_variance), 1.0)


def log_square(estimate: ClassEstimate) -> float:
    """2 log M."""
    return 2.0 * math.log(len(estimate.models))


@compiled
def learn_outcome(estimate: ClassEstimate, arm: int, outcome: float) -> None:
    """Add an outcome of an arm to the likelihoods: O(M)."""
    weight, centre = estimate.weights[arm], estimate.centres[arm]
    surprise = outcome - weight * centre
    means, losses = estimate.columns[arm], estimate.losses
    for g in range(losses.shape[0]):
        mean = weight * (means[g] - centre)
        losses[g] += mean * (0.5 * mean - surprise) / estimate.noise_variance
    estimate.pulls[arm] += 1.0
    estimate.rounds[0] += 1


@compiled
def likeliest(estimate: ClassEstimate) -> int:
    """f-hat, the first model among equals."""
    losses, first = estimate.losses, 0
    for g in range(1, losses.shape[0]):
        if losses[g] < losses[first]:
            first = g
    return first


@compiled
def rounding_of(first: float, second: float) -> float:
    """Largest difference of two means that counts as rounding."""
    return _ROUNDING * (abs(first) + abs(second))


@compiled
def is_rival(estimate: ClassEstimate, g: int, arm: int) -> bool:
    """Whether an arm is not best under a model."""
    value, highest = estimate.columns[arm, g], estimate.values[g]
    return bool(highest - value > rounding_of(highest, value))


@compiled
def is_confusing(estimate: ClassEstimate, f: int, g: int) -> bool:
    """Whether g agrees with f on all arms that are optimal under f, none of which is under g."""
    means, others, highest = estimate.models[f], estimate.models[g], estimate.values[f]
    for a in range(means.shape[0]):
        if highest - means[a] <= rounding_of(highest, means[a]):
            if abs(others[a] - means[a]) > rounding_of(others[a], means[a]):
                return False
            if not is_rival(estimate, g, a):
                return False
    return True


@compiled
def least_evidence(estimate: ClassEstimate, model: int, arm: int) -> float:
    """Evidence of f-hat against the likeliest rival of an arm; inf if it has none."""
    least, losses = math.inf, estimate.losses
    for g in range(losses.shape[0]):
        if losses[g] < least and is_rival(estimate, g, arm):
            least = losses[g]
    evidence: float = least - losses[model]
    return evidence


@compiled
def optimistic_model(estimate: ClassEstimate, model: int, beta: float) -> int:
    """Model of the confidence set with the largest mean reward, the likeliest one among equals."""
    losses, values, found = estimate.losses, estimate.values, model
    farthest = losses[model] + 0.5 * beta / estimate.noise_variance
    for g in range(losses.shape[0]):
        if losses[g] <= farthest:
            higher = values[g] > values[found]
            if higher or (values[g] == values[found] and losses[g] < losses[found]):
                found = g
    return found
