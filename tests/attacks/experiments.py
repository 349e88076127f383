"""Experiments and their results: members, names, sizes, files, reports."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import sightline as sl
from tests.attacks.attack import Attack, accepted, each, refused
from tests.attacks.values import NO_INTEGERS
from tests.own_policies import EpsilonGreedy, Stubborn

__all__ = ["ATTACKS", "finished", "small"]

WORLD = sl.problems.large_gaps()


def small(**changes: Any) -> sl.Experiment:
    """Two runs of a policy in plain Python, for which nothing is compiled."""
    given: dict[str, Any] = {
        "problems": {"gaps": WORLD},
        "policies": {"lazy": Stubborn(0), "greedy": EpsilonGreedy()},
        "horizon": 20,
        "replications": 2,
    }
    return sl.Experiment(**given | changes)


def finished(store: Path | None = None) -> sl.types.Results:
    """Run it, in this process."""
    with ThreadPoolExecutor(1) as executor:
        return sl.run(small(), store, executor, progress=False)


@functools.cache
def _results() -> sl.types.Results:
    return finished()


MEMBERS: dict[str, tuple[Any, str]] = {
    "none": (None, "None"),
    "number": (5, "5"),
    "text": ("large_gaps", "'large_gaps'"),
    "empty list": ([], "empty"),
    "empty mapping": ({}, "empty"),
    "texts": (["large_gaps"], "'large_gaps'"),
    "a class": ([sl.LinearBandit], "LinearBandit"),
    "a set of numbers": ({1}, "1"),
}


def _members() -> list[Attack]:
    attacks = []
    for field, member in (("problems", WORLD), ("policies", sl.IDS())):
        values = MEMBERS | {
            "one member": (member, type(member).__name__),
            "twice": ([member, member], "name"),
            "endless": (itertools.repeat(member), "entries"),
            "name 5": ({5: member}, "5"),
            "name None": ({None: member}, "None"),
            "name of bytes": ({b"x": member}, "b'x'"),
            "empty name": ({"": member}, "''"),
            "blank name": ({" ": member}, "' '"),
            "name of two lines": ({"a\nb": member}, "'a\\nb'"),
            "tuple as name": ({("a", "b"): member}, "('a', 'b')"),
        }
        attacks += each(field, functools.partial(_with, field), values, field)
    return attacks


def _with(field: str, value: Any) -> object:
    return small(**{field: value})


def _numbers() -> list[Attack]:
    attacks = []
    for field in ("horizon", "replications", "seed"):
        attacks += each(field, functools.partial(_with, field), NO_INTEGERS, field)
    return [
        *attacks,
        refused("replications: 0", lambda: small(replications=0), "replications", "0"),
        refused("replications: 10**12", lambda: small(replications=10**12), "replications", "TB"),
        refused("replications: 10**400", lambda: small(replications=10**400), "replications"),
        refused(
            "replications: 10**12 in a run",
            lambda: sl.run(small(replications=10**12)),
            "replications",
        ),
        refused("horizon: 10**5000", lambda: small(horizon=10**5000), "horizon", "10**5000"),
        refused(
            "horizon: too far",
            lambda: small(policies=[sl.LinUCB()], horizon=2**53),
            "horizon",
            "10**16",
        ),
        refused("seed: negative", lambda: small(seed=-1), "seed", "-1"),
        refused("checkpoints: 5", lambda: small(checkpoints=5), "checkpoints", "5"),
        refused("checkpoints: text", lambda: small(checkpoints="all"), "checkpoints", "'all'"),
        refused("checkpoints: falling", lambda: small(checkpoints=[5, 3]), "checkpoints", "3"),
        refused(
            "checkpoints: endless", lambda: small(checkpoints=itertools.count(1)), "checkpoints"
        ),
        refused(
            "results of 10 TB",
            lambda: small(
                replications=10**6, horizon=10**6, checkpoints=range(1, 10**6), policies=[sl.IDS()]
            ),
            "TB",
        ),
        accepted("a seed of 400 digits", lambda: small(seed=10**400)),
        accepted("numpy integers", lambda: small(replications=np.int64(2), seed=np.int32(1))),
        accepted("any horizon", lambda: small(policies=[sl.IDS()], horizon=10**1000)),
        accepted("a thousand replications", lambda: small(replications=1000).grid),
    ]


def _runs() -> list[Attack]:
    return [
        refused("run of text", lambda: sl.run("eoo"), "experiment", "'eoo'"),  # type: ignore[arg-type]
        refused("run of a file", lambda: sl.run(Path("x.toml")), "experiment", "x.toml"),  # type: ignore[arg-type]
        refused("store: number", lambda: sl.run(small(), 5), "store", "5"),  # type: ignore[arg-type]
        refused("store: list", lambda: sl.run(small(), ["x"]), "store", "['x']"),  # type: ignore[arg-type]
        refused("executor: text", lambda: sl.run(small(), None, "x"), "executor", "'x'"),  # type: ignore[arg-type]
        refused("executor: number", lambda: sl.run(small(), None, 4), "executor", "4"),  # type: ignore[arg-type]
        refused(
            "executor: class",
            lambda: sl.run(small(), None, ThreadPoolExecutor),  # type: ignore[arg-type]
            "executor",
        ),
        refused("progress: text", lambda: sl.run(small(), progress="no"), "progress", "'no'"),  # type: ignore[arg-type]
        refused("load: number", lambda: sl.types.Results.load(5), "store", "5"),  # type: ignore[arg-type]
        refused("load: none", lambda: sl.types.Results.load(None), "store", "None"),  # type: ignore[arg-type]
        refused(
            "load: nothing there", lambda: sl.types.Results.load("/nothing/here"), "manifest.json"
        ),
        refused("experiment from a number", lambda: sl.Experiment.load(5), "path", "5"),  # type: ignore[arg-type]
        refused("experiment to a number", lambda: small().save(5), "path", "5"),  # type: ignore[arg-type]
        refused("text of none", lambda: sl.Experiment.from_toml(None), "TOML", "None"),  # type: ignore[arg-type]
    ]


REPORTS: dict[str, tuple[Callable[[sl.types.Results], object], tuple[str, ...]]] = {
    "summary: a number": (lambda r: r.summary(5), ("checkpoints", "5")),  # type: ignore[arg-type]
    "summary: unknown word": (lambda r: r.summary("first"), ("checkpoints", "'first'")),
    "summary: no checkpoint": (lambda r: r.summary([19]), ("19", "checkpoint")),
    "summary: floats": (lambda r: r.summary([20.0]), ("checkpoints", "20.0")),  # type: ignore[list-item]
    "summary: empty": (lambda r: r.summary([]), ("checkpoints", "empty")),
    "summary: endless": (lambda r: r.summary(itertools.repeat(20)), ("checkpoints",)),
    "summary: none": (lambda r: r.summary(None), ("checkpoints", "None")),  # type: ignore[arg-type]
    "quantiles: a number": (lambda r: r.summary(quantiles=0.5), ("quantiles", "0.5")),  # type: ignore[arg-type]
    "quantiles: texts": (lambda r: r.summary(quantiles=["0.5"]), ("quantiles", "'0.5'")),  # type: ignore[list-item]
    "quantiles: text": (lambda r: r.summary(quantiles="0.5"), ("quantiles", "'0.5'")),  # type: ignore[arg-type]
    "quantiles: beyond 1": (lambda r: r.summary(quantiles=[2.0]), ("quantiles", "2.0")),
    "quantiles: negative": (lambda r: r.summary(quantiles=[-0.1]), ("quantiles", "-0.1")),
    "quantiles: nan": (lambda r: r.summary(quantiles=[math.nan]), ("quantiles", "nan")),
    "quantiles: endless": (lambda r: r.summary(quantiles=itertools.repeat(0.5)), ("quantiles",)),
    "compare: numbers": (lambda r: r.compare(0, 1), ("policy", "0")),  # type: ignore[arg-type]
    "compare: unknown": (lambda r: r.compare("lazy", "greed"), ("policy", "'greed'")),
    "compare: list": (lambda r: r.compare(["lazy"], "lazy"), ("policy", "['lazy']")),  # type: ignore[arg-type]
    "regret: unknown": (lambda r: r.regret("gap", "lazy"), ("problem", "'gap'")),
    "regret: array": (lambda r: r.regret(np.array(["gaps"]), "lazy"), ("problem", "array")),  # type: ignore[arg-type]
    "curves: none": (lambda r: r.curves(None), ("problem", "None")),  # type: ignore[arg-type]
    "slopes: text": (lambda r: r.slopes("late"), ("since", "'late'")),  # type: ignore[arg-type]
    "slopes: float": (lambda r: r.slopes(2.5), ("since", "2.5")),  # type: ignore[arg-type]
    "slopes: too late": (lambda r: r.slopes(20), ("20",)),
    "slopes: 10**5000": (lambda r: r.slopes(10**5000), ("10**5000",)),
    "pulls: a number": (lambda r: r.pulls(5), ("checkpoints", "5")),  # type: ignore[arg-type]
    "plot: bounds": (lambda r: r.plot(bounds=5), ("bounds", "5")),  # type: ignore[arg-type]
    "plot: bounds of none": (lambda r: r.plot(bounds={"x": 1.0}), ("bounds", "'x'")),
    "plot: bound of text": (lambda r: r.plot(bounds={"gaps": "2"}), ("bounds", "'2'")),  # type: ignore[dict-item]
    "plot: bound of nan": (lambda r: r.plot(bounds={"gaps": math.nan}), ("bounds", "nan")),
    "plot: early": (lambda r: r.plot(bounds={}, early=0.5), ("early", "0.5")),  # type: ignore[arg-type]
    "plot: early 0": (lambda r: r.plot(bounds={}, early=0), ("early", "0")),
    "plot: path": (lambda r: r.plot(5, bounds={}), ("path", "5")),  # type: ignore[arg-type]
    "plot: format": (lambda r: r.plot("figure.xyz", bounds={}), ("format", "figure.xyz")),
}


def _reports() -> list[Attack]:
    def use(call: Callable[[sl.types.Results], object]) -> object:
        return call(_results())

    return [
        refused(name, functools.partial(use, call), *texts)
        for name, (call, texts) in REPORTS.items()
    ]


DEEP = 100_000
GOOD = small(policies=[sl.IDS()]).to_toml()
TEXTS: dict[str, tuple[str, str]] = {
    "empty": ("", "horizon is missing"),
    "no TOML": ("horizon = ", "TOML"),
    "nested too deep": (f"horizon = {'[' * DEEP}{']' * DEEP}", "TOML"),
    "twice": (f"horizon = 5\n{GOOD}", "TOML"),
    "unknown key": (f"horizn = 5\n{GOOD}", "'horizon'"),
    "horizon of text": (GOOD.replace("horizon = 20", 'horizon = "many"'), "'many'"),
    "horizon of a date": (GOOD.replace("horizon = 20", "horizon = 2024-02-29"), "date"),
    "horizon of nan": (GOOD.replace("horizon = 20", "horizon = nan"), "nan"),
    "horizon beyond": (GOOD.replace("horizon = 20", 'horizon = "10^5000"'), "10^5000"),
    "replications": (GOOD.replace("replications = 2", "replications = 1000000000000"), "TB"),
    "replications of text": (GOOD.replace("replications = 2", 'replications = "2"'), "'2'"),
    "seed of text": (GOOD.replace("seed = 0", 'seed = "x"'), "'x'"),
    "seed of a float": (GOOD.replace("seed = 0", "seed = 1.5"), "1.5"),
    "checkpoints of a number": (f"checkpoints = 5\n{GOOD}", "checkpoints must be a list"),
    "checkpoints of texts": (f'checkpoints = ["five"]\n{GOOD}', "'five'"),
    "problems of a number": ("horizon = 20\nreplications = 2\nproblems = 5\npolicies = 5", "5"),
    "a problem of a number": (
        "horizon = 20\nreplications = 2\nproblems.a = 5\npolicies.b = 5",
        "problems.a",
    ),
    "unknown type": (GOOD.replace('type = "IDS"', 'type = "IDSS"'), "'IDSS'"),
    "type of a number": (GOOD.replace('type = "IDS"', "type = 5"), "5"),
    "type of a list": (GOOD.replace('type = "IDS"', 'type = ["IDS"]'), "['IDS']"),
    "no type": (GOOD.replace('type = "IDS"', ""), "None"),
    "a part of no type": (
        GOOD.replace('confidence = { type = "LogDet", ', "confidence = { "),
        "type",
    ),
    "a policy as a part": (
        GOOD.replace("regulariser = 1.0", 'regulariser = { type = "IDS" }'),
        "regulariser",
    ),
    "a number as text": (GOOD.replace("regulariser = 1.0", 'regulariser = "1.0"'), "'1.0'"),
    "a number too large": (GOOD.replace("regulariser = 1.0", "regulariser = 1e300"), "1e+300"),
    "integers beyond 64 bits": (
        GOOD.replace("regulariser = 1.0", f"regulariser = {10**400}"),
        "regulariser",
    ),
    "unknown field": (GOOD.replace("sampling =", "samplin ="), "'sampling'"),
    "noise_variance too large": (
        GOOD.replace("noise_variance = 1.0", "noise_variance = 1e300"),
        "noise_variance",
    ),
    "no arms": (
        GOOD.replace('type = "large_gaps"', 'type = "LinearBandit"').replace(
            "noise_variance = 1.0", "theta = [1.0]"
        ),
        "actions",
    ),
    "arms of texts": (
        GOOD.replace('type = "large_gaps"', 'type = "LinearBandit"').replace(
            "noise_variance = 1.0", 'actions = [["1"]]\ntheta = [1.0]'
        ),
        "'1'",
    ),
    "noise of no table": (
        GOOD.replace('type = "large_gaps"', 'type = "LinearBandit"').replace(
            "noise_variance = 1.0", 'actions = [[1.0]]\ntheta = [1.0]\nnoise = "loud"'
        ),
        "'loud'",
    ),
    "noise of unknown type": (
        GOOD.replace('type = "large_gaps"', 'type = "LinearBandit"').replace(
            "noise_variance = 1.0", 'actions = [[1.0]]\ntheta = [1.0]\nnoise = { type = "Loud" }'
        ),
        "'Loud'",
    ),
    "name of a number": (
        GOOD.replace('type = "large_gaps"', 'type = "LinearBandit"').replace(
            "noise_variance = 1.0", "actions = [[1.0]]\ntheta = [1.0]\nname = 5"
        ),
        "name",
    ),
}


def _files() -> list[Attack]:
    def load(content: bytes, directory: Path) -> object:
        path = directory / "file.toml"
        path.write_bytes(content)
        return sl.Experiment.load(path)

    attacks = [
        Attack(f"file: {name}", functools.partial(load, written.encode()), ("file.toml", said))
        for name, (written, said) in TEXTS.items()
    ]
    return [
        *attacks,
        Attack("file: not UTF-8", functools.partial(load, b"\xff\xfe"), ("file.toml", "utf-8")),
        Attack(
            "file: nothing there",
            lambda directory: sl.Experiment.load(directory / "nothing.toml"),
            ("nothing.toml",),
            OSError,
        ),
        Attack("file: a directory", sl.Experiment.load, (os.sep,), OSError),
        Attack("file: as written", functools.partial(load, GOOD.encode()), None),
    ]


ATTACKS: list[Attack] = [*_members(), *_numbers(), *_runs(), *_reports(), *_files()]
