"""A website test with three factors, run with ask and tell: rewards come late, a restart happens.

Arms are the combinations of the factors and features their main effects, so that eight pages are
described by four numbers, and every visitor teaches something about all of them.
"""

import itertools
import tempfile
from pathlib import Path

import numpy as np

import sightline as sl

FACTORS = ("large picture", "short text", "green button")
PAGES = list(itertools.product([0, 1], repeat=len(FACTORS)))
FEATURES = np.array([[1, *page] for page in PAGES])  # a constant, then one column per factor

# What the world does, which the experiment does not know: a reward between 0 and 1 per visitor.
WORLD = np.random.default_rng(1)
EFFECTS = np.array([0.3, 0.15, -0.2, 0.3])


def visit(arm: int) -> float:
    """Return 1 if the visitor buys."""
    return float(WORLD.random() < FEATURES[arm] @ EFFECTS)


def serve(session: sl.Session, visitors: int, delay: int = 20) -> None:
    """Show pages; each reward arrives ``delay`` visitors later, and one in ten never does."""
    waiting: list[tuple[str, float]] = []
    for _ in range(visitors):
        decision = session.ask()
        waiting.append((decision.id, visit(decision.arm)))
        if len(waiting) > delay:
            id_, reward = waiting.pop(0)
            if WORLD.random() < 0.9:
                session.tell(id_, reward)


# Rewards in [0, 1] are 1/2-sub-Gaussian; no parameter is longer than 1; lambda fits the two.
policy = sl.IDS(confidence=sl.LogDet(norm_bound=1.0), regulariser="matched")
session = sl.Session(FEATURES, policy, noise_std=0.5, seed=0)
with tempfile.TemporaryDirectory() as directory:
    file = Path(directory) / "experiment.npz"
    serve(session, 5000)
    session.save(file)  # the process may die here
    session = sl.Session.load(file)
session.give_up(before=session.status().round)  # stop waiting for what is still open
serve(session, 15000)

status = session.status()
chosen = [name for name, on in zip(FACTORS, PAGES[status.best or 0], strict=True) if on]
print(f"best page: {', '.join(chosen)}; settled: {status.settled}")
print(f"evidence {status.evidence:.2f} against {status.threshold:.2f}")
