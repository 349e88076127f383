"""Which policy earns most in a website test: python -m benchmarks.website [STORE].

Eight pages, three factors with two levels each; a visitor clicks with 3 % on the worst page and
12 % on the best one, 7.5 % on average.  20,000 visitors, Bernoulli rewards, 100 seeds.  Policies
are told the sub-Gaussian parameter of any reward in [0, 1], 0.5, and 0.3, which is near the
standard deviation of clicks at these rates.  Results are kept in the store, and an interrupted run
goes on from there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sightline as sl

VISITORS = 20_000
SEEDS = 100
PAGES = sl.factorial(
    {"picture": ["large", "small"], "text": ["short", "long"], "button": ["green", "blue"]}
)
THETA = [0.075, 0.02, 0.015, 0.01]  # grand mean, then the effect of the first level of each factor
SIGMAS = (0.5, 0.3)
LOG_LOG = sl.LogLog()
SMALL = sl.LogDet(norm_bound=0.2)  # for rates known to be below 20 %
POLICIES: dict[str, sl.Policy] = {
    "BayesianIDS": sl.BayesianIDS(),
    "BayesianIDS, prior 0.2": sl.BayesianIDS(prior_std=0.2),
    "ThompsonSampling": sl.ThompsonSampling(),
    "ThompsonSampling, prior 0.2": sl.ThompsonSampling(prior_std=0.2),
    "ThompsonSampling, Abeille-Lazaric": sl.ThompsonSampling(inflation="abeille-lazaric"),
    "ThompsonSampling, Agrawal-Goyal": sl.ThompsonSampling(inflation="agrawal-goyal"),
    "IDS": sl.IDS(),
    "IDS, matched": sl.IDS(regulariser="matched"),
    "IDS, matched, S = 0.2": sl.IDS(regulariser="matched", confidence=SMALL),
    "IDS, LogLog": sl.IDS(confidence=LOG_LOG),
    "IDS, half-space UCB": sl.IDS(information="halfspace-ucb"),
    "LinUCB": sl.LinUCB(),
    "LinUCB, matched": sl.LinUCB(regulariser="matched"),
    "LinUCB, matched, S = 0.2": sl.LinUCB(regulariser="matched", confidence=SMALL),
    "LinUCB, LogLog": sl.LinUCB(confidence=LOG_LOG),
    "LinMED": sl.LinMED(),
    "LinIMED": sl.LinIMED(),
    "OSSB": sl.OSSB(),
    "OAM": sl.OAM(horizon=VISITORS),
    "SOLID": sl.SOLID(),
    "SOLID++": sl.SOLID(reset=False),
    "PrimalDual, matched": sl.PrimalDual(regulariser="matched"),
    "ExploreThenAllocate": sl.ExploreThenAllocate(horizon=VISITORS),
    "E4": sl.E4(horizon=VISITORS),
    "PhasedElimination": sl.PhasedElimination(horizon=VISITORS),
    "TopTwo": sl.TopTwo(),
}


def website(sigma: float) -> sl.LinearBandit:
    """Return clicks on eight pages, of which policies are told a noise level."""
    noise = sl.problems.Bernoulli(sigma)
    return sl.LinearBandit(PAGES.features, THETA, noise=noise, name=f"sigma {sigma:g}")


def main() -> None:
    """Print clicks in all, mean ± standard error over the seeds, the most first."""
    store = Path(sys.argv[1] if len(sys.argv) > 1 else "results") / "website"
    worlds = {f"sigma {sigma:g}": website(sigma) for sigma in SIGMAS}
    experiment = sl.Experiment(worlds, POLICIES, VISITORS, SEEDS, checkpoints=[VISITORS])
    results = sl.run(experiment, store)
    summary = results.summary([VISITORS]).set_index(["problem", "policy"])
    first = worlds[f"sigma {SIGMAS[0]:g}"]
    best, average = VISITORS * first.means.max(), VISITORS * first.means.mean()
    rows = []
    for label in POLICIES:
        cells = [summary.loc[(name, label)] for name in worlds]
        clicks = [best - cell["mean"] for cell in cells]
        texts = [
            f"{click:.0f} ± {cell['standard_error']:.0f}"
            for click, cell in zip(clicks, cells, strict=True)
        ]
        seconds = sum(s for c, s in results.seconds.items() if c.policy == label)
        milliseconds = 1e3 * seconds / (SEEDS * len(worlds))
        rows.append((clicks[0], f"| {label} | {' | '.join(texts)} | {milliseconds:.0f} |"))
    print(f"| policy | {' | '.join(worlds)} | ms per run |")
    print("|---" * (2 + len(worlds)) + "|")
    print(f"| always the best page | {' | '.join([f'{best:.0f}'] * len(worlds))} | |")
    for _, row in sorted(rows, reverse=True):
        print(row)
    print(f"| equal split | {' | '.join([f'{average:.0f}'] * len(worlds))} | |")


if __name__ == "__main__":
    main()
