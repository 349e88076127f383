"""Until when evidence outlasts a confidence coefficient: the round at which exploration resumes."""

from __future__ import annotations

import math
from typing import Any

from sightline.core.clock import FAR, Clock, log_round
from sightline.core.confidence.rules import global_beta, settled_until
from sightline.jit import compiled

__all__ = ["next_exploration"]

_LOG_FAR = math.log(FAR)


@compiled
def next_exploration(confidence: Any, log_det: float, evidence: float, clock: Clock) -> Clock:
    """First round >= now at which evidence < beta_{s, t log t}: Algorithm 1 explores there.

    Where rounds are counted exactly, so is this one: it is the first round at which the
    comparison of the two floating-point numbers comes out as "explore", as a run that asks
    every round would find it.
    """
    if clock.t == FAR:
        return Clock(FAR, max(settled_until(confidence, log_det, evidence), clock.log_t))
    if evidence < global_beta(confidence, log_det, log_round(clock)):
        return clock
    log_end = settled_until(confidence, log_det, evidence)
    if log_end >= _LOG_FAR:
        return Clock(FAR, log_end)
    low = clock.t  # settled
    # unsettled, or beyond FAR, as soon as the next loop ends: exp is off by some bits, and a large
    # log det may swallow what time adds
    high = max(int(math.exp(log_end)), low) + 1
    while high < FAR and evidence >= global_beta(confidence, log_det, math.log(high)):
        low, high = high, high + 2 * (high - low)
    while high - low > 1:
        middle = low + (high - low) // 2
        if evidence >= global_beta(confidence, log_det, math.log(middle)):
            low = middle
        else:
            high = middle
    return Clock(high, math.nan) if high < FAR else Clock(FAR, max(log_end, _LOG_FAR))
