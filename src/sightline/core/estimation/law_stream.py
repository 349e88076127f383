"""Clicks and counts of arms that are new in every round: one step per outcome, and no data kept.

| symbol                                   | here                       | shape  |
|------------------------------------------|----------------------------|--------|
| theta_t                                  | ``learned.theta``          | (d,)   |
| H_t = lambda I + sum of w_s x_s x_s^T    | ``stream.factor`` = R, H = R^T R | (d, d) |
| sum of w_s z_s x_s = H_t theta_t         | ``stream.target``, times R^-T | (d,)  |

Mirror descent in the metric of all curvature so far: after an outcome y of x

    theta_{t+1} = argmin cost(y, <x, theta>) + |theta - theta_t|^2 / 2,    the norm that of H_t,
    H_{t+1} = H_t + w x x^T,    w = curvature of the cost at v = <x, theta_{t+1}>.

The minimum lies on the line through H_t^-1 x, so that v solves one equation,

    v + |x|^2 slope(y, v) = <x, theta_t>,    |x| in H_t^-1,

whose left side grows: Newton's method between two bounds, whatever the data.  The step is that of
least squares from a normal outcome z = v - slope / w with precision w.  So all that is said of
least squares is true of this estimate; for normal outcomes z is y.

This is GLB-OMD (Zhang, Xu, Zhao, Sugiyama, 2025) with the cost itself in place of its parabola at
theta_t, without a projection onto a ball, and with step size one.  With a step size of 1 + S and
lambda of order d (1 + S) the paper proves an ellipsoid around theta_t.  Step size one is that of
the Laplace approximation: as data come in, theta_t is as good as the fit to all of them.  The
ellipsoid is then that of the limit, and not proven.  O(d^2) per outcome.
"""

from __future__ import annotations

from typing import Any

from sightline.core.likelihood.laws import curvature, slope
from sightline.jit import compiled

__all__ = ["implicit_predictor", "normal_equivalent"]

_MOST_STEPS = 100
_LAST_STEP = 1e-14


@compiled
def implicit_predictor(law: Any, outcome: float, u: float, width: float) -> float:
    """Solve v + width slope(outcome, v) = u."""
    far = u - width * slope(law, outcome, u)  # the slope is less steep on the way there
    low, high = min(u, far), max(u, far)
    v, last = u, high - low
    for _ in range(_MOST_STEPS):
        error = v - u + width * slope(law, outcome, v)
        if error > 0.0:
            high = v
        else:
            low = v
        step = -error / (1.0 + width * curvature(law, outcome, v))
        # where the cost bends, Newton's method may go to and fro: halve what is left then
        if not low <= v + step <= high or abs(step) > 0.5 * last:
            step = 0.5 * (low + high) - v
        v += step
        last = abs(step)
        if last <= _LAST_STEP * (1.0 + abs(v)):
            break
    return v


@compiled
def normal_equivalent(law: Any, outcome: float, u: float, width: float) -> tuple[float, float]:
    """Return the normal outcome z that moves the estimate as this one does, and its precision w."""
    v = implicit_predictor(law, outcome, u, width)
    worth = curvature(law, outcome, v)
    return v - slope(law, outcome, v) / worth, worth
