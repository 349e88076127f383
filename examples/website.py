"""A website test in simulation: which policy collects most clicks, and what to expect beforehand.

Eight pages are the combinations of three factors.  Rates are supposed; the policies do not know
them.  `python -m benchmarks.website` has all policies and more seeds.
"""

import numpy as np

import sightline as sl

VISITORS, SEEDS = 20_000, 5
PAGES = sl.factorial(
    {"picture": ["large", "small"], "text": ["short", "long"], "button": ["green", "blue"]}
)
EFFECTS = {
    "grand mean": 0.075,
    "picture": {"large": 0.02},
    "text": {"short": 0.015},
    "button": {"green": 0.01},
}
CLICKS = sl.problems.Bernoulli(0.3)  # what policies are told: near the deviation at these rates

# What to expect, before the first visitor comes.
plan = sl.plan(
    PAGES,
    effects=EFFECTS,
    noise=CLICKS,
    traffic_per_day=2_000,
    policy=sl.Stakes(),
    horizon=VISITORS,
    replications=20,
)
print(plan)

# The same world for other policies.
rates = plan.problem.means
print(f"\nbest page: {PAGES.names[int(rates.argmax())]}, {rates.max():.1%} click")
for policy in (sl.Stakes(), sl.ThompsonSampling(), sl.LinUCB(), sl.IDS(regulariser="matched")):
    runs = [sl.simulate(plan.problem, policy, VISITORS, seed) for seed in range(SEEDS)]
    clicks = np.array([run.pulls[-1] @ rates for run in runs])
    error = clicks.std(ddof=1) / SEEDS**0.5
    print(f"{type(policy).__name__:16} {clicks.mean():.0f} ± {error:.0f} clicks")
print(f"{'equal split':16} {VISITORS * rates.mean():.0f} clicks")
