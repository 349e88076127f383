"""Policies against problems, replicated on all cores, stored, and reported as tidy data."""

import sys

import sightline as sl


def experiment() -> sl.Experiment:
    """Three slopes of end of optimism, four policies."""
    return sl.Experiment(
        problems=[sl.problems.end_of_optimism(slope=slope) for slope in (1.0, 2.0, 4.0)],
        policies={
            "IDS": sl.IDS(),
            "IDS-UCB": sl.IDS(information="halfspace-ucb"),
            "LinUCB": sl.LinUCB(),
            "Thompson": sl.ThompsonSampling(),
        },
        horizon=10**4,
        replications=10,
        seed=0,
    )


if __name__ == "__main__":
    # With a directory as an argument the results are kept, and a second run computes nothing.
    store = sys.argv[1] if len(sys.argv) > 1 else None
    results = sl.run(experiment(), store=store)
    columns = ["problem", "policy", "mean", "standard_error", "q0.95"]
    print(results.summary()[columns].to_string(index=False))
    print(results.compare("IDS", "LinUCB").to_string(index=False))  # paired: the same noise
    print(results.frame.head())  # every run at every checkpoint
    if store is not None:
        results.plot(f"{store}/regret.png", bounds={"end-of-optimism-0.01-2": 0.8})
