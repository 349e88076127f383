"""Tidy data and summaries, against plain NumPy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import sightline as sl
from tests.experiments.helpers import EOO, SPHERE, small
from tests.experiments.test_run import Recorder
from tests.own_policies import Stubborn

EXPERIMENT = small(replications=8, checkpoints=[10, 50, 100, 200])


@pytest.fixture(scope="module")
def results() -> sl.types.Results:
    return sl.run(EXPERIMENT, executor=Recorder())


def regret(problem: str, policy: str) -> np.ndarray:
    world, rival = EXPERIMENT.problems[problem], EXPERIMENT.policies[policy]
    runs = [sl.simulate(world, rival, 200, s, [10, 50, 100, 200]) for s in EXPERIMENT.seeds]
    return np.array([run.regret for run in runs])


def test_the_frame_is_tidy(results: sl.types.Results) -> None:
    frame = results.frame
    assert list(frame.columns) == [
        "problem", "policy", "replication", "seed", "log_t", "t", "regret", "explorations", "pulls",
    ]  # fmt: skip
    assert len(frame) == 2 * 2 * 8 * 4
    assert not frame.duplicated(["problem", "policy", "replication", "t"]).any()
    assert frame.t.tolist() == [10, 50, 100, 200] * 32
    assert np.allclose(frame.log_t, np.log(frame.t))
    assert frame.groupby("replication").seed.nunique().eq(1).all()
    assert [sum(pulls) for pulls in frame.pulls] == frame.t.tolist()
    gaps = {"eoo": EXPERIMENT.problems["eoo"].gaps, "sphere": SPHERE.gaps}
    for row in frame.itertuples():
        assert row.regret == pytest.approx(np.dot(list(row.pulls), gaps[row.problem]))


def test_the_summary_is_that_of_numpy(results: sl.types.Results) -> None:
    table = results.summary("all", quantiles=(0.1, 0.5)).set_index(["problem", "policy", "t"])
    for cell in EXPERIMENT.cells:
        truth = regret(*cell)
        for i, t in enumerate((10, 50, 100, 200)):
            row = table.loc[(*cell, t)]
            assert row["mean"] == pytest.approx(truth[:, i].mean())
            error = truth[:, i].std(ddof=1) / math.sqrt(8)
            assert row["standard_error"] == pytest.approx(error)
            assert row["q0.1"] == pytest.approx(np.quantile(truth[:, i], 0.1))
            assert row["q0.5"] == pytest.approx(np.median(truth[:, i]))
            assert row["replications"] == 8
    assert results.summary().t.tolist() == [200] * 4
    assert results.summary([50, "1e2"]).t.tolist() == [50, 100] * 4


def test_comparisons_are_paired(results: sl.types.Results) -> None:
    table = results.compare("IDS", "LinUCB").set_index("problem")
    for problem in ("eoo", "sphere"):
        change = regret(problem, "IDS")[:, -1] - regret(problem, "LinUCB")[:, -1]
        assert table.loc[problem, "difference"] == pytest.approx(change.mean())
        error = change.std(ddof=1) / math.sqrt(8)
        assert table.loc[problem, "standard_error"] == pytest.approx(error)
        assert table.loc[problem, "wins"] == np.mean((change < 0) + 0.5 * (change == 0))
    same = results.compare("IDS", "IDS")
    assert (same.difference == 0).all()
    assert (same.standard_error == 0).all()
    assert (same.wins == 0.5).all()


def test_slopes(results: sl.types.Results) -> None:
    table = results.slopes(since=50).set_index(["problem", "policy"])
    log_t = np.log([50, 100, 200])
    slopes = [np.polyfit(log_t, run[1:], 1)[0] for run in regret("sphere", "LinUCB")]
    row = table.loc[("sphere", "LinUCB")]
    assert row["slope"] == pytest.approx(np.mean(slopes))
    assert row["standard_error"] == pytest.approx(np.std(slopes, ddof=1) / math.sqrt(8))
    assert set(results.slopes().since) == {14}, "from the square root of the horizon on"


def test_a_constant_policy_has_the_slope_of_its_gap() -> None:
    """Regret t * gap: the least squares line through (log t, t) has a known slope."""
    experiment = small(policies={"third": Stubborn(arm=2)}, checkpoints=[100, 200])
    table = sl.run(experiment, executor=Recorder()).slopes().set_index("problem")
    assert table.loc["eoo", "slope"] == pytest.approx(100 / math.log(2))
    assert table.loc["eoo", "standard_error"] == pytest.approx(0, abs=1e-12)


def test_mean_pulls(results: sl.types.Results) -> None:
    table = results.pulls([200])
    assert len(table) == 2 * (3 + 6)
    assert table.groupby(["problem", "policy"])["mean"].sum().tolist() == pytest.approx([200.0] * 4)


def test_one_replication_has_no_error() -> None:
    results = sl.run(small(replications=1), executor=Recorder())
    assert results.summary().standard_error.isna().all()
    assert results.slopes().standard_error.isna().all()


def test_infinite_regret_stays_infinite() -> None:
    experiment = small(
        policies={"wrong": Stubborn(arm=2)}, horizon=10**400, checkpoints=[10, 10**200, 10**400]
    )
    results = sl.run(experiment, executor=Recorder())
    summary = results.summary().set_index("problem")
    assert summary.loc["eoo", "mean"] == math.inf
    assert not np.isfinite(results.slopes().slope).any()
    results.plot(bounds={})


def test_seconds_are_those_of_the_blocks(results: sl.types.Results) -> None:
    assert set(results.seconds) == set(EXPERIMENT.cells)
    assert all(seconds > 0 for seconds in results.seconds.values())


def test_results_say_what_they_are(results: sl.types.Results) -> None:
    assert repr(results) == "Results(2 problems, 2 policies, 32 of 32 runs to 200 rounds)"
    assert results.complete


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_figure(results: sl.types.Results, suffix: str, tmp_path: Path) -> None:
    figure: Any = results.plot(tmp_path / f"regret.{suffix}", bounds={"eoo": 0.8}, early=100)
    assert (tmp_path / f"regret.{suffix}").stat().st_size > 1000
    grid = figure.get_axes()
    assert len(grid) == 4
    assert [axes.get_xscale() for axes in grid] == ["linear", "log"] * 2
    assert [len(axes.get_lines()) for axes in grid] == [3, 3, 2, 2], "a bound for one problem"
    early, late = (axes.get_lines()[0].get_xdata() for axes in grid[:2])
    assert list(early) == pytest.approx([10, 50, 100])
    assert list(late) == pytest.approx([10, 50, 100, 200])
    bound = grid[1].get_lines()[2]
    assert list(bound.get_ydata()) == pytest.approx(0.8 * np.log([10, 50, 100, 200]))
    band = grid[1].collections[0].get_paths()[0].vertices
    truth = regret("eoo", "IDS")[:, -1]
    top = truth.mean() + 2 * truth.std(ddof=1) / math.sqrt(8)
    assert band[band[:, 0] > 199, 1].max() == pytest.approx(top)


def test_the_lower_bound_is_drawn_by_default() -> None:
    figure: Any = sl.run(small(), executor=Recorder()).plot()
    late = figure.get_axes()[1]
    label, bound = late.get_lines()[-1].get_label(), late.get_lines()[-1].get_ydata()
    assert "log n" in label
    value = sl.lower_bound(EOO).value
    assert bound[-1] == pytest.approx(value * math.log(small().horizon))
    none: Any = sl.run(small(), executor=Recorder()).plot(bounds={})
    assert len(none.get_axes()[1].get_lines()) == len(late.get_lines()) - 1


def test_a_figure_of_some_problems_and_policies(results: sl.types.Results) -> None:
    figure: Any = results.plot(problems="sphere", policies=["LinUCB", "IDS", "LinUCB"], bounds={})
    early, late = figure.get_axes()
    for axes in (early, late):
        assert [line.get_label() for line in axes.get_lines()] == ["LinUCB", "IDS"]
    assert late.get_title() == "sphere"
    expected = regret("sphere", "LinUCB").mean(axis=0)
    assert late.get_lines()[0].get_ydata() == pytest.approx(expected)


def test_a_figure_asks_for_the_lower_bounds_of_what_it_shows(
    results: sl.types.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def bound(problem: Any) -> Any:
        asked.append(problem.name)
        return sl.lower_bound(problem)

    monkeypatch.setattr("sightline.report.results.lower_bound", bound)
    fresh = sl.types.Results(results._storage, EXPERIMENT.problems)
    for _ in range(2):
        fresh.plot(problems="eoo")
    assert asked == [EOO.name]
    assert list(fresh.lower_bounds) == ["eoo", "sphere"]


def test_a_figure_in_given_axes(results: sl.types.Results, tmp_path: Path) -> None:
    figure = Figure()
    places = figure.subplots(2, 2)
    drawn = results.plot(tmp_path / "a.png", ax=places[1], bounds={"sphere": 2.0})
    assert drawn is figure
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert [len(axes.get_lines()) for axes in figure.axes] == [0, 0, 2, 3]
    assert [axes.get_xscale() for axes in places[1]] == ["log", "log"]
    texts = [text.get_text() for text in places[1, 0].get_legend().get_texts()]
    assert texts == ["IDS", "LinUCB", r"$c^*\sigma^2\,\log n$"]
    assert places[1, 1].get_legend() is None
    parts: Any = Figure().subfigures(1, 2)
    assert results.plot(problems="eoo", ax=parts[0].subplots(), bounds={}) is parts[0].figure


def test_many_problems_are_on_a_grid_with_one_legend() -> None:
    problems = {f"world {i}": EOO for i in range(5)}
    policies = {"beta 1": Stubborn(arm=2), "right": Stubborn(arm=0)}
    found = sl.run(small(problems=problems, policies=policies), executor=Recorder())
    figure: Any = found.plot(bounds={"world 1": 0.8})
    width, height = figure.get_size_inches()
    assert 9.0 < width < 11.0
    assert 5.0 < height < 7.0
    shown = [axes for axes in figure.get_axes() if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == list(problems)
    assert all(axes.get_xscale() == "log" for axes in shown)
    assert [bool(axes.get_xlabel()) for axes in shown] == [False, False, True, True, True]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["β 1", "right"]
    assert len(legend.get_texts()) == 3
    for label, line in zip(policies, legend.get_lines(), strict=False):
        for axes in shown:
            (curve,) = [one for one in axes.get_lines() if one.get_label() == label]
            assert curve.get_color() == line.get_color()


def test_a_figure_beyond_floats() -> None:
    experiment = small(policies={"IDS": Stubborn(arm=0)}, horizon=10**1000)
    figure: Any = sl.run(experiment, executor=Recorder()).plot(bounds={"eoo": 0.8})
    axes = figure.get_axes()[1]
    assert axes.get_lines()[0].get_xdata()[-1] == pytest.approx(1000)
    assert axes.get_xlabel() == r"$\log_{10} n$"
    figure.canvas.draw()


def test_incomplete_results_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.experiments.block._FEWEST_ROUNDS", 0)
    sl.run(EXPERIMENT, tmp_path, Recorder())
    for path in tmp_path.glob("0[13]*/00000[0-5]*.parquet"):
        path.unlink()
    results = sl.types.Results.load(tmp_path)
    assert not results.complete
    assert results.summary().replications.tolist() == [8, 2, 8, 2]
    assert results.compare("IDS", "LinUCB").replications.tolist() == [2, 2]
    for path in tmp_path.glob("*/*.parquet"):
        path.unlink()
    empty = sl.types.Results.load(tmp_path)
    assert (
        len(empty.frame) == len(empty.summary()) == len(empty.pulls()) == len(empty.slopes()) == 0
    )
    assert list(empty.frame.columns) == list(results.frame.columns)
    empty.plot()


def test_bad_questions(results: sl.types.Results) -> None:
    with pytest.raises(ValueError, match=r"policy must be one of .*did you mean 'LinUCB'"):
        results.compare("IDS", "LinUBC")
    with pytest.raises(ValueError, match="problem must be one of"):
        results.regret("eo", "IDS")
    with pytest.raises(ValueError, match=r"problem of bounds must be one of .*'eoo'"):
        results.plot(bounds={"eo": 1.0})
    with pytest.raises(ValueError, match="round 10\\^3 is not a checkpoint of this experiment"):
        results.summary([1000])
    with pytest.raises(ValueError, match="checkpoints must be one of 'last', 'all', got 'first'"):
        results.summary("first")
    with pytest.raises(ValueError, match="quantiles must be at most 1"):
        results.summary(quantiles=[50])
    with pytest.raises(ValueError, match="a slope needs two checkpoints from round 150 on"):
        results.slopes(since=150)
    with pytest.raises(ValueError, match="early must be at least 1"):
        results.plot(early=0)
    with pytest.raises(ValueError, match=r"problems must be one of .*did you mean 'sphere'"):
        results.plot(problems=["eoo", "spheer"])
    with pytest.raises(ValueError, match=r"policies must be one of .*did you mean 'LinUCB'"):
        results.plot(policies="LinUBC")
    with pytest.raises(ValueError, match="policies must not be empty"):
        results.plot(policies=[])
    with pytest.raises(ValueError, match="ax must be axes of matplotlib or a list of them, got 1"):
        results.plot(ax=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ax must have one entry per problem, 2, got 1"):
        results.plot(ax=Figure().subplots())
    with pytest.raises(ValueError, match="early must be left out without linear panels, got 10"):
        results.plot(problems="eoo", ax=Figure().subplots(), early=10)
