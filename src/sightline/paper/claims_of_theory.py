"""Claims of the theorems and their proofs, seen in runs."""

from __future__ import annotations

from functools import partial

from sightline.paper import measures, measures_of_proofs
from sightline.paper.judge import Claim, Custom

__all__ = ["THEORY"]

_WORST = "Theorem on worst-case regret"
_GAPS = "Theorem on gap-dependent regret"
_LIMIT = "Theorem on asymptotic regret"
_PROOF = "Proof of the asymptotic theorem"


def _limit(policy: str) -> tuple[Custom, Custom]:
    return (
        Custom(partial(measures_of_proofs.ratio_falls, policy=policy)),
        Custom(partial(measures_of_proofs.ratio_ends_near_one, policy=policy)),
    )


THEORY: tuple[Claim, ...] = (
    Claim(
        "Worst-case regret grows at most like sqrt(n) log n: its exponent is smaller, over gaps "
        "down to 0.0001",
        _WORST,
        "rates",
        (Custom(measures.worst_case_rate),),
    ),
    Claim(
        "Regret grows at most like 1/Delta_min: exponent below 1.1 over gaps from 0.03 to 0.3",
        _GAPS,
        "rates",
        (Custom(measures.gap_rate),),
    ),
    Claim(
        "Regret grows at most like log(n)^2 at a fixed gap of 0.3: exponent at most 2",
        _GAPS,
        "rates",
        (Custom(measures.log_rate),),
    ),
    Claim(
        "Worst-case regret grows at most linearly with the dimension: exponent below 1 from d = 2 "
        "to 16, at worst over gaps",
        _WORST,
        "dimension",
        (Custom(measures.dimension_rate),),
    ),
    Claim(
        "Regret is c* sigma^2 log n + o(log n): the ratio falls, to below 1.2 at the last round",
        _LIMIT,
        "far-horizon",
        _limit("IDS-H"),
    ),
    *(
        Claim(
            f"So it is for {policy}",
            "Alternative definitions of the information gain",
            "far-gains",
            _limit(policy),
        )
        for policy in ("IDS-H-UCB", "IDS-C", "IDS-C-UCB")
    ),
    Claim(
        "With the log-det gain of earlier work IDS is not asymptotically optimal on the end of "
        "optimism: put into Algorithm 1, its ratio stays above 1.2",
        "Appendix on information gain functions",
        "far-gains",
        (Custom(partial(measures_of_proofs.ratio_stays_up, policy="IDS, log-det gain")),),
    ),
    Claim(
        "Exploration is polylogarithmic: s_n grows at most like log(n)^4",
        "Lemma on the effective horizon",
        "far-horizon",
        (Custom(measures_of_proofs.effective_horizon),),
    ),
    Claim(
        "An optimal policy pulls the informative arm alpha* log n times: within 25 % at the last "
        "round",
        "The program behind c*",
        "allocation",
        (
            Custom(measures_of_proofs.pulls_are_optimal_low),
            Custom(measures_of_proofs.pulls_are_optimal_high),
        ),
    ),
    Claim(
        "... and the second arm o(log n) times: less than a hundredth as often",
        "Section 3",
        "allocation",
        (Custom(measures_of_proofs.second_arm_is_left),),
    ),
    Claim(
        "The information ratio never exceeds 2",
        "Proof of the worst-case theorem",
        "information",
        (Custom(measures_of_proofs.ratio_at_most_two),),
    ),
    Claim(
        "gamma_n / log n falls towards its asymptotic bound 1 (not yet below it is no refutation)",
        _PROOF,
        "information",
        (Custom(measures_of_proofs.gamma_falls),),
    ),
    Claim(
        "The key insight: Psi_s / (4 delta_s) tends to c*. Its distance from c* falls by a third "
        "or more from 10^6 to the last round",
        "Section on the primal-dual approach",
        "information",
        (Custom(measures_of_proofs.price_tends_to_c),),
    ),
    Claim(
        "... and Delta-hat_s(mu_s) / delta_s tends to 2, by the same measure",
        "Section on the primal-dual approach",
        "information",
        (Custom(measures_of_proofs.greed_tends_to_two),),
    ),
    Claim(
        "Psi_s <= 4 delta_s (8d + 9) / Delta_min wherever theta is covered",
        "Lemma on the information ratio",
        "information",
        (Custom(measures_of_proofs.instance_bound),),
    ),
    Claim(
        "I_s(z_s) >= Delta_min^2 / (8 (8d + 9)) for the informative arm, in the regime of the "
        "lemma",
        "Lemma on constant information gain",
        "information",
        (Custom(measures_of_proofs.gain_bound),),
    ),
    Claim(
        "gamma_n <= 2 (beta_{s_n, n log n} + its root + beta_{s_n, s_n^2}) d log s_n",
        "Lemma on the total information gain",
        "information",
        (Custom(measures_of_proofs.gamma_bound),),
    ),
    Claim(
        "beta_{s, 1/delta} covers theta in all rounds with probability 1 - delta",
        "Confidence coefficient",
        "information",
        (Custom(measures_of_proofs.coverage),),
    ),
    Claim(
        "The weights q of cells approximate the posterior probabilities of the arms: distance at "
        "most 0.1 after 300 exploration rounds on random sets",
        "Alternative definitions of the information gain",
        "weights",
        (Custom(measures.weights_are_posterior),),
    ),
    Claim(
        "... and with eta = 1 they come closer",
        "Appendix on mutual information",
        "weights",
        (Custom(measures.unit_rate_is_closer),),
        ours=True,
    ),
    Claim(
        "In the oracle setting both strategies cost c* beta + O(sqrt(beta)): the excess grows with "
        "an exponent of at most 1/2",
        "Appendix on primal-dual methods",
        "oracle",
        (Custom(measures.oracle_excess),),
    ),
    Claim(
        "Randomising keeps the worst-case bound, which the primal-dual rule lacks: exponents of n "
        "below 0.75 and above it, on problems that change with n",
        "Section on the primal-dual approach",
        "worst-case",
        (
            Custom(partial(measures.worst_case_of, policy="IDS-H", above=False)),
            Custom(partial(measures.worst_case_of, policy="primal-dual", above=True)),
        ),
    ),
    Claim(
        "With thresholded gaps the theorem holds for a best arm of norm zero: the ratio to c* "
        "sigma^2 log n falls, to below 1.3 at 10^300",
        "Below the theorem on asymptotic regret",
        "zero-best",
        (Custom(partial(measures.zero_best_ratio, policy="IDS-H, thresholded")),),
    ),
    Claim(
        "... and so it does for Algorithm 1 as it is, in the limit of delta_s falling to zero",
        "Below the theorem on asymptotic regret, left open",
        "zero-best",
        (Custom(partial(measures.zero_best_ratio, policy="IDS-H")),),
        ours=True,
    ),
)
