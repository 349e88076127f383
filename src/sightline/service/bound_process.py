"""A process of its own that computes c* of one problem: it reads a line of JSON, and writes one."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from typing import Any

from sightline.bounds.asymptotic import lower_bound
from sightline.bounds.certificate import ConvergenceWarning
from sightline.problems.base import TableProblem
from sightline.problems.descriptions import build
from sightline.service.parent import end_with_parent

__all__ = ["answer"]


def answer(description: dict[str, Any]) -> dict[str, Any]:
    """Compute c* with its bracket, or say in a sentence why there is none."""
    try:
        problem = build(description)
        assert isinstance(problem, TableProblem)
        with warnings.catch_warnings():
            # both sides are a part of the answer, and the log would repeat it at every look
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = lower_bound(problem)
    except ValueError as error:
        return {"reason": str(error)}
    if not math.isfinite(found.upper):
        return {"reason": "no decision shows which option is best: regret is not logarithmic"}
    return {"value": found.value, "lower": found.lower, "upper": found.upper}


if __name__ == "__main__":
    os.nice(10)  # decisions come first
    description = json.loads(sys.stdin.readline())
    end_with_parent()
    print(json.dumps(answer(description)), flush=True)
    os._exit(0)  # whatever waits for more input
