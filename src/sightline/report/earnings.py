"""What the decisions of an experiment earned, compared with an equal split.

For the n decisions with a reward, of which decision t chose among the options A_t with
probabilities p_t, and mean rewards mu_t,

    G_n = (1/n) sum_t [ sum_a p_t(a) mu_t(a) - (1/|A_t|) sum_{a in A_t} mu_t(a) ]

is the value of the decisions less that of an equal split among the same options, per decision.  It
is about the decisions that were made, not about later ones, and does not have the luck of single
rewards and draws in it: at an equal split it is exactly 0.

By the log (:func:`by_log`), if every option of A_t had positive probability in every decision and
all probabilities are known: both values have doubly robust scores, whose fit uses earlier rewards
only.  Given the past, the difference of the scores of decision t has the mean of the bracket
above, because p_t was fixed before its reward.  That is what the anytime intervals of
:func:`sightline.evaluate` need: they hold for G_n at all n at once, whichever policy chose, for
rewards in a known range; otherwise asymptotically.

By the model (:func:`by_model`), in all other cases:

    G_n = sum_a (c_a - u_a) mu(a)

where c_a is the mean probability of option a, u_a its mean share in an equal split, and mu(a)
follows from the parameter of the model.  If probabilities are not known, c_a is the share of the
rewards that option a has: the luck of the draws then counts, which a policy that does not randomise
does not have.  The weights depend on the data, so that an interval for one contrast that was fixed
beforehand would be wrong.  The
interval is the range of the sum over the confidence ellipsoid of the parameter
(:mod:`sightline.sessions.effects`), which holds for all weights and all rounds at once, if the
model is right; for clicks and counts asymptotically.

``python -m benchmarks.report`` measures the coverage of both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.evaluation.evaluate import Evaluation, evaluate
from sightline.evaluation.log import DecisionLog
from sightline.sessions.view import SessionView

Array = NDArray[np.float64]
#: Entries of the tables of probabilities that :func:`by_log` makes at most.
MOST_ENTRIES = 20_000_000
_ROWS = 100_000  # at once
_ROUNDING = 1e-6  # of probabilities


class Earnings(NamedTuple):
    """G_n with its interval."""

    value: float
    lower: float
    upper: float
    decisions: int  # n
    by_log: bool
    why_model: str = ""  # why the log does not tell
    asymptotic: bool = False
    #: G_n by the model, with its interval, beside that by the log.
    model: tuple[float, float, float] | None = None


def earnings(
    view: SessionView, log: DecisionLog | None, equal: Array, delta: float, why: str = ""
) -> Earnings | None:
    """Compare the decisions with an equal split; None if nothing can be said.

    ``equal`` has the probabilities of an equal split by row of the options: of every decision of
    the log, shape (n, k); without a log, on average, shape (k,).  ``why`` says why there is none.
    """
    n = int(view.told.sum())
    if n == 0:
        return None
    shares, chosen, played = equal, view.told / n, None
    if log is not None:
        told = ~np.isnan(log.rewards)
        shares = equal[told].mean(axis=0)
        if log.recorded.known.all():
            played = _probabilities(view, log)
            chosen = played[told].mean(axis=0)
    model = by_model(view, chosen - shares, delta)
    if log is not None:
        found = by_log(view, log, played, equal, delta)
        if isinstance(found, Earnings):
            return found._replace(model=model)
        why = found
    return Earnings(*model, n, False, why)


def _probabilities(view: SessionView, log: DecisionLog) -> Array:
    """Probabilities of every decision by row of the options, shape (n, k)."""
    n, columns = len(log), _columns(view, log)
    table = np.zeros((n, len(columns)))
    for start in range(0, n, _ROWS):
        rows = slice(start, min(start + _ROWS, n))
        table[rows] = log.recorded.dense(rows, log.k)[:, columns]
    contexts = view.options.contexts
    if contexts is not None:  # which may share names
        context = log.frame["context"].astype(object).to_numpy()
        for name, block in zip(contexts.names, contexts.blocks(), strict=True):
            table[context != name, block.start : block.stop] = 0.0
    return table


def _columns(view: SessionView, log: DecisionLog) -> NDArray[np.int64]:
    """Return the number of every option in the log."""
    number = {name: i for i, name in enumerate(log.options)}
    return np.array([number[name] for name in view.options.names], dtype=np.int64)


def by_log(
    view: SessionView, log: DecisionLog, played: Array | None, equal: Array, delta: float
) -> Earnings | str:
    """Compare without a model, or say why the log does not tell."""
    if played is None:
        return "the probabilities of all options are not known"
    told = ~np.isnan(log.rewards)
    if ((equal > 0.0) & (played <= 0.0))[told].any():
        return "some options had probability 0 in some decisions"
    if np.allclose(played[told], equal[told], rtol=0.0, atol=_ROUNDING):
        return Earnings(0.0, 0.0, 0.0, int(told.sum()), True)
    columns = _columns(view, log)
    target, control = (_by_name(table, columns, log.k) for table in (played, equal))
    found: Evaluation = evaluate(log, target, control, delta=delta)
    if found.difference is None or math.isnan(found.difference.value):
        return " ".join(found.notes) or "the log does not tell"
    value, lower, upper = found.difference
    if not math.isfinite(lower + upper):
        return "there are too few rewards of a range that is not known"
    asymptotic = found.interval == "asymptotic"
    return Earnings(value, lower, upper, found.n, True, asymptotic=asymptotic)


def _by_name(table: Array, columns: NDArray[np.int64], k: int) -> Array:
    """Probabilities by option of a log; rows sum to 1, as those in a log may be rounded."""
    found = np.zeros((len(table), k))
    for row, column in enumerate(columns.tolist()):  # contexts may share names
        found[:, column] += table[:, row]
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def by_model(view: SessionView, weights: Array, delta: float) -> tuple[float, float, float]:
    """Estimate a sum of weighted mean rewards, whose interval holds for all weights at once."""
    values, lower, upper = view.sums_of_means(view.options.features, weights[None], delta)
    return float(values[0]), float(lower[0]), float(upper[0])
