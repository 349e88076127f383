"""Effect of every parameter of IDS on random action sets: python -m benchmarks.knobs.

Mean regret after 10^4 rounds over 100 repetitions; repetition i plays unit_sphere(6, 2) with arms
and noise of seed i, the same for every row.  The difference to the default is paired.
"""

from __future__ import annotations

import math

import numpy as np

import sightline as sl

REPETITIONS = 100
HORIZON = 10**4
ROWS: dict[str, sl.extend.Policy] = {
    "IDS() = Algorithm 1": sl.IDS(),
    'information="halfspace-ucb"': sl.IDS(information="halfspace-ucb"),
    'information="cell"': sl.IDS(information="cell"),
    'information="cell-ucb"': sl.IDS(information="cell-ucb"),
    'information="laplace"': sl.IDS(information="laplace"),
    'information="log-det"': sl.IDS(information="log-det"),
    'information="ucb-directed"': sl.IDS(information="ucb-directed"),
    'information="directed"': sl.IDS(information="directed"),
    'sampling="exact"': sl.IDS(sampling="exact"),
    'sampling="deterministic"': sl.IDS(sampling="deterministic"),
    'gaps="thresholded"': sl.IDS(gaps="thresholded"),
    'gaps="difference"': sl.IDS(gaps="difference"),
    'gaps="difference-to-best"': sl.IDS(gaps="difference-to-best"),
    'learning_rate="algorithm"': sl.IDS(learning_rate="algorithm"),
    'learning_rate="inverse-sqrt-beta"': sl.IDS(learning_rate="inverse-sqrt-beta"),
    "learning_rate=1.0": sl.IDS(learning_rate=1.0),
    'confidence=LogDet(delta="1/(s log s)")': sl.IDS(confidence=sl.LogDet(delta="1/(s log s)")),
    "confidence=LogDet(factor=0.5)": sl.IDS(confidence=sl.LogDet(factor=0.5)),
    "confidence=LogLog()": sl.IDS(confidence=sl.LogLog()),
    "confidence=FixedBeta(1.0)": sl.IDS(confidence=sl.FixedBeta(1.0)),
    'regulariser="matched"': sl.IDS(regulariser="matched"),
    "parameter_set=box(-1, 1)": sl.IDS(
        parameter_set=sl.problems.Polytope.box([-1.0, -1.0], [1.0, 1.0])
    ),
    "parameter_set=cross_polytope(2)": sl.IDS(parameter_set=sl.problems.Polytope.cross_polytope(2)),
    "LinUCB()": sl.LinUCB(),
    'LinUCB(regulariser="matched")': sl.LinUCB(regulariser="matched"),
    "ThompsonSampling()": sl.ThompsonSampling(),
    "BayesianIDS()": sl.BayesianIDS(),
    'BayesianIDS(information="mutual-information")': sl.BayesianIDS(
        information="mutual-information", samples=1000
    ),
}


def regrets(policy: sl.extend.Policy) -> np.ndarray:
    """Final regret of every repetition, and its explorations."""
    runs = [
        sl.simulate(sl.problems.unit_sphere(k=6, d=2, seed=i), policy, HORIZON, i, [HORIZON])
        for i in range(REPETITIONS)
    ]
    return np.array([[run.regret[-1], run.explorations[-1]] for run in runs])


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def main() -> None:
    """Print the table as Markdown."""
    print("| configuration | regret | difference to the default | exploration rounds |")
    print("|---|---|---|---|")
    default = regrets(ROWS["IDS() = Algorithm 1"])
    for label, policy in ROWS.items():
        result = regrets(policy)
        regret, error = mean_and_error(result[:, 0])
        change, change_error = mean_and_error(result[:, 0] - default[:, 0])
        explored = result[:, 1].mean()
        print(
            f"| `{label}` | {regret:.1f} ± {error:.1f} | {change:+.1f} ± {change_error:.1f} "
            f"| {explored:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
