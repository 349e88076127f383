"""Small experiments, and what it means that two results are the same."""

from __future__ import annotations

import sightline as sl
from sightline.experiments.run import BlockStorage

EOO = sl.problems.end_of_optimism()
SPHERE = sl.problems.unit_sphere(k=6, d=2, seed=3)


def small(**changes: object) -> sl.Experiment:
    """Two problems, two policies, one of which never commits."""
    arguments: dict[str, object] = {
        "problems": {"eoo": EOO, "sphere": SPHERE},
        "policies": {"IDS": sl.IDS(), "LinUCB": sl.LinUCB()},
        "horizon": 200,
        "replications": 6,
        "seed": 1,
    }
    return sl.Experiment(**(arguments | changes))  # type: ignore[arg-type]


def bits(results: sl.types.Results) -> list[object]:
    """Everything that was computed, to the last bit; not how long it took."""
    return storage_bits(results._storage)


def storage_bits(storage: BlockStorage) -> list[object]:
    return [
        (block.cell, block.first + i, seed, *(x[i].tobytes() for x in block[3:6]))
        for block in storage.blocks()
        for i, seed in enumerate(block.seeds)
    ]
