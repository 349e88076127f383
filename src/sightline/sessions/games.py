"""Options of games: what an option pays and what choosing it shows are two things."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.model import game_model
from sightline.sessions.effects import identified
from sightline.sessions.labels import Contrast
from sightline.sessions.ledger import Window, reward_value
from sightline.sessions.options import Options, as_options, names_in, pairs_of
from sightline.validation import action_set, affordable, finite_array, number, shown

__all__ = ["check_window", "duel", "game", "outcome_value", "several_numbers"]


def duel(options: Options | Mapping[str, ArrayLike] | ArrayLike) -> Options:
    """Options of a session that asks which of two is better, A or B.

    ``session.ask()`` answers with a pair, and ``session.tell(decision, "A")`` takes the winner.  An
    option may also be shown alone, as a pair with itself: nothing is learned then, and this is what
    is left once the best is known.

    The model is linear: showing A and B, A wins with probability (1 + <x_A - x_B, theta>) / 2.  A
    decision for the pair pays <x_A + x_B, theta>, which is never seen.  What is learned are the
    outcomes, 1 if A wins and -1 if B does, whose mean is <x_A - x_B, theta>; they are sub-Gaussian
    with parameter 1, which is the default ``noise_std`` of a duel.

    Parameters
    ----------
    options : Options, mapping of str to array_like, array_like of shape (n, d), or list of str
        What is compared, at least two, as a session takes it: features by name, features, names
        only, or made by :func:`factorial`, whose effects are kept.

    Returns
    -------
    Options
        All n options alone, in their order and under their names, then all pairs of two, such as
        ``"A vs B"``.  The best of them is always an option alone, so that ``session.status().best``
        is one of them.  Of the effects those are kept that comparisons can tell, which a grand mean
        is not; where there are none, the effects are those of the options, against their mean.

    Examples
    --------
    >>> import sightline as sl
    >>> answers = sl.duel({"A": [1.0, 0.0], "B": [0.0, 1.0]})
    >>> answers.names
    ('A', 'B', 'A vs B')
    >>> session = sl.Session(answers)
    >>> decision = session.ask()
    >>> decision.option, decision.pair
    ('A vs B', ('A', 'B'))
    >>> session.tell(decision, "A")
    """
    named = names_in(options)
    if named is not None:  # which get a feature each
        _check_pairs(len(named), len(named))
    known = as_options(options)
    known.needs_fixed_options("a duel")
    n, d = known.features.shape
    if n < 2:
        raise ValueError(f"a duel needs at least 2 options, got {n}")
    _check_pairs(n, d)
    pairs = pairs_of(n)
    contrasts = np.array([contrast.vector for contrast in known.contrasts]).reshape(-1, d)
    told = identified(known.features - known.features[0], contrasts)
    first, second = known.features[np.array(pairs).T]
    alone = list(known.names)
    return Options(
        first + second,
        alone + [f"{alone[i]} vs {alone[j]}" for i, j in pairs[n:]],
        columns=known.columns,
        contrasts=list(itertools.compress(known.contrasts, told)) or _deviations(known),
        observations=first - second,
        items=known.names,
    )


def _check_pairs(n: int, d: int) -> None:
    """Refuse pairs that would not fit into memory, before they are made."""
    affordable(f"{shown(n)} options: {shown(n * (n + 1) // 2)} pairs", 16 * n * n * d)


def _deviations(options: Options) -> list[Contrast]:
    """How much better each option is than all are on average."""
    vectors = options.features - options.features.mean(axis=0)
    return [Contrast(name, "", vector) for name, vector in zip(options.names, vectors, strict=True)]


def game(
    rewards: ArrayLike,
    observations: ArrayLike,
    names: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
) -> Options:
    """Options of a session that is told something else than the reward: linear partial monitoring.

    An option pays <x, theta>, which is not seen, and shows <y, theta> with noise, which is what
    ``session.tell(decision, outcome)`` takes; or p such numbers, of which it takes a list.

    Parameters
    ----------
    rewards : array_like, shape (k, d)
        What each option pays.
    observations : array_like, shape (k, d) or (k, p, d)
        What it shows, one number or p; a row of zeros shows nothing.
    names : iterable of str, optional
        One per option; ``"0"``, ``"1"`` and so on by default.
    columns : iterable of str, optional
        One label per feature; ``"x0"``, ``"x1"`` and so on by default.

    Returns
    -------
    Options
        For ``sl.Session``, with a policy that plays games: :class:`Stakes`, :class:`IDS`,
        :class:`GCB`, :class:`PEGE`, :class:`MaximumInformation`, and others, which need luck where
        the best option shows nothing.

    Examples
    --------
    A test of a part tells how good it is, and cannot be sold; a sale tells nothing.

    >>> import sightline as sl
    >>> parts = sl.game(
    ...     [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    ...     [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]],
    ...     names=["test", "sell the first", "sell the second"],
    ... )
    >>> session = sl.Session(parts, sl.IDS(), noise_std=0.1)
    >>> decision = session.ask()
    >>> session.tell(decision, 0.7)
    """
    paid = action_set(rewards, "rewards")
    seen = game_model(paid, observations).observations
    return Options(paid, names, columns=columns, observations=seen)


def several_numbers(told: object, p: int) -> tuple[float, ...]:
    """Return the p numbers that were told of an option, of a size that can be squared."""
    hint = f", the {p} numbers that an option shows"
    numbers = finite_array("outcome", told, (p,), hint=hint, booleans=False)  # type: ignore[arg-type]
    return tuple(reward_value("outcome", value) for value in numbers.tolist())


def check_window(limits: Window, options: Options) -> Window:
    """Refuse a number in place of several that were not told."""
    if limits.reward is not None and options.per_arm > 1:
        raise ValueError(
            f"on_timeout must be 'ignore' where options show {options.per_arm} numbers, got "
            f"{limits.reward:g}"
        )
    return limits


def outcome_value(name: str, told: object, options: Options, arm: int | None = None) -> float:
    """Return the number that is learned from what was told of an option, or of any."""
    if options.pairs is None:
        return reward_value(name, told)
    first, second = ("the first", "the second") if arm is None else options.pairs[arm]
    if isinstance(told, str) and told in (first, second):
        return 0.0 if first == second else 1.0 if told == first else -1.0
    try:
        value = number(name, told)
    except ValueError:
        value = math.nan
    if value == -1.0:
        return value
    if 0.0 <= value <= 1.0:
        return 2.0 * value - 1.0
    raise ValueError(
        f"{name} must be {first!r} or {second!r}, 1 or -1 for these, or the probability that "
        f"{first!r} is better, got {shown(told)}"
    )
