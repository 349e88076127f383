"""A website test in simulation: plan an experiment, and compare the clicks of several policies.

Eight pages are the combinations of three factors.  The rates are assumptions; the policies do not
know them.  `python -m benchmarks.website` has all policies and more seeds.
"""

import sightline as sl

VISITORS = 20_000
PAGES = sl.factorial(
    {"picture": ["large", "small"], "text": ["short", "long"], "button": ["green", "blue"]}
)
EFFECTS = {
    "grand mean": 0.075,
    "picture": {"large": 0.02},
    "text": {"short": 0.015},
    "button": {"green": 0.01},
}
CLICKS = sl.problems.BernoulliNoise(0.3)  # 0 or 1; 0.3 is near their standard deviation


def plan(policy: sl.extend.Policy, runs: int) -> sl.types.Plan:
    """Simulate a session with this policy, which learns how much the clicks vary."""
    return sl.plan(
        PAGES,
        effects=EFFECTS,
        noise=CLICKS,
        traffic_per_day=2_000,
        policy=policy,
        horizon=VISITORS,
        replications=runs,
    )


# What to expect of the default policy.
expected = plan(sl.Stakes(), runs=20)
print(expected)

# The same for other policies.
rates = expected.problem.means
print(f"\nbest page: {PAGES.names[int(rates.argmax())]}, {rates.max():.1%} click")
for policy in (sl.Stakes(), sl.ThompsonSampling(), sl.LinUCB(), sl.IDS()):
    made = plan(policy, runs=5)
    print(f"{type(policy).__name__:16} {made.reward:.0f} ± {made.reward_error:.0f} clicks")
print(f"{'equal split':16} {expected.equal_split_reward:.0f} clicks")
