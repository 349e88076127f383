"""Blocks of one replication, so that small experiments have many."""

from __future__ import annotations

import pytest

from sightline.experiments import block


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "_FEWEST_ROUNDS", 0)
