"""What is supposed of the options before an experiment, as the parameter that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood import Likelihood
from sightline.sessions.options import Options
from sightline.validation import finite_array, number, one_of

__all__ = ["supposed_parameter"]

Array = NDArray[np.float64]

_TOLERANCE = 1e-9  # relative to the largest number that was given


def supposed_parameter(
    options: Options,
    effects: Mapping[str, Any] | None,
    means: Mapping[str, float] | ArrayLike | None,
    likelihood: Likelihood | None = None,
) -> Array:
    """Find theta from effects or from means: one of the two, not both.

    Effects are values of contrasts, by term or by term and level; other effects are as small as
    these allow.  Means are those of all options.  With a likelihood, effects are on the scale of
    its predictors, such as log odds.
    """
    if (effects is None) == (means is None):
        raise ValueError("give effects or means, one of the two")
    if effects is not None:
        return _from_effects(options, effects)
    assert means is not None
    return _from_means(options, means, likelihood)


def _from_effects(options: Options, effects: Any) -> Array:
    if not isinstance(effects, Mapping) or not effects:
        raise ValueError(f"effects must be a mapping such as {{'x0': 0.1}}, got {effects!r}")
    known: dict[str, dict[str, Array]] = {}
    for contrast in options.contrasts:
        known.setdefault(contrast.term, {})[contrast.level] = contrast.vector
    vectors, values = [], []
    for term, given in effects.items():
        levels = known[one_of("term of an effect", term, known)]
        for level, value in (given if isinstance(given, Mapping) else {"": given}).items():
            if str(level) not in levels and not isinstance(given, Mapping):
                raise ValueError(f"effects of {term!r} need levels, such as {_example(levels)}")
            vectors.append(levels[one_of(f"level of {term!r}", str(level), levels)])
            values.append(number(f"effect of {term} {level}".strip(), value))
    table, wanted = np.array(vectors), np.array(values)
    theta, misfit = _solve(table, wanted)
    if misfit.max() > _TOLERANCE * np.abs(wanted).max():
        raise ValueError("effects contradict each other: those of a factor must sum to zero")
    return theta


def _solve(table: Array, wanted: Array) -> tuple[Array, Array]:
    """Shortest solution of least squares, without traces of rounding, and how far off it is."""
    theta: Array = np.asarray(np.linalg.lstsq(table, wanted)[0], np.float64)
    cleaned = np.where(np.abs(theta) > 1e-12 * np.abs(theta).max(), theta, 0.0)
    misfits = [np.abs(table @ solution - wanted) for solution in (theta, cleaned)]
    if misfits[1].max() <= max(misfits[0].max(), 1e-14 * np.abs(wanted).max()):
        return cleaned, misfits[1]
    return theta, misfits[0]


def _example(levels: Mapping[str, Array]) -> str:
    return f"{{{next(iter(levels))!r}: 0.1}}"


def _from_means(options: Options, means: Any, likelihood: Likelihood | None) -> Array:
    k = len(options)
    if isinstance(means, Mapping):
        rows = {}
        for name, value in means.items():
            rows[one_of("option", name, options.names)] = number(f"mean of {name!r}", value)
        missing = [name for name in options.names if name not in rows]
        if missing:
            raise ValueError(f"means must have one for every option, {missing[0]!r} is missing")
        means = [rows[name] for name in options.names]
    wanted = finite_array("means", means, (k,), hint=", one mean per option")
    if likelihood is not None:
        wanted = likelihood.predictors(wanted)
    theta, misfit = _solve(options.features, wanted)
    if misfit.max() > _TOLERANCE * np.abs(wanted).max():
        worst = options.names[int(misfit.argmax())]
        raise ValueError(
            f"means must be linear in the features, but {worst!r} is {misfit.max():.3g} off the "
            "nearest linear model: add interactions or features"
        )
    return theta
