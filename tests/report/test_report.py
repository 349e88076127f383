"""Reports on experiments: every kind, from no decision on; escaping; and what the numbers mean."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline as sl
from sightline.evaluation.log import read_log
from sightline.report.amounts import Amounts, count, duration, listed, number, share, total
from sightline.report.document import (
    Document,
    DocumentPart,
    TableCell,
    TableOfCells,
    to_html,
    to_markdown,
)
from sightline.report.earnings import by_model, earnings
from sightline.sessions.effects import radius, whiten
from sightline.sessions.session import Session

Array = NDArray[np.float64]
DAY = 86400.0
SECTIONS = (
    "What was asked",
    "Answer",
    "Options",
    "What it earned against an equal split",
    "Traffic and rewards over time",
    "Effects",
    "Checks",
)
UGLY = ["<b>&amp;</b>", "a|b*c_d`e`[x](y)", "1. $5"]


class Clock:
    """A clock that a test moves."""

    def __init__(self, step: float = 600.0) -> None:
        self.time, self.step = 1.7e9, step

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def clicks(
    path: Path | None, rates: dict[str, float], rounds: int, step: float = 600.0, **settings: Any
) -> Session:
    """Play with clicks of given rates."""
    rng = np.random.default_rng(0)
    policy = settings.pop("policy", sl.ThompsonSampling())
    fixed: dict[str, Any] = {"rewards": sl.Bernoulli(), "now": Clock(step), **settings}
    if path is None:
        session = sl.Session(list(rates), policy, **fixed)
    else:
        session = sl.Session.open(path, list(rates), policy, **fixed)
    for _ in range(rounds // 10):
        made = session.ask(10)
        session.tell_many([(one, float(rng.random() < rates[one.option])) for one in made])
    return session


def section(markdown: str, title: str) -> str:
    return markdown.partition(f"## {title}\n")[2].partition("\n## ")[0]


def is_self_contained(page: str) -> bool:
    return not re.search(r'(?:src|href)="(?!data:,)|@import|url\(|<script', page)


def test_a_report_says_who_is_best_and_by_how_much(tmp_path: Path) -> None:
    rates = {"control": 0.05, "one-page": 0.95}
    with clicks(tmp_path / "x.db", rates, 300, min_probability=0.1) as session:
        report = session.report(tmp_path / "x.html", title="Pages", control="control")
        intervals = session._view().intervals(0.05)
        frame = session.decisions()
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == report.html
    assert is_self_contained(report.html)
    text = report.markdown
    assert text.startswith("# Pages\n")
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles == [*SECTIONS, "Missing rewards", "Method"]
    answer = section(text, "Answer")
    assert "**one-page is best: it converts 9" in answer
    assert "percentage points more than control (95 %: +" in answer
    ends = re.search(r"one-page is best: it converts \S+ % \(95 %: (\S+) to (\S+) %\)", answer)
    assert ends is not None
    lowest, highest = (100.0 * intervals[i][1] for i in (1, 2))
    assert float(ends[1]) == pytest.approx(lowest, abs=0.51)
    assert float(ends[2]) == pytest.approx(highest, abs=0.51)
    table = section(text, "Options")
    assert "Difference to the control" in table
    assert "Intervals with and without the model agree." in table
    chosen = (frame["option"] == "one-page").mean()
    assert f"| one-page (best) | {100 * chosen:.0f} % |" in table
    assert "without the model: the interval holds at all times" in section(text, SECTIONS[3])
    assert "| Hour | Decisions | Rewards | Conversion rate |" in section(text, SECTIONS[4])


def test_every_day_is_a_row_with_its_decisions_and_rewards(tmp_path: Path) -> None:
    with clicks(tmp_path / "x.db", {"a": 0.3, "b": 0.3}, 60, step=0.5 * DAY) as session:
        text, frame = session.report().markdown, session.decisions()
    days = section(text, SECTIONS[4])
    for day, rows in frame.groupby(frame["asked_at"].dt.strftime("%Y-%m-%d")):
        rate = 100.0 * rows["reward"].mean()
        assert f"| {day} | {len(rows)} | {len(rows)} | {rate:.1f} % |" in days


@pytest.mark.parametrize("rounds", [0, 1, 30])
@pytest.mark.parametrize("kind", ["bandit", "factorial", "contexts", "duel", "stream", "game"])
def test_every_kind_has_a_report_from_the_beginning(kind: str, rounds: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    options: Any = {
        "bandit": UGLY,
        "factorial": sl.factorial({"<i>": ["x|y", "*z*"], "text": [1, 2, 3]}, "pairs"),
        "contexts": sl.contexts({"<u>": ["a", "b"], "desk": ["a", "b", "c"]}),
        "duel": sl.duel(UGLY),
        "stream": sl.stream(2, 3, columns=["<s>", "b"]),
        "game": sl.game(np.eye(2), np.array([[1.0, -1.0], [0.0, 1.0]]), names=["<q>", "y"]),
    }[kind]
    session = sl.Session.open(tmp_path / "x.db", options, sl.ThompsonSampling(), now=Clock())
    with session:
        for _ in range(rounds):
            asked: dict[str, Any] = {}
            if kind == "contexts":
                asked = {"context": "<u>" if rng.random() < 0.5 else "desk"}
            elif kind == "stream":
                asked = {"options": rng.standard_normal((3, 2))}
            made = session.ask(**asked)
            session.tell(made, 1.0 if kind == "duel" else float(rng.standard_normal()))
        report = session.report(tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text(encoding="utf-8") == report.markdown
    assert is_self_contained(report.html)
    assert not re.search(r"<(?:i|s|q|u)>|<b>&amp;amp;", report.html)
    text = report.markdown
    assert not re.search(r"(?<!\\)<[a-z]", text)
    assert "nan" not in re.sub(r"[a-z]*nan[a-z]+|[a-z]+nan[a-z]*", "", text)
    assert " inf" not in re.sub(" inf[a-z]+", "", text)
    assert f"{count(rounds, 'decision')}, " in text
    if rounds == 0 and kind != "stream":
        assert "Nothing is known yet" in section(text, "Answer")
    if kind == "contexts" and rounds == 30:
        assert "### \\<u\\>" in text
        assert "settled in" in section(text, "Answer")


def test_names_cannot_become_markup() -> None:
    cells = tuple((TableCell(name), TableCell(name)) for name in UGLY)
    part = DocumentPart("- x", tuple(UGLY), grids=(TableOfCells(("<b>", "b|c"), cells),))
    document = Document("# <x>", "1. one\n2. two", (part,))
    page, text = to_html(document), to_markdown(document)
    assert "<b>" not in page
    assert "<x>" not in page
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in page
    assert text.startswith("# \\# \\<x\\>\n\n1\\. one 2. two\n")
    assert "## \\- x" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)


def test_without_a_journal_it_says_what_cannot_be_shown() -> None:
    text = clicks(None, {"a": 0.1, "b": 0.5}, 100).report().markdown
    for title in (SECTIONS[4], SECTIONS[2]):
        assert "the session keeps no journal" in section(text, title)
    assert "Estimated by the model, because the log alone does not tell" in text


def test_decisions_without_rewards(tmp_path: Path) -> None:
    with clicks(tmp_path / "x.db", {"a": 0.5, "b": 0.5}, 0) as session:
        for one in session.ask(20):
            session.give_up(one)
        text = session.report().markdown
    assert "Nothing is known yet" in section(text, "Answer")
    assert "20 of 20 (100 %)" in section(text, "Missing rewards")
    assert "| Given up | 20 |" in text


def test_long_tables_are_cut_and_say_so() -> None:
    options = {f"option {i}": [1.0, 0.01 * i] for i in range(60)}
    session = sl.Session(options, sl.LinUCB(), noise_std=1.0)
    for made in session.ask(20):
        session.tell(made, 1.0)
    text = session.report(control="option 59").markdown
    table = section(text, "Options")
    assert "The table has 20 of 60 options" in table
    assert "| option 59 (control" in table
    assert len(re.findall(r"^\| option", table, re.MULTILINE)) == 20


def test_a_policy_without_probabilities_is_left_to_the_model(tmp_path: Path) -> None:
    rates = {"a": 0.1, "b": 0.9}
    with clicks(tmp_path / "x.db", rates, 200, policy=sl.LinUCB()) as session:
        text = session.report().markdown
    assert "The log cannot tell without the model" in section(text, "Options")
    assert "some options had probability 0 in some decisions" in section(text, SECTIONS[3])


def test_arguments() -> None:
    session = clicks(None, {"a": 0.5, "b": 0.5}, 0)
    wrong: tuple[dict[str, Any], ...] = ({"control": "c"}, {"delta": 1.0}, {"path": "x.pdf"})
    for arguments, name in zip(wrong, ("control", "delta", "suffix"), strict=True):
        with pytest.raises(ValueError, match=name):
            session.report(**arguments)
    with pytest.raises(ValueError, match="control must be one of"):
        sl.Session(sl.duel(["a", "b"])).report(control="a vs b")


def test_limits_of_sums_of_means_are_those_over_the_ellipsoid() -> None:
    """The range of a difference of rates, and of a sum of many, against random points."""
    rng = np.random.default_rng(2)
    options = sl.factorial({"a": ["x", "y"], "b": ["u", "v", "w"]})
    session = sl.Session(options, rewards=sl.Bernoulli())
    for _ in range(300):
        made = session.ask()
        session.tell(made, float(rng.random() < 0.2 + 0.2 * (made.levels["a"] == "x")))
    view = session._view()
    weights = np.array([view.told / view.told.sum() - 1 / 6, np.eye(6)[0] - np.eye(6)[5]])
    values, lower, upper = view.sums_of_means(options.features, weights, 0.05)
    shape = whiten(view.data, view.scale.contrasts(options.features, np.ones(6)))
    centre = shape @ view.data.whitened
    points = rng.standard_normal((20_000, shape.shape[1]))
    points /= np.linalg.norm(points, axis=1)[:, None]
    reach = radius(view.data, -math.log(0.05))
    found = 1.0 / (1.0 + np.exp(-(centre + reach * points @ shape.T))) @ weights.T
    rates = view.intervals(0.05)[0]
    assert values == pytest.approx(weights @ rates)
    assert (lower <= found.min(axis=0) + 1e-9).all()
    assert (upper >= found.max(axis=0) - 1e-9).all()
    assert lower == pytest.approx(found.min(axis=0), abs=0.01)
    assert upper == pytest.approx(found.max(axis=0), abs=0.01)


def test_differences_of_numbers_are_linear() -> None:
    rng = np.random.default_rng(3)
    session = sl.Session({"a": [1.0, 0.0], "b": [0.5, 1.0]}, noise_std=0.5)
    for _ in range(50):
        session.tell(session.ask(), 10.0 + float(rng.standard_normal()))
    view = session._view()
    ends = view.differences([0], 0.05)
    found = view.sums_of_means(view.options.features, np.array([[-1.0, 1.0]]), 0.05)
    for one, other in zip(ends, found, strict=True):
        assert other[0] == pytest.approx(one[1])


def test_an_equal_split_earns_exactly_what_it_earns(tmp_path: Path) -> None:
    """With equal probabilities there is no difference, whatever was drawn."""
    rates = {"a": 0.1, "b": 0.9}
    with clicks(tmp_path / "x.db", rates, 400, min_probability=0.5) as session:
        view, frame = session._view(), session.decisions()
    equal = np.full((len(frame), 2), 0.5)
    found = earnings(view, read_log(frame, options=view.options.names), equal, 0.05)
    assert found is not None
    assert found.by_log
    assert (found.value, found.lower, found.upper) == (0.0, 0.0, 0.0)
    assert found.model == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    counts = view.told / view.told.sum()
    value, lower, upper = by_model(view, counts - 0.5, 0.05)
    means = view.intervals(0.05)[0]
    assert value == pytest.approx(float((counts - 0.5) @ means))
    assert lower <= value <= upper


def test_earnings_use_the_options_that_were_on_offer(tmp_path: Path) -> None:
    """A retired option is not part of the split afterwards."""
    rates = {"a": 0.2, "b": 0.8, "c": 0.5}
    with clicks(tmp_path / "x.db", rates, 100, min_probability=0.2) as session:
        session.retire("c")
        rng = np.random.default_rng(4)
        for made in session.ask(100):
            session.tell(made, float(rng.random() < 0.5))
        text = session.report().markdown
    assert "without the model: the interval holds at all times" in section(text, SECTIONS[3])
    assert "| c (retired) |" in section(text, "Options")


def test_numbers_in_words() -> None:
    rates = Amounts(True).fitting([(0.049, 0.066), (0.0, 0.5)])
    assert rates.value(0.0567) == "5.7 %"
    assert rates.range(0.049, 0.066) == "4.9 to 6.6 %"
    assert rates.range(-0.01, 0.02, sign=True) == "−1.0 to +2.0"  # noqa: RUF001
    assert rates.difference(0.011) == "1.1 percentage points"
    assert Amounts().range(-math.inf, math.inf) == "not known"
    assert Amounts().range(1.0, math.inf) == "at least 1.00"
    assert Amounts().value(math.nan) == "not known"
    assert number(-0.001, 2, sign=True) == "0.00"
    assert total(1234.5, 300.0) == "1,234"
    assert count(1, "decision") == "1 decision"
    assert share(1, 200) == "0.5 %"
    assert listed("abc") == "a, b and c"
    assert listed("abcdefg", 2) == "a, b and 5 others"
    assert duration(90_000.0) == "1 day"
    assert duration(200.0) == "3.3 minutes"
