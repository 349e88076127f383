"""Sets of problems on which policies are ranked: one that is fixed, and one per seed.

The fixed one was used to design policies of this library.  What was tuned on it may look better
than it is; a set drawn from a seed that nobody knew before shows it as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sightline.problems.bandits import LinearBandit
from sightline.problems.instances import end_of_optimism, large_gaps, unit_sphere
from sightline.validation import integer

__all__ = ["drawn_suite", "standard_suite"]


def _independent(means: Sequence[float], noise_variance: float) -> LinearBandit:
    """Arms that say nothing of each other."""
    name = f"independent-{len(means)}-{max(means):g}-{noise_variance:g}"
    return LinearBandit(np.eye(len(means)), means, noise_variance**0.5, name=name)


def _two_levels(effects: Sequence[float], noise_variance: float) -> LinearBandit:
    """All combinations of factors with two levels each; the first effect is the grand mean."""
    factors = len(effects) - 1
    rows = [[1.0, *signs] for signs in itertools.product((1.0, -1.0), repeat=factors)]
    return LinearBandit(rows, effects, noise_variance**0.5, name=f"factorial-{factors}")


def _by_name(problems: Iterable[LinearBandit]) -> dict[str, LinearBandit]:
    named: dict[str, LinearBandit] = {}
    for problem in problems:
        variance = f", variance {problem.noise.std**2:.3g}"
        named[problem.name + variance] = problem
    return named


def standard_suite() -> dict[str, LinearBandit]:
    """Seventeen fixed problems, by name.

    End of optimism, where the informative arm is a bad one; random spheres with 6 to 50 arms; all
    gaps large; independent arms, one pair nearly tied and one exactly; a factorial design.
    """
    return _by_name(
        [
            end_of_optimism(0.01, 2.0, 0.1),
            end_of_optimism(0.01, 4.0, 0.1),
            end_of_optimism(0.01, 8.0, 0.1),
            end_of_optimism(0.1, 2.0, 0.1),
            end_of_optimism(0.1, 2.0, 1.0),
            unit_sphere(6, 2, 0.1, seed=3),
            unit_sphere(6, 2, 0.1, seed=1),
            unit_sphere(10, 3, 0.1, seed=0),
            unit_sphere(50, 5, 0.1, seed=0),
            unit_sphere(20, 8, 1.0, seed=0),
            unit_sphere(20, 8, 0.1, seed=1),
            large_gaps(),
            _independent((0.4, 0.3, 0.3, 0.3, 0.3), 0.1),
            _independent((0.6, 0.3, 0.3, 0.3, 0.3), 1.0),
            _independent((0.5, 0.499, 0.2, 0.2, 0.0), 0.1),
            _independent((0.5, 0.5, 0.2, 0.2), 0.1),
            _two_levels((0.3, 0.2, -0.1, 0.05, 0.02), 1.0),
        ]
    )


def drawn_suite(seed: int) -> dict[str, LinearBandit]:
    """Twelve problems of the same kinds, drawn from a seed, by name.

    Parameters
    ----------
    seed : int
        Same seed, same problems.
    """
    rng = np.random.default_rng(integer("seed", seed, at_least=0))

    def variance() -> float:
        return float(10.0 ** rng.uniform(-1.5, 0.3))

    def optimism() -> LinearBandit:
        return end_of_optimism(10.0 ** rng.uniform(-2, -0.7), rng.uniform(1.5, 8.0), variance())

    def sphere() -> LinearBandit:
        """Arms and parameter uniform on the sphere, the parameter of random length."""
        d = int(rng.integers(2, 13))
        k = int(rng.integers(d, 8 * d))
        arms, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
        theta *= rng.uniform(0.3, 1.0) / np.linalg.norm(theta)
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        return LinearBandit(arms, theta, variance() ** 0.5, name=f"sphere-{k}-{d}")

    def independent() -> LinearBandit:
        means = rng.uniform(0.0, 0.8, int(rng.integers(3, 11)))
        return _independent(means.tolist(), variance())

    def factorial() -> LinearBandit:
        factors = int(rng.integers(2, 6))
        effects = rng.uniform(-0.2, 0.2, factors + 1)
        return _two_levels(effects.tolist(), variance())

    kinds: list[Callable[[], LinearBandit]] = [optimism, sphere, independent, factorial]
    return _by_name(make() for make in kinds for _ in range(3))
