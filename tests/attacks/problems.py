"""Problems: arms, parameters, noise, names and the sizes of random ones."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import sightline as sl
from sightline.problems import BernoulliNoise, GaussianNoise, Sampler, TwoPoint, Uniform
from tests.attacks.attack import Attack, accepted, each, refused
from tests.attacks.values import BEYOND, NO_INTEGERS, NO_NUMBERS, NO_TEXTS

__all__ = ["ATTACKS"]

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def bandit(**changes: Any) -> sl.LinearBandit:
    return sl.LinearBandit(**{"actions": ARMS, "theta": [1.0, 0.0]} | changes)  # type: ignore[arg-type]


class _Broken:
    """An object that cannot become an array, and says so in its own way."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("no array today")


def _endless() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


MASKED = np.ma.masked_array(ARMS, mask=[[True, False]] + [[False, False]] * 2)

FEATURES: dict[str, tuple[Any, str]] = {
    "integer beyond floats": ([[10**400, 0], [0, 1]], "10**400"),
    "negative integer beyond floats": ([[-(10**400), 0], [0, 1]], "-10**400"),
    "integer beyond what is printed": ([[10**5000, 0], [0, 1]], "10**5000"),
    "numeric texts": ([["1", "0"], ["0", "1"]], "'1'"),
    "one numeric text": ([[1.0, "0"], [0.0, 1.0]], "'0'"),
    "numeric bytes": ([[b"1", b"0"]], "b'1'"),
    "array of texts": (np.array([["1", "0"], ["0", "1"]]), "'1'"),
    "dates": (np.array([["2024-02-29", "2024-03-01"]], dtype="M8[D]"), "datetime64"),
    "durations": (np.array([[1, 2]], dtype="m8[s]"), "timedelta64"),
    "date objects": ([[datetime.date(2024, 2, 29), 1.0]], "2024"),
    "datetime objects": ([[datetime.datetime(2024, 2, 29), 1.0]], "2024"),
    "masked": (MASKED, "masked"),
    "masked without a mask": (np.ma.masked_array(ARMS), "masked"),
    "complex": ([[1j, 0.0]], "complex"),
    "complex objects": (np.array([[1j, 0.0]], dtype=object), "1j"),
    "none": (None, "None"),
    "none inside": ([[1.0, None], [0.0, 1.0]], "None"),
    "missing of pandas": (pd.DataFrame({"a": [1.0, None], "b": [0.0, 1.0]}), "nan"),
    "missing integer of pandas": (
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0, 1]}),
        "NA",
    ),
    "texts of pandas": (pd.DataFrame({"a": ["1", "2"], "b": [0.0, 1.0]}), "'1'"),
    "text": ("1 0; 0 1", "'1 0; 0 1'"),
    "a number": (1.0, "1.0"),
    "one row": ([1.0, 0.0], "(2,)"),
    "three dimensions": ([[[1.0]]], "(1, 1, 1)"),
    "empty": ([], "(0,)"),
    "no arms": (np.empty((0, 2)), "(0, 2)"),
    "no features": (np.empty((3, 0)), "(3, 0)"),
    "ragged": ([[1.0], [1.0, 2.0]], "rows"),
    "ragged deep": ([[[1.0]], [1.0, 2.0]], "array"),
    "nested in itself": (_endless(), "array"),
    "dictionary": ({"a": [1.0, 0.0]}, "{'a': [1.0, 0.0]}"),
    "set": ({1.0}, "{1.0}"),
    "generator": ((row for row in ARMS), "generator"),
    "function": (len, "len"),
    "records": (np.zeros(2, dtype=[("a", float), ("b", float)]), "array"),
    "broken object": (_Broken(), "no array today"),
    "nan": ([[math.nan, 0.0]], "nan"),
    "infinity": ([[math.inf, 0.0]], "inf"),
    "too large": ([[1e71, 0.0]], "1e+71"),
    "1e300": ([[1e300, 0.0]], "1e+300"),
}

VECTORS: dict[str, tuple[Any, str]] = {
    "integer beyond floats": ([10**400, 0], "10**400"),
    "numeric texts": (["1", "0"], "'1'"),
    "dates": (np.array(["2024-02-29", "2024-03-01"], dtype="M8[D]"), "datetime64"),
    "masked": (np.ma.masked_array([1.0, 2.0], mask=[True, False]), "masked"),
    "too short": ([1.0], "(1,)"),
    "matrix": ([[1.0, 0.0]], "(1, 2)"),
    "none": (None, "None"),
    "number": (1.0, "1.0"),
    "nan": ([math.nan, 0.0], "nan"),
    "so large that means overflow": ([1e300, 0.0], "1e+300"),
}

LEVELS: dict[str, tuple[Any, str]] = {
    "integers beyond floats": ([10**400, 1, 1], "10**400"),
    "texts": (["1", "1", "2"], "'1'"),
    "booleans": ([True, False, True], "True"),
    "dates": (np.array([1, 2, 3], dtype="M8[D]"), "datetime64"),
    "masked": (np.ma.masked_array([1.0, 2.0, 3.0], mask=[True, False, False]), "masked"),
    "too few": ([1.0, 2.0], "(2,)"),
    "too many": ([1.0] * 4, "(4,)"),
    "matrix": ([[1.0, 2.0, 3.0]], "(1, 3)"),
    "empty": ([], "(0,)"),
    "zero": ([1.0, 0.0, 1.0], "0.0 for arm 1"),
    "negative": ([1.0, 1.0, -2.0], "-2.0 for arm 2"),
    "nan": ([1.0, math.nan, 1.0], "nan"),
    "infinite": ([1.0, math.inf, 1.0], "inf"),
    "one too large": ([1.0, 1.0, 1e300], "1e+300"),
    "one too small": ([1e-300, 1.0, 1.0], "1e-300"),
    "all too large": ([1e300, 1e299, 1e300], "e+"),
    "all too small": ([1e-300, 1e-299, 1e-300], "e-"),
    "too different": ([1e-60, 1.0, 1e60], "1e-60"),
}

NOISES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "text": ("gaussian", ("noise", "'gaussian'")),
    "number": (0.3, ("noise", "0.3")),
    "class": (GaussianNoise, ("noise", "Gaussian")),
    "Gaussian of text": (GaussianNoise("1"), ("std", "'1'")),  # type: ignore[arg-type]
    "Gaussian of 10**400": (GaussianNoise(10**400), ("std", "10**400")),
    "Gaussian of 1e300": (GaussianNoise(1e300), ("std", "1e+300")),
    "Gaussian of 1e-300": (GaussianNoise(1e-300), ("std", "1e-300")),
    "Uniform of nan": (Uniform(math.nan), ("half_width", "nan")),
    "Uniform of 1e300": (Uniform(1e300), ("half_width", "1e+300")),
    "TwoPoint of zero": (TwoPoint(0.0), ("std", "0.0")),
    "TwoPoint of a duration": (TwoPoint(np.timedelta64(1, "s")), ("std", "timedelta64")),  # type: ignore[arg-type]
    "Bernoulli of means beyond 1": (BernoulliNoise(), ("Bernoulli", "2")),
    "Sampler of no function": (Sampler(3, 1.0), ("draw", "3")),  # type: ignore[arg-type]
    "Sampler of text": (Sampler(lambda mean, rng: mean, "1"), ("std", "'1'")),  # type: ignore[arg-type]
    "Sampler of 1e300": (Sampler(lambda mean, rng: mean, 1e300), ("std", "1e+300")),
}

NAMES: dict[str, tuple[Any, str]] = NO_TEXTS | {
    "empty": ("", "''"),
    "blank": ("  ", "'  '"),
    "several lines": ("a\nb", "'a\\nb'"),
    "control characters": ("a\x00b", "a\\x00b"),
}

FAR_TOO_MANY: dict[str, tuple[Any, str]] = {
    "zero": (0, "0"),
    "10**12": (10**12, "10**12"),
    "10**400": (10**400, "10**400"),
}

SIZES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "unit_sphere k": ("k", lambda n: sl.problems.unit_sphere(k=n)),
    "unit_sphere d": ("d", lambda n: sl.problems.unit_sphere(d=n)),
    "unit_spheres k": ("k", lambda n: sl.problems.unit_spheres(k=n)),
    "sphere_stream k": ("k", lambda n: sl.problems.sphere_stream(k=n)),
    "sphere_stream d": ("d", lambda n: sl.problems.sphere_stream(d=n)),
    "end_of_optimism_family d": ("d", sl.problems.end_of_optimism_family),
}

VARIANCES: dict[str, Callable[..., object]] = {
    "end_of_optimism": sl.problems.end_of_optimism,
    "large_gaps": sl.problems.large_gaps,
    "unit_sphere": sl.problems.unit_sphere,
    "unit_spheres": sl.problems.unit_spheres,
    "sphere_stream": sl.problems.sphere_stream,
}


def _arrays() -> list[Attack]:
    return [
        *each("actions", lambda value: bandit(actions=value), FEATURES, "actions"),
        *each("theta", lambda value: bandit(theta=value), VECTORS, "theta"),
        *each("noise levels", lambda value: bandit(noise_std=value), LEVELS, "noise_std"),
        refused("means", lambda: bandit(actions=[[1e60]], theta=[1e60]), "means", "1e+120"),
        refused("no means", lambda: bandit(actions=[[1e70]], theta=[1e300]), "means", "inf"),
    ]


def _noises() -> list[Attack]:
    values = NO_NUMBERS | BEYOND
    attacks = each(
        "noise_std",
        lambda value: bandit(noise_std=value),
        values,
        "noise_std",
        without=("none", "list", "dictionary"),
    )
    for name, (value, texts) in NOISES.items():
        theta = [2.0, 0.0] if "beyond 1" in name else [1.0, 0.0]
        given = {"noise": value, "theta": theta}
        attacks.append(refused(f"noise: {name}", functools.partial(bandit, **given), *texts))
    attacks.append(
        refused("both noises", lambda: bandit(noise=GaussianNoise(), noise_std=1.0), "not both")
    )
    few = ("text", "nan", "10**400", "timedelta", "zero", "negative", "largest float")
    for name in (*few, "least float"):
        value, text = values[name]
        for world, make in VARIANCES.items():
            call = functools.partial(make, noise_variance=value)
            attacks.append(refused(f"{world} noise_variance: {name}", call, "noise_variance", text))
    return attacks


def _names() -> list[Attack]:
    return each("name", lambda value: bandit(name=value), NAMES, "name")


def _sizes() -> list[Attack]:
    attacks = []
    for name, (field, make) in SIZES.items():
        attacks += each(name, make, NO_INTEGERS | FAR_TOO_MANY, field)
    return [
        *attacks,
        refused("k and d", lambda: sl.problems.unit_sphere(k=10**6, d=10**6), "k", "TB"),
        refused("seed: negative", lambda: sl.problems.unit_sphere(seed=-1), "seed", "-1"),
        refused("seed: text", lambda: sl.problems.unit_sphere(seed="3"), "seed", "'3'"),  # type: ignore[arg-type]
        refused("epsilon: one", lambda: sl.problems.end_of_optimism(epsilon=1.0), "epsilon", "1.0"),
        refused("epsilon: nan", lambda: sl.problems.end_of_optimism(math.nan), "epsilon", "nan"),
        refused("epsilon: 10**400", lambda: sl.problems.end_of_optimism(10**400), "epsilon", "400"),
        refused("slope: text", lambda: sl.problems.end_of_optimism(slope="2"), "slope", "'2'"),  # type: ignore[arg-type]
        refused("slope: 1e300", lambda: sl.problems.end_of_optimism(slope=1e300), "slope", "1e+30"),
        refused("slope: 10**400", lambda: sl.problems.end_of_optimism(slope=10**400), "slope"),
    ]


def _edges() -> list[Attack]:
    frame = pd.DataFrame({"a": [1, 0], "b": [0.0, 1.0]})
    mixed = pd.DataFrame({"a": [1, 0], "b": [0.0, 1.0]}, dtype=object)
    return [
        accepted("largest features", lambda: bandit(actions=[[1e70, 0.0], [0.0, 1.0]])),
        accepted("tiny features", lambda: bandit(actions=[[1e-300, 0.0], [0.0, 1e-300]])),
        accepted("indicators", lambda: bandit(actions=[[True, False], [False, True]])),
        accepted("integers", lambda: bandit(actions=[[1, 0], [0, 10**30]])),
        accepted("single precision", lambda: bandit(actions=np.eye(2, dtype=np.float32))),
        accepted("a data frame", lambda: bandit(actions=frame)),
        accepted("a data frame of objects", lambda: bandit(actions=mixed)),
        accepted("a list of arrays", lambda: bandit(actions=list(np.eye(2)))),
        accepted("one arm", lambda: bandit(actions=[[1.0, 2.0]])),
        accepted("zero arms only", lambda: bandit(actions=[[0.0, 0.0]])),
        accepted("quiet", lambda: bandit(noise_std=1e-70)),
        accepted("loud", lambda: bandit(noise_std=1e70)),
        accepted("an integer as noise", lambda: bandit(noise_std=2)),
        accepted("an array of no dimensions", lambda: bandit(noise_std=np.array(0.3))),
        accepted("numpy noise", lambda: bandit(noise_std=np.float32(0.3))),
        accepted("levels", lambda: bandit(noise_std=[1.0, 2.0, 3.0])),
        accepted("a name in Greek", lambda: bandit(name="θ")),
        accepted("a name of numpy", lambda: bandit(name=np.str_("a"))),
        accepted("a seed of 400 digits", lambda: sl.problems.unit_sphere(seed=10**400)),
    ]


ATTACKS: list[Attack] = [*_arrays(), *_noises(), *_names(), *_sizes(), *_edges()]
