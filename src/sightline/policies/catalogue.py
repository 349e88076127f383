"""Every policy of the library: a new one is a new file and one line here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
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
from sightline.validation import call_described, shown

POLICIES: dict[str, type[Policy]] = {
    name: value
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, Policy) and value is not Policy
}

PARTS: dict[str, type] = {
    **POLICIES,
    **{cls.__name__: cls for cls in (LogDet, LogLog, FixedBeta, Polytope)},
}


def describe(part: Any, with_modules: bool = False) -> dict[str, Any]:
    """Policy or part of one as a plain dictionary: its class under ``"type"``, then its fields.

    ``with_modules`` writes a class that is not the library's as ``"module:Class"``.
    """
    cls = type(part)
    own = with_modules and PARTS.get(cls.__name__) is not cls
    return {"type": f"{cls.__module__}:{cls.__qualname__}" if own else cls.__name__} | {
        name: _plain(value, with_modules) for name, value in described_fields(part).items()
    }


def _plain(value: Any, with_modules: bool) -> Any:
    if dataclasses.is_dataclass(value):
        return describe(value, with_modules)
    if isinstance(value, np.generic):  # which JSON does not know
        return value.item()
    return [_plain(entry, with_modules) for entry in value] if isinstance(value, tuple) else value


def build(description: Mapping[str, Any], own: Mapping[str, type] = MappingProxyType({})) -> Any:
    """Inverse of :func:`describe` for the library's classes, and for a user's ``own`` by name.

    ``"module:Class"`` is looked up in ``own`` by the name of the class: nothing is imported.
    """
    fields = {
        name: build(value, own) if isinstance(value, dict) else value
        for name, value in description.items()
    }
    kind = fields.get("type")
    if not isinstance(kind, str) or ":" not in kind:
        return call_described(PARTS, fields)
    module, _, name = kind.partition(":")
    if name not in own:
        raise ValueError(
            f"type {shown(kind)} is not part of the library, and files import no code: pass "
            f"classes=[{name}] to Experiment.load or from_toml, with {name} from {module}"
        )
    return call_described({kind: own[name]}, {key: _as_tuple(fields[key], own) for key in fields})


def _as_tuple(value: Any, own: Mapping[str, type]) -> Any:
    """Bring back the tuple that was described as a list."""
    if not isinstance(value, list):
        return build(value, own) if isinstance(value, dict) else value
    return tuple(_as_tuple(entry, own) for entry in value)
