"""The set M of parameters that are possible at all: all of R^d, or a polytope."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.validation import finite_array, integer, scale, shown

_LARGEST_CROSS_POLYTOPE = 12  # in d dimensions it has 2^d faces
#: Largest number in a description of a polytope.
LARGEST_ENTRY = 1e19  # the solver takes 1e20 for infinity


@dataclass(frozen=True)
class Polytope:
    """Parameters nu with A nu <= b, a bounded set that must contain the true one.

    Where the data contradict M, every alternative in it becomes implausible, and the policy
    commits to the arm that is best under the unconstrained estimate.

    Parameters
    ----------
    normals : sequence of sequences, shape (m, d)
        A.
    offsets : sequence, shape (m,)
        b.
    """

    normals: Sequence[Sequence[float]]
    offsets: Sequence[float]

    def __post_init__(self) -> None:
        normals = finite_array("normals", self.normals, (None, None))
        offsets = finite_array("offsets", self.offsets, (len(normals),))
        for name, array in (("normals", normals), ("offsets", offsets)):
            if np.abs(array).max() > LARGEST_ENTRY:
                raise ValueError(
                    f"{name} must not exceed {LARGEST_ENTRY:g}, got {np.abs(array).max():g}"
                )
        # tuples: a policy is a value, hashable and comparable
        object.__setattr__(self, "normals", tuple(map(tuple, normals.tolist())))
        object.__setattr__(self, "offsets", tuple(offsets.tolist()))
        _check_bounded(normals, offsets)

    @classmethod
    def box(cls, lower: ArrayLike, upper: ArrayLike) -> Polytope:
        """All nu with lower <= nu <= upper in every coordinate."""
        low = finite_array("lower", lower, (None,))
        high = finite_array("upper", upper, (len(low),))
        identity = np.eye(len(low))
        return cls(np.vstack([identity, -identity]).tolist(), [*high.tolist(), *(-low).tolist()])

    @classmethod
    def cross_polytope(cls, d: int, radius: float = 1.0) -> Polytope:
        """All nu in R^d whose absolute values sum to at most ``radius``."""
        d = integer("d", d, at_least=1)
        if d > _LARGEST_CROSS_POLYTOPE:
            raise ValueError(
                f"d must be at most {_LARGEST_CROSS_POLYTOPE}: 2^d faces; got {shown(d)}"
            )
        bound = scale("radius", radius)
        signs = list(itertools.product([1.0, -1.0], repeat=d))
        return cls(signs, [bound] * len(signs))

    @classmethod
    def simplex(cls, d: int) -> Polytope:
        """All nu in R^d with entries >= 0 that sum to 1: laws of d outcomes, a flat set."""
        d = integer("d", d, at_least=1)
        rows = np.vstack([-np.eye(d), np.ones(d), -np.ones(d)])
        return cls(rows.tolist(), [0.0] * d + [1.0, -1.0])

    def arrays(self, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return A and b, for parameters in d dimensions."""
        normals, offsets = np.array(self.normals), np.array(self.offsets)
        if normals.shape[1] != d:
            raise ValueError(
                f"parameter_set must have the dimension of the actions, {d}; got {normals.shape[1]}"
            )
        return normals, offsets


def _check_bounded(normals: NDArray[np.float64], offsets: NDArray[np.float64]) -> None:
    """Refuse a set that is empty or reaches to infinity: 2 d linear programs."""
    from scipy.optimize import linprog

    d = normals.shape[1]
    for objective in np.vstack([np.eye(d), -np.eye(d)]):
        status = linprog(objective, normals, offsets, bounds=(None, None)).status
        if status == 2:
            raise ValueError("the parameter set is empty: no nu satisfies normals @ nu <= offsets")
        if status == 3:
            raise ValueError("the parameter set is unbounded: add constraints, such as a box")
