"""What an experiment may cost the others: sizes and work by arithmetic, before anything is built.

Memory is in bytes.  Work is in operations, of which a core does about 10^9 per second; the factors
below were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sightline.policies.base import PROBABILITY_DRAWS, Policy
from sightline.service.bodies import Specification
from sightline.service.problems import Problem
from sightline.service.settings import Settings
from sightline.sessions.state import LiveState
from sightline.validation import shown, size_text

__all__ = [
    "Shape",
    "Work",
    "check_count",
    "check_open",
    "check_shape",
    "shape_of",
    "size_held",
    "state_size",
    "work_of",
]

#: Bytes of an open decision, and of each of its features, where these are kept.
_OPEN, _OPEN_FEATURE = 600, 32
#: Bytes of the names of an option, and of what is kept of it beside its features.
_OPTION = 1000
#: Tables of all features, and square ones, that a state holds or needs while it is made.
_TABLES, _SQUARES = 16, 40
#: The same for options that are new in every round: sets that have come are kept.
_STREAM_TABLES = 160
#: Decisions that have been made and have no reward yet, which a batch takes into account.
_MOST_OPEN = 1000
#: Operations of a decision beside what its policy computes.
_DECISION = 40_000
#: Operations for every option that an answer and its entry in the log name with a probability.
_NAMED = 1000
#: Operations for every sample of a posterior, beside those for its options and features.
_SAMPLE = 15
#: Policies that solve a program for their allocation by Newton's method: times k d^4.
_PROGRAMS = {"E4": 8, "ExploreThenAllocate": 8, "OAM": 8, "OSSB": 8}


class Shape(NamedTuple):
    """How many options there are, with how many features each, and whether they are new."""

    options: int
    features: int
    stream: bool = False


class Work(NamedTuple):
    """Operations of a request that makes decisions: once, and for each of them."""

    once: int
    each: int


def shape_of(wanted: Specification) -> Shape:
    """Find the shape of an experiment without making its options."""
    if wanted.factors is not None:
        return _shape_of_factors(wanted.factors, wanted.interactions)
    if wanted.contexts is not None:
        blocks = list(wanted.contexts.values())
        k = sum(map(len, blocks))
        named = all(not isinstance(block, Mapping) for block in blocks)
        return Shape(k, k if named else max((_features(block) for block in blocks), default=0))
    if wanted.duel is not None:
        n = len(wanted.duel)
        return Shape(n * (n + 1) // 2, _features(wanted.duel))
    if wanted.stream is not None:
        return Shape(wanted.stream.most, len(wanted.stream.features), True)
    return Shape(len(wanted.options or ()), _features(wanted.options or ()))


def _features(options: Mapping[str, Sequence[float]] | Sequence[str]) -> int:
    """Features of an option; those with names only have one for each of them."""
    if isinstance(options, Mapping):
        return max(map(len, options.values()), default=0)
    return len(options)


def _shape_of_factors(factors: Mapping[str, Sequence[Any]], interactions: Any) -> Shape:
    levels = {factor: len(values) for factor, values in factors.items()}
    columns = [max(count - 1, 0) for count in levels.values()]
    d = 1 + sum(columns)
    if interactions == "pairs":
        d += (sum(columns) ** 2 - sum(count * count for count in columns)) // 2
    elif interactions != "none":
        for term in interactions:
            d += math.prod(max(levels.get(factor, 1) - 1, 0) for factor in term)
    # of many factors the product has more digits than are ever written
    k = math.prod(levels.values()) if len(levels) <= 60 else 2**60
    return Shape(k, d)


def state_size(shape: Shape, policy: Policy) -> int:
    """Bytes that an experiment takes in memory while it is made, about."""
    k, d, stream = shape
    tables = _STREAM_TABLES if stream else _TABLES
    size = 8 * (tables * k * d + _SQUARES * d * d) + _OPTION * k
    return size + 8 * int(getattr(policy, "samples", 0)) * d


def size_held(live: LiveState) -> int:
    """Bytes that an experiment takes in memory, about."""
    k, d = live.options.features.shape
    stream = live.options.stream
    each = _OPEN + (_OPEN_FEATURE * int(d) if stream else 0)
    return state_size(Shape(k, d, stream), live.policy) + each * len(live.decisions.open)


def work_of(shape: Shape, policy: Policy, floor: float = 0.0) -> Work:
    """Operations of decisions, about."""
    k, d, _ = shape
    name = type(policy).__name__
    each = _DECISION + (k + d) * d * d + _PROGRAMS.get(name, 0) * k * d**4
    once = 0
    if name == "IDS":
        each += k * k * d // 4
    if hasattr(policy, "samples"):
        each += int(policy.samples) * (_SAMPLE + k * d // 5)
    if policy.probability_by_draws:
        once = (
            PROBABILITY_DRAWS * (d * d + k * d) * max(int(getattr(policy, "redraws", 1)) // 100, 1)
        )
    if policy.probability_by_draws or floor > 0.0:
        each += _NAMED * k
    return Work(once, each)


def check_shape(shape: Shape, policy: Policy, floor: float, settings: Settings) -> None:
    """Refuse an experiment that is too large for this service.

    Raises
    ------
    Problem
        With the numbers, and what is allowed.
    """
    k, d, _ = shape
    if k > settings.most_options:
        raise Problem(
            422, "invalid", f"there may be {settings.most_options} options at most, got {shown(k)}"
        )
    what = f"{k} options with {d} features each and {type(policy).__name__}"
    size = state_size(shape, policy)
    if size > settings.experiment_memory:
        raise Problem(
            422,
            "too-large",
            f"{what} would take {size_text(size)} of memory, an experiment may take "
            f"{size_text(settings.experiment_memory)} at most",
        )
    work = sum(work_of(shape, policy, floor))
    if work > settings.most_work:
        raise Problem(
            422,
            "too-large",
            f"{what} would take {work:,} operations for a decision, this service allows "
            f"{settings.most_work:,}: fewer options, fewer features or another policy take less",
        )


def check_count(live: LiveState, count: int, settings: Settings) -> None:
    """Refuse more decisions in one request than may keep others waiting.

    Raises
    ------
    Problem
        With the largest count that is allowed.
    """
    k, d = live.options.features.shape
    once, each = work_of(Shape(k, d, live.options.stream), live.policy, live.floor)
    if count > 1 and not live.policy.randomises and live.floor == 0.0:
        # a batch begins with the decisions that are open
        once += each * min(len(live.decisions.open), _MOST_OPEN)
    work = once + count * each
    if count > 1 and work > settings.most_work:
        most = max((settings.most_work - once) // each, 1)
        raise Problem(
            422,
            "too-large",
            f"count={count} among {k} options with {d} features each takes {work:,} operations, "
            f"one request may take {settings.most_work:,}: count must be {most} at most",
        )


def check_open(live: LiveState, count: int, settings: Settings) -> None:
    """Refuse decisions while too many wait for their rewards.

    Raises
    ------
    Problem
        429: rewards, or the end of their windows, make room.
    """
    kept = live.options.features.shape[1] if live.options.stream else 0
    fitting = settings.experiment_memory // (_OPEN + _OPEN_FEATURE * kept)
    most = min(settings.most_open, fitting)
    waiting = len(live.decisions.open)
    if waiting + count > most:
        raise Problem(
            429,
            "too-many-open",
            f"{waiting} decisions of this experiment wait for their rewards and {count} more are "
            f"asked for, {most} may be open: tell their rewards, or that none will come",
            {"Retry-After": "10"},
        )
