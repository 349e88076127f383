"""Every empirical statement of the paper as data: wording, place, test; verdicts are computed.

The statements on the main figure are in claims_section3.py.
"""

from __future__ import annotations

from sightline.paper import measures
from sightline.paper.claims_section3 import SECTION_3, within
from sightline.paper.judge import Claim, Custom, Less
from sightline.paper.settings import RANDOM, SLOPE_2

__all__ = ["CLAIMS"]

_MAIN = "Section 3"
_APPENDIX = "Appendix on experiments"
_MILLION = 10**6
_BOTH = (RANDOM, SLOPE_2)

CLAIMS: tuple[Claim, ...] = (
    *SECTION_3,
    Claim("c* = 64 on the end of optimism", _MAIN, "figure2", (Custom(measures.constant_is_64),)),
    Claim(
        "c* does not depend on epsilon once that is small",
        _MAIN,
        "figure2",
        (Custom(measures.constant_is_constant),),
    ),
    Claim(
        "I^VAR turns to the informative arm sooner than the gains of IDS",
        _APPENDIX,
        "figure3",
        (Custom(measures.variance_turns_first),),
    ),
    Claim(
        "Gains on cells and half-spaces are indistinguishable on the end of optimism",
        _APPENDIX,
        "figure3",
        (Custom(measures.cells_are_half_spaces),),
    ),
    Claim(
        "Regret with cells and with half-spaces is the same, within 10 %",
        _APPENDIX,
        "figure4",
        tuple(test for p in _BOTH for test in within(p, "IDS-C", "IDS-H", 1.1)),
    ),
    Claim(
        "Exact sampling and sampling from pairs have the same regret, within 10 %",
        _APPENDIX,
        "figure4",
        tuple(test for p in _BOTH for test in within(p, "IDS-H, exact", "IDS-H", 1.1)),
    ),
    Claim(
        "The log-log coefficient performs comparably to the log-det one, within a factor 1.5",
        _APPENDIX,
        "figure5",
        tuple(
            test
            for label in ("IDS-H", "IDS-H-UCB", "LinUCB")
            for test in within(SLOPE_2, label, f"{label}, log-det", 1.5)
        ),
        _MILLION,
    ),
    Claim(
        "With the log-log coefficient the conclusion is the same: IDS ends below LinUCB on the end "
        "of optimism",
        _APPENDIX,
        "figure5",
        tuple(Less(SLOPE_2, label, "LinUCB") for label in ("IDS-H", "IDS-H-UCB")),
        _MILLION,
    ),
    *(
        claim
        for item, problem, n in (("figure6", RANDOM, 10**4), ("figure7", SLOPE_2, _MILLION))
        for claim in (
            Claim(
                f"A smaller beta than that of the theory helps a lot, by a factor 2 ({problem})",
                _APPENDIX,
                item,
                (Custom(measures.small_beta_helps),),
                n,
            ),
            Claim(
                f"eta matters little: by less than a factor 1.5 at every beta ({problem})",
                _APPENDIX,
                item,
                (Custom(measures.eta_matters_little),),
                n,
            ),
            Claim(
                f"Tuning only beta, at eta = 1/sqrt(beta), is within 20 % of the best ({problem})",
                _APPENDIX,
                item,
                (Custom(measures.suggested_eta_is_near_optimal),),
                n,
            ),
        )
    ),
    Claim(
        "IDS is better than LinUCB at every beta on the end of optimism",
        _APPENDIX,
        "figure7",
        (Custom(measures.ids_beats_ucb_at_every_beta),),
        _MILLION,
    ),
    Claim(
        "Thompson sampling has less regret than LinUCB and IDS",
        _APPENDIX,
        "figure8",
        tuple(
            Less(p, "Thompson sampling", label)
            for p in _BOTH
            for label in ("LinUCB", "IDS-H", "IDS-H-UCB")
        ),
        _MILLION,
    ),
    Claim(
        "... unless beta = 1, where IDS has less than Thompson sampling",
        _APPENDIX,
        "figure8",
        tuple(Less(p, "IDS-H, beta = 1", "Thompson sampling") for p in _BOTH),
        _MILLION,
    ),
    Claim(
        "Bayesian IDS has the least regret",
        _APPENDIX,
        "figure8",
        tuple(
            Less(p, "Bayesian IDS", label)
            for p in _BOTH
            for label in ("Thompson sampling", "IDS-H, beta = 1", "LinUCB, beta = 1")
        ),
        _MILLION,
    ),
    Claim(
        "On the end of optimism Bayesian IDS has about half the regret of the best frequentist "
        "method: between 1/3 and 2/3 of IDS with beta = 1",
        _APPENDIX,
        "figure8",
        (
            Less(SLOPE_2, "Bayesian IDS", "IDS-H, beta = 1", 2.0 / 3.0),
            Less(SLOPE_2, "IDS-H, beta = 1", "Bayesian IDS", 3.0),
        ),
        _MILLION,
    ),
    Claim(
        "Runtime: Bayesian IDS above exact IDS above IDS above LinUCB and Thompson sampling",
        _APPENDIX,
        "table1",
        (Custom(measures.runtime_order),),
    ),
    Claim(
        "IDS is about 5 times slower than Thompson sampling at d=5, k=50: between 2 and 10 times",
        _APPENDIX,
        "table1",
        (Custom(measures.runtime_ratio_high), Custom(measures.runtime_ratio_low)),
    ),
    Claim(
        "Worst-case regret grows at most like sqrt(n) log n: its exponent is smaller",
        "Theorem on worst-case regret",
        "rates",
        (Custom(measures.worst_case_rate),),
    ),
    Claim(
        "Regret grows at most like 1/Delta_min: exponent below 1.1 over gaps from 0.03 to 0.3",
        "Theorem on gap-dependent regret",
        "rates",
        (Custom(measures.gap_rate),),
    ),
    Claim(
        "Regret grows at most like log(n)^2 at a fixed gap of 0.3: exponent at most 2",
        "Theorem on gap-dependent regret",
        "rates",
        (Custom(measures.log_rate),),
        _MILLION,
    ),
    Claim(
        "Regret is c* sigma^2 log n + o(log n): the ratio falls, to below 1.2 at the last round",
        "Theorem on asymptotic regret",
        "far-horizon",
        (Custom(measures.ratio_falls), Custom(measures.ratio_ends_near_one)),
    ),
    Claim(
        "The information ratio never exceeds 2",
        "Proof of the worst-case theorem",
        "information",
        (Custom(measures.ratio_at_most_two),),
    ),
    Claim(
        "gamma_n / log n falls towards its asymptotic bound 1 (not yet below it is no refutation)",
        "Proof of the asymptotic theorem",
        "information",
        (Custom(measures.gamma_falls),),
    ),
    Claim(
        "An optimal policy pulls the informative arm alpha* log n times: within 25 % at the last "
        "round",
        "The program behind c*",
        "allocation",
        (Custom(measures.pulls_are_optimal_low), Custom(measures.pulls_are_optimal_high)),
    ),
)
