"""Items: kept on disk, resumed, never computed twice; claims as data."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sightline as sl
from sightline.paper import catalogue, claims, document, preparation, reproduce
from sightline.paper.catalogue import ITEMS
from sightline.paper.claim import Claim, Part, Verdict, decide, once
from sightline.paper.document import finished, write_report
from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.paper.recorded import JudgedClaim, RecordedVerdict
from sightline.paper.reproduce import ResultsFolder, run_item, selected
from tests.changed_sources import changed

CALLS: list[int] = []


def square(number: int) -> dict[str, int]:
    CALLS.append(number)
    if number < 0:
        raise KeyboardInterrupt
    return {"square": number * number}


def calculations(size: Size) -> dict[str, Calculation]:
    numbers = range(1, size.replications + 1)
    return {f"n{i}": Calculation(square, {"number": i}, {"number": 1}, 0.5) for i in numbers}


def experiments(size: Size) -> dict[str, sl.Experiment]:
    policies = {"IDS": sl.IDS(), "LinUCB": sl.LinUCB()}
    worlds = [sl.problems.end_of_optimism(0.1)]
    return {"regret": sl.Experiment(worlds, policies, size.horizon, size.replications)}


def show(outcome: ItemResults) -> Findings:
    results = outcome.results["regret"]
    return Findings(
        figures={"regret": ("Regret <of> two", results.plot())},
        curves={"regret": results.summary("all")},
        remarks=("A remark & more.",),
    )


ITEM = Item(
    name="small",
    title="A small item",
    where="nowhere",
    about="For tests.",
    sizes={"quick": Size(300, 3), "paper": Size(1000, 4)},
    show=show,
    experiments=experiments,
    calculations=calculations,
)


def test_every_item_has_a_name_for_the_command_line_and_both_profiles() -> None:
    for name, item in ITEMS.items():
        assert re.fullmatch(r"[a-z0-9-]+", name)
        assert set(item.sizes) == {"quick", "paper"}
        for profile, size in item.sizes.items():
            runs = {**item.experiments(size), **item.calculations(size)}
            assert runs, name
            for key, part in item.experiments(size).items():
                looped = (name, key) == ("far-horizon", "beside")  # by LinUCB, which never commits
                assert part.horizon == (10**6 if looped else size.horizon), (name, profile)


def test_every_item_says_what_to_see() -> None:
    for name, item in ITEMS.items():
        assert re.fullmatch(r"[^.].*\.", item.see), name


def test_the_profile_of_the_paper_has_the_settings_of_the_paper() -> None:
    for name in ("figure1", "figure4", "figure5", "figure7", "figure8"):
        assert ITEMS[name].sizes["paper"][:2] == (10**6, 100)
    assert ITEMS["figure6"].sizes["paper"][:2] == (10**4, 100)
    assert ITEMS["figure8"].sizes["paper"].samples == 10**4
    assert ITEMS["table1"].sizes["paper"][:3] == (10**5, 50, 10**4)


def test_claims_are_distinct_and_about_items_that_exist() -> None:
    statements = [claim.statement for claim in claims.CLAIMS]
    assert len(set(statements)) == len(statements) >= 25
    for claim in claims.CLAIMS:
        assert claim.item in ITEMS
        assert claim.tests


def test_claims_name_policies_and_problems_that_are_run() -> None:
    """In the paper profile; where the quick one leaves some out, the recorded verdict is shown."""
    for claim in claims.CLAIMS:
        item = ITEMS[claim.item]
        experiments = item.experiments(item.sizes["paper"]).values()
        for test in itertools.chain(*claim.tests.values()):
            fields = getattr(test, "__dict__", {})
            if "problem" in fields:
                assert any(names(fields, part) for part in experiments), claim.statement


def names(fields: dict[str, Any], experiment: sl.Experiment) -> bool:
    """Whether an experiment has the problem and the policies of a test."""
    roles = {fields[role] for role in ("policy", "first", "second") if role in fields}
    return fields["problem"] in experiment.problems and roles <= set(experiment.policies)


def test_selection_keeps_the_order_and_refuses_what_is_unknown() -> None:
    assert [item.name for item in selected(["table1", "figure2"], ITEMS)] == ["figure2", "table1"]
    assert selected(["all", "figure1"], ITEMS) == list(ITEMS.values())
    with pytest.raises(
        ValueError, match=r"item must be one of 'all', 'figure1', .* did you mean 'figure"
    ):
        selected(["figure9"], ITEMS)


def test_an_experiment_moves_after_a_change_to_any_of_its_policies(tmp_path: Path) -> None:
    (experiment,) = experiments(ITEM.sizes["quick"]).values()
    before = ResultsFolder(tmp_path).store_of(experiment)
    for module, decides in (("ids", True), ("lin_ucb", True), ("e4", False)):
        with changed(f"sightline.policies.{module}"):
            assert (ResultsFolder(tmp_path).store_of(experiment) != before) is decides


@pytest.mark.parametrize(
    ("module", "decides"),
    [
        ("paper.settings", True),
        ("bounds.asymptotic", True),
        ("core.clock", True),
        ("paper.claims", False),
        ("cli.reproduce", False),
    ],
)
def test_a_calculation_is_done_again_after_a_change_to_what_it_depends_on(
    tmp_path: Path, module: str, decides: bool
) -> None:
    item = ITEMS["figure2"]
    calculation = item.calculations(item.sizes["quick"])["ellipsoids"]
    reproduce._sources.cache_clear()
    before = ResultsFolder(tmp_path).file_of("ellipsoids", calculation)
    reproduce._sources.cache_clear()
    with changed(f"sightline.{module}"):
        after = ResultsFolder(tmp_path).file_of("ellipsoids", calculation)
    reproduce._sources.cache_clear()
    assert (after != before) is decides


def test_a_calculation_is_done_once(tmp_path: Path) -> None:
    CALLS.clear()
    folder = ResultsFolder(tmp_path)
    for _ in range(2):
        assert folder.value_of("a name/", Calculation(square, {"number": 3}))["value"] == {
            "square": 9
        }
    assert CALLS == [3]
    folder.value_of("a name/", Calculation(square, {"number": 4}))
    assert CALLS == [3, 4]


def test_what_was_finished_before_an_interruption_is_kept(tmp_path: Path) -> None:
    CALLS.clear()
    work = {"a": Calculation(square, {"number": 5}), "b": Calculation(square, {"number": -1})}
    item = replace(ITEM, experiments=lambda size: {}, calculations=lambda size: work)
    with pytest.raises(KeyboardInterrupt):
        run_item(item, "quick", ResultsFolder(tmp_path))
    work["b"] = Calculation(square, {"number": 6})
    outcome = run_item(item, "quick", ResultsFolder(tmp_path))
    assert CALLS == [5, -1, 6]
    assert outcome.values == {"a": {"square": 25}, "b": {"square": 36}}


@pytest.mark.slow
def test_an_item_runs_once_and_equal_experiments_share_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CALLS.clear()
    first = run_item(ITEM, "quick", ResultsFolder(tmp_path))
    assert first.values["n3"] == {"square": 9}
    assert first.results["regret"].complete
    submit = "sightline.experiments.run.Workers.submit"
    monkeypatch.setattr(submit, None)  # nothing may be computed again
    again = run_item(replace(ITEM, name="small"), "quick", ResultsFolder(tmp_path))
    assert CALLS == [1, 2, 3]
    assert again.seconds == first.seconds
    frames = (outcome.results["regret"].summary("all") for outcome in (first, again))
    assert next(frames).equals(next(frames))


@pytest.mark.slow
def test_the_estimate_counts_only_what_is_missing(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    before = preparation.estimate([ITEM], "paper", folder)
    assert before["small"] > 0.0
    assert not folder.holds(ITEM, "paper")
    run_item(ITEM, "paper", folder)
    assert folder.holds(ITEM, "paper")
    assert preparation.estimate([ITEM], "paper", folder) == {"small": 0.0}


def test_durations_for_people() -> None:
    texts = [document.duration_text(s) for s in (3.21, 42.0, 600.0, 36000.0)]
    assert texts == ["3.2 s", "42 s", "10 min", "10.0 h"]


@pytest.mark.slow
def test_findings_and_report_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_question(outcome: ItemResults) -> Part:
        return Part(f"{outcome.size.replications} runs <b>", Verdict.UNDECIDED)

    claim = Claim("A claim", "page 1", "small", once(open_question))
    monkeypatch.setattr("sightline.paper.document.CLAIMS", (claim, claims.CLAIMS[0]))
    outcome = run_item(ITEM, "quick", ResultsFolder(tmp_path / "results"))
    done = finished(ITEM, outcome, tmp_path)
    heads = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}
    for suffix, head in heads.items():
        assert (tmp_path / f"figures/small-regret.{suffix}").read_bytes()[:4] == head
    lines = (tmp_path / "curves/small-regret.csv").read_text().splitlines()
    assert lines[0].startswith("problem,policy,t,")
    path = tmp_path / "report.html"
    write_report(path, "quick", [ITEM], {"small": done})
    assert [tile.statement for tile in done.tiles] == ["A claim"]
    text = path.read_text()
    for word in ("? 1</b> undecided", "3 runs &lt;b&gt;", "A remark &amp; more.", "numba"):
        assert word in text
    assert "sightline reproduce small --profile quick" in text
    assert "seeds spawned from seed 0" in text
    assert "refresh" not in text
    write_report(path, "quick", [ITEM, replace(ITEM, name="other")], {"small": done})
    text = path.read_text()
    assert "1 of 2 parts are finished" in text
    assert 'http-equiv="refresh"' in text


def test_tiles_say_which_reading_and_what_was_recorded() -> None:
    claim = Claim("A claim", "page 1", "small", {}, ours=True)
    parts = (Part("a?", Verdict.CONFIRMED, "text"), Part("b?", Verdict.NOT_CONFIRMED, "plots"))
    tile = document._tile(JudgedClaim(claim, Verdict.CONFIRMED, parts, None))
    assert (tile.verdict, tile.kind, tile.ours) == ("confirmed", "good", True)
    assert tile.more == " (by the text: confirmed, by the plots: not confirmed)"
    assert tile.evidence == ("By the text: a? [confirmed]", "By the plots: b? [not confirmed]")
    short = (Part("too short", Verdict.UNDECIDED),)
    record = RecordedVerdict(
        Verdict.EQUAL, (Part("c?", Verdict.EQUAL),), "9 runs to n = 10^6", "2026-11-17"
    )
    tile = document._tile(JudgedClaim(replace(claim, ours=False), Verdict.UNDECIDED, short, record))
    assert (tile.verdict, tile.kind) == ("equal", "same recorded")
    assert tile.more == ", recorded on 2026-11-17"
    assert tile.evidence == ("Recorded from 9 runs to n = 10^6: c?", "Here: too short")


def test_runs_that_are_too_short_decide_nothing() -> None:
    def sure(outcome: ItemResults) -> Part:
        return Part("sure", Verdict.NOT_CONFIRMED)

    outcome = ItemResults(Size(100, 2), {}, {}, 0.0)
    claim = Claim("A claim", "page 1", "small", once(sure), horizon=1000)
    verdict, parts = decide(claim, outcome)
    assert verdict is Verdict.UNDECIDED
    assert "about n = 10^3" in parts[-1].measured
    assert decide(replace(claim, horizon=100), outcome)[0] is Verdict.NOT_CONFIRMED


def test_every_item_is_in_the_catalogue() -> None:
    listed = Path(catalogue.__file__).read_text()
    items = [
        f"{path.stem}.{name}"
        for path in Path(reproduce.__file__).parent.glob("*.py")
        for name in re.findall(r"^(\w+) = Item\($", path.read_text(), re.MULTILINE)
    ]
    assert len(items) == len(ITEMS)
    assert all(f"{name},\n" in listed for name in items)
