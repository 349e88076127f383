"""Cost of a round, also of a policy in plain NumPy: python -m benchmarks.rounds [NAME ...].

Processor time per round that the policy learns from, the least of several runs: noise only ever
adds.  theta = 0, so that no arm is better than another and exploration never ends.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import numpy as np
from tests.own_policies import EpsilonGreedy

import sightline as sl
from sightline.policies.base import Policy
from sightline.policies.catalogue import POLICIES

SIZES = {(6, 2): 20_000, (50, 5): 5_000}
REPEATS = 7
SLOW = {"BayesianIDS": 100, "OAM": 300, "OSSB": 300}  # rounds, where 20,000 take long


def default(cls: type[Policy]) -> Policy:
    """Policy with its defaults; where it needs a horizon, a long one."""
    fields: Any = dataclasses.fields(cls)  # type: ignore[arg-type]
    needed = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return cls(**dict.fromkeys(needed, 10**6))


def nanoseconds(problem: sl.LinearBandit, policy: sl.Policy, rounds: int) -> float:
    """Least time per exploration round."""
    sl.simulate(problem, policy, 2)
    best = float("inf")
    for seed in range(REPEATS):
        began = time.process_time()
        run = sl.simulate(problem, policy, rounds, seed, [rounds])
        best = min(best, 1e9 * (time.process_time() - began) / max(run.explorations[-1], 1))
    return best


def main() -> None:
    """Print the table."""
    policies = {name: default(cls) for name, cls in sorted(POLICIES.items())}
    policies['IDS(information="halfspace-ucb")'] = sl.IDS(information="halfspace-ucb")
    policies['IDS(information="cell")'] = sl.IDS(information="cell")
    policies["in plain NumPy (epsilon-greedy)"] = EpsilonGreedy()
    chosen = sys.argv[1:] or list(policies)
    print("| policy | " + " | ".join(f"k={k}, d={d}" for k, d in SIZES) + " |")
    print("|---|" + "---:|" * len(SIZES))
    for name in chosen:
        policy = policies[name]
        cells = []
        for (k, d), rounds in SIZES.items():
            actions = sl.problems.unit_sphere(k=k, d=d, seed=3).actions
            problem = sl.LinearBandit(actions, np.zeros(d), 0.3)
            value = nanoseconds(problem, policy, SLOW.get(name, rounds))
            cells.append(f"{value:.0f} ns" if value < 1e4 else f"{value / 1e3:.0f} us")
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
