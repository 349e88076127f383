"""Experiments on arms that are new in every round, from the specification to the command line."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.experiments.block import tasks
from sightline.experiments.sources import sources_of
from sightline.jit import compiled
from sightline.jit.numba_compat import is_disabled
from sightline.problems.descriptions import build, describe
from sightline.problems.streams import (
    SphereArms,
    StreamBandit,
    draw_arms,
    recorded_stream,
    sphere_stream,
)
from sightline.simulation.loop import _CACHED, _UNCACHED, loop_for
from sightline.simulation.simulate import is_interpreted
from tests.experiments.helpers import EOO, bits, small
from tests.experiments.test_run import Recorder, local_bits
from tests.marks import thorough

RNG = np.random.default_rng(0)
ACTIONS = RNG.standard_normal((7, 4, 3))
REWARDS = ACTIONS @ [1.0, 0.5, 0.0]
SPHERE = sphere_stream(4, 3)
FEW = {"horizon": 40, "replications": 4}


def recorded(rewards: NDArray[np.float64] = REWARDS) -> StreamBandit:
    return recorded_stream(ACTIONS, rewards, 0.3, name="recorded")


PROBLEMS = {"sphere": SPHERE, "recorded": recorded()}
POLICIES = {"LinUCB": sl.LinUCB(), "greedy": sl.EpsilonGreedy(0.1)}


def on_streams(**changes: Any) -> sl.Experiment:
    return small(**({"problems": PROBLEMS, "policies": POLICIES, **FEW} | changes))


class Tide(NamedTuple):
    """Arms that grow from round to round: a source that changes while it is drawn from."""

    height: NDArray[np.float64]  # (1,)
    step: float


@draw_arms.register(Tide)
def _draw_tide(source: Tide, rng: np.random.Generator, rows: Any, means: Any) -> int:
    source.height[0] += source.step
    rows[0, 0], rows[1, 0] = source.height[0], rng.random()
    means[:2] = rows[:, 0]
    return 2


def tide(height: float = 0.0) -> StreamBandit:
    return StreamBandit(Tide(np.array([height]), 0.1), 2, 1, 0.1, name="tide")


class Fixed(NamedTuple):
    """One arm, drawn by a kernel that is not the library's."""

    mean: float


@draw_arms.register(Fixed)
@compiled
def _draw_fixed(source: Fixed, rng: np.random.Generator, rows: Any, means: Any) -> int:
    rows[0, 0] = 1.0
    means[0] = source.mean
    return 1


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_threads_gives_the_same_bits(workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert bits(sl.run(on_streams(), executor=pool)) == local_bits(on_streams())


@thorough  # processes of other experiments stand for these
@pytest.mark.slow
def test_processes_give_the_same_bits() -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert bits(sl.run(on_streams(), executor=pool)) == local_bits(on_streams())


def test_a_store_has_the_runs_of_simulate_and_is_used_again(tmp_path: Path) -> None:
    experiment = on_streams()
    results = sl.run(experiment, tmp_path / "store", Recorder())
    loaded = sl.types.Results.load(tmp_path / "store")
    assert bits(loaded) == bits(results)
    assert loaded.complete
    for name, problem in PROBLEMS.items():
        for label, policy in POLICIES.items():
            for i, seed in enumerate(experiment.seeds):
                run = sl.simulate(problem, policy, 40, seed)
                np.testing.assert_array_equal(loaded.regret(name, label)[i], run.regret)
    again = Recorder()
    sl.run(on_streams(problems={**PROBLEMS, "recorded": recorded()}), tmp_path / "store", again)
    assert not again.tasks


@pytest.mark.parametrize(
    "problem",
    [
        recorded(np.where(np.arange(4) == 2, np.nextafter(REWARDS, 9), REWARDS)),
        recorded_stream(ACTIONS[::-1], REWARDS[::-1], 0.3, name="recorded"),
        recorded_stream(ACTIONS, REWARDS, 0.4, name="recorded"),
    ],
    ids=["rewards in their last bit", "order", "noise"],
)
def test_other_data_are_another_experiment(tmp_path: Path, problem: StreamBandit) -> None:
    few = {"policies": [sl.LinUCB()], "replications": 1}
    sl.run(on_streams(problems=[recorded()], **few), tmp_path, Recorder())
    changed = on_streams(problems=[problem], **few)
    assert problem != recorded()
    with pytest.raises(ValueError, match="holds the results of another experiment"):
        sl.run(changed, tmp_path, Recorder())
    assert local_bits(changed) != bits(sl.types.Results.load(tmp_path))


def test_data_that_are_changed_later_do_not_matter() -> None:
    actions, rewards = ACTIONS.copy(), REWARDS.copy()
    problem = recorded_stream(actions, rewards, 0.3, name="recorded")
    actions[:], rewards[:] = 0.0, 0.0
    assert problem == recorded()
    with pytest.raises(ValueError, match="read-only"):
        problem.source.rewards[0] = 0.0


def test_a_specification_has_names_and_checksums() -> None:
    named = on_streams(problems={"sphere": SPHERE})
    assert sl.Experiment.from_toml(named.to_toml()) == named
    assert 'type = "sphere_stream"\nk = 4\nd = 3' in named.to_toml()
    experiment = on_streams()
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    assert pickle.loads(pickle.dumps(experiment)).digest == experiment.digest
    assert experiment.to_toml().count("sha256:") == 4
    with pytest.raises(
        ValueError, match=r"problems\.recorded: the description of a stream has only checksums"
    ):
        sl.Experiment.from_toml(experiment.to_toml())


def test_what_has_no_meaning_is_left_out(tmp_path: Path) -> None:
    problems = {"sphere": SPHERE, "eoo": EOO}
    results = sl.run(on_streams(problems=problems), tmp_path / "store", Recorder())
    for found in (results, sl.types.Results.load(tmp_path / "store")):
        assert list(found.lower_bounds) == ["eoo"]
        assert set(found.pulls().problem) == {"eoo"}
        assert found.summary().problem.tolist() == ["sphere", "sphere", "eoo", "eoo"]
        assert found.frame.pulls.map(len).groupby(
            found.frame.problem, observed=True
        ).max().to_dict() == {
            "sphere": 0,
            "eoo": EOO.k,
        }
        figure = found.plot(tmp_path / "regret.svg")
        lines = [len(axes.get_lines()) for axes in figure.axes]
        assert lines == [2, 2, 3, 3], "c* log n is drawn beside the bandit alone"
    only = sl.run(on_streams(problems={"sphere": SPHERE}), executor=Recorder())
    assert only.pulls().empty


def test_blocks_of_policies_that_commit_are_as_small_as_those_of_others() -> None:
    experiment = on_streams(
        problems={"sphere": SPHERE, "eoo": EOO}, policies=[sl.IDS()], horizon=10**6
    )
    sizes = {task.cell.problem: len(task.seeds) for task in tasks(experiment, False)}
    assert sizes["sphere"] == 1
    large = small(problems={"sphere": SPHERE}, horizon=10**6, replications=320)
    assert {len(task.seeds) for task in tasks(large, False)} == {10}


def test_every_run_begins_with_the_source_as_it_was_given(tmp_path: Path) -> None:
    problem = tide()
    experiment = on_streams(problems=[problem], policies=[sl.EpsilonGreedy(0.1)])
    assert is_interpreted(problem, sl.EpsilonGreedy(0.1))
    expected = local_bits(experiment)
    with ThreadPoolExecutor(2) as pool:
        assert bits(sl.run(experiment, tmp_path / "store", pool)) == expected
    assert problem == tide()
    other = on_streams(problems=[tide(0.5)], policies=[sl.EpsilonGreedy(0.1)])
    assert other.digest != experiment.digest
    assert f"{__name__}:Tide" in experiment.to_toml()
    same_shape = sphere_stream(2, 1)
    assert sources_of(problem, sl.LinUCB()) != sources_of(same_shape, sl.LinUCB())


@pytest.mark.skipif(is_disabled(), reason="without compilation there is one loop")
def test_a_loop_with_a_source_of_ones_own_is_not_kept_on_disk() -> None:
    """The kernel cache does not hash its file."""
    own = StreamBandit(Fixed(1.0), 1, 1)
    state = sl.LinUCB().start(own.model)
    assert loop_for(state, own) is _UNCACHED
    assert loop_for(state, sphere_stream(1, 1)) is _CACHED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": {"mine": sl.OSSB()}}, "^sphere / mine: OSSB needs arms that come again"),
        ({"delay": 3}, "^sphere / LinUCB: delay needs arms that stay"),
        (
            {"policies": {"mine": sl.IDS()}, "horizon": 10**20},
            "^sphere / mine: horizon must be at most",
        ),
    ],
    ids=["policy", "delay", "horizon"],
)
def test_what_cannot_be_run_is_refused_before_any_work(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        on_streams(**changes)


class Nested(NamedTuple):
    """A source with a part that no checksum covers."""

    parts: list[int]


draw_arms.register(Nested)(_draw_tide)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "source must be a named tuple for which draw_arms is registered"),
        (
            Nested([1]),
            r"parts of source must be a number, a text or an array of numbers, got \[1\]",
        ),
        (SphereArms(np.array([None]), 2), "theta of source must be a number, a text or an array"),
    ],
    ids=["number", "list", "objects"],
)
def test_sources_that_cannot_be_told_apart_are_refused(source: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamBandit(source, 2, 1)


def test_a_recorded_stream_from_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "recorded.npz", actions=ACTIONS, rewards=REWARDS, noise_std=0.3)
    assert StreamBandit.load(tmp_path / "recorded.npz") == recorded()
    loud = StreamBandit.load(tmp_path / "recorded.npz", 2.0)
    assert loud == recorded_stream(ACTIONS, REWARDS, 2.0, name="recorded")
    fields = {"actions": ACTIONS.tolist(), "rewards": REWARDS.tolist(), "noise_std": 0.3}
    (tmp_path / "recorded.json").write_text(json.dumps(fields))
    assert StreamBandit.load(tmp_path / "recorded.json") == recorded()
    with pytest.raises(ValueError, match="description of a stream has only checksums"):
        build(describe(recorded()))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_the_command_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "recorded.npz", actions=ACTIONS, rewards=REWARDS)
    store = tmp_path / "store"
    few = ["--horizon", "40", "--replications", "2", "--threads", "1", "--store", str(store)]
    names = ["--problem", "sphere-stream:k=4,d=3", "--policy", "lin-ucb"]
    files = ["--problem", f"{tmp_path / 'recorded.npz'}:noise_std=0.3"]
    result = invoke("simulate", *names, *files, *few, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["lower_bounds"] == {}
    assert [row["problem"] for row in content["summary"]] == ["sphere-stream-4-3", "recorded"]
    assert (store / "regret.png").exists()
    table = invoke("simulate", *names, *files, *few)
    assert table.exit_code == 0, table.output
    assert "regret after 40 rounds" in table.output
    assert "lower bound" not in table.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "sphere_stream"), "has new arms in every round; this command needs fixed arms"),
        (("watch", "sphere_stream"), "has new arms in every round; this command needs fixed arms"),
        (
            ("bound", "sphere_stream"),
            "has new arms in every round; this command needs fixed arms",
        ),
        (
            ("simulate", "--problem", "sphere_stream", "--policy", "ossb"),
            "OSSB needs arms that come again; this problem has new ones in every round",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_commands_that_need_lasting_arms_say_so(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert len(result.output.strip().splitlines()) == 1
