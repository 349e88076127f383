"""Sightline: linear bandits at the information-theoretic limit.

Names are imported on first use, so that ``import sightline`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sightline.version import __version__ as __version__

_HOME = {
    "LowerBound": "sightline.bounds.asymptotic",
    "lower_bound": "sightline.bounds.asymptotic",
    "LinearBandit": "sightline.problems",
    "LogDet": "sightline.core.confidence.rules",
    "LogLog": "sightline.core.confidence.rules",
    "FixedBeta": "sightline.core.confidence.rules",
    "Polytope": "sightline.core.alternatives.parameter_set",
    "Choice": "sightline.policies.base",
    "Policy": "sightline.policies.base",
    "choose": "sightline.policies.base",
    "inspect": "sightline.policies.base",
    "update": "sightline.policies.base",
    "GainTrajectory": "sightline.engine.trajectory",
    "information_gains": "sightline.engine.trajectory",
    "Clock": "sightline.core.clock",
    "never": "sightline.core.clock",
    "tick": "sightline.core.clock",
    "Run": "sightline.engine.simulate",
    "simulate": "sightline.engine.simulate",
    "Decision": "sightline.engine.decisions",
    "Pending": "sightline.engine.decisions",
    "Status": "sightline.engine.decisions",
    "Estimates": "sightline.engine.estimates",
    "Session": "sightline.engine.session",
    "Experiment": "sightline.lab.experiment",
    "Results": "sightline.report.results",
    "run": "sightline.report.run",
}

if TYPE_CHECKING:
    from sightline import problems as problems
    from sightline.bounds.asymptotic import LowerBound as LowerBound
    from sightline.bounds.asymptotic import lower_bound as lower_bound
    from sightline.core.alternatives.parameter_set import Polytope as Polytope
    from sightline.core.clock import Clock as Clock
    from sightline.core.clock import never as never
    from sightline.core.clock import tick as tick
    from sightline.core.confidence.rules import FixedBeta as FixedBeta
    from sightline.core.confidence.rules import LogDet as LogDet
    from sightline.core.confidence.rules import LogLog as LogLog
    from sightline.engine.decisions import Decision as Decision
    from sightline.engine.decisions import Pending as Pending
    from sightline.engine.decisions import Status as Status
    from sightline.engine.estimates import Estimates as Estimates
    from sightline.engine.session import Session as Session
    from sightline.engine.simulate import Run as Run
    from sightline.engine.simulate import simulate as simulate
    from sightline.engine.trajectory import GainTrajectory as GainTrajectory
    from sightline.engine.trajectory import information_gains as information_gains
    from sightline.lab.experiment import Experiment as Experiment
    from sightline.policies.base import Choice as Choice
    from sightline.policies.base import Policy as Policy
    from sightline.policies.base import choose as choose
    from sightline.policies.base import inspect as inspect
    from sightline.policies.base import update as update
    from sightline.policies.catalogue import *  # noqa: F403
    from sightline.problems import LinearBandit as LinearBandit
    from sightline.report.results import Results as Results
    from sightline.report.run import run as run
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'sightline' has no attribute {name!r}")
        if name == "problems":
            return importlib.import_module("sightline.problems")
        if name in _HOME:
            return getattr(importlib.import_module(_HOME[name]), name)
        from sightline.policies.catalogue import POLICIES

        if name in POLICIES:
            return POLICIES[name]
        import difflib

        by_lower_case = {known.lower(): known for known in (*_HOME, *POLICIES, "problems")}
        close = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
        hint = f"; did you mean {by_lower_case[close[0]]!r}?" if close else ""
        raise AttributeError(f"module 'sightline' has no attribute {name!r}{hint}")

    def __dir__() -> list[str]:
        from sightline.policies.catalogue import POLICIES

        return sorted({*_HOME, *POLICIES, "problems", "__version__"})
