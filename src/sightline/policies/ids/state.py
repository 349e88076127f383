"""What IDS keeps, and the distribution that it draws from."""

from __future__ import annotations

from typing import Any, NamedTuple

from sightline.core.alternatives.comparison import Comparison
from sightline.core.alternatives.half_spaces import HalfSpaces
from sightline.core.alternatives.law_half_spaces import LawHalfSpaces
from sightline.core.alternatives.projections import Projections
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.information.gains import weigh_arms
from sightline.core.information.ratio import Mixture, least_ratio
from sightline.core.information.round import Weighing, Workspace
from sightline.core.persistence import persists
from sightline.jit import compiled

__all__ = ["EXPLOITATION", "Discards", "IDSState", "Keeps", "Never", "Rules", "ids_distribution"]


class Rules(NamedTuple):
    """A configuration: one class for each option, on which compiled code dispatches.

    What a configuration does not use is not compiled for it, and no round asks what it is.
    """

    information: Any
    sampling: Any
    gaps: Any
    exploitation: Any


@persists()
class Never(NamedTuple):
    """Every arm shows something: no exploration is appointed."""

    code: int = 0  # numba knows no empty named tuples


class Discards(NamedTuple):
    """Data of exploitation rounds are discarded, so that a commitment can reach ahead."""

    code: int = 0


class Keeps(NamedTuple):
    """Data of exploitation rounds are kept, so that every round is played by itself."""

    code: int = 0


#: What becomes of the data of exploitation rounds, by name.
EXPLOITATION = {"discard": Discards(), "keep": Keeps()}


class IDSState(NamedTuple):
    """Estimates from exploration rounds, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Any
    rules: Rules
    alternatives: HalfSpaces | LawHalfSpaces | Projections
    weighing: Weighing
    work: Workspace
    due: Any  # Appointment where some arms show nothing, else Never


@compiled
def ids_distribution(state: Any, comparison: Comparison, offer: Any) -> tuple[Mixture, float, int]:
    """Minimiser of the information ratio; with the beta and the UCB arm that it rests on."""
    beta, ucb_arm = weigh_arms(state, comparison, offer)
    work = state.work
    mixture = least_ratio(state.rules.sampling, work.gaps, work.gains, comparison.best)
    return mixture, beta, ucb_arm
