"""Options that are new in every round: they come with the question."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sightline.sessions.options import Options
from sightline.validation import affordable, integer, shown

__all__ = ["stream"]


def stream(dimension: int, most: int, columns: Iterable[str] | None = None) -> Options:
    """Options of a session in which other ones come with every question.

    ``session.ask(actions=X)`` chooses a row of X, an array of shape (k, dimension), where k may
    differ from question to question.  What is learned is the parameter, which all options share.
    Nothing in the session grows with the number of questions, but for its journal.

    Parameters
    ----------
    dimension : int
        Number of features of an option.
    most : int
        Largest number of options in one question.
    columns : iterable of str, optional
        One label per feature; ``"x0"``, ``"x1"`` and so on by default.

    Returns
    -------
    Options
        For ``sl.Session``, with a policy that supports streams: :class:`Stakes`,
        :class:`IDS`, :class:`BayesianIDS`, :class:`LinUCB`, :class:`ThompsonSampling`,
        :class:`EpsilonGreedy`, or one of your own.

    Examples
    --------
    >>> import sightline as sl
    >>> session = sl.Session(sl.stream(2, most=50), sl.LinUCB(), noise_std=0.1)
    >>> decision = session.ask(actions=[[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]])
    >>> decision.arm, decision.action.tolist()
    (2, [0.0, 2.0])
    >>> session.tell(decision, 0.7)
    """
    d, k = integer("dimension", dimension, at_least=1), integer("most", most, at_least=1)
    affordable(f"{shown(k)} options in {shown(d)} dimensions", 16 * (k + d) * d)
    return Options(np.zeros((k, d)), columns=columns, stream=True)
