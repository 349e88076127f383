"""Limits on the size and the work of an experiment, checked by arithmetic before it is built.

Memory is in bytes.  Work is in operations, of which a core executes about 10^9 per second; the
factors below are measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sightline.policies.base import PROBABILITY_DRAWS, Policy
from sightline.service.errors import ApiError, invalid
from sightline.service.schemas import Specification
from sightline.service.settings import Settings
from sightline.sessions.attributes import MOST_ATTRIBUTES
from sightline.sessions.state import LiveState
from sightline.validation import shown, size_text

#: Bytes of an open decision, and of each of its features if they are kept.
_OPEN, _OPEN_FEATURE = 600, 32
#: Bytes of the attributes of an open decision, and of each of them.
_ATTRIBUTES, _ATTRIBUTE = 1500, 150
#: Bytes of an option beside its features: its names and statistics.
_OPTION = 1000
#: Matrices of all features, and square ones, that a state holds or needs while it is built.
_TABLES, _SQUARES = 16, 40
#: Matrices of all features if options are new in every round: earlier sets are kept.
_STREAM_TABLES = 160
#: Open decisions that a batch takes into account.
_MAX_OPEN = 1000
#: Operations of a decision beside those of its policy.
_DECISION = 40_000
#: Operations per option with a probability, in a response and in the log.
_NAMED = 1000
#: Operations per posterior sample, beside those for options and features.
_SAMPLE = 15
#: Policies that solve their allocation program by Newton's method: multiples of k d^4.
_PROGRAMS = {"E4": 8, "ExploreThenAllocate": 8, "OAM": 8, "OSSB": 8}


class Shape(NamedTuple):
    """Numbers of options and features, and whether options are new in every round."""

    options: int
    features: int
    stream: bool = False


class Work(NamedTuple):
    """Operations of a request: once, and per decision."""

    once: int
    each: int


def shape_of(wanted: Specification) -> Shape:
    """Compute the shape of an experiment without building its options."""
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
        return Shape(wanted.stream.max_arms, len(wanted.stream.features), True)
    return Shape(len(wanted.options or ()), _features(wanted.options or ()))


def _features(options: Mapping[str, Sequence[float]] | Sequence[str]) -> int:
    """Features per option; options without features get an indicator each."""
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
    """Approximate bytes of memory of an experiment while it is built."""
    k, d, stream = shape
    tables = _STREAM_TABLES if stream else _TABLES
    size = 8 * (tables * k * d + _SQUARES * d * d) + _OPTION * k
    return size + 8 * int(getattr(policy, "samples", 0)) * d


def _shape(live: LiveState) -> Shape:
    k, d = live.options.features.shape
    return Shape(k, d, live.options.stream)


def _open_size(live: LiveState) -> int:
    """Bytes of an open decision; it keeps features only if options are new in every round."""
    shape, names = _shape(live), len(live.decisions.attributes)
    recorded = _ATTRIBUTES + _ATTRIBUTE * min(names, MOST_ATTRIBUTES) if names else 0
    return _OPEN + recorded + (_OPEN_FEATURE * shape.features if shape.stream else 0)


def memory_of(live: LiveState) -> int:
    """Approximate bytes of memory of an experiment."""
    shape = _shape(live)
    size = state_size(shape, live.policy) + live.table.history.nbytes
    return size + _open_size(live) * len(live.decisions.open)


def work_of(shape: Shape, policy: Policy, min_probability: float = 0.0) -> Work:
    """Approximate operations of decisions."""
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
    if policy.probability_by_draws or min_probability > 0.0:
        each += _NAMED * k
    return Work(once, each)


def _too_large(detail: str) -> ApiError:
    return ApiError(422, "too-large", detail)


def check_shape(shape: Shape, policy: Policy, min_probability: float, settings: Settings) -> None:
    """Refuse an experiment that is too large: ApiError with the numbers and the limit."""
    k, d, _ = shape
    if k > settings.most_options:
        raise invalid(f"there may be {settings.most_options} options at most, got {shown(k)}")
    what = f"{k} options with {d} features each and {type(policy).__name__}"
    size = state_size(shape, policy)
    if size > settings.experiment_memory:
        raise _too_large(
            f"{what} would take {size_text(size)} of memory, an experiment may take "
            f"{size_text(settings.experiment_memory)} at most"
        )
    work = sum(work_of(shape, policy, min_probability))
    if work > settings.most_work:
        raise _too_large(
            f"{what} would take {work:,} operations per decision, this service allows "
            f"{settings.most_work:,}: fewer options, fewer features or another policy take less"
        )


def check_count(live: LiveState, count: int, settings: Settings) -> None:
    """Refuse more decisions than other requests can wait for, or than may be open: ApiError."""
    shape = _shape(live)
    once, each = work_of(shape, live.policy, live.min_probability)
    if count > 1 and not live.policy.randomises and live.min_probability == 0.0:
        # a batch starts from the open decisions
        once += each * min(len(live.decisions.open), _MAX_OPEN)
    work = once + count * each
    if count > 1 and work > settings.most_work:
        most = max((settings.most_work - once) // each, 1)
        raise _too_large(
            f"count={count} among {shape.options} options with {shape.features} features each "
            f"takes {work:,} operations, one request may take {settings.most_work:,}: count must "
            f"be {most} at most"
        )
    most = min(settings.most_open, settings.experiment_memory // _open_size(live))
    waiting = len(live.decisions.open)
    if waiting + count > most:
        raise ApiError(
            429,
            "too-many-open",
            f"{waiting} decisions of this experiment wait for their rewards and {count} more are "
            f"asked for, {most} may be open: report their rewards, or that none will come",
            {"Retry-After": "10"},
        )
