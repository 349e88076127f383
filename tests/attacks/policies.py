"""Policies and confidence rules: every field of every one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import sightline as sl
from sightline.core.model import bandit_model
from tests.attacks.attack import Attack, accepted, each, refused
from tests.attacks.values import BEYOND, NO_INTEGERS, NO_NUMBERS, NO_TEXTS, TOO_FAR

__all__ = ["ATTACKS", "RULES"]

Make = Callable[..., object]

#: Policy and the field that must be a positive number.
POSITIVE: list[tuple[Make, str]] = [
    (sl.IDS, "regulariser"),
    (sl.LinUCB, "regulariser"),
    (sl.LinUCB, "switch_growth"),
    (sl.EpsilonGreedy, "regulariser"),
    (sl.GCB, "constant"),
    (sl.GCB, "regulariser"),
    (sl.PEGE, "regulariser"),
    (sl.MaximumInformation, "regulariser"),
    (sl.LinMED, "regulariser"),
    (sl.LinIMED, "cap"),
    (sl.LinIMED, "regulariser"),
    (sl.PrimalDual, "regulariser"),
    (sl.TopTwo, "leader_probability"),
    (sl.TopTwo, "regulariser"),
    (sl.SOLID, "primal_step"),
    (sl.SOLID, "dual_step"),
    (sl.SOLID, "multiplier_bound"),
    (sl.SOLID, "regulariser"),
    (sl.ThompsonSampling, "prior_std"),
    (sl.ThompsonSampling, "inflation"),
    (sl.BayesianIDS, "prior_std"),
    (sl.Stakes, "norm_bound"),
    (lambda **given: sl.PhasedElimination(1000, **given), "gap_bound"),
]
#: The same for numbers that may be zero.
NOT_NEGATIVE: list[tuple[Make, str]] = [
    (sl.IDS, "learning_rate"),
    (sl.PrimalDual, "learning_rate"),
    (sl.EpsilonGreedy, "epsilon"),
    (sl.PEGE, "alpha"),
    (sl.PEGE, "beta"),
    (sl.LinMED, "empirical"),
    (sl.LinMED, "design"),
    (sl.LinMED, "staleness"),
    (sl.Stakes, "guard"),
    (sl.OSSB, "epsilon"),
    (sl.OSSB, "gamma"),
    (sl.OSSB, "determinant_growth"),
    (sl.SOLID, "constraint_bonus"),
    (sl.SOLID, "first_normaliser"),
    (sl.SOLID, "first_multiplier"),
    (lambda **given: sl.OAM(1000, **given), "constant"),
    (lambda **given: sl.OAM(1000, **given), "forced_exploration"),
    (lambda **given: sl.OAM(1000, **given), "determinant_growth"),
    (lambda **given: sl.E4(1000, **given), "gamma"),
    (lambda **given: sl.ExploreThenAllocate(1000, **given), "constant"),
]
WHOLE: list[tuple[Make, str]] = [
    (sl.BayesianIDS, "samples"),
    (sl.TopTwo, "redraws"),
    (sl.LinIMED, "variant"),
    (sl.E4, "horizon"),
    (sl.OAM, "horizon"),
    (sl.ExploreThenAllocate, "horizon"),
    (sl.PhasedElimination, "horizon"),
]
OPTIONS: list[tuple[Make, str]] = [
    (sl.IDS, "information"),
    (sl.IDS, "sampling"),
    (sl.IDS, "gaps"),
    (sl.BayesianIDS, "information"),
    (sl.BayesianIDS, "posterior"),
    (sl.PrimalDual, "optimism"),
    (sl.PrimalDual, "gaps"),
    (sl.PrimalDual, "candidates"),
    (sl.Stakes, "noise"),
    (sl.EpsilonGreedy, "schedule"),
    (sl.PEGE, "schedule"),
]
OPTIONAL = {
    *("switch_growth", "primal_step", "dual_step", "multiplier_bound", "constraint_bonus"),
    *("alpha", "beta", "prior_std", "norm_bound"),
}
WITH_RULE: list[Any] = [
    sl.IDS,
    sl.LinUCB,
    sl.EpsilonGreedy,
    sl.MaximumInformation,
    sl.LinMED,
    sl.LinIMED,
    sl.PrimalDual,
    sl.SOLID,
    sl.TopTwo,
    sl.ThompsonSampling,
]
WITH_REGULARISER: list[Any] = [
    sl.IDS,
    sl.LinUCB,
    sl.EpsilonGreedy,
    sl.MaximumInformation,
    sl.LinMED,
    sl.LinIMED,
    sl.PrimalDual,
    sl.SOLID,
    sl.TopTwo,
]


def _title(make: Make, field: str) -> str:
    name = getattr(make, "__name__", "")
    return f"{name if name != '<lambda>' else type(make(**{})).__name__} {field}"


def _fields(
    fields: list[tuple[Make, str]], values: dict[str, tuple[Any, str]], *without: str
) -> list[Attack]:
    attacks = []
    for make, field in fields:
        left_out = {*without, *(["none"] if field in OPTIONAL else [])}
        call = functools.partial(_with, make, field)
        attacks += each(_title(make, field), call, values, field, without=left_out)
    return attacks


def _with(make: Make, field: str, value: Any) -> object:
    return make(**{field: value})


def _all_fields() -> list[Attack]:
    few = {"text", "none", "true", "complex", "timedelta", "nan", "10**400", "10**5000"}
    numbers = {kind: pair for kind, pair in NO_NUMBERS.items() if kind in few}
    return [
        *_fields(POSITIVE, numbers | BEYOND, "10**100"),
        *_fields(NOT_NEGATIVE, numbers | TOO_FAR, "10**100"),
        *_fields(WHOLE, NO_INTEGERS, "1e6", "nan", "numpy true"),
        *_fields(OPTIONS, NO_TEXTS, "none", "bytes", "nan"),
        *_fields([(cls, "confidence") for cls in WITH_RULE], RULES_THAT_ARE_NONE),
    ]


RULES_THAT_ARE_NONE: dict[str, tuple[Any, str]] = {
    "none": (None, "None"),
    "text": ("LogDet", "'LogDet'"),
    "class": (sl.LogDet, "LogDet"),
    "number": (1.0, "1.0"),
}

WITHOUT_S: dict[str, tuple[Any, str]] = {
    "to LogLog": (sl.LogLog(), "LogLog"),
    "to FixedBeta": (sl.FixedBeta(), "FixedBeta"),
    "to S = 0": (sl.LogDet(norm_bound=0.0), "norm_bound must be > 0, got 0.0"),
}


def _rules() -> list[Attack]:
    rules: list[tuple[Make, str]] = [
        (sl.LogDet, "norm_bound"),
        (sl.LogDet, "factor"),
        (sl.LogLog, "factor"),
        (sl.FixedBeta, "value"),
    ]
    attacks = _fields(rules[1:], NO_NUMBERS | BEYOND)
    attacks += _fields(rules[:1], NO_NUMBERS | BEYOND, "zero", "none")
    attacks += _fields([(sl.Gaussian, "std")], NO_NUMBERS | BEYOND, "none")
    attacks += _fields([(sl.Gaussian, "guess")], NO_NUMBERS | BEYOND)
    attacks += _fields([(sl.LogDet, "delta")], NO_TEXTS)
    attacks.append(refused("LogDet delta: unknown", lambda: sl.LogDet(delta="1/s"), "delta", "1/s"))
    for cls in WITH_REGULARISER:
        matched = functools.partial(cls, regulariser="matched")
        call = functools.partial(_with, matched, "confidence")
        attacks += each(f"{cls.__name__} matched", call, WITHOUT_S, "matched")
        attacks.append(
            refused(
                f"{cls.__name__} regulariser: unknown name",
                functools.partial(cls, regulariser="match"),
                "regulariser",
                "'match'",
            )
        )
    attacks += [
        accepted("no S is needed without matched", lambda: sl.IDS(confidence=sl.LogLog())),
        accepted("S by the data", lambda: sl.LogDet(norm_bound=None)),
        accepted("sigma by the data", lambda: sl.Gaussian(std=None)),
        accepted("S = 0", lambda: sl.LogDet(norm_bound=0)),
        accepted("the largest S", lambda: sl.LogDet(norm_bound=1e70)),
        accepted("the smallest S", lambda: sl.LogDet(norm_bound=1e-70)),
        accepted("numpy numbers", lambda: sl.LogDet(np.float64(2.0), np.float32(0.5))),  # type: ignore[arg-type]
        accepted("an integer", lambda: sl.LogLog(factor=2)),
    ]
    return attacks


def _sizes() -> list[Attack]:
    return [
        refused(
            "BayesianIDS samples: 10**12",
            lambda: sl.BayesianIDS(samples=10**12),
            "samples",
            "10**12",
        ),
        refused("BayesianIDS samples: 10**400", lambda: sl.BayesianIDS(10**400), "samples"),
        refused("BayesianIDS samples: zero", lambda: sl.BayesianIDS(0), "samples", "0"),
        refused(
            "BayesianIDS samples in many dimensions",
            lambda: sl.BayesianIDS(10**10).start(bandit_model(np.eye(300))),
            "samples",
            "10**10",
        ),
        refused("TopTwo redraws: zero", lambda: sl.TopTwo(redraws=0), "redraws", "0"),
        refused("TopTwo redraws: negative", lambda: sl.TopTwo(redraws=-1), "redraws", "-1"),
        refused("TopTwo redraws: 10**12", lambda: sl.TopTwo(redraws=10**12), "redraws", "10**12"),
        refused("TopTwo redraws: 10**400", lambda: sl.TopTwo(redraws=10**400), "redraws"),
        refused("TopTwo leader: one", lambda: sl.TopTwo(leader_probability=1.0), "leader", "1.0"),
        refused("LinIMED variant: 2", lambda: sl.LinIMED(variant=2), "variant", "2"),
        refused("LinMED shares", lambda: sl.LinMED(0.9, 0.1), "empirical + design", "0.9 + 0.1"),
        refused("SOLID reset: 1", lambda: sl.SOLID(reset=1), "reset", "1"),  # type: ignore[arg-type]
        refused("SOLID reset: text", lambda: sl.SOLID(reset="no"), "reset", "'no'"),  # type: ignore[arg-type]
        refused(
            "SOLID bound below the first",
            lambda: sl.SOLID(first_multiplier=2.0, multiplier_bound=1.0),
            "multiplier_bound",
            "1.0",
        ),
        refused("E4 horizon: 2", lambda: sl.E4(2), "horizon", "2"),
        refused("OAM horizon: 0", lambda: sl.OAM(0), "horizon", "0"),
        refused("IDS parameter_set", lambda: sl.IDS(parameter_set=[[1.0]]), "parameter_set"),  # type: ignore[arg-type]
        refused("IDS learning rate", lambda: sl.IDS(learning_rate="papers"), "learning_rate"),
        accepted("as many samples as fit", lambda: sl.BayesianIDS(samples=10**6)),
        accepted("any horizon", lambda: sl.PhasedElimination(10**1000)),
        accepted("a numpy horizon", lambda: sl.E4(np.int64(1000))),  # type: ignore[arg-type]
        accepted("one redraw", lambda: sl.TopTwo(redraws=1)),
        accepted("a share of zero", lambda: sl.LinMED(0.0, 0.0)),
    ]


def _polytopes() -> list[Attack]:
    box = sl.problems.Polytope.box
    return [
        refused("box of texts", lambda: box(["0"], ["1"]), "lower", "'0'"),
        refused("box of dates", lambda: box(np.array([1], "M8[D]"), [1]), "lower", "datetime64"),
        refused("box of 10**400", lambda: box([0], [10**400]), "upper", "10**400"),
        refused("box of infinities", lambda: box([-math.inf], [math.inf]), "lower", "-inf"),
        refused("box upside down", lambda: box([1.0], [0.0]), "empty"),
        refused("box of two sizes", lambda: box([0.0, 0.0], [1.0]), "upper", "(1,)"),
        refused("box of two shapes", lambda: box([[0.0]], [1.0]), "lower", "(1, 1)"),
        refused("box too large", lambda: box([-1e300], [1e300]), "1e+300"),
        refused("half-plane", lambda: sl.problems.Polytope([[1.0, 0.0]], [1.0]), "unbounded"),
        refused("empty", lambda: sl.problems.Polytope([], []), "normals", "(0,)"),
        refused("no list", lambda: sl.problems.Polytope(None, [1.0]), "normals", "None"),  # type: ignore[arg-type]
        refused("offsets of texts", lambda: sl.problems.Polytope([[1.0]], ["1"]), "offsets", "'1'"),  # type: ignore[list-item]
        refused(
            "cross of 10**12", lambda: sl.problems.Polytope.cross_polytope(10**12), "d", "10**12"
        ),
        refused("cross of 13", lambda: sl.problems.Polytope.cross_polytope(13), "d", "13"),
        refused("cross of 2.0", lambda: sl.problems.Polytope.cross_polytope(2.0), "d", "2.0"),  # type: ignore[arg-type]
        refused(
            "cross radius",
            lambda: sl.problems.Polytope.cross_polytope(2, "1"),  # type: ignore[arg-type]
            "radius",
            "'1'",
        ),
        refused(
            "cross radius 10**400",
            lambda: sl.problems.Polytope.cross_polytope(2, 10**400),
            "radius",
        ),
        accepted("box", lambda: box([-1, -1], [1, 1])),
        accepted("box of a number", lambda: box(0.0, 1.0)),
        accepted("a point", lambda: box([0.5], [0.5])),
    ]


RULES: list[Attack] = _rules()
ATTACKS: list[Attack] = [*_all_fields(), *_sizes(), *_polytopes()]
