"""The cheapest allocation that refutes finitely many models: a linear program, compiled.

| symbol                                   | here          | shape  |
|------------------------------------------|---------------|--------|
| h_g(a) / Delta_a, nats per unit of cost  | ``rows``      | (m, n) |
| shares alpha_a Delta_a                   | ``shares``    | (n,)   |
| lambda_g                                 |               |        |
| inverse of the basis                     | ``inverse``   | (n, n) |
| basic variables                          | ``amounts``   | (n,)   |

    minimise sum_a shares_a  subject to  rows @ shares >= 1      (and shares >= 0)
    maximise sum_g lambda_g  subject to  lambda @ rows <= 1      (and lambda >= 0)

The simplex method solves the second program, which starts feasible at lambda = 0; the shares are
its prices.  A step takes in the row that the shares violate most, O(m n), and changes the inverse
by one elimination, O(n^2).  m may be large.  The right-hand sides differ by 1e-7 at most, so that
no step is degenerate.
"""

from __future__ import annotations

import numpy as np

from sightline.core.linalg import Array
from sightline.jit import compiled_apart

_SPREAD = 1e-7  # of the right-hand sides
_TOLERANCE = 1e-9
_SMALLEST_PIVOT = 1e-12
_STEPS = 50  # per arm, at most: a few are needed


@compiled_apart
def cheapest_cover(rows: Array, shares: Array) -> None:
    """Write the cheapest shares with ``rows @ shares >= 1``; every row has a positive entry."""
    m, n = rows.shape
    inverse, amounts = np.eye(n), np.zeros(n)
    counts = np.zeros(n)  # objective of the basic variables: 1 for a row, 0 for a slack
    column, direction = np.zeros(n), np.zeros(n)
    for i in range(n):
        amounts[i] = 1.0 + _SPREAD * (i + 1) / n
    for _ in range(_STEPS * n):
        for a in range(n):
            shares[a] = 0.0
            for i in range(n):
                shares[a] += counts[i] * inverse[i, a]
        entering, worst = -1, -_TOLERANCE
        for a in range(n):
            if shares[a] < worst:
                entering, worst = a, shares[a]
        slack = entering >= 0
        if not slack:
            worst = 1.0 - _TOLERANCE
            for g in range(m):
                found = 0.0
                for a in range(n):
                    found += rows[g, a] * shares[a]
                if found < worst:
                    entering, worst = g, found
            if entering < 0:
                break
        for a in range(n):
            column[a] = rows[entering, a]
            if slack:
                column[a] = 1.0 if a == entering else 0.0
        largest = 0.0
        for i in range(n):
            direction[i] = 0.0
            for a in range(n):
                direction[i] += inverse[i, a] * column[a]
            largest = max(largest, direction[i])
        leaving = -1
        for i in range(n):
            if direction[i] <= _SMALLEST_PIVOT * largest:
                continue
            if leaving < 0 or amounts[i] * direction[leaving] < amounts[leaving] * direction[i]:
                leaving = i
        if leaving < 0:  # rounding errors: what follows makes the shares feasible
            break
        pivot = direction[leaving]
        for a in range(n):
            inverse[leaving, a] /= pivot
        amounts[leaving] /= pivot
        counts[leaving] = 0.0 if slack else 1.0
        for i in range(n):
            if i != leaving:
                for a in range(n):
                    inverse[i, a] -= direction[i] * inverse[leaving, a]
                amounts[i] -= direction[i] * amounts[leaving]
    _make_feasible(rows, shares)


@compiled_apart
def _make_feasible(rows: Array, shares: Array) -> None:
    """Scale shares up to the last violated row, after adding what rows without evidence need."""
    m, n = rows.shape
    for a in range(n):
        shares[a] = max(shares[a], 0.0)
    least = 1.0
    for g in range(m):
        found, best = 0.0, 0
        for a in range(n):
            found += rows[g, a] * shares[a]
            if rows[g, a] > rows[g, best]:
                best = a
        if found < 0.5:
            shares[best] += 1.0 / rows[g, best]
        else:
            least = min(least, found)
    for a in range(n):
        shares[a] /= least
