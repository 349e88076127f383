"""Logistic bandits as others have published them, in the checkout of their repository."""

from __future__ import annotations

import importlib
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sightline as sl

__all__ = ["PUBLISHED", "play"]

#: Module and class of every algorithm, and what it is given beside the bounds.
PUBLISHED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "GLM-UCB": ("glm_ucb", "GlmUCB", ()),
    "adaECOLog": ("ecolog", "EcoLog", ("horizon",)),
    "OFUGLB-e": ("ofuglb_e", "OFUGLBe", ("horizon",)),
    "OFUGLB": ("ofuglb", "OFUGLB", ("horizon",)),
}
_FAILURE = 0.05


class Arms:
    """A finite set of arms, as the algorithms ask for one."""

    type = "fixed_discrete"

    def __init__(self, actions: np.ndarray) -> None:
        self.arm_list = actions

    def argmax(self, score: Callable[[np.ndarray], float]) -> np.ndarray:
        """Arm with the largest score."""
        best: np.ndarray = self.arm_list[int(np.argmax([score(arm) for arm in self.arm_list]))]
        return best


def play(
    checkout: Path, label: str, problem: sl.LinearBandit, bound: float, rounds: int
) -> tuple[float, float]:
    """Return seconds and regret of one run."""
    sys.modules.setdefault("ipdb", types.ModuleType("ipdb"))  # a debugger, which they import
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    module, name, wanted = PUBLISHED[label]
    cls: Any = getattr(importlib.import_module(f"logbexp.algorithms.{module}"), name)
    longest = float(np.linalg.norm(problem.actions, axis=1).max())
    given = {"horizon": rounds} if wanted else {}
    policy = cls(bound, longest, problem.d, _FAILURE, **given)
    policy.reset()
    arms, rng = Arms(problem.actions), np.random.default_rng(1)
    regret, began = 0.0, time.perf_counter()
    for _ in range(rounds):
        played = policy.pull(arms)
        arm = int(np.abs(problem.actions - played).sum(axis=1).argmin())
        regret += float(problem.gaps[arm])
        policy.learn(played, float(rng.random() < problem.means[arm]))
    return time.perf_counter() - began, regret
