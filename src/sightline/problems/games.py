"""Named games of linear partial monitoring, and bandits with heteroscedastic noise.

Common parameters: ``k`` arms or items in ``d`` dimensions, ``noise_variance`` of the Gaussian noise
of every observation, ``seed`` of all that is random in a problem.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sightline.core.linalg import Array
from sightline.problems.bandits import LinearBandit, LinearGame
from sightline.problems.base import deviation, fraction, named
from sightline.validation import (
    LARGEST,
    affordable,
    finite_array,
    flag,
    integer,
    number,
    one_of,
    shown,
)


def _random_rows(k: int, d: int, seed: int) -> Array:
    """Draw standard normal features, as in the experiments of Kirschner, Lattimore, Krause."""
    affordable(f"k = {shown(k)} arms in d = {shown(d)} dimensions", 8 * k * d)
    return np.random.default_rng(integer("seed", seed, at_least=0)).standard_normal((k, d))


@named
def heteroscedastic(
    k: int = 10, d: int = 3, noise_variance: float = 1.0, seed: int = 0
) -> LinearBandit:
    """Random arms with heteroscedastic noise: standard deviations are uniform on (0, sigma).

    Features are standard normal, theta = e_1 (Kirschner, Krause, COLT 2018).  An arm with little
    noise is more informative than a noisy arm with the same features.

    Parameters
    ----------
    noise_variance : float
        sigma^2, above the variance of every arm.
    """
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    actions = _random_rows(k, d, seed)
    rng = np.random.default_rng([integer("seed", seed, at_least=0), 1])
    # bounded from below: without noise an arm would reveal its mean at once
    levels = deviation(noise_variance) * np.maximum(1.0 - rng.random(k), 1e-3)
    return LinearBandit(actions, np.eye(d)[0], levels, name=f"heteroscedastic-{k}-{d}-seed{seed}")


@named
def noise_example(
    d: int = 3,
    information: float = 0.2,
    epsilon: float = 0.1,
    noise_variance: float = 1.0,
    seed: int = 0,
) -> LinearBandit:
    """Informative arms pay less: every corner of a cube twice, with more noise or less reward.

    The 2^d sign vectors over sqrt(d) with noise sigma / information, and the same vectors times
    1 - epsilon with noise (1 - epsilon) sigma.  theta is drawn from the unit sphere (Kirschner,
    Krause, COLT 2018).

    Parameters
    ----------
    d : int
        Dimension, at most 12.
    information : float
        Signal-to-noise ratio of the arms with full reward, in (0, 1).
    epsilon : float
        Relative loss of reward of the other arms, in (0, 1).
    """
    d = integer("d", d, at_least=1, at_most=12)
    information, epsilon = fraction("information", information), fraction("epsilon", epsilon)
    corners = np.array(list(itertools.product([1.0, -1.0], repeat=d))) / np.sqrt(d)
    theta = _random_rows(1, d, seed)[0]
    sigma = deviation(noise_variance)
    levels = np.repeat([sigma / information, (1.0 - epsilon) * sigma], len(corners))
    actions = np.vstack([corners, (1.0 - epsilon) * corners])
    name = f"noise-example-{d}-{information:g}-{epsilon:g}-seed{seed}"
    return LinearBandit(actions, theta / np.linalg.norm(theta), levels, name=name)


@named
def dueling(k: int = 5, d: int = 3, noise_variance: float = 1.0, seed: int = 0) -> LinearGame:
    """Dueling bandit: a pair of items pays both values and shows their difference.

    All k^2 ordered pairs of standard normal features; theta = e_1 (Kirschner, Lattimore, Krause,
    COLT 2020).  Values of single items are not observed.
    """
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    affordable(f"k = {shown(k)}: {shown(k * k)} pairs", 16 * k * k * d)
    items = _random_rows(k, d, seed)
    first, second = np.repeat(items, k, axis=0), np.tile(items, (k, 1))
    theta, sigma = np.eye(d)[0], deviation(noise_variance)
    name = f"dueling-{k}-{d}-seed{seed}"
    return LinearGame(first + second, first - second, theta, sigma, name=name)


@named
def localised_dueling(d: int = 3, gap: float = 0.1, noise_variance: float = 1.0) -> LinearGame:
    """Dueling bandit on a chain of items, in which only neighbours can be compared.

    The pair (i, i + 1) pays e_i + e_{i+1} and shows the difference; the pair (i, i) pays 2 e_i
    and shows nothing.  theta = e_1 + (1 - gap) e_d: the two best items are the ends of the chain
    (Kirschner, Lattimore, Krause, COLT 2020).

    Parameters
    ----------
    d : int
        Number of items, at least 2.
    gap : float
        Gap of the second best item, in (0, 1).
    """
    d = integer("d", d, at_least=2)
    affordable(f"d = {shown(d)} items", 32 * d * d)
    gap = fraction("gap", gap)
    items = np.eye(d)
    theta = items[0] + (1.0 - gap) * items[-1]
    rewards = np.vstack([items[:-1] + items[1:], 2.0 * items])
    observations = np.vstack([items[:-1] - items[1:], np.zeros((d, d))])
    name = f"localised-dueling-{d}-{gap:g}"
    return LinearGame(rewards, observations, theta, deviation(noise_variance), name=name)


@named
def laser(indirect: bool = False, noise_variance: float = 1.0) -> LinearGame:
    """Tune a machine with nine settings, each of which can be measured or used.

    A smooth function on the plane, 25 features exp(-|y - c|^2) with centres c on the grid
    {-1, -.5, 0, .5, 1}^2.  Nine settings on the grid {-.5, 0, .5}^2: measuring one pays nothing and
    shows the function at nine points around it; using it pays their mean and shows that mean, or
    nothing.  theta has its maximum at (0.5, 0.5) (Kirschner, Lattimore, Krause, JMLR 2023).

    Parameters
    ----------
    indirect : bool
        Whether using a setting shows nothing.
    """
    indirect = flag("indirect", indirect)
    centres = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))
    settings = np.array(list(itertools.product(np.linspace(-0.5, 0.5, 3), repeat=2)))
    points = settings[:, None, :] + settings[None, :, :]
    close = np.exp(-((points[:, :, None, :] - centres) ** 2).sum(axis=-1))  # (9, 9, 25)
    used = close.mean(axis=1)
    shown_in_use = np.zeros_like(close)
    if not indirect:
        shown_in_use[:, 0] = used
    rewards = np.vstack([np.zeros_like(used), used])
    observations = np.concatenate([close, shown_in_use])
    theta, name = np.eye(len(centres))[18], "laser-indirect" if indirect else "laser"
    return LinearGame(rewards, observations, theta, deviation(noise_variance), name=name)


@named
def ice_cream(
    indirect: bool = True, d: int = 3, noise_variance: float = 0.1, seed: int = 0
) -> LinearGame:
    """Offer one of four products, and learn from sales, or only from surveys.

    Directly, a product pays its rating and shows it.  Indirectly, selling pays the rating unseen,
    and a survey pays nothing and shows it.  Modelled after the experiment of Kirschner, Lattimore,
    Krause (JMLR 2023), with synthetic data since its reviews are not public: features are random
    and of unit length, theta is random with non-negative entries and a mean rating of about 1/2.

    Parameters
    ----------
    indirect : bool
        Whether only surveys show ratings.
    """
    indirect, d = flag("indirect", indirect), integer("d", d, at_least=1)
    products = np.abs(_random_rows(4, d, seed))
    products /= np.linalg.norm(products, axis=1, keepdims=True)
    theta = np.random.default_rng([integer("seed", seed, at_least=0), 1]).random(d)
    theta /= np.linalg.norm(theta)
    nothing = np.zeros_like(products)
    rewards = np.vstack([products, nothing]) if indirect else products
    observations = np.vstack([nothing, products]) if indirect else products
    name = f"ice-cream-{'indirect' if indirect else 'direct'}-{d}-seed{seed}"
    return LinearGame(rewards, observations, theta, deviation(noise_variance), name=name)


@named
def transductive(
    k: int = 6, probes: int = 4, d: int = 3, noise_variance: float = 1.0, seed: int = 0
) -> LinearGame:
    """Transductive bandit: probes show and pay nothing, targets pay and show nothing.

    Fiez, Jain, Jamieson, Ratliff (NeurIPS 2019), here with regret.  Directions are uniform on the
    unit sphere, and theta = e_1.

    Parameters
    ----------
    k, probes, d : int
        Number of targets, of probes, and dimension.
    """
    k, probes = integer("k", k, at_least=1), integer("probes", probes, at_least=1)
    d = integer("d", d, at_least=1)
    rows = _random_rows(k + probes, d, seed)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    pays = np.arange(k + probes)[:, None] < k
    rewards, observations = np.where(pays, rows, 0.0), np.where(pays, 0.0, rows)
    theta, name = np.eye(d)[0], f"transductive-{k}-{probes}-{d}-seed{seed}"
    return LinearGame(rewards, observations, theta, deviation(noise_variance), name=name)


def _falling(k: int, gap: float) -> Array:
    """Means of k arms, falling by a gap from arm to arm."""
    gap = number("gap", gap, above=0, at_most=LARGEST)
    return gap * np.arange(k - 1, -1, -1, dtype=float)


_GRAPHS = ("star", "cliques", "loopless", "cycle")


def _shows(graph: str, k: int) -> Any:
    """Whether the arm of a row shows the arm of a column."""
    row, column = np.indices((k, k))
    if graph == "star":
        return row == k - 1
    if graph == "cliques":
        return row // 2 == column // 2
    if graph == "loopless":
        return row != column
    return (column == row) | (column == (row + 1) % k)


@named
def graph_feedback(
    graph: str = "star", k: int = 5, gap: float = 0.2, noise_variance: float = 1.0
) -> LinearGame:
    """Bandit with graph feedback: an arm shows the rewards of its neighbours in a graph.

    Mannor, Shamir, NIPS 2011; Alon, Cesa-Bianchi, Dekel, Koren, COLT 2015.  Means fall by ``gap``
    from arm to arm.

    Parameters
    ----------
    graph : {"star", "cliques", "loopless", "cycle"}
        Arms that an arm shows: all for the last arm and none for others; its pair; all but itself;
        itself and the next.
    k : int
        Number of arms, at least 2.
    gap : float
        Difference of the means of an arm and the next.
    """
    graph = one_of("graph", graph, _GRAPHS)
    k = integer("k", k, at_least=2)
    affordable(f"k = {shown(k)} arms that show up to {shown(k)} each", 8 * k**3)
    edges = _shows(graph, k)
    observations = np.zeros((k, int(edges.sum(axis=1).max()), k))
    for arm, neighbours in enumerate(edges):
        for row, other in enumerate(np.flatnonzero(neighbours)):
            observations[arm, row, other] = 1.0
    name = f"graph-feedback-{graph}-{k}-{gap:g}"
    theta = _falling(k, gap)
    return LinearGame(np.eye(k), observations, theta, deviation(noise_variance), name=name)


@named
def semi_bandit(
    d: int = 4, size: int = 2, gap: float = 0.2, noise_variance: float = 1.0
) -> LinearGame:
    """Combinatorial semi-bandit: choose a subset of d items and observe the value of each.

    Audibert, Bubeck, Lugosi, 2014.  All subsets of one size; a subset pays the sum of its values,
    which fall by ``gap`` from item to item.

    Parameters
    ----------
    d, size : int
        Number of items, and size of subsets.
    gap : float
        Difference of the values of an item and the next.
    """
    d = integer("d", d, at_least=1, at_most=20)
    size = integer("size", size, at_least=1, at_most=d)
    chosen = list(itertools.combinations(range(d), size))
    items = np.eye(d)
    observations = np.array([items[list(subset)] for subset in chosen])
    rewards, theta = observations.sum(axis=1), _falling(d, gap)
    name = f"semi-bandit-{d}-{size}-{gap:g}"
    return LinearGame(rewards, observations, theta, deviation(noise_variance), name=name)


@named
def full_information(k: int = 5, gap: float = 0.2, noise_variance: float = 1.0) -> LinearGame:
    """Full information: every arm shows the rewards of all k arms; c* = 0.

    Parameters
    ----------
    gap : float
        Difference of the values of an arm and the next.
    """
    k = integer("k", k, at_least=1)
    affordable(f"k = {shown(k)} arms that show {shown(k)} each", 8 * k**3)
    observations, theta = np.broadcast_to(np.eye(k), (k, k, k)), _falling(k, gap)
    name = f"full-information-{k}-{gap:g}"
    return LinearGame(np.eye(k), observations, theta, deviation(noise_variance), name=name)


@named
def label_efficient(
    mean: float = 0.2, cost: float = 0.5, noise_variance: float = 1.0
) -> LinearGame:
    """Label-efficient prediction: predict a sign unseen, or pay to observe it.

    Cesa-Bianchi, Lugosi, Stoltz, 2005.  theta = (mean of the label, cost).  Predicting +1 or -1
    pays the label times the prediction and shows nothing; a query pays minus the cost, and shows
    the label and the cost.  Minimax regret is of order n^(2/3): a query is never the best arm.

    Parameters
    ----------
    cost : float
        Cost of a query, > 0.
    """
    mean = number("mean", mean, size=LARGEST)
    cost = number("cost", cost, above=0, at_most=LARGEST)
    rewards = [[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]
    observations = [np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2)]
    name = f"label-efficient-{mean:g}-{cost:g}"
    return LinearGame(rewards, observations, [mean, cost], deviation(noise_variance), name=name)


@named
def apple_tasting(mean: float = -0.2, noise_variance: float = 1.0) -> LinearGame:
    """Apple tasting: take an apple and observe its value, or leave it and observe nothing.

    Helmbold, Littlestone, Long, 2000: a bandit in which one arm is known to pay 0.
    """
    mean = number("mean", mean, size=LARGEST)
    arms, name = [[1.0], [0.0]], f"apple-tasting-{mean:g}"
    return LinearGame(arms, arms, [mean], deviation(noise_variance), name=name)


@named
def dynamic_pricing(
    probabilities: tuple[float, ...] = (0.1, 0.2, 0.4, 0.2, 0.1),
    penalty: float = 2.0,
    noise_variance: float = 0.25,
) -> LinearGame:
    """Dynamic pricing: set a price, and observe only whether it is accepted.

    Kleinberg, Leighton, FOCS 2003; Bartok, Foster, Pal, Rakhlin, Szepesvari, 2014.  theta is the
    distribution of a customer's valuation, on the prices 1, ..., m.  An accepted price loses the
    difference to the valuation, a refused one costs the penalty.

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
    rewards, observations = -np.where(accepted, prices - prices[:, None], penalty), accepted * 1.0
    name = f"dynamic-pricing-{len(theta)}-{penalty:g}"
    return LinearGame(rewards, observations, theta, deviation(noise_variance), name=name)
