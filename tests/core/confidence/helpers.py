"""Confidence coefficients at random, and the compiled rules for them."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from sightline.core.confidence import (
    ConfidenceRule,
    Level,
    LogDetConfidence,
    global_beta,
    local_beta,
    register_confidence,
)
from sightline.core.confidence_rules import FixedBeta, LogDet, LogLog, LogLogConfidence
from tests import naive

rules = st.builds(
    naive.Beta,
    kind=st.sampled_from(["log-det", "log-log", "fixed"]),
    factor=st.floats(0.05, 4.0),
    fixed=st.floats(0.1, 50.0),
    noise_std=st.floats(0.05, 3.0),
    regulariser=st.floats(1e-4, 30.0),
    norm_bound=st.just(0.0) | st.floats(1e-6, 3.0),
    delta=st.sampled_from(["1/s^2", "1/(s log s)"]) | st.floats(1e-12, 0.999),
)
growing = rules.filter(lambda beta: beta.kind != "fixed" and beta.fixed_delta is None)
dimensions = st.integers(1, 20)
log_dets = st.floats(0.0, 80.0)


def build(beta: naive.Beta, d: int) -> Any:
    """Return the compiled rule for the same coefficient."""
    known: dict[str, ConfidenceRule] = {
        "log-det": LogDet(beta.norm_bound, beta.factor, beta.delta),
        "log-log": LogLog(factor=beta.factor),
        "fixed": FixedBeta(beta.fixed),
    }
    return known[beta.kind].build(d, beta.noise_std, beta.regulariser)


class OwnLogDet(NamedTuple):
    """The numbers of LogDet, for which only the two coefficients are registered."""

    level: Level
    factor: float
    noise_variance: float
    prior_radius: float


class OwnLogLog(NamedTuple):
    """The numbers of LogLog, for which only the two coefficients are registered."""

    factor: float
    noise_variance: float
    dimension: float


OWN: dict[type, type] = {LogDetConfidence: OwnLogDet, LogLogConfidence: OwnLogLog}
for theirs, own in OWN.items():
    register_confidence(
        own, local=local_beta.dispatch(theirs), overall=global_beta.dispatch(theirs)
    )


def build_own(beta: naive.Beta, d: int) -> Any:
    """Return the same rule as ``build``, without a closed form of ``settled_until``."""
    confidence = build(beta, d)
    return OWN[type(confidence)](*confidence)
