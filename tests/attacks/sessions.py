"""Live use: what a session is made of, and what it is told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import sightline as sl
from tests.attacks.attack import Attack, accepted, each, refused
from tests.attacks.problems import FEATURES, LEVELS
from tests.attacks.values import BEYOND, NO_INTEGERS, NO_NUMBERS
from tests.own_policies import EpsilonGreedy

__all__ = ["ATTACKS"]

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def session(**changes: Any) -> sl.Session:
    return sl.Session(**{"options": ARMS, "policy": EpsilonGreedy(), "noise_std": 1.0} | changes)  # type: ignore[arg-type]


_OPEN = object()


def tell(reward: Any, id_: Any = _OPEN) -> None:
    """Tell a session with one open decision; it must not change by what it refuses."""
    asked = session()
    decision = asked.ask()
    try:
        asked.tell(decision if id_ is _OPEN else id_, reward)
    except Exception:
        status = asked.status()
        assert (status.pending, status.explorations) == (1, 0)
        raise


def amend(reward: Any) -> None:
    """Amend a reward; what was told must stay if that is refused."""
    asked = session(policy=sl.LinUCB())
    decision = asked.ask()
    asked.tell(decision, 0.5)
    before = asked.estimates()
    try:
        asked.amend(decision, reward)
    except Exception:
        after = asked.estimates()
        assert before is not None
        assert after is not None
        assert np.array_equal(before.means, after.means)
        raise


def _tell_id(id_: Any) -> None:
    tell(0.5, id_)


KNOWN: dict[str, tuple[Any, str]] = {
    "unknown": (99, "99"),
    "zero": (0, "0"),
    "negative": (-1, "-1"),
    "text": ("1", "'1'"),
    "none": (None, "None"),
    "float": (1.5, "1.5"),
    "nan": (math.nan, "nan"),
    "list": ([1], "[1]"),
}

UNPRINTED: dict[str, tuple[Any, str]] = {
    "true": (True, "True"),
    "matrix": (np.eye(40), "array"),
    "beyond 64 bits": (10**30, "10**30"),
    "beyond floats": (10**400, "10**400"),
    "beyond what is printed": (10**5000, "10**5000"),
}


def _constructor() -> list[Attack]:
    return [
        *each(
            "features",
            lambda value: session(options=value),
            FEATURES,
            "features",
            without=["generator", "dictionary"],  # which can be used once only, and names options
        ),
        *each(
            "noise_std",
            lambda value: session(noise_std=value),
            NO_NUMBERS | BEYOND,
            "noise_std",
            without=["list", "dictionary", "none"],  # None is 1
        ),
        *each("noise levels", lambda value: session(noise_std=value), LEVELS, "noise_std"),
        *each("seed", lambda value: session(seed=value), NO_INTEGERS, "seed"),
        refused("seed: negative", lambda: session(seed=-3), "seed", "-3"),
        refused("policy: text", lambda: session(policy="IDS"), "policy", "'IDS'"),
        refused("policy: class", lambda: session(policy=sl.IDS), "policy", "IDS"),
        refused(
            "policy: array",
            lambda: session(policy=np.eye(40)),
            "policy",
            "array",
        ),
        accepted("policy: none, which is the default", lambda: session(policy=None)),
        accepted("a seed of 400 digits", lambda: session(seed=10**400)),
    ]


def _ask_in(context: Any) -> object:
    options = sl.contexts({"mobile": ARMS, "desktop": ARMS})
    return sl.Session(options, sl.LinUCB()).ask(context=context)


def _ask_without(context: Any) -> object:
    return session().ask(context=context)


def _contexts() -> list[Attack]:
    return [
        *each(
            "features in a context",
            lambda value: sl.contexts({"mobile": value}),
            FEATURES,
            "features",
            without=["generator", "dictionary"],
        ),
        *each("contexts", sl.contexts, NO_NUMBERS, "contexts", without=["dictionary", "list"]),
        *each(
            "context",
            _ask_in,
            NO_INTEGERS,
            "context",
            without=["text", "none", "huge negative"],
            kernels=True,
        ),
        refused(
            "context: unknown",
            lambda: _ask_in("x"),
            "context",
            "'x'",
            raises=KeyError,
            kernels=True,
        ),
        refused(
            "context: beyond",
            lambda: _ask_in(10**30),
            "context",
            "10**30",
            raises=KeyError,
            kernels=True,
        ),
        refused("context: where there is none", lambda: _ask_without(np.eye(40)), "array"),
    ]


def _ask_among(options: Any) -> object:
    return sl.Session(sl.stream(2, 5), sl.LinUCB()).ask(options=options)


def _streams() -> list[Attack]:
    return [
        *each(
            "new options",
            _ask_among,
            FEATURES,
            "options",
            without=["generator", "none"],
            kernels=True,
        ),
        *each("dimension", lambda value: sl.stream(value, 5), NO_INTEGERS, "dimension"),
        *each("max_arms", lambda value: sl.stream(2, value), NO_INTEGERS, "max_arms"),
        refused("new options: too many", lambda: sl.stream(10**6, 10**9), "memory"),
    ]


def _tell_winner(told: Any) -> None:
    """Tell a duel with one open decision; it must not change by what it refuses."""
    asked = session(options=sl.duel({"A": [1.0, 0.0], "B": [0.0, 1.0]}), policy=sl.IDS())
    decision = asked.ask()
    assert decision.pair == ("A", "B")
    try:
        asked.tell(decision, told)
    except Exception:
        assert asked.status().pending == 1
        raise


def _games() -> list[Attack]:
    return [
        *each(
            "features of a duel", sl.duel, FEATURES, "features", without=["generator", "dictionary"]
        ),
        *each(
            "rewards of a game",
            lambda value: sl.game(value, ARMS),
            FEATURES,
            "rewards",
            without=["generator"],
        ),
        *each(
            "observations",
            lambda value: sl.game([[1.0, 0.0]], value),
            FEATURES,
            "observations",
            without=["generator", "missing of pandas"],
        ),
        *each("winner", _tell_winner, NO_NUMBERS, "'A' or 'B'", kernels=True),
        refused("winner: another", lambda: _tell_winner("C"), "'A' or 'B'", "'C'", kernels=True),
        refused("winner: 2", lambda: _tell_winner(2), "'A' or 'B'", "2", kernels=True),
        accepted("winner: a name", lambda: _tell_winner("B"), kernels=True),
    ]


def _tell() -> list[Attack]:
    return [
        *each("reward", tell, NO_NUMBERS, "reward", without=["true", "numpy true"]),
        refused("reward: 1e300", lambda: tell(1e300), "reward", "1e+300"),
        refused("reward: -1e300", lambda: tell(-1e300), "reward", "-1e+300"),
        refused("reward: 10**100", lambda: tell(10**100), "reward", "1e+100"),
        refused("reward: array", lambda: tell(np.ones(3)), "reward", "array"),
        *each("amended reward", amend, NO_NUMBERS, "reward", without=["true", "numpy true"]),
        refused("amended reward: 1e300", lambda: amend(1e300), "reward", "1e+300"),
        accepted("amended reward", lambda: amend(0.75)),
        accepted("reward: the largest", lambda: tell(1e70)),
        accepted("reward: zero", lambda: tell(0)),
        accepted("reward: the least float", lambda: tell(5e-324)),
        accepted("reward: numpy", lambda: tell(np.float32(0.5))),
        refused("id: numpy", lambda: tell(0.5, np.int64(1)), "id", "1", raises=KeyError),
        *each("id", _tell_id, KNOWN, "id", raises=KeyError),
        *each("id", _tell_id, UNPRINTED, "id", raises=KeyError),
    ]


def _others() -> list[Attack]:
    return [
        *each(
            "give_up",
            lambda value: session().give_up(before=value),
            NO_INTEGERS,
            "before",
            without=["none"],  # then a decision is missing
        ),
        refused("give_up: nothing", lambda: session().give_up(), "decision or before="),
        refused("give_up: zero", lambda: session().give_up(before=0), "before", "0"),
        refused("save: none", lambda: session().save(None), "path", "None"),  # type: ignore[arg-type]
        refused("save: number", lambda: session().save(5), "path", "5"),  # type: ignore[arg-type]
        refused("save: list", lambda: session().save(["x"]), "path", "['x']"),  # type: ignore[arg-type]
        refused("save: empty", lambda: session().save(""), "path", "''"),
        refused("save: no text", lambda: session().save("a\0b"), "path", "'a\\x00b'"),
        refused(
            "save: nowhere",
            lambda: session().save("/nothing/here"),
            "/nothing/here",
            raises=OSError,
        ),
        refused("load: none", lambda: sl.Session.load(None), "path", "None"),  # type: ignore[arg-type]
        refused("load: number", lambda: sl.Session.load(999), "path", "999"),  # type: ignore[arg-type]
        refused("load: empty", lambda: sl.Session.load(""), "path", "''"),
        refused(
            "load: nothing there",
            lambda: sl.Session.load("/nothing/here"),
            "/nothing/here",
            raises=OSError,
        ),
    ]


ATTACKS: list[Attack] = [
    *_constructor(),
    *_contexts(),
    *_streams(),
    *_games(),
    *_tell(),
    *_others(),
]
