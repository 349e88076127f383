"""Quantities of the proofs that claims are decided by: ratios, gains, allocations, horizons."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sightline.bounds.asymptotic import lower_bound
from sightline.paper.gains_side_by_side import runs_along, runs_of_proofs
from sightline.paper.item import Outcome
from sightline.paper.judge import results_of
from sightline.paper.settings import SLOPE_2, VARIANCE, log_constant, problems
from sightline.paper.verdict import CONFIDENCE, Part, Verdict, sampled
from sightline.simulation.simulate import rounds_text

__all__ = [
    "coverage",
    "effective_horizon",
    "gain_bound",
    "gamma_bound",
    "gamma_falls",
    "greed_tends_to_two",
    "instance_bound",
    "price_tends_to_c",
    "pulls_are_optimal_high",
    "pulls_are_optimal_low",
    "ratio_at_most_two",
    "ratio_ends_near_one",
    "ratio_falls",
    "ratio_stays_up",
    "second_arm_is_left",
]

Array = NDArray[np.float64]


def _decided(truth: bool) -> Verdict:
    """Verdict on what is computed and not sampled, or holds in every run."""
    return Verdict.CONFIRMED if truth else Verdict.NOT_CONFIRMED


# --- regret and pulls to far horizons -----------------------------------------------------------


def _ratios(outcome: Outcome, policy: str) -> tuple[Array, tuple[int, ...]]:
    """R_n / (c* sigma^2 log n), shape (runs, checkpoints)."""
    results = results_of(outcome, "far", SLOPE_2, policy)
    log_t = np.array([math.log(t) for t in results.plan.rounds])
    bound = log_constant(SLOPE_2, 1) * log_t
    return results.regret(SLOPE_2, policy) / bound, results.plan.rounds


def ratio_falls(outcome: Outcome, policy: str) -> Part:
    """Ratio at 10^6 against the last one."""
    ratios, rounds = _ratios(outcome, policy)
    early = ratios[:, rounds.index(10**6)]
    text = (
        f"{policy}: {early.mean():.2f} at n = 10^6, {ratios[:, -1].mean():.3f} at "
        f"{rounds_text(rounds[-1])}"
    )
    return sampled(text, ratios[:, -1] - early)


def ratio_ends_near_one(outcome: Outcome, policy: str) -> Part:
    """Last ratio."""
    ratios, rounds = _ratios(outcome, policy)
    text = f"{policy}: {ratios[:, -1].mean():.3f} at n = {rounds_text(rounds[-1])}, below 1.2?"
    return sampled(text, ratios[:, -1], 1.2)


def ratio_stays_up(outcome: Outcome, policy: str) -> Part:
    """Last ratio, the other way round."""
    ratios, rounds = _ratios(outcome, policy)
    text = f"{policy}: {ratios[:, -1].mean():.3f} at n = {rounds_text(rounds[-1])}, above 1.2?"
    return sampled(text, -ratios[:, -1], -1.2)


def _pulls(outcome: Outcome, arm: int, rounds: int) -> Array:
    """Count pulls of an arm by IDS-H over log n, run by run."""
    frame = outcome.results["far"].frame
    rows = frame[(frame.t == rounds) & (frame.policy == "IDS-H")]
    return np.array([row[arm] for row in rows.pulls]) / math.log(rounds)


def _informative_pulls(outcome: Outcome) -> tuple[Array, float]:
    last = outcome.results["far"].plan.rounds[-1]
    optimal = float(lower_bound(problems(SLOPE_2)[SLOPE_2]).allocation[2])
    return _pulls(outcome, 2, last), optimal


def pulls_are_optimal_low(outcome: Outcome) -> Part:
    """Not fewer than 0.75 alpha*."""
    shares, optimal = _informative_pulls(outcome)
    text = f"{shares.mean():.3f} pulls per log n, alpha* = {optimal:.3f}"
    return sampled(text, 0.75 * optimal - shares)


def pulls_are_optimal_high(outcome: Outcome) -> Part:
    """Not more than 1.25 alpha*."""
    shares, optimal = _informative_pulls(outcome)
    return sampled(f"{shares.mean() / optimal:.3f} times alpha*", shares - 1.25 * optimal)


def second_arm_is_left(outcome: Outcome) -> Part:
    """Compare pulls of the second arm at the last round with those of the third."""
    last = outcome.results["far"].plan.rounds[-1]
    second, third = _pulls(outcome, 1, last), _pulls(outcome, 2, last)
    text = (
        f"{second.mean():.4f} pulls per log n at {rounds_text(last)}, {third.mean():.3f} of the "
        "informative arm: below a hundredth of these?"
    )
    return sampled(text, second - 0.01 * third)


def effective_horizon(outcome: Outcome) -> Part:
    """Growth of s_n as a power of log n, from 10^6 to the last round."""
    results = outcome.results["far"]
    frame, rounds = results.frame, results.plan.rounds
    counts = [
        frame[(frame.t == t) & (frame.policy == "IDS-H")].explorations.to_numpy(dtype=float)
        for t in (10**6, rounds[-1])
    ]
    span = math.log(math.log(rounds[-1]) / math.log(10**6))
    exponents = np.log(counts[1] / counts[0]) / span
    text = (
        f"{counts[0].mean():.0f} exploration rounds at 10^6, {counts[1].mean():.0f} at "
        f"{rounds_text(rounds[-1])}: exponent of log n {exponents.mean():.2f}, at most 4?"
    )
    return sampled(text, exponents, 4.0)


# --- the information ratio ----------------------------------------------------------------------


def ratio_at_most_two(outcome: Outcome) -> Part:
    """Largest information ratio of all runs; equality up to rounding is allowed."""
    runs = runs_along(outcome)
    largest = max(max(run["largest_ratio"]) for run in runs)
    text = f"largest {largest:.12g} in {len(runs)} runs"
    return Part(text, _decided(largest <= 2.0 * (1.0 + 1e-9)))


def gamma_falls(outcome: Outcome) -> Part:
    """gamma_n / log n at 10^6 against the last one, and against 1."""
    runs = runs_along(outcome)
    exponents = runs[0]["exponents"]
    log_n = np.array(exponents) * math.log(10.0)
    values = np.array([run["gamma"] for run in runs]) / log_n
    early = values[:, exponents.index(6)]
    text = f"{early.mean():.1f} at 10^6, {values[:, -1].mean():.2f} at 10^{exponents[-1]}"
    return sampled(text, values[:, -1] - 0.5 * early)


def _limit(outcome: Outcome, name: str) -> tuple[Array, Array, int]:
    """Find a quantity at 10^6 and at the last round, run by run, and the last exponent."""
    runs = runs_along(outcome)
    exponents = runs[0]["exponents"]
    values = np.array([run[name] for run in runs])
    return values[:, exponents.index(6)], values[:, -1], exponents[-1]


def price_tends_to_c(outcome: Outcome) -> Part:
    """Psi_s / (4 delta_s) over c*: its distance from 1 falls by a third or more."""
    constant = log_constant(SLOPE_2, 1) / VARIANCE
    early, late, exponent = _limit(outcome, "price")
    text = f"{early.mean() / constant:.2f} c* at 10^6, {late.mean() / constant:.2f} c* at "
    text += f"10^{exponent}"
    return sampled(text, np.abs(late / constant - 1.0) - 2.0 / 3.0 * np.abs(early / constant - 1.0))


def greed_tends_to_two(outcome: Outcome) -> Part:
    """Delta-hat_s(mu_s) / delta_s: its distance from 2 falls by a third or more."""
    early, late, exponent = _limit(outcome, "greed")
    text = f"{early.mean():.2f} at 10^6, {late.mean():.2f} at 10^{exponent}"
    return sampled(text, np.abs(late - 2.0) - 2.0 / 3.0 * np.abs(early - 2.0))


# --- bounds with their constants, at unit variance ----------------------------------------------


def _most(outcome: Outcome, name: str, what: str) -> Part:
    runs = runs_of_proofs(outcome)
    largest = max(run[name] for run in runs)
    text = f"{what}: at most {largest:.3g} times the bound in {len(runs)} runs"
    return Part(text, _decided(largest <= 1.0))


def instance_bound(outcome: Outcome) -> Part:
    """Psi_s <= 4 delta_s (8 d + 9) / Delta_min where theta is covered."""
    return _most(outcome, "ratio", "Psi_s")


def gain_bound(outcome: Outcome) -> Part:
    """I_s(z_s) >= Delta_min^2 / (8 (8 d + 9)) in the regime of the lemma."""
    rounds = sum(run["applied"] for run in runs_of_proofs(outcome))
    part = _most(outcome, "gain", "Delta_min^2 / (8 (8d + 9)) / I_s(z_s)")
    if rounds == 0:
        return Part("its regime was not reached", Verdict.UNDECIDED)
    return part._replace(measured=f"{part.measured}; {rounds:,} rounds in the regime of the lemma")


def gamma_bound(outcome: Outcome) -> Part:
    """gamma_n <= 2 (beta + sqrt(beta) + beta_{s, s^2}) d log s_n."""
    return _most(outcome, "total", "gamma_n")


def coverage(outcome: Outcome) -> Part:
    """Share of runs in which beta_{s, 1/delta} ever fails to cover theta, at delta = 0.1."""
    delta, runs = 0.1, runs_of_proofs(outcome)
    failures = sum(run["confidence"] >= math.log(1.0 / delta) for run in runs)
    most = float(stats.beta.ppf(CONFIDENCE, failures + 1, len(runs) - failures))
    least = float(stats.beta.ppf(1.0 - CONFIDENCE, failures, len(runs) - failures + 1))
    text = f"delta = {delta}: theta left uncovered in {failures} of {len(runs)} runs"
    if most <= delta:
        return Part(text, Verdict.CONFIRMED)
    return Part(text, Verdict.NOT_CONFIRMED if least > delta else Verdict.UNDECIDED)
