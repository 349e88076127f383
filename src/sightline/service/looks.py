"""What was known when: taken down while an experiment runs, for figures over time.

Looks come after 1, 2, 3, ... events, and then each time that 2 % have been added: 10^6 events have
about 600.  They can be lost: nothing but figures is made of them.
"""

from __future__ import annotations

import json
import math

from sightline.service.answers import plain
from sightline.service.hosted import Hosted
from sightline.sessions.view import view_of

__all__ = ["look_at", "next_look"]

_STEP = 1.02
_MOST_OPTIONS = 200  # of which each has a number in every look


def next_look(events: int) -> int:
    """Say after how many events the next look is due."""
    return max(events + 1, math.ceil(events * _STEP))


def look_at(session: Hosted, now: float) -> str:
    """Write down what is known."""
    view = view_of(session.live)
    report = view.evidence if not view.options.stream else view.report
    told, total = int(view.told.sum()), float(view.totals.sum())
    means = None if view.estimates is None else view.estimates.means
    split = None
    if means is not None and len(means) == len(view.offered):
        split = plain(float(means[view.offered].mean()))
    few = len(view.options) <= _MOST_OPTIONS
    return json.dumps(
        {
            "time": now,
            "round": int(view.clock.t) - 1,
            "evidence": plain(float(report.evidence)),
            "threshold": plain(float(report.threshold)),
            "best": int(report.best),
            "told": told,
            "reward": plain(total),
            "split": split,
            "asked": view.asked.tolist() if few else None,
        }
    )
