"""Outcomes that come late: when the outcome of a round is told.

A delay of j rounds means: told after j more rounds were played.  The outcome of round t with delay
0 is known at round t + 1, as without delays.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from sightline.core.clock import FAR
from sightline.jit import compiled, generic
from sightline.validation import integer, number, shown

__all__ = ["Batches", "ConstantDelay", "GeometricDelay", "delay_text", "told_after", "valid_delay"]


class ConstantDelay(NamedTuple):
    """Every outcome comes after the same number of rounds."""

    rounds: int


class GeometricDelay(NamedTuple):
    """Delays are independent and geometric, from 0, with this mean."""

    mean: float


class Batches(NamedTuple):
    """Outcomes come together at the end of every so many rounds."""

    size: int


@generic
def told_after(delay: Any, t: int, rng: np.random.Generator) -> int:
    """Round after which the outcome of round t is told."""
    raise TypeError(f"{type(delay).__name__} is no delay")


@told_after.register(ConstantDelay)
@compiled
def _after_some(delay: ConstantDelay, t: int, rng: np.random.Generator) -> int:
    return t + delay.rounds


@told_after.register(GeometricDelay)
@compiled
def _after_chance(delay: GeometricDelay, t: int, rng: np.random.Generator) -> int:
    waiting = -np.log1p(-rng.random()) / np.log1p(1.0 / delay.mean)  # whose floor is geometric
    return t + int(min(waiting, 1e15))


@told_after.register(Batches)
@compiled
def _after_batch(delay: Batches, t: int, rng: np.random.Generator) -> int:
    return (t + delay.size - 1) // delay.size * delay.size


def valid_delay(delay: object) -> ConstantDelay | GeometricDelay | Batches | None:
    """Read a delay: None, a number of rounds, or a text such as ``"geometric:100"``."""
    if delay is None:
        return None
    if not isinstance(delay, str):
        return ConstantDelay(integer("delay", delay, at_least=0, at_most=FAR // 4))
    match = re.fullmatch(r"\s*(constant|geometric|batches)\s*:\s*(\S+)\s*", delay)
    if match is None:
        raise ValueError(
            "delay must be a number of rounds, or 'constant:100', 'geometric:100' or 'batches:50', "
            f"got {shown(delay)}"
        )
    kind, amount = match.groups()
    try:
        value = float(amount) if kind == "geometric" else int(amount)
    except ValueError:
        raise ValueError(f"delay has no valid number: {shown(delay)}") from None
    if kind == "geometric":
        return GeometricDelay(number("delay", value, above=0, at_most=1e12))
    if kind == "batches":
        return Batches(integer("delay", value, at_least=1, at_most=FAR // 4))
    return ConstantDelay(integer("delay", value, at_least=0, at_most=FAR // 4))


def delay_text(delay: object) -> str | None:
    """Write a delay as the text by which :func:`valid_delay` reads it."""
    found = valid_delay(delay)
    if found is None:
        return None
    name = {ConstantDelay: "constant", GeometricDelay: "geometric", Batches: "batches"}[type(found)]
    return f"{name}:{found[0]!r}"
