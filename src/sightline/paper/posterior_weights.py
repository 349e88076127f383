"""Beyond the paper: weights q against posterior probabilities that another arm is best."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import integrate, stats

from sightline.core.linalg import Array
from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.paper.settings import IDS_H, VARIANCE
from sightline.problems import unit_sphere
from sightline.report.page import Table
from sightline.simulation.loop import walk

#: Weights that are compared with the posterior: q with its learning rate, and with eta = 1.
KINDS = ("eta of the paper", "eta = 1")
_SHOWN = (30, 300)  # exploration rounds


def sectors(actions: Array, mean: Array, precision: Array) -> tuple[Array, Array]:
    """Probability that every arm of the plane is best, and squared distance to its cell.

    Both under N(mean, precision^-1); the distance is in the norm of the precision.  Cells are
    cones.  In polar coordinates of whitened parameters the radial integral of the density has a
    closed form.
    """
    root = np.linalg.cholesky(precision).T
    whitened = np.linalg.solve(root.T, actions.T).T
    centre = root @ mean

    def density(angle: float) -> float:
        along = centre @ [math.cos(angle), math.sin(angle)]
        across = centre @ [-math.sin(angle), math.cos(angle)]
        radial = stats.norm.pdf(along) + along * stats.norm.cdf(along)
        return float(stats.norm.pdf(across) * radial)

    borders = {-math.pi, math.pi, math.atan2(centre[1], centre[0])}
    for x in whitened:
        for z in whitened:
            if np.any(x != z):
                borders.add(math.atan2(z[0] - x[0], x[1] - z[1]))
    probabilities, distances = np.zeros(len(actions)), np.full(len(actions), math.inf)
    for low, high in itertools.pairwise(sorted(borders)):
        middle = 0.5 * (low + high)
        best = int((whitened @ [math.cos(middle), math.sin(middle)]).argmax())
        probability = integrate.quad(density, low, high, epsabs=0.0, epsrel=1e-8, limit=200)[0]
        probabilities[best] += probability
        for angle in (low, high):  # the nearest point is on a border, or is the mean itself
            along = max(0.0, float(centre @ [math.cos(angle), math.sin(angle)]))
            distances[best] = min(distances[best], float(centre @ centre) - along**2)
    return probabilities, distances


def apart(seed: int) -> dict[str, list[float]]:
    """Half the L1 distance of q from the posterior given that x-hat is not best, by round."""
    problem = unit_sphere(6, 2, VARIANCE, seed)
    state = IDS_H.start(problem.model)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    explored = 0
    for step in walk(problem, state, seed):
        explored += step.outcome is not None
        if explored in _SHOWN and step.outcome is not None:
            learned, best = state.estimate.learned, int(state.estimate.arms.means.argmax())
            precision = np.linalg.inv(learned.gram_inverse) / problem.noise_std**2
            posterior, distances = sectors(problem.actions, learned.theta, precision)
            posterior[best], distances[best] = 0.0, math.inf
            rates = math.log(problem.k) / math.sqrt(state.learning_rate.largest_m[0]), 1.0
            for kind, eta in zip(KINDS, rates, strict=True):
                weights = np.exp(-0.5 * eta * (distances - distances.min()))
                change = np.abs(posterior / posterior.sum() - weights / weights.sum())
                found[kind].append(0.5 * float(change.sum()))
        if explored == _SHOWN[-1]:
            break
    return found


def _calculations(size: Size) -> dict[str, Calculation]:
    return {f"seed{seed}": Calculation(apart, {"seed": seed}) for seed in range(size.replications)}


def distances(outcome: ItemResults, kind: str) -> Array:
    """Distances of all runs, shape (runs, rounds)."""
    return np.array([value[kind] for value in outcome.values.values()])


def _show(outcome: ItemResults) -> Findings:
    rows = []
    for kind in KINDS:
        means = distances(outcome, kind).mean(axis=0)
        rows.append((kind, *(f"{mean:.3f}" for mean in means)))
    head = ("weights", *(f"after {s} explorations" for s in _SHOWN))
    title = f"Distance of q from the posterior, {outcome.size.replications} runs"
    return Findings(tables=(Table(title, head, tuple(rows)),))


ITEM = Item(
    name="weights",
    title="Beyond: weights and posterior probabilities",
    see="The weights of IDS are close to the posterior probabilities that an arm is best.",
    short="Weights",
    where="Alternative definitions of the information gain; appendix on mutual information",
    about="q of cells against the probability that an arm is best, given that the empirically "
    "best one is not, under the posterior of a normal prior. The distance is half the sum of "
    "absolute differences: 0 for equal distributions, 1 for disjoint ones. "
    "Data of IDS-H on random action sets.",
    sizes={"quick": Size(300, 10), "paper": Size(300, 40)},
    calculations=_calculations,
    show=_show,
)
