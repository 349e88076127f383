"""What items need is compiled once, before they run, and never again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sightline.experiments.compilation import Job
from sightline.jit.numba_compat import type_name
from sightline.paper import preparation
from sightline.paper.catalogue import ITEMS
from sightline.paper.preparation import compile_kernels
from sightline.paper.settings import IDS_H, RANDOM, SLOPE_2, problems


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the jobs that would be compiled."""
    done: list[str] = []

    def pretend(jobs: Iterable[Job], report: Callable[[str, float], None]) -> None:
        for job in jobs:
            done.append(job.name)
            report(job.name, 0.0)

    monkeypatch.setattr(preparation, "compile_in_processes", pretend)
    monkeypatch.setattr(preparation, "is_disabled", lambda: False)
    monkeypatch.setattr(preparation, "cores", lambda: 2)
    monkeypatch.setattr(preparation, "cache_directory", lambda: tmp_path / "cache")
    return done


def test_one_run_per_kernel_and_one_calculation_per_policy_that_it_times(names: list[str]) -> None:
    told: list[tuple[int, int]] = []
    compile_kernels([ITEMS["figure6"], ITEMS["table1"]], "quick", lambda *seen: told.append(seen))
    timed = [name for name in names if name.startswith("timings")]
    assert len(timed) == len(set(timed)) == 6, "one per method, whatever the shape and the seeds"
    assert len(names) - len(timed) == 4, "two rules at any learning rate, and LinUCB for both"
    assert told == [(i, 10) for i in range(11)]


def test_levels_of_delta_share_their_kernels(names: list[str]) -> None:
    compile_kernels([ITEMS["figure1"]], "quick")
    assert sum(name.startswith("IDS(") for name in names) == 4, "two gains, two kinds of gaps"


def test_what_was_compiled_is_not_compiled_again(names: list[str]) -> None:
    compile_kernels([ITEMS["far-horizon"]], "quick")
    assert len(names) == 2
    compile_kernels([ITEMS["far-horizon"]], "quick")
    assert len(names) == 2


def test_the_item_that_opens_the_page_is_compiled_without_delay(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "type_name", None)  # would make states, one at a time
    compile_kernels([ITEMS["far-horizon"]], "quick")
    assert [name.partition("(")[0] for name in names] == ["IDS", "LinUCB"]


@pytest.mark.parametrize("name", [SLOPE_2, RANDOM])
def test_another_process_compiles_the_kernels_that_this_one_runs(name: str) -> None:
    """What it is sent must have states of the same type: rewards that are seen share memory."""
    problem = problems(name)[name]
    sent = pickle.loads(pickle.dumps(problem))
    states = [IDS_H.start(one.member(0).model) for one in (problem, sent)]
    worlds = [one.member(0).world() for one in (problem, sent)]
    assert type_name(states[0]) == type_name(states[1])
    assert type_name(worlds[0]) == type_name(worlds[1])
