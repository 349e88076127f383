"""The same experiment on a Dask cluster: here two worker processes on this machine.

On a real cluster, start ``dask scheduler`` once and ``dask worker tcp://HOST:8786`` on every node,
with sightline installed there, and give the address as the argument of this script.
"""

import sys

from distributed import Client, LocalCluster

import sightline as sl


def main() -> None:
    """Run a small experiment and show that its results do not depend on where it ran."""
    experiment = sl.Experiment(
        problems=[sl.problems.end_of_optimism()],
        policies={"IDS": sl.IDS(), "LinUCB": sl.LinUCB()},
        horizon=10**4,
        replications=8,
    )
    if len(sys.argv) > 1:
        client = Client(sys.argv[1])
        cluster = None
    else:
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        client = Client(cluster)
    with client:
        there = sl.run(experiment, executor=client.get_executor())
    if cluster is not None:
        cluster.close()
    here = sl.run(experiment)
    print(there.summary().to_string(index=False))
    cell = (here.problems[0], "IDS")
    print(f"the same bits without Dask: {(there.regret(*cell) == here.regret(*cell)).all()}")


if __name__ == "__main__":  # workers are new processes, which import this file
    main()
