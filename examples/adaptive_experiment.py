"""A website test with three factors: sales come late or never, and the process restarts once.

Four numbers describe eight pages, a mean and one effect per factor, so every visitor tells
something about all pages.  Only sales are told; a visitor without a sale after 200 further visitors
counts as 0.
"""

import tempfile
from pathlib import Path

import numpy as np

import sightline as sl

PAGES = sl.factorial(
    {"picture": ["large", "small"], "text": ["short", "long"], "button": ["green", "blue"]}
)

# The true rates, which the experiment does not know.
WORLD = np.random.default_rng(1)
RATES = PAGES.features @ [0.425, 0.075, -0.1, 0.15]  # mean, then effects of the first levels


def serve(session: sl.Session, visitors: int) -> None:
    """Show pages to groups of 20 visitors; sales become known during the next group."""
    sales: list[tuple[str, float]] = []
    for _ in range(visitors // 20):
        decisions = session.ask(count=20)  # .option .levels .probability: all on disk by now
        session.tell_many(sales)
        sales = [(one.id, 1.0) for one in decisions if WORLD.random() < RATES[one.arm]]
    session.tell_many(sales)


def main(directory: Path) -> None:
    journal = directory / "experiment.db"
    # sl.IDS() settles with a guarantee (sl.Stakes(), the default, earns more and settles later).
    # Rewards in [0, 1] are 1/2-sub-Gaussian; the session assumes nothing else about them.
    with sl.Session.open(
        journal, PAGES, sl.IDS(), noise_std=0.5, reward_window="200 rounds", on_timeout=0.0
    ) as session:
        serve(session, 5000)
    with sl.Session.open(journal) as session:  # another process, after a crash or an update
        serve(session, 7000)
        status = session.status()
        print(f"best page: {status.best}; settled: {status.settled}")
        print(f"evidence {status.evidence:.2f} against {status.threshold:.2f}")
        print(session.effects().to_string(index=False))
        session.plot(directory / "experiment.svg")
        session.export(directory / "decisions.parquet")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
