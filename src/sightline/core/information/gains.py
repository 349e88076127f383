"""Information gains: what one more observation of an arm would tell, and how to add one.

| symbol                  | here                 | shape |
|-------------------------|----------------------|-------|
| I_s(x), I_s^UCB(x)      | ``gains[x]``         | (k,)  |

A gain is a class with its numbers, and a kernel that is registered for it.  Those of the library
are in :mod:`sightline.core.information.gains_of_alternatives` and
:mod:`sightline.core.information.gains_of_widths`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import withhold
from sightline.core.alternatives.comparison import Comparison
from sightline.core.confidence.rules import local_beta
from sightline.core.estimation.estimate import LeastSquares, SeveralRows, factorise_seen
from sightline.core.estimation.least_squares import update_seen_widths
from sightline.core.information.gaps import (
    check_weights,
    gap_estimates,
    guard_weights,
    optimistic_arm,
)
from sightline.core.information.round import Round, Weighing, Workspace
from sightline.jit import compiled, generic
from sightline.validation import LARGEST

__all__ = [
    "INFORMATION",
    "Gain",
    "gains_on_offer",
    "information_gains",
    "log_det_gains",
    "register_information",
    "weigh_arms",
]

Array = NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])


class Gain(NamedTuple):
    """An information gain as IDS knows it."""

    rule: Any
    cells: bool
    any_horizon: bool


#: Information gains of IDS, by name.
INFORMATION: dict[str, Gain] = {}


@generic
def information_gains(rule: Any, round_: Round, gains: Array) -> None:
    """Write the information gains of all arms."""
    raise TypeError(f"no information gain is registered for {type(rule).__name__}")


def register_information(
    name: str, rule: Any, *, cells: bool = False, any_horizon: bool = True
) -> Callable[[F], F]:
    """Add an information gain: ``IDS(information=name)`` will use the kernel that this decorates.

    Parameters
    ----------
    name : str
        How to call it.
    rule : named tuple
        Its numbers, an instance of a class of its own (with one field at least).
    cells : bool
        Whether ``round.alternatives`` are to be those in the cells of the arms, by quadratic
        programs, instead of half-spaces.
    any_horizon : bool
        Whether it keeps asking for information about other arms once gaps are small, so that
        runs beyond 2^53 rounds end.

    Returns
    -------
    callable
        Decorator of ``kernel(rule, round, gains)``, compiled or plain, which writes one gain >= 0
        per arm; ``round`` is a :class:`~sightline.core.information.round.Round`.
    """

    def register(kernel: F) -> F:
        information_gains.register(type(rule))(kernel)
        guard_weights(f"information gain {name!r}", rule, kernel)
        INFORMATION[name] = Gain(rule, cells, any_horizon)
        return kernel

    return register


@compiled
def log_det_gains(estimate: LeastSquares, gains: Array) -> None:
    """Write log det(I + Y_x V^-1 Y_x^T), by which log det V would grow: O(k), or O(k p d^2)."""
    _log_det_gains(estimate.arms.observations.several, estimate, gains)


@compiled
def _log_det_gains(several: SeveralRows | None, estimate: LeastSquares, gains: Array) -> None:
    if several is None:
        widths = estimate.arms.seen_widths
        for x in range(gains.shape[0]):
            gains[x] = math.log1p(max(widths[x], 0.0))
        return
    factorise_seen(several, estimate.learned.gram_inverse)
    for x in range(gains.shape[0]):
        gains[x] = 0.0
        for a in range(estimate.arms.observations.per_arm):
            gains[x] += 2.0 * math.log(several.factors[a, a, x])


@compiled
def _is_zero(gains: Array) -> bool:
    largest = 0.0
    for x in range(gains.shape[0]):
        largest = max(largest, gains[x])
    return largest == 0.0


@compiled
def gains_on_offer(rule: Any, round_: Round, offer: Any) -> None:
    """Write the gains of arms on offer into the workspace; zero for others.

    Where nothing is to be learned under this gain, as before any data, whatever can be learned.
    """
    gains = round_.work.gains
    update_seen_widths(round_.estimate)
    information_gains(rule, round_, gains)
    withhold(offer, gains, 0.0)
    check_weights(rule, gains)
    if _is_zero(gains):
        log_det_gains(round_.estimate, gains)
        withhold(offer, gains, 0.0)


class WeighingState(Protocol):
    """A state that weighs arms by gap estimates and information gains."""

    @property
    def estimate(self) -> LeastSquares:
        """What the data say."""

    @property
    def confidence(self) -> Any:
        """Named tuple of a confidence rule."""

    @property
    def alternatives(self) -> Any:
        """HalfSpaces or Projections."""

    @property
    def rules(self) -> Any:
        """Named tuple with the rules ``gaps`` and ``information``."""

    @property
    def weighing(self) -> Weighing:
        """How alternatives are weighed."""

    @property
    def work(self) -> Workspace:
        """Where gaps and gains are written."""


@compiled
def weigh_arms(state: WeighingState, comparison: Comparison, offer: Any) -> tuple[float, int]:
    """Write gap estimates and information gains of arms on offer; return beta and the UCB arm.

    An arm that is not on offer gets a gain of zero at a huge price, and is not played.
    """
    estimate, rules, work = state.estimate, state.rules, state.work
    learned = estimate.learned
    beta = local_beta(state.confidence, learned.log_det[0], learned.rounds[0] + 1)
    ucb_arm = optimistic_arm(estimate, beta, offer)
    round_ = Round(estimate, state.alternatives, comparison, beta, ucb_arm, state.weighing, work)
    gap_estimates(rules.gaps, round_, work.gaps)
    gains_on_offer(rules.information, round_, offer)
    withhold(offer, work.gaps, LARGEST)
    check_weights(rules.gaps, work.gaps)
    return beta, ucb_arm
