"""Logs with known means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

NAMES = ("A", "B", "C")
MEANS = np.array([0.3, 0.5, 0.1])
#: Where a frame has the probabilities of all options.
COLUMNS: dict[str, Any] = {"probabilities": {name: f"p_{name}" for name in NAMES}}


def clicks(n: int, seed: int = 0, floor: float = 0.1) -> pd.DataFrame:
    """Clicks, logged by a policy that favours the option with the most clicks so far."""
    rng = np.random.default_rng(seed)
    k = len(NAMES)
    totals, rows = np.zeros(k), []
    for _ in range(n):
        p = np.full(k, floor)
        p[totals.argmax()] += 1.0 - k * floor
        a = int(rng.choice(k, p=p))
        r = float(rng.random() < MEANS[a])
        totals[a] += r
        rows.append((NAMES[a], r, p[a], *p))
    names = ["action", "reward", "probability", *COLUMNS["probabilities"].values()]
    return pd.DataFrame(rows, columns=names)
