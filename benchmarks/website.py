"""Policies in a website test: python -m benchmarks.website [STORE [PART ...]].

Eight pages, three factors with two levels each; a visitor clicks with 3 % on the worst page and
12 % on the best one, 7.5 % on average.  20,000 visitors, Bernoulli rewards, 100 seeds.  Policies
assume the sub-Gaussian parameter of any reward in [0, 1], 0.5, and 0.3, which is near the
standard deviation of clicks at these rates.  Results are kept in the store, and an interrupted run
goes on from there (part ``clicks``).  Then how many visitors it takes until the best page is
settled (``settling``), and what it brings to know that rewards are clicks (``knowing``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
POLICIES: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(),
    "Stakes, deterministic": sl.Stakes(randomised=False),
    "Stakes, noise estimated": sl.Stakes(noise="estimated"),
    "Stakes, S = 0.2": sl.Stakes(norm_bound=0.2),
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
    "EpsilonGreedy": sl.EpsilonGreedy(),
    "EpsilonGreedy, 100/t": sl.EpsilonGreedy(100.0, "1/t"),
    "Greedy": sl.EpsilonGreedy(0.0),
}
# Policies of the second table: those with a stopping test, and two that earn more.
SETTLING = (
    "IDS, LogLog",
    "TopTwo",
    "IDS, matched, S = 0.2",
    "IDS, matched",
    "PrimalDual, matched",
    "LinUCB, matched",
    "ThompsonSampling",
)
LONG, SETTLING_SEEDS = 10**6, 20


def website(sigma: float) -> sl.LinearBandit:
    """Return clicks on eight pages, for policies that assume a noise level."""
    noise = sl.problems.BernoulliNoise(sigma)
    return sl.LinearBandit(PAGES.features, THETA, noise=noise, name=f"sigma {sigma:g}")


def clicks(store: Path) -> None:
    """Print clicks in all, mean ± standard error over the seeds, the most first."""
    worlds = {f"sigma {sigma:g}": website(sigma) for sigma in SIGMAS}
    experiment = sl.Experiment(worlds, POLICIES, VISITORS, SEEDS, checkpoints=[VISITORS])
    results = sl.run(experiment, store)
    first = worlds[f"sigma {SIGMAS[0]:g}"]
    best, average = VISITORS * first.means.max(), VISITORS * first.means.mean()
    summary = results.summary([VISITORS]).set_index(["problem", "policy"])
    worst = best - results.frame.groupby(["problem", "policy"], observed=True).regret.max()
    rows = []
    for label in POLICIES:
        cells = [summary.loc[(name, label)] for name in worlds]
        texts = [f"{best - cell['mean']:.0f} ± {cell['standard_error']:.0f}" for cell in cells]
        lowest = " / ".join(f"{worst[name, label]:.0f}" for name in worlds)
        seconds = sum(time for cell, time in results.seconds.items() if cell.policy == label)
        milliseconds = 1e3 * seconds / (SEEDS * len(worlds))
        row = f"| {label} | {' | '.join(texts)} | {lowest} | {milliseconds:.0f} |"
        rows.append((best - cells[0]["mean"], row))
    print(f"| policy | {' | '.join(worlds)} | worst run | ms per run |")
    print("|---" * (3 + len(worlds)) + "|")
    print(f"| always the best page | {' | '.join([f'{best:.0f}'] * len(worlds))} | | |")
    for _, row in sorted(rows, reverse=True):
        print(row)
    print(f"| equal split | {' | '.join([f'{average:.0f}'] * len(worlds))} | | |")


def settling() -> None:
    """Print thousands of visitors until the best page is settled: median and 90 % quantile."""
    worlds = [website(sigma) for sigma in SIGMAS]
    splits = []
    print(f"\n| policy | {' | '.join(world.name for world in worlds)} |")
    print("|---" * (1 + len(worlds)) + "|")
    for label in SETTLING:
        texts = []
        for world in worlds:
            plan = sl.plan(
                PAGES,
                means=world.means,
                noise=world.noise,
                traffic_per_day=1000,
                policy=POLICIES[label],
                horizon=LONG,
                replications=SETTLING_SEEDS,
            )
            median, late = plan.days_quantile(0.5), plan.days_quantile(0.9)
            texts.append(f"{median:.0f}, {late:.0f}" if late < float("inf") else "not settled")
            if label == "IDS, matched":
                splits.append(f"{plan.equal_split_visitors / 1000:.0f}")
        print(f"| {label} | {' | '.join(texts)} |", flush=True)
    print(f"| equal split, by the test of IDS, matched | {' | '.join(splits)} |")


# What policies know of rewards, and S.  Effects add up to rates; with log odds to these, between
# the same ends, or the model would be wrong.
FREE = sl.LogDet(norm_bound=None)
KNOWN: dict[str, tuple[dict[str, Any], sl.LogDet]] = {
    "at most 1, sigma 0.5": ({"noise": sl.problems.BernoulliNoise(0.5)}, sl.LogDet()),
    "noise unknown": ({"noise": sl.problems.BernoulliNoise(), "rewards": sl.Gaussian(None)}, FREE),
    "clicks, identity link": ({"rewards": sl.Bernoulli("identity")}, sl.LogDet()),
    "clicks, logistic link": ({"rewards": sl.Bernoulli()}, FREE),
}


def knowing(runs: int = SETTLING_SEEDS) -> None:
    """Print visitors until settled and clicks, by what a policy knows of rewards."""
    print("\n| known | policy | settled within 10^6 | wrong | visitors, median | 90 % |", end="")
    print(f" clicks of {VISITORS} visitors |")
    print("|---" * 7 + "|")
    for label, (known, rule) in KNOWN.items():
        odds = label.endswith("logistic link")
        means = (sl.problems.website() if odds else website(0.5)).means
        bound = 3.0 if odds else 1.0
        for policy in (sl.IDS(confidence=rule, regulariser="matched"), sl.Stakes(bound)):
            made, short = (
                sl.plan(
                    sl.problems.website().actions if odds else PAGES,
                    means=means,
                    **known,
                    traffic_per_day=1000,
                    policy=policy,
                    horizon=horizon,
                    replications=count,
                )
                for horizon, count in ((LONG, runs), (VISITORS, 5 * runs))
            )
            named = made.winners[made.winners >= 0]
            wrong = int((made.problem.gaps[named] > 0.0).sum())
            cells = [label, type(policy).__name__, f"{100 * made.settled:.0f} %", str(wrong)]
            cells += [f"{made.visitors_quantile(level):,.0f}" for level in (0.5, 0.9)]
            cells += [f"{short.reward:.0f} ± {short.reward_error:.0f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables that are asked for, or all."""
    store, *parts = sys.argv[1:] or ["results"]
    tables = {
        "clicks": lambda: clicks(Path(store) / "website"),
        "settling": settling,
        "knowing": knowing,
    }
    for part in parts or tables:
        tables[part]()


if __name__ == "__main__":
    main()
