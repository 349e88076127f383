"""Named games of the literature on partial monitoring: a value per arm, item or outcome."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sightline.problems.game import LinearGame
from sightline.problems.named import deviation, named
from sightline.validation import LARGEST, affordable, finite_array, integer, number, one_of, shown

__all__ = [
    "apple_tasting",
    "dynamic_pricing",
    "full_information",
    "graph_feedback",
    "label_efficient",
    "semi_bandit",
]

Array = NDArray[np.float64]


def _falling(k: int, gap: float) -> Array:
    """Means of k arms of which the first is best by a gap, the second by as much, and so on."""
    gap = number("gap", gap, above=0, at_most=LARGEST)
    return gap * np.arange(k - 1, -1, -1, dtype=float)


def _star(k: int) -> Array:
    sees = np.zeros((k, k))
    sees[-1] = 1.0  # the centre is the worst arm, and shows all
    return sees


def _cliques(k: int) -> Array:
    """Pairs of arms that show each other and themselves."""
    group = np.arange(k) // 2
    same: Array = (group[:, None] == group).astype(float)
    return same


def _loopless(k: int) -> Array:
    """Every arm shows all others, and not itself."""
    return 1.0 - np.eye(k)


def _cycle(k: int) -> Array:
    """Every arm shows itself and the next."""
    return np.minimum(np.eye(k) + np.roll(np.eye(k), 1, axis=1), 1.0)


_GRAPHS: dict[str, Callable[[int], Array]] = {
    "star": _star,
    "cliques": _cliques,
    "loopless": _loopless,
    "cycle": _cycle,
}


@named
def graph_feedback(
    graph: str = "star", k: int = 5, gap: float = 0.2, noise_variance: float = 1.0
) -> LinearGame:
    """Arms with means of their own, each of which shows its neighbours in a graph.

    Mannor, Shamir, NIPS 2011; Alon, Cesa-Bianchi, Dekel, Koren, COLT 2015.  Means fall by ``gap``
    from arm to arm.

    Parameters
    ----------
    graph : {"star", "cliques", "loopless", "cycle"}
        Which arms an arm shows: the last arm shows all, others nothing; arms show each other in
        pairs; every arm shows all but itself; or itself and the next.
    k : int
        Number of arms, at least 2.
    gap : float
        Difference of the means of an arm and the next.
    noise_variance : float
        Variance of the noise.
    """
    graph = one_of("graph", graph, _GRAPHS)
    k = integer("k", k, at_least=2)
    affordable(f"k = {shown(k)} arms that show up to {shown(k)} each", 8 * k**3)
    sees = _GRAPHS[graph](k)
    rows = int(sees.sum(axis=1).max())
    observations = np.zeros((k, rows, k))
    for arm, neighbours in enumerate(sees):
        for row, other in enumerate(np.flatnonzero(neighbours)):
            observations[arm, row, other] = 1.0
    theta = _falling(k, gap)
    return LinearGame(
        np.eye(k),
        observations,
        theta,
        deviation(noise_variance),
        name=f"graph-feedback-{graph}-{k}-{gap:g}",
    )


@named
def semi_bandit(
    d: int = 4, size: int = 2, gap: float = 0.2, noise_variance: float = 1.0
) -> LinearGame:
    """Choose a few of d items, and see the value of each that was chosen.

    Audibert, Bubeck, Lugosi, 2014.  All subsets of one size; a subset pays the sum of its values,
    which fall by ``gap`` from item to item.

    Parameters
    ----------
    d, size : int
        Number of items, and how many are chosen.
    gap : float
        Difference of the values of an item and the next.
    noise_variance : float
        Variance of the noise of each value.
    """
    d = integer("d", d, at_least=1, at_most=20)
    size = integer("size", size, at_least=1, at_most=d)
    chosen = list(itertools.combinations(range(d), size))
    items = np.eye(d)
    observations = np.array([items[list(subset)] for subset in chosen])
    return LinearGame(
        observations.sum(axis=1),
        observations,
        _falling(d, gap),
        deviation(noise_variance),
        name=f"semi-bandit-{d}-{size}-{gap:g}",
    )


@named
def full_information(k: int = 5, gap: float = 0.2, noise_variance: float = 1.0) -> LinearGame:
    """Whatever is played, the values of all k arms are seen: c* = 0.

    Parameters
    ----------
    k : int
        Number of arms.
    gap : float
        Difference of the values of an arm and the next.
    noise_variance : float
        Variance of the noise of each value.
    """
    k = integer("k", k, at_least=1)
    affordable(f"k = {shown(k)} arms that show {shown(k)} each", 8 * k**3)
    return LinearGame(
        np.eye(k),
        np.broadcast_to(np.eye(k), (k, k, k)),
        _falling(k, gap),
        deviation(noise_variance),
        name=f"full-information-{k}-{gap:g}",
    )


@named
def label_efficient(
    mean: float = 0.2, cost: float = 0.5, noise_variance: float = 1.0
) -> LinearGame:
    """Predict a sign unseen, or pay to see it (Cesa-Bianchi, Lugosi, Stoltz, 2005).

    theta = (mean of the label, cost).  Predicting +1 or -1 pays the label times the prediction
    and shows nothing; asking pays minus the cost, and shows the label and the bill.  Regret of
    order n^(2/3) in the worst case: asking is never the best arm.

    Parameters
    ----------
    mean : float
        Mean of the label.
    cost : float
        What asking costs, > 0.
    noise_variance : float
        Variance of the noise.
    """
    mean = number("mean", mean, size=LARGEST)
    cost = number("cost", cost, above=0, at_most=LARGEST)
    nothing = np.zeros((2, 2))
    return LinearGame(
        [[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]],
        [nothing, nothing, np.eye(2)],
        [mean, cost],
        deviation(noise_variance),
        name=f"label-efficient-{mean:g}-{cost:g}",
    )


@named
def apple_tasting(mean: float = -0.2, noise_variance: float = 1.0) -> LinearGame:
    """Take an apple, which shows what it is worth, or leave it, which shows nothing.

    Helmbold, Littlestone, Long, 2000: a bandit with one arm whose value is known to be 0.

    Parameters
    ----------
    mean : float
        What an apple is worth.
    noise_variance : float
        Variance of the noise.
    """
    mean = number("mean", mean, size=LARGEST)
    return LinearGame(
        [[1.0], [0.0]],
        [[1.0], [0.0]],
        [mean],
        deviation(noise_variance),
        name=f"apple-tasting-{mean:g}",
    )


@named
def dynamic_pricing(
    probabilities: tuple[float, ...] = (0.1, 0.2, 0.4, 0.2, 0.1),
    penalty: float = 2.0,
    noise_variance: float = 0.25,
) -> LinearGame:
    """Set a price, and see only whether it was accepted.

    Kleinberg, Leighton, FOCS 2003; Bartok, Foster, Pal, Rakhlin, Szepesvari, 2014.  theta is the
    distribution of what a customer would pay, on the prices 1, ..., m.  A price that is accepted
    forgoes the difference to that, one that is refused costs the penalty; what is seen is
    acceptance.

    Parameters
    ----------
    probabilities : array_like, shape (m,)
        theta.
    penalty : float
        Cost of a refusal.
    noise_variance : float
        Variance of the noise; 1/4 is that of any event.
    """
    theta = finite_array("probabilities", probabilities, (None,))
    if not (theta >= 0).all() or abs(theta.sum() - 1.0) > 1e-9:
        raise ValueError(f"probabilities must be >= 0 and sum to 1, got {shown(theta.tolist())}")
    penalty = number("penalty", penalty, above=0, at_most=LARGEST)
    prices = np.arange(1.0, len(theta) + 1)
    accepted = prices >= prices[:, None]  # value of the column, price of the row
    return LinearGame(
        -np.where(accepted, prices - prices[:, None], penalty),
        accepted.astype(float),
        theta,
        deviation(noise_variance),
        name=f"dynamic-pricing-{len(theta)}-{penalty:g}",
    )
