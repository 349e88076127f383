"""Delays of outcomes: the round after which the policy learns the outcome of round t.

| delay j of the outcome of round t | text              | ``kind``    | ``amount``     |
|-----------------------------------|-------------------|-------------|----------------|
| none                              |                   | NONE        | 0              |
| j                                 | ``constant:j``    | CONSTANT    | j              |
| geometric on 0, 1, 2, ...         | ``geometric:j``   | GEOMETRIC   | mean           |
| to the end of a batch of m rounds | ``batches:m``     | BATCHES     | m              |

A delay of j means that j more rounds pass first.  With j = 0 the policy knows the outcome of round
t in round t + 1, as without delays.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

import numpy as np

from sightline.core.clock import FAR
from sightline.jit import compiled
from sightline.validation import integer, number, shown


class DelayKind(enum.IntEnum):
    """Distribution of a delay."""

    NONE = 0
    CONSTANT = 1
    GEOMETRIC = 2
    BATCHES = 3


class Delay(NamedTuple):
    """Delay of outcomes."""

    kind: int  # a value of :class:`DelayKind`, as a plain number for compiled code
    amount: float  # rounds, mean or size of a batch; below 2^53, so that integers are exact


NO_DELAY = Delay(int(DelayKind.NONE), 0.0)


@compiled
def told_after(delay: Delay, t: int, rng: np.random.Generator) -> int:
    """Round after which the policy learns the outcome of round t."""
    if delay.kind == DelayKind.GEOMETRIC:  # the floor of an exponential variable
        waiting = -np.log1p(-rng.random()) / np.log1p(1.0 / delay.amount)
        return t + int(min(waiting, 1e15))
    if delay.kind == DelayKind.BATCHES:
        size = int(delay.amount)
        return (t + size - 1) // size * size
    return t + int(delay.amount)


def valid_delay(delay: object) -> Delay:
    """Parse a delay: None, a number of rounds, or a text such as ``"geometric:100"``."""
    if delay is None:
        return NO_DELAY
    if not isinstance(delay, str):
        rounds = integer("delay", delay, at_least=0, at_most=FAR // 4)
        return Delay(int(DelayKind.CONSTANT), float(rounds))
    match = re.fullmatch(r"\s*(constant|geometric|batches)\s*:\s*(\S+)\s*", delay)
    if match is None:
        raise ValueError(
            "delay must be a number of rounds, or 'constant:100', 'geometric:100' or 'batches:50', "
            f"got {shown(delay)}"
        )
    kind, amount = DelayKind[match[1].upper()], match[2]
    try:
        value = float(amount) if kind == DelayKind.GEOMETRIC else int(amount)
    except ValueError:
        raise ValueError(f"delay has no valid number: {shown(delay)}") from None
    if kind == DelayKind.GEOMETRIC:
        value = number("delay", value, above=0, at_most=1e12)
    else:
        least = 1 if kind == DelayKind.BATCHES else 0
        value = integer("delay", value, at_least=least, at_most=FAR // 4)
    return Delay(int(kind), float(value))


def delay_text(delay: object) -> str | None:
    """Text of a delay, the inverse of :func:`valid_delay`."""
    kind, amount = valid_delay(delay)
    if kind == DelayKind.NONE:
        return None
    written = repr(amount) if kind == DelayKind.GEOMETRIC else str(int(amount))
    return f"{DelayKind(kind).name.lower()}:{written}"
