"""Quantities that claims are decided by, where no general test in judge.py fits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.asymptotic import lower_bound
from sightline.paper import (
    dimension,
    figure3,
    oracle_cost,
    posterior_weights,
    price_of_information,
    rates,
    table1,
    tuning,
    zero_best,
)
from sightline.paper.figure3 import GAINS
from sightline.paper.item import Outcome
from sightline.paper.judge import log_regret, results_of, slopes_between
from sightline.paper.settings import EPSILON, SLOPE_2, VARIANCE, Reading, log_constant, problems
from sightline.paper.verdict import Part, Verdict, below, resampled, sampled, together
from sightline.simulation.simulate import rounds_text

Array = NDArray[np.float64]


def _decided(truth: bool) -> Verdict:
    """Verdict on what is computed and not sampled."""
    return Verdict.CONFIRMED if truth else Verdict.NOT_CONFIRMED


def constant_is_64(outcome: Outcome) -> Part:
    """c* at slope 2, epsilon 0.01, unit variance, certified from both sides."""
    rows = {(e, slope): (low, high) for e, slope, low, high in outcome.values["constants"]}
    low, high = rows[0.01, 2.0]
    other = rows[0.01, 4.0]
    text = f"slope 2: {low:.4f} <= c* <= {high:.4f} (slope 4: {other[0]:.4f} to {other[1]:.4f})"
    return Part(text, _decided(low <= 64.0 <= high))


def constant_is_constant(outcome: Outcome) -> Part:
    """c* at slope 2 over epsilons up to 0.2."""
    values = [
        0.5 * (low + high) for e, slope, low, high in outcome.values["constants"] if slope < 3
    ]
    spread = max(values) / min(values) - 1.0
    text = f"c* from {min(values):.6f} to {max(values):.6f} for epsilon 0.001 to 0.2"
    return Part(text, _decided(spread < 1e-6))


def _informative_share(outcome: Outcome, gain: str, reading: Reading) -> tuple[Array, Array]:
    """Find the rounds, and the share of the third arm in a gain, shape (runs, checkpoints)."""
    row, runs = list(GAINS).index(gain), figure3.runs_of(outcome, reading)
    shares = np.array([np.array(run["gains"])[row, :, 2] for run in runs])
    return np.array(runs[0]["t"]), shares


def variance_converges_faster(outcome: Outcome, gain: str, reading: Reading) -> Part:
    """Mean share of the third arm from round 10 on, as long as I^VAR is defined."""
    t, bayesian = _informative_share(outcome, "variance", reading)
    _, ours = _informative_share(outcome, gain, reading)
    defined = (bayesian >= 0.0) & (t >= 10)
    means = [
        np.array([run[kept].mean() for run, kept in zip(shares, defined, strict=True)])
        for shares in (bayesian, ours)
    ]
    text = f"share of the third arm: I^VAR {means[0].mean():.3f}, {GAINS[gain]} "
    return sampled(f"{text}{means[1].mean():.3f}", means[1] - means[0])


def informative_share_grows(
    outcome: Outcome, gain: str, since: int, until: int, reading: Reading
) -> Part:
    """Share of the third arm in a gain at two rounds."""
    t, shares = _informative_share(outcome, gain, reading)
    early, late = (shares[:, np.flatnonzero(t >= at)[0]] for at in (since, until))
    text = f"{GAINS[gain]}: {early.mean():.3f} at {since}, {late.mean():.3f} at {until}"
    return sampled(text, early - late)


def cells_are_half_spaces(outcome: Outcome, reading: Reading) -> Part:
    """Largest difference of the normalised gains from round 100 on."""
    runs, names = figure3.runs_of(outcome, reading), list(GAINS)
    largest = 0.0
    for run in runs:
        table = np.array(run["gains"])[:, np.array(run["t"]) >= 100]
        change = table[names.index("cell")] - table[names.index("halfspace")]
        largest = max(largest, float(np.abs(change).max()))
    text = f"largest difference of shares {largest:.2g} in {len(runs)} runs; below 0.01?"
    return Part(text, _decided(largest < 0.01))


def small_beta_helps(outcome: Outcome, reading: Reading) -> Part:
    """Best fixed beta against the log-det coefficient, both with eta = 1/sqrt(beta).

    The best one is chosen on one half of the runs and judged on the other.
    """
    eta = "1/sqrt(beta)"
    fixed = [beta for beta in tuning.BETAS if beta != "log-det"]
    theory = tuning.final(outcome, reading, tuning.ids_label("log-det", eta))
    runs = {beta: tuning.final(outcome, reading, tuning.ids_label(beta, eta)) for beta in fixed}
    best = min(fixed, key=lambda beta: runs[beta][::2].mean())
    text = f"beta = {best}: {runs[best].mean():.1f}, log-det: {theory.mean():.1f}"
    return sampled(text, (runs[best] - 0.5 * theory)[1::2])


def eta_matters_little(outcome: Outcome, reading: Reading, *, typical: bool) -> Part:
    """Worst against best eta at every beta; the two are chosen on one half of the runs.

    In the typical run where regret has heavy tails: at a small beta a few runs settle on a wrong
    arm, whatever eta is, and decide all means.
    """
    verdicts, widest = [], (1.0, "")
    for beta in tuning.BETAS:
        labels = [tuning.ids_label(beta, eta) for eta in tuning.ETAS]
        runs = np.array([tuning.final(outcome, reading, label) for label in labels])
        if typical:
            runs = log_regret(runs)
        order = np.argsort(runs[:, ::2].mean(axis=1), kind="stable")
        best, worst = runs[order[0], 1::2], runs[order[-1], 1::2]
        if typical:
            ratio, excess = math.exp((worst - best).mean()), worst - best - math.log(1.5)
        else:
            ratio, excess = worst.mean() / best.mean(), worst - 1.5 * best
        widest = max(widest, (float(ratio), beta))
        verdicts.append(below(excess))
    text = f"largest ratio worst/best eta: {widest[0]:.2f}, at beta = {widest[1]}"
    return Part(text + ", in the typical run" * typical, together(verdicts))


def suggested_eta_is_near_optimal(outcome: Outcome, reading: Reading) -> Part:
    """Best beta with eta = 1/sqrt(beta), against the best of the whole matrix."""
    cells = {
        (beta, eta): tuning.final(outcome, reading, tuning.ids_label(beta, eta))
        for beta in tuning.BETAS
        for eta in tuning.ETAS
    }
    half = {cell: runs[::2].mean() for cell, runs in cells.items()}
    best = min(half, key=lambda cell: half[cell])
    suggested = min((c for c in half if c[1] == "1/sqrt(beta)"), key=lambda cell: half[cell])
    text = (
        f"beta = {suggested[0]}: {cells[suggested].mean():.2f}; best of the matrix "
        f"(beta {best[0]}, eta {best[1]}): {cells[best].mean():.2f}"
    )
    return sampled(text, (cells[suggested] - 1.2 * cells[best])[1::2])


def ids_beats_ucb_at_every_beta(outcome: Outcome, reading: Reading) -> Part:
    """IDS with eta = 1/sqrt(beta) against LinUCB, beta by beta."""
    verdicts, texts = [], []
    for beta in tuning.BETAS:
        ids = tuning.final(outcome, reading, tuning.ids_label(beta, "1/sqrt(beta)"))
        ucb = tuning.final(outcome, reading, tuning.ucb_label(beta))
        verdicts.append(below(ids[: len(ucb)] - ucb))
        texts.append(f"{beta}: {ids.mean():.3g} against {ucb.mean():.3g}")
    return Part("; ".join(texts), together(verdicts))


def _slower(outcome: Outcome, first: str, second: str, d: int, factor: float) -> Verdict:
    """Whether the first method takes more than a multiple of the second's time, in ratios."""
    logs = [np.log(table1.seconds_of(outcome, method, d)) for method in (first, second)]
    return below(math.log(factor) + logs[1] - logs[0])


def runtime_order(outcome: Outcome) -> Part:
    """Neighbours in the published order, at both shapes."""
    methods = [*list(table1.METHODS)[1:5], "Thompson sampling"]
    pairs = [("Bayesian IDS", "IDS-H-UCB")]
    pairs += [("IDS-H-UCB", "LinUCB"), ("IDS-H-UCB", "Thompson sampling")]
    verdicts, texts = [], []
    for d, k in table1.SHAPES:
        verdicts += [_slower(outcome, *pair, d, 1.0) for pair in pairs]
        times = [f"{m} {table1.seconds_of(outcome, m, d).mean():.3g} s" for m in methods]
        texts.append(f"d={d}, k={k}: " + ", ".join(times))
    return Part("; ".join(texts), together(verdicts))


def _runtime_ratio(outcome: Outcome) -> float:
    logs = [
        np.log(table1.seconds_of(outcome, method, 5)).mean()
        for method in ("IDS-H-UCB", "Thompson sampling")
    ]
    return math.exp(logs[0] - logs[1])


def runtime_ratio_high(outcome: Outcome) -> Part:
    """At most ten times slower."""
    verdict = _slower(outcome, "Thompson sampling", "IDS-H-UCB", 5, 0.1)
    return Part(f"{_runtime_ratio(outcome):.1f} times, at most 10?", verdict)


def runtime_ratio_low(outcome: Outcome) -> Part:
    """At least twice as slow."""
    verdict = _slower(outcome, "IDS-H-UCB", "Thompson sampling", 5, 2.0)
    return Part(f"{_runtime_ratio(outcome):.1f} times, at least 2?", verdict)


def _exponent(values: Array, limit: float, outcome: Outcome) -> Part:
    text = f"exponent {np.median(values):.2f}, below {limit:.2f}?"
    return resampled(text, values, limit, outcome.size.replications)


def worst_case_rate(outcome: Outcome) -> Part:
    """Power of n."""
    results = outcome.results["regret"]
    return _exponent(rates.worst_exponents(results), rates.worst_limit(results), outcome)


def gap_rate(outcome: Outcome) -> Part:
    """Power of 1/Delta_min."""
    return _exponent(rates.gap_exponents(outcome.results["regret"]), 1.1, outcome)


def log_rate(outcome: Outcome) -> Part:
    """Power of log n."""
    return _exponent(rates.log_exponents(outcome.results["regret"]), 2.0, outcome)


def leaves_the_third_arm(outcome: Outcome, policy: str) -> Part:
    """Compare pulls of the third arm over the last decade with a quarter of alpha* log 10."""
    results = results_of(outcome, "regret", SLOPE_2, policy)
    frame, last = results.frame, results.plan.rounds[-1]
    cell = frame[(frame.problem == SLOPE_2) & (frame.policy == policy)]
    pulls = [np.array([row[2] for row in cell[cell.t == t].pulls]) for t in (last // 10, last)]
    optimal = float(lower_bound(problems(SLOPE_2)[SLOPE_2]).allocation[2]) * math.log(10.0)
    text = f"{policy}: {(pulls[1] - pulls[0]).mean():.3f} pulls, optimal {optimal:.2f}"
    return sampled(text, pulls[1] - pulls[0], 0.25 * optimal)


def slope_of_optimism(outcome: Outcome, policy: str) -> Part:
    """Slope over the last decade, against five times the optimal one."""
    results = results_of(outcome, "regret", SLOPE_2, policy)
    last = results.plan.rounds[-1]
    slopes = slopes_between(results, SLOPE_2, policy, last // 10, last)
    limit = 5.0 * log_constant(SLOPE_2, 1)
    text = f"{policy}: slope {slopes.mean():.1f}, above {limit:.1f}? "
    text += f"(2 sigma^2 / epsilon = {2.0 * VARIANCE / EPSILON:.0f})"
    return sampled(text, limit - slopes)


def dimension_rate(outcome: Outcome) -> Part:
    """Power of d."""
    return _exponent(dimension.dimension_exponents(outcome), 1.0, outcome)


def weights_are_posterior(outcome: Outcome) -> Part:
    """Distance of q from the posterior at the last round looked at."""
    values = posterior_weights.distances(outcome, "eta of the paper")[:, -1]
    return sampled(f"distance {values.mean():.3f}, at most 0.1?", values, 0.1)


def unit_rate_is_closer(outcome: Outcome) -> Part:
    """Distance of q from the posterior with eta = 1 and with that of the paper."""
    ours, paper = (
        posterior_weights.distances(outcome, kind)[:, 0] for kind in ("eta = 1", "eta of the paper")
    )
    text = f"after 30 rounds: {ours.mean():.4f} with eta = 1, {paper.mean():.4f} with the paper's"
    return sampled(text, ours - paper)


def oracle_excess(outcome: Outcome) -> Part:
    """Largest exponent of the excess cost over all problems."""
    exponents = oracle_cost.excess_exponents(outcome)
    text = "; ".join(f"{name}: exponent {value:.2f}" for name, value in exponents.items())
    return Part(f"{text}; at most 0.5?", _decided(max(exponents.values()) <= 0.5))


def worst_case_of(outcome: Outcome, policy: str, *, above: bool) -> Part:
    """Exponent of regret in n where the problem changes with n."""
    slopes = price_of_information.growth(outcome, policy)
    text = f"{policy}: exponent {slopes.mean():.2f}, {'above' if above else 'below'} 0.75?"
    sign = -1.0 if above else 1.0
    return sampled(text, sign * slopes, sign * 0.75)


def zero_best_ratio(outcome: Outcome, policy: str) -> Part:
    """R_n / (c* sigma^2 log n) at 10^6 and at the last round."""
    results = results_of(outcome, "far", zero_best.ZERO, policy)
    rounds, regret = results.plan.rounds, results.regret(zero_best.ZERO, policy)
    constant = zero_best.zero_constant()
    early, late = (
        regret[:, rounds.index(t)] / (constant * math.log(t)) for t in (10**6, rounds[-1])
    )
    text = f"{policy}: {early.mean():.2f} at 10^6, {late.mean():.3f} at {rounds_text(rounds[-1])}"
    return sampled(f"{text}, below 1.3?", late, 1.3)
