"""Blocks as one tidy pandas frame."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from sightline.experiments.block import Block
from sightline.experiments.experiment import Plan
from sightline.simulation.simulate import round_array

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = "problem policy replication seed log_t t regret explorations pulls"


def tidy_frame(blocks: Iterable[Block], plan: Plan) -> pd.DataFrame:
    """One row per problem, policy, replication and checkpoint, in the order of the plan."""
    import pandas as pd

    parts = [_rows(block, plan) for block in blocks]
    columns = _COLUMNS.split()
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    for name in ("problem", "policy"):
        categories = list(dict.fromkeys(getattr(cell, name) for cell in plan.cells))
        frame[name] = pd.Categorical(frame[name], categories=categories)
    return frame


def _rows(block: Block, plan: Plan) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    replications, marks, k = block.pulls.shape
    offsets = k * np.arange(replications * marks + 1, dtype=np.int32)
    pulls = pa.ListArray.from_arrays(offsets, block.pulls.ravel())
    log_t = np.array([math.log(t) for t in plan.rounds])
    return pd.DataFrame(
        {
            **block.cell._asdict(),
            "replication": np.repeat(np.arange(replications) + block.first, marks),
            "seed": np.repeat(np.array(block.seeds), marks),
            "log_t": np.tile(log_t, replications),
            "t": np.tile(round_array(plan.rounds), replications),
            "regret": block.regret.ravel(),
            "explorations": block.explorations.ravel(),
            "pulls": pd.Series(pulls, dtype=pd.ArrowDtype(pulls.type)),
        }
    )
