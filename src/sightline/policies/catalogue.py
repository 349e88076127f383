"""Every policy of the library: a new one is a new file and one line here."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sightline.core.confidence_rules import FixedBeta, LogDet, LogLog
from sightline.core.persistence import described_fields
from sightline.core.projections import Polytope
from sightline.policies.base import Policy
from sightline.policies.bayesian_ids import BayesianIDS as BayesianIDS
from sightline.policies.e4 import E4 as E4
from sightline.policies.explore_then_allocate import ExploreThenAllocate as ExploreThenAllocate
from sightline.policies.gcb import GCB as GCB
from sightline.policies.glm_ucb import GLMUCB as GLMUCB
from sightline.policies.greedy import EpsilonGreedy as EpsilonGreedy
from sightline.policies.ids import IDS as IDS
from sightline.policies.lin_imed import LinIMED as LinIMED
from sightline.policies.lin_med import LinMED as LinMED
from sightline.policies.lin_ucb import LinUCB as LinUCB
from sightline.policies.maximum_information import MaximumInformation as MaximumInformation
from sightline.policies.oam import OAM as OAM
from sightline.policies.ofuglb import OFUGLB as OFUGLB
from sightline.policies.ossb import OSSB as OSSB
from sightline.policies.pege import PEGE as PEGE
from sightline.policies.phased_elimination import PhasedElimination as PhasedElimination
from sightline.policies.primal_dual import PrimalDual as PrimalDual
from sightline.policies.solid import SOLID as SOLID
from sightline.policies.stakes import Stakes as Stakes
from sightline.policies.thompson import ThompsonSampling as ThompsonSampling
from sightline.policies.top_two import TopTwo as TopTwo
from sightline.validation import call_described

POLICIES: dict[str, type[Policy]] = {
    name: value
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
}

PARTS: dict[str, type] = {
    **POLICIES,
    **{cls.__name__: cls for cls in (LogDet, LogLog, FixedBeta, Polytope)},
}


def describe(part: Any) -> dict[str, Any]:
    """Policy or part of one as a plain dictionary: its class under ``"type"``, then its fields."""
    return {"type": type(part).__name__} | {
        name: _plain(value) for name, value in described_fields(part).items()
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return describe(value)
    if isinstance(value, np.generic):  # which JSON does not know
        return value.item()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def build(description: dict[str, Any]) -> Any:
    """Inverse of :func:`describe` for what the library knows."""
    fields = {
        name: build(value) if isinstance(value, dict) else value
        for name, value in description.items()
    }
    return call_described(PARTS, fields)
