"""What can be played now, for kernels: each dispatches on the class of the offer.

Policies of one's own read an offer by ``is_offered``, ``number_offered``, ``nth_offered`` and
``first_largest_offered``, compiled or not, and need not know its class.

With every arm on offer these kernels are the plain ones, chosen when a policy is compiled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import Comparison
from sightline.core.linalg.vectors import first_largest
from sightline.core.model import AllArms, OneContext, SomeArms
from sightline.jit import compiled, generic

__all__ = [
    "context_of",
    "first_largest_offered",
    "is_offered",
    "is_usual",
    "nth_offered",
    "number_offered",
    "restrict_alternatives",
    "rows_offered",
    "withhold",
]

Array = NDArray[np.float64]


@generic
def is_usual(offer: Any) -> bool:
    """Whether such an offer comes in every round: all arms, or those of some context."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@is_usual.register(AllArms)
@is_usual.register(OneContext)
@compiled
def _all_are_usual(offer: Any) -> bool:
    return True


@is_usual.register(SomeArms)
@compiled
def _some_are_not(offer: SomeArms) -> bool:
    return False


@generic
def context_of(offer: Any) -> int:
    """Context of an offer: the only one, 0, where there are none."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@context_of.register(AllArms)
@context_of.register(SomeArms)
@compiled
def _only_context(offer: Any) -> int:
    return 0


@context_of.register(OneContext)
@compiled
def _context_of_block(offer: OneContext) -> int:
    return offer.context


@generic
def is_offered(offer: Any, arm: int) -> bool:
    """Whether an arm is on offer."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@is_offered.register(AllArms)
@compiled
def _is_among_all(offer: AllArms, arm: int) -> bool:
    return True


@is_offered.register(OneContext)
@compiled
def _is_in_context(offer: OneContext, arm: int) -> bool:
    return offer.start <= arm < offer.stop


@is_offered.register(SomeArms)
@compiled
def _is_among_some(offer: SomeArms, arm: int) -> bool:
    return bool(offer.available[arm])


@generic
def first_largest_offered(offer: Any, values: Array) -> int:
    """Index of the largest value among arms on offer; the first one among equals."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@first_largest_offered.register(AllArms)
@compiled
def _first_largest_of_all(offer: AllArms, values: Array) -> int:
    return first_largest(values)


@first_largest_offered.register(SomeArms)
@compiled
def _first_largest_of_some(offer: SomeArms, values: Array) -> int:
    first, largest = 0, -math.inf
    for x in range(values.shape[0]):
        if offer.available[x] and values[x] > largest:
            first, largest = x, values[x]
    return first


@first_largest_offered.register(OneContext)
@compiled
def _first_largest_of_context(offer: OneContext, values: Array) -> int:
    first, largest = offer.start, -math.inf
    for x in range(offer.start, offer.stop):
        if values[x] > largest:
            first, largest = x, values[x]
    return first


@generic
def nth_offered(offer: Any, n: int) -> int:
    """Index of the n-th arm on offer, from 0."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@nth_offered.register(AllArms)
@compiled
def _nth_of_all(offer: AllArms, n: int) -> int:
    return n


@nth_offered.register(SomeArms)
@compiled
def _nth_of_some(offer: SomeArms, n: int) -> int:
    for x in range(offer.available.shape[0]):
        if offer.available[x]:
            if n == 0:
                return x
            n -= 1
    return -1


@nth_offered.register(OneContext)
@compiled
def _nth_of_context(offer: OneContext, n: int) -> int:
    return offer.start + n


@generic
def number_offered(offer: Any, k: int) -> int:
    """Count the arms on offer, of k in all."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@number_offered.register(AllArms)
@compiled
def _number_of_all(offer: AllArms, k: int) -> int:
    return k


@number_offered.register(SomeArms)
@compiled
def _number_of_some(offer: SomeArms, k: int) -> int:
    count = 0
    for x in range(k):
        if offer.available[x]:
            count += 1
    return count


@number_offered.register(OneContext)
@compiled
def _number_in_context(offer: OneContext, k: int) -> int:
    return offer.stop - offer.start


@generic
def rows_offered(offer: Any, k: int) -> tuple[int, int]:
    """First row on offer, and the one after the last; not all between need be on offer."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@rows_offered.register(AllArms)
@rows_offered.register(SomeArms)
@compiled
def _rows_of_all(offer: Any, k: int) -> tuple[int, int]:
    return 0, k


@rows_offered.register(OneContext)
@compiled
def _rows_of_context(offer: OneContext, k: int) -> tuple[int, int]:
    return offer.start, offer.stop


@generic
def withhold(offer: Any, values: Array, value: float) -> None:
    """Write a value in place of those of arms that are not on offer."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@withhold.register(AllArms)
@compiled
def _withhold_nothing(offer: AllArms, values: Array, value: float) -> None:
    pass


@withhold.register(SomeArms)
@compiled
def _withhold_some(offer: SomeArms, values: Array, value: float) -> None:
    for x in range(values.shape[0]):
        if not offer.available[x]:
            values[x] = value


@withhold.register(OneContext)
@compiled
def _withhold_others(offer: OneContext, values: Array, value: float) -> None:
    for x in range(offer.start):
        values[x] = value
    for x in range(offer.stop, values.shape[0]):
        values[x] = value


@generic
def restrict_alternatives(offer: Any, alternatives: Any, comparison: Comparison) -> Comparison:
    """Leave out arms that are not on offer: being best of all, they would not be played."""
    raise TypeError(f"{type(offer).__name__} is no offer")


@restrict_alternatives.register(AllArms)
@compiled
def _restrict_nothing(offer: AllArms, alternatives: Any, comparison: Comparison) -> Comparison:
    return comparison


@restrict_alternatives.register(OneContext)
@restrict_alternatives.register(SomeArms)
@compiled
def _restrict_to_some(offer: Any, alternatives: Any, comparison: Comparison) -> Comparison:
    distances = alternatives.distances
    withhold(offer, distances, math.inf)
    least = math.inf
    for z in range(distances.shape[0]):
        least = min(least, distances[z])
    return Comparison(comparison.best, least)
