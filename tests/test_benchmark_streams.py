"""The stream benchmark runs the same algorithm in all libraries."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.others.streams_worker import WIDTH, Entry, PlainNumPy, Size, classify, time_rounds
from benchmarks.streams import OURS, Live

import sightline as sl

pytestmark = pytest.mark.slow

PLAIN = Entry("LinUCB", "shared", PlainNumPy)


def test_lin_ucb_chooses_as_in_numpy() -> None:
    rng = np.random.default_rng(0)
    size = Size(5, 4, 1)
    ours, plain = Live(size, sl.LinUCB(sl.FixedBeta(WIDTH**2))), PlainNumPy(size)
    for _ in range(300):
        rows, reward = rng.standard_normal((5, 4)), float(rng.standard_normal())
        arm = plain.ask(rows)
        assert ours.ask(rows) == arm
        ours.tell(arm, reward)
        plain.tell(arm, reward)


@pytest.mark.parametrize("entry", [*OURS, PLAIN], ids=lambda entry: str(entry.label))
def test_a_classification_stream_is_learned(entry: Entry) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=200)
    contexts = np.eye(3)[labels] + 0.1 * rng.standard_normal((200, 3))
    orders = np.array([rng.permutation(200) for _ in range(2)])
    answer = classify(entry, contexts, labels, orders, 60.0)
    assert len(answer.rewards) == 2
    assert all(run[-1] > 120 for run in answer.rewards)
    times = time_rounds(entry, rng.standard_normal((250, 3, 2)), np.zeros((250, 3)), 60.0)
    assert times.rounds == 150
    assert 0.0 < times.ask < times.both
