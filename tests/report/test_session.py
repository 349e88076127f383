"""Effects, figure and export of a session."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import sightline as sl
from sightline.report import session_figure as module
from sightline.report.session_figure import History, _top, history_of
from tests.marks import without_compilation
from tests.naive_effects import interval
from tests.own_policies import EpsilonGreedy

PAGES = sl.factorial({"picture": ["large", "small"], "price": [9, 10, 12]}, "pairs")
MEANS = PAGES.features @ np.linspace(0.4, -0.1, PAGES.features.shape[1])
NOISE = 0.3
POLICIES: list[sl.extend.Policy] = [sl.IDS(), sl.ThompsonSampling(), EpsilonGreedy(0.3)]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)


class Clock:
    """Seconds since 1970, one more at every call."""

    seconds = 1e9 + 0.25

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


class Played:
    """A session and its rewards."""

    def __init__(self, session: sl.Session, rounds: int = 60) -> None:
        self.session = session
        self.decisions: list[sl.types.Decision] = []
        self.rewards: dict[str, float] = {}
        rng = np.random.default_rng(5)
        while len(self.decisions) < rounds:
            made = session.ask(count=3) if rng.random() < 0.3 else [session.ask()]
            self.decisions += made
            for decision in made:
                if rng.random() < 0.8:
                    reward = float(MEANS[decision.arm] + NOISE * rng.standard_normal())
                    session.tell(decision, reward)
                    self.rewards[decision.id] = reward

    def data(self) -> tuple[Any, Any]:
        told = [one for one in self.decisions if one.id in self.rewards]
        xs = np.array([one.features for one in told])
        return xs, np.array([self.rewards[one.id] for one in told])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def played(journal: Path) -> Iterator[Played]:
    options: dict[str, Any] = {"reward_window": "30 rounds", "on_timeout": 0.0, "now": Clock()}
    with sl.Session.open(journal, PAGES, sl.IDS(), NOISE, **options) as session:
        yield Played(session)


def exported(session: sl.Session, path: Path) -> pd.DataFrame:
    session.export(path)
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def texts(figure: Figure) -> list[str]:
    """All texts of a figure."""
    found: list[Any] = figure.findobj(Text)
    return [text.get_text() for text in found]


def test_a_session_that_continues_is_of_the_public_class(journal: Path, tmp_path: Path) -> None:
    with sl.Session.open(journal, PAGES, sl.IDS()) as session:
        session.save(tmp_path / "session.npz")
        assert type(session) is sl.Session
    with sl.Session.open(journal) as session:
        assert type(session) is sl.Session
    assert type(sl.Session.load(tmp_path / "session.npz")) is sl.Session


def test_a_session_does_without_pandas_and_matplotlib() -> None:
    code = (
        "import sys, sightline as sl; sl.Session([[1.0], [0.5]], sl.IDS()).status(); "
        "print({'pandas', 'matplotlib', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@every_policy
def test_effects_are_those_of_the_theorem_on_all_rewards(policy: sl.extend.Policy) -> None:
    played = Played(sl.Session(PAGES, policy, NOISE, units="given"))
    frame = played.session.effects(delta=0.1, norm_bound=2.0)
    assert list(frame.columns) == ["term", "level", "effect", "lower", "upper"]
    assert [*zip(frame.term, frame.level, strict=True)] == [one[:2] for one in PAGES.contrasts]
    xs, ys = played.data()
    for contrast, row in zip(PAGES.contrasts, frame.itertuples(), strict=True):
        truth = interval(contrast.vector, xs, ys, NOISE, NOISE**2 / 4.0, 2.0, 0.1)
        assert (row.effect, row.lower, row.upper) == pytest.approx(truth, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(
    ("policy", "bound"),
    [
        (sl.IDS(confidence=sl.LogDet(norm_bound=3.0)), 3.0),
        (sl.IDS(confidence=sl.LogDet(norm_bound=0.0)), 1.0),
        (sl.ThompsonSampling(), 1.0),
    ],
    ids=str,
)
def test_the_norm_bound_is_that_of_the_policy(policy: sl.extend.Policy, bound: float) -> None:
    session = Played(sl.Session(PAGES, policy, NOISE, units="given"), rounds=10).session
    pd.testing.assert_frame_equal(session.effects(), session.effects(norm_bound=bound))


def test_rewards_in_place_of_missing_ones_count_for_effects() -> None:
    session = sl.Session(
        [[1.0]], sl.IDS(), 1.0, reward_window="1 rounds", on_timeout=0.5, units="given"
    )
    session.ask(count=40)
    session.ask()
    (row,) = session.effects().itertuples()
    assert row.effect == pytest.approx(0.5 * 40 / 41)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 0.0}, "delta must be finite and > 0, got 0.0"),
        ({"delta": 1.0}, "delta must be below 1, got 1.0"),
        ({"delta": "small"}, "delta must be a number, got 'small'"),
        ({"norm_bound": 0}, "norm_bound must be finite and > 0, got 0"),
        ({"norm_bound": "large"}, "norm_bound must be a number, got 'large'"),
    ],
)
def test_levels_and_bounds_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.Session(PAGES, sl.IDS()).effects(**arguments)


def test_a_row_per_decision(played: Played, tmp_path: Path) -> None:
    session = played.session
    session.give_up(before=session.status().round - 10)
    frame = exported(session, tmp_path / "decisions.parquet")
    status = session.status()
    assert Counter(frame.outcome) == {
        "observed": status.told,
        "expired": status.expired,
        "given up": status.given_up,
        "open": status.pending + status.waiting,
    }
    assert min(Counter(frame.outcome).values()) > 0
    assert status.told + status.waiting == len(played.rewards)
    for row, decision in zip(frame.itertuples(), played.decisions, strict=True):
        assert (row.decision_id, row.round, row.arm) == (decision.id, decision.round, decision.arm)
        assert row.probability == decision.probability
        assert row.exploring == decision.exploring
        assert row.option == decision.option
        assert row.features.tolist() == decision.features.tolist()
        assert row.asked_at.timestamp() == decision.made
        if row.outcome == "observed":
            assert row.reward == played.rewards[decision.id]
            assert row.rewarded_at > row.received_at > row.asked_at
        else:
            expected = [0.0] if row.outcome == "expired" else []
            assert [reward for reward in [row.reward] if reward == reward] == expected
            assert pd.isna(row.rewarded_at) == (row.outcome == "open")
    levels = frame[["level:picture", "level:price"]].to_dict("records")
    assert levels == [
        {f"level:{name}": level for name, level in one.levels.items()} for one in played.decisions
    ]
    assert set(frame.policy) == {"IDS"}
    events = [event.sequence for event in session.events() if event.kind == "asked"]
    assert frame.sequence.tolist() == events


def test_text_has_the_same_but_for_features(played: Played, tmp_path: Path) -> None:
    table = exported(played.session, tmp_path / "decisions.parquet").drop(
        columns=["features", "offered", "available", "support", "probabilities"]
    )
    text = exported(played.session, tmp_path / "decisions.csv")
    assert list(text.columns) == list(table.columns)
    for name in ("asked_at", "rewarded_at", "received_at"):
        assert pd.to_datetime(text.pop(name), format="ISO8601").equals(table.pop(name))
    pd.testing.assert_frame_equal(text, table, check_dtype=False, check_categorical=False)


def test_what_opens_a_file_of_decisions_finds_plain_types(played: Played, tmp_path: Path) -> None:
    frame = exported(played.session, tmp_path / "decisions.parquet")
    observed = frame[frame.outcome == "observed"]
    feedback = {
        "action": observed.arm.to_numpy(),
        "reward": observed.reward.to_numpy(),
        "pscore": observed.probability.to_numpy(),
        "action_context": np.stack(observed.features),
    }
    assert feedback["action"].dtype == np.int64
    assert all(values.dtype == np.float64 for values in list(feedback.values())[1:])
    assert feedback["action_context"].shape == (len(observed), PAGES.features.shape[1])


def test_levels_of_several_kinds(journal: Path, tmp_path: Path) -> None:
    mixed = sl.factorial({"price": [9, "free"], "large": [True, False], "size": [0.5, 1.5]})
    with sl.Session.open(journal, mixed, sl.ThompsonSampling()) as session:
        decisions = session.ask(count=50)
        frame = exported(session, tmp_path / "decisions.parquet")
    assert set(frame["level:price"]) == {"9", "free"}
    assert frame["level:large"].dtype == np.bool_
    assert frame["level:size"].dtype == np.float64
    # nan without compilation: it takes too many draws
    np.testing.assert_array_equal(frame.probability, [one.probability for one in decisions])


def test_a_journal_without_decisions_has_no_rows(journal: Path, tmp_path: Path) -> None:
    with sl.Session.open(journal, [[1.0, 0.0], [0.0, 1.0]], sl.IDS()) as session:
        for name in ("decisions.parquet", "decisions.csv"):
            frame = exported(session, tmp_path / name)
            assert len(frame) == 0
            assert "level:" not in "".join(frame.columns)
        assert "no decisions were counted" in texts(session.plot())


def test_exports_are_refused_in_one_sentence(played: Played, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"keeps no journal: begin it with Session\.open"):
        sl.Session(PAGES, sl.IDS()).export(tmp_path / "x.csv")
    with pytest.raises(ValueError, match=r"file must be one of '\.parquet', '\.csv', got '\.txt'"):
        played.session.export(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        played.session.export(tmp_path / "nowhere" / "x.csv")
    played.session.close()
    for call in (lambda: played.session.export(tmp_path / "x.csv"), played.session.plot):
        with pytest.raises(ValueError, match=r"was closed: Session\.open\(.*\) continues it"):
            call()
    assert not list(tmp_path.glob("*x.*"))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_figure_has_its_panels(played: Played, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"session.{suffix}"
    figure = played.session.plot(path)
    assert path.stat().st_size > 5000
    assert len(figure.axes) == 4
    said = texts(figure)
    titles = {axes.get_title() for axes in figure.axes}
    assert {"Options", "Evidence", "Traffic, in the colours of the options"} <= titles
    assert set(PAGES.names) <= set(said)
    assert {"picture: large", "price: 12", "picture:price: large:9"} <= set(said)
    assert not any("no history" in text for text in said)
    (headline,) = [text for text in said if "rewards:" in text]
    assert headline.startswith(f"Decisions: {len(played.decisions)}, rewards: ")


def test_without_a_journal_the_figure_says_why_it_has_no_history() -> None:
    figure = Played(sl.Session(PAGES, sl.IDS(), NOISE)).session.plot()
    reasons = [text for text in texts(figure) if text.startswith("no history, as there is no")]
    assert len(reasons) == 2
    assert len(figure.axes) == 4


def past_of(played: Played) -> tuple[Any, History]:
    """The history that a figure shows."""
    found: list[Any] = []

    def noting(*arguments: Any) -> History:
        past = history_of(*arguments)
        found.append((arguments, past))
        return past

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "history_of", noting)
        played.session.plot()
    ((arguments, past),) = found
    return arguments, past


@every_policy
def test_the_past_ends_with_the_present(policy: sl.extend.Policy, journal: Path) -> None:
    with sl.Session.open(journal, PAGES, policy, NOISE) as session:
        played = Played(session)
        (_, events, view), past = past_of(played)
        assert len(events) == session.events()[-1].sequence
        assert past.rounds[0] == 0
        assert past.rounds[-1] == past.edges[-1] == len(played.decisions)
        assert (past.evidence[-1], past.threshold[-1]) == view.evidence[1:3]
        counts = (past.shares * np.diff(past.edges)[:, None]).sum(axis=0)
        asked = Counter(one.arm for one in played.decisions)
        assert counts == pytest.approx([asked[arm] for arm in range(len(PAGES))])
        status = session.status()
        if status.settled is not None:
            assert past.evidence[-1] == status.evidence
            assert past.threshold[-1] == status.threshold


def test_evidence_of_the_past_is_what_status_said_then(journal: Path) -> None:
    with sl.Session.open(journal, PAGES, sl.IDS(), NOISE) as session:
        rng, said = np.random.default_rng(0), [session.status()]
        for _ in range(200):
            decision = session.ask()
            said.append(session.status())
            session.tell(decision, MEANS[decision.arm] + NOISE * rng.standard_normal())
            said.append(session.status())
        _, past = past_of(Played(session, rounds=0))
    marks = np.linspace(0, 400, 61).astype(int)  # events
    assert past.rounds.tolist() == [said[mark].round - 1 for mark in marks]
    assert past.evidence.tolist() == [said[mark].evidence for mark in marks]
    assert past.threshold.tolist() == [said[mark].threshold for mark in marks]
    assert said[-1].evidence > 0.0


def test_a_journal_that_cannot_be_replayed_is_drawn_as_far_as_it_can(
    played: Played, journal: Path
) -> None:
    _, past = past_of(played)
    assert past.whole
    with contextlib.closing(sqlite3.connect(journal)) as file:
        file.execute("UPDATE events SET arm = (arm + 1) % 6 WHERE round = 30")
        file.commit()
    _, cut = past_of(played)
    assert not cut.whole
    count = len(cut.rounds)
    assert 10 < count < len(past.rounds)
    assert cut.rounds[-1] < 30
    assert cut.evidence.tolist() == past.evidence[:count].tolist()
    said = texts(played.session.plot())
    assert "decisions (what was decided later cannot be replayed by this version)" in said


def test_other_threads_go_on_while_a_figure_is_made(played: Played, tmp_path: Path) -> None:
    def work() -> None:
        for i in range(3):
            played.session.plot()
            played.session.export(tmp_path / f"{i}.csv")

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(work)
        while not done.done():
            played.session.tell(played.session.ask(), 0.0)
    done.result()
    rows = [len(pd.read_csv(tmp_path / f"{i}.csv")) for i in range(3)]
    assert 60 <= rows[0] < rows[1] < rows[2]


@pytest.mark.parametrize("policy", [sl.IDS(), sl.ThompsonSampling()], ids=["test", "no test"])
def test_options_that_come_and_go(policy: sl.extend.Policy, journal: Path, tmp_path: Path) -> None:
    def play(rounds: int, **limits: Any) -> None:
        for _ in range(rounds):
            decision = session.ask(**limits)
            session.tell(decision, float(rng.random() < 0.2 * (1 + decision.arm)))

    rng, plain = np.random.default_rng(0), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    with sl.Session.open(journal, plain, policy, 0.5) as session:
        play(20)
        session.retire("2")
        play(20)
        play(5, available=[0, 2])
        session.add("new", [0.5, 1.5])
        play(20)
        session.ask(count=3, available=["new", "1"])
        frame = exported(session, tmp_path / "decisions.parquet")
        _, past = past_of(Played(session, rounds=0))
        said = texts(session.plot())
        status, report = session.status(), session._view().evidence
    wanted = [[0, 1, 2]] * 20 + [[0, 1]] * 20 + [[0]] * 5 + [[0, 1, 3]] * 20 + [[1, 3]] * 3
    assert [list(rows) for rows in frame.offered] == wanted
    assert all(arm in rows for arm, rows in zip(frame.arm, frame.offered, strict=True))
    assert set(frame.option[-3:]) <= {"new", "1"}
    assert {"2 (retired)", "new"} <= set(said)
    assert past.whole
    assert (past.evidence[-1], past.threshold[-1]) == report[1:3]
    assert report.best in (0, 1, 3)
    assert status.best in (None, session.options.names[report.best])


def test_nothing_is_said_of_offers_that_were_always_all(played: Played, tmp_path: Path) -> None:
    assert exported(played.session, tmp_path / "decisions.parquet").offered.isna().all()


def test_many_options_and_effects_are_cut_to_what_can_be_read(journal: Path) -> None:
    rng = np.random.default_rng(0)
    options = sl.types.Options(
        rng.standard_normal((60, 25)), [f"{'very ' * 20}long name for ${i}" for i in range(60)]
    )
    with sl.Session.open(journal, options, sl.IDS()) as session:
        for _ in range(15):
            session.tell(session.ask(), rng.standard_normal())
        figure = session.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert "20 of 60 options" in titles
    assert "The largest 20 of 25 effects" in titles
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) == 20
    assert all(len(label) < 50 for label in labels)
    figure.draw_without_rendering()


def test_effects_that_cannot_be_told_are_said_so(tmp_path: Path) -> None:
    session = sl.Session({"a": [1.0, 0.0], "b": [0.5, 0.0]}, EpsilonGreedy(), 1.0)
    session.tell(session.ask(), 1.0)
    assert session.effects().effect.isna().tolist() == [False, True]
    said = texts(session.plot(tmp_path / "figure.png"))
    assert "no data about these options can tell" in said
    assert "mean of the rewards (the policy keeps no estimates)" in said


def test_a_single_option_is_drawn(tmp_path: Path) -> None:
    session = sl.Session([[1.0]], sl.IDS())
    session.tell(session.ask(), 1.0)
    said = texts(session.plot(tmp_path / "figure.png"))
    assert "Decisions: 1, rewards: 1. Best so far: 0 (settled)" in said


def test_the_level_of_the_figure_is_checked_before_anything_is_drawn(played: Played) -> None:
    with pytest.raises(ValueError, match="delta must be below 1, got 2"):
        played.session.plot(delta=2)


LIKELIHOODS: dict[str, dict[str, Any]] = {
    "known noise": {"noise_std": 0.5},
    "normal": {"rewards": sl.Gaussian(0.5)},
    "unknown noise": {"rewards": sl.Gaussian(std=None)},
    "clicks": {"rewards": sl.Bernoulli()},
    "clicks, rates": {"rewards": sl.Bernoulli("identity")},
    "counts": {"rewards": sl.Poisson()},
}


@without_compilation
@pytest.mark.parametrize(
    ("policy", "kept"),
    [(sl.Stakes(), True), (sl.IDS(), True), (sl.IDS(), False)],
    ids=["Stakes", "IDS", "IDS without a journal"],
)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_every_kind_of_reward_is_drawn_from_the_first_round_on(
    policy: sl.extend.Policy, likelihood: str, kept: bool, journal: Path, tmp_path: Path
) -> None:
    """With few data the threshold is infinite, which cannot limit an axis."""
    options = sl.factorial({"text": ["short", "long"], "button": ["red", "blue"]})
    arguments = LIKELIHOODS[likelihood] | {"seed": 0}
    rng, path = np.random.default_rng(0), tmp_path / "figure.png"
    with contextlib.ExitStack() as stack:
        if kept:
            session = stack.enter_context(sl.Session.open(journal, options, policy, **arguments))
        else:
            session = sl.Session(options, policy, **arguments)
        for rounds in (0, 1, 3, 30):
            while session.status().round <= rounds:
                session.tell(session.ask(), int(rng.random() < 0.3))
            figure = session.plot(path if rounds == 3 else None)
            means, effects, evidence, _ = (figure.axes[i] for i in (0, 2, 1, 3))
            low, high = evidence.get_ylim()
            assert low == 0.0 < high < np.inf
            status = session.status()
            settled = np.isfinite(status.threshold)
            assert ("too few rewards to settle anything" not in texts(figure)) == settled
            if settled:
                assert high >= status.threshold
            found = session.effects()
            dotted = "dotted: unbounded" in effects.get_xlabel()
            assert dotted == np.isinf(found["upper"]).any()
            assert ("log odds" in effects.get_xlabel()) == (likelihood == "clicks")
            drawn: list[Any] = list(means.collections)
            bars = np.concatenate([bar.get_segments()[0][:, 0] for bar in drawn])
            assert np.isfinite(bars).all()
            if likelihood.startswith("cl"):
                assert bars.min() >= -1e-12
                assert bars.max() <= 1 + 1e-12


def test_a_threshold_that_was_enormous_is_cut_off() -> None:
    evidence, threshold = np.array([0.0, 1.0, 2.0]), np.array([np.nan, 1e6, 5.0])
    assert _top(evidence, threshold) == 15.0
    assert _top(evidence, np.array([4.0, 4.5, 5.0])) == pytest.approx(5.5)
    assert _top(np.full(1, np.nan), np.full(1, np.nan)) == 1.0
    assert _top(np.zeros(0), np.zeros(0)) == 1.0
