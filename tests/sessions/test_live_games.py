"""Sessions of games: duels, and other games whose rewards are not observed."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sightline as sl
from sightline.sessions import state
from sightline.sessions.options import Options
from sightline.simulation.loop import streams
from tests.marks import thorough, without_compilation
from tests.naive import Array
from tests.sessions.test_journal import crash, everything

DATA = Path(__file__).parents[1] / "data"
ITEMS = {"A": [1.0, 0.0, 0.2], "B": [0.0, 1.0, 0.0], "C": [0.0, 0.0, 1.0], "D": [0.5, 0.0, -0.5]}
X = np.array(list(ITEMS.values()))
THETA = np.array([0.4, 0.1, -0.3])
DUEL = sl.duel(ITEMS)
# an arm that shows all and pays nothing, and three of which each shows another than it pays
PAID = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
SEEN = np.array([[1.0, -2.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.5]])
GAME = sl.game(PAID, SEEN, names=["test", "first", "second", "both"])
# two numbers are shown, of which one arm shows one and one arm none
SECOND = np.roll(SEEN, 1, axis=1) * [[1], [0], [0], [-1]]
SEVERAL = sl.game(PAID, np.stack([SEEN, SECOND], axis=1), names=GAME.names)
every_game = pytest.mark.parametrize(
    "options",
    [DUEL, pytest.param(GAME, marks=thorough), pytest.param(SEVERAL, marks=thorough)],
    ids=["duel", "game", "several"],
)
POLICIES: list[sl.extend.Policy] = [sl.Stakes(), sl.IDS()]
OTHERS: list[sl.extend.Policy] = [
    sl.EpsilonGreedy(),
    sl.LinUCB(),
    sl.PrimalDual(),
    sl.LinIMED(),
    sl.ThompsonSampling(),
    sl.GCB(),
    sl.PEGE(),
    sl.MaximumInformation(),
]
every_policy = pytest.mark.parametrize(
    "policy",
    [*POLICIES, *(pytest.param(policy, marks=without_compilation) for policy in OTHERS)],
    ids=lambda one: type(one).__name__,
)


def outcome_of(made: sl.types.Decision, rng: np.random.Generator, options: Options = DUEL) -> Any:
    """Outcome of a decision: the winner, a number, or several."""
    if made.pair is None:
        assert options.observations is not None
        means = options.observations[made.arm] @ [0.5, 0.2]
        told = (means + 0.3 * rng.standard_normal(len(means))).tolist()
        return told if options is SEVERAL else told[0]
    first, second = (X[list(ITEMS).index(name)] for name in made.pair)
    chance = 0.5 * (1.0 + (first - second) @ THETA)
    winner = made.pair[int(rng.random() >= chance)]
    how: list[float | str] = [winner, float(chance), 1 if winner == made.pair[0] else -1]
    return how[made.round % 3]


def play(session: sl.Session, rounds: int, seed: int) -> list[sl.types.Decision]:
    """Ask and tell, also in batches, with outcomes that come late, out of order, or never."""
    rng = np.random.default_rng(seed)
    game = SEVERAL if session.options.per_arm > 1 else GAME
    made: list[sl.types.Decision] = []
    open_: list[sl.types.Decision] = []
    for _ in range(rounds):
        new = session.ask(count=3) if rng.random() < 0.2 else [session.ask()]
        made += new
        open_ += new
        while open_ and rng.random() < 0.6:
            one = open_.pop(int(rng.integers(len(open_))))
            session.tell(one, outcome_of(one, rng, game))
        if rng.random() < 0.1:
            session.give_up(before=max(made[-1].round - 8, 1))
            open_ = [one for one in open_ if one.round >= made[-1].round - 8]
    return made


def new_session(
    options: Options = DUEL, policy: sl.extend.Policy | None = None, **more: Any
) -> sl.Session:
    more = {"units": "given", **more}
    return sl.Session(options, policy, 1.0 if options is DUEL else 0.3, seed=4, **more)


def nameless(session: sl.Session) -> dict[str, Any]:
    """The state of a session without ids and times, which no two have in common."""
    named = ("id", "made", "when", "delays")
    found = {k: v for k, v in everything(session).items() if k.rpartition(".")[2] not in named}
    return found | {"sums": found["sums"]["sums"]}


def test_the_options_of_a_duel_are_items_and_pairs() -> None:
    assert DUEL.names[:4] == DUEL.items == ("A", "B", "C", "D")
    assert DUEL.names[4:] == ("A vs B", "A vs C", "A vs D", "B vs C", "B vs D", "C vs D")
    assert DUEL.pairs is not None
    for (first, second), paid, seen in zip(DUEL.pairs, DUEL.features, DUEL.seen, strict=True):
        x, y = np.array(ITEMS[first]), np.array(ITEMS[second])
        np.testing.assert_array_equal(paid, x + y)
        np.testing.assert_array_equal(seen, x - y)
    assert repr(DUEL) == "Options(10 pairs of 4 in 3 dimensions: 'A', 'B', 'C', ...)"
    assert sl.duel(np.eye(2)).pairs == (("0", "0"), ("1", "1"), ("0", "1"))
    again = Options.build(DUEL.describe())
    assert again.describe() == DUEL.describe()


def test_effects_of_a_duel_are_those_that_comparisons_tell() -> None:
    pages = sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})
    assert [one.term for one in sl.duel(pages).contrasts] == ["picture"] * 2 + ["text"] * 2
    apart = sl.duel({"A": [1.0, 0.0], "B": [0.0, 1.0]})
    assert [(one.term, one.vector.tolist()) for one in apart.contrasts] == [
        ("A", [0.5, -0.5]),
        ("B", [-0.5, 0.5]),
    ]


@every_policy
@every_game
def test_a_session_decides_as_a_simulation_does(policy: sl.extend.Policy, options: Options) -> None:
    theta = THETA if options is DUEL else [0.5, 0.2]
    assert options.observations is not None
    problem = sl.LinearGame(options.features, options.observations, theta, 0.1)
    run = sl.simulate(problem, policy, 120, 4, range(1, 121))
    means, noise = problem.world().means, streams(4)[1]
    session = sl.Session(options, policy, 0.1, seed=4, units="given")
    arms = []
    for _ in range(120):
        made = session.ask()
        errors = 0.1 * noise.standard_normal(options.per_arm) if made.exploring else 0.0
        outcome: Any = tuple((means[made.arm] + errors).tolist()) if options is SEVERAL else 0.0
        if options is not SEVERAL:
            outcome = float(np.ravel(means[made.arm] + errors)[0])
        # a probability in a duel may lose the last bit of the outcome
        session._live.perform(0.0, [_told(session, made, outcome)])
        arms.append(made.arm)
    assert arms == np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1).tolist()


def _told(session: sl.Session, made: sl.types.Decision, outcome: Any) -> Any:
    from sightline.sessions.decisions import Closing

    return Closing(session._live.decisions.open[made.id], "told", outcome, 0.0)


@every_game
def test_estimates_follow_from_what_was_told(options: Options) -> None:
    """By the normal equations, with noise that differs from option to option."""
    assert options.observations is not None
    k, p = len(options), options.per_arm
    levels = np.linspace(0.5, 1.5, k * p).reshape(k, p)
    policy = sl.IDS(regulariser=0.7)
    session = sl.Session(options, policy, levels if p > 1 else levels[:, 0], units="given")
    rng = np.random.default_rng(0)
    rows, told = [], []
    for _ in range(60):
        made = session.ask()
        values = rng.uniform(-1.0, 1.0, p)
        how: Any = values if p > 1 else values[0]
        session.tell(made, 0.5 * (how + 1.0) if made.pair else how)
        if made.exploring:
            weights = 1.5 / levels[made.arm]
            rows.append(weights[:, None] * options.observations[made.arm])
            told.append(weights * values)
    y = np.vstack(rows)
    inverse = np.linalg.inv(0.7 * np.eye(y.shape[1]) + y.T @ y)
    theta = inverse @ y.T @ np.concatenate(told)
    wanted: Array = options.features
    if options is DUEL:
        wanted = X - X[(X @ theta).argmax()]
    estimates = session.estimates()
    assert estimates is not None
    np.testing.assert_allclose(estimates.means, wanted @ theta, atol=1e-9)
    errors = 1.5 * np.sqrt(((wanted @ inverse) * wanted).sum(axis=1))
    np.testing.assert_allclose(estimates.standard_errors, errors, atol=1e-9)


def test_a_duel_finds_the_best() -> None:
    session = sl.Session(
        sl.duel({"A": [1.0, 0.0], "B": [0.0, 1.0]}), sl.IDS(), seed=1, units="given"
    )
    rng = np.random.default_rng(1)
    for _ in range(400):
        made = session.ask()
        assert made.pair is not None
        session.tell(made, "B" if rng.random() < 0.95 and "B" in made.pair else made.pair[0])
    status = session.status()
    assert (status.best, status.settled) == ("B", True)
    assert session.ask().pair == ("B", "B")
    effects = session.effects().set_index("term")
    assert effects.lower["B"] > 0.0 > effects.upper["A"]
    means = session.estimates().means  # type: ignore[union-attr]
    assert means[1] == 0.0
    assert means[0] == pytest.approx(-0.9, abs=0.15)


@without_compilation
def test_batches_use_expected_outcomes_not_rewards() -> None:
    policy = sl.PrimalDual()
    assert not policy.randomises
    batch, one_by_one = new_session(DUEL, policy), new_session(DUEL, policy)
    for session in (batch, one_by_one):
        for _ in range(30):
            session.tell(session.ask(), 0.7)
    arms = []
    for _ in range(8):
        made = one_by_one.ask()
        means = dict(zip(ITEMS, one_by_one.estimates().means, strict=True))  # type: ignore[union-attr]
        first, second = made.pair or ("", "")
        one_by_one.tell(made, 0.5 * (1.0 + means[first] - means[second]))
        arms.append(made.arm)
    assert [made.arm for made in batch.ask(count=8)] == arms
    assert len(set(arms)) > 1


@every_policy
@every_game
def test_a_saved_session_goes_on_as_if_nothing_had_happened(
    options: Options, policy: sl.extend.Policy, tmp_path: Path
) -> None:
    path = tmp_path / "session.npz"
    whole, part = new_session(options, policy), new_session(options, policy)
    for seed in range(3):
        play(whole, 15, seed)
        play(part, 15, seed)
        part.save(path)
        before = everything(part)
        part = sl.Session.load(path)
        assert everything(part) == before
        assert nameless(part) == nameless(whole)
        assert part.options.describe() == options.describe()


@every_policy
@every_game
def test_a_killed_session_goes_on_from_its_journal(
    options: Options, policy: sl.extend.Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "SNAPSHOT_EVERY", 25)
    path = tmp_path / "journal.db"
    noise = 1.0 if options is DUEL else 0.3
    whole = new_session(options, policy)
    whole._live.states_probabilities = True  # as sessions with a journal
    session = sl.Session.open(path, options, policy, noise, 4, units="given")
    for seed in range(3):
        play(whole, 12, seed)
        play(session, 12, seed)
        before = everything(session)
        crash(session)
        session = sl.Session.open(path)
        assert everything(session) == before
        assert nameless(session) == nameless(whole)
    session.close()
    sl.Session.open(path, options, policy, noise, 4, units="given").close()
    other = sl.game(options.features, 2.0 * options.observations)  # type: ignore[operator]
    with pytest.raises(ValueError, match="begun with another options, observations"):
        sl.Session.open(path, other, policy, noise, 4, units="given")


def test_ways_to_tell_a_winner() -> None:
    ways: dict[float, list[Any]] = {
        1.0: ["A", 1, 1.0, np.float32(1.0), np.str_("A")],
        -1.0: ["B", -1, 0, 0.0, np.int64(-1)],
        0.0: [0.5],
        0.5: [0.75],
    }
    for value, told in ways.items():
        for one in told:
            session = new_session(sl.duel({"A": [1.0], "B": [0.0]}), sl.IDS())
            made = session.ask()
            assert made.pair == ("A", "B")
            session.tell(made.id, one)
            assert session._live.counters.totals[made.arm] == value
            for again in told:
                session.tell(made, again)
            with pytest.raises(sl.types.ClosedDecisionError, match="was told before"):
                session.tell(made, 0.25)


def test_an_item_alone_has_nobody_to_win_against() -> None:
    session = new_session(DUEL, sl.LinUCB())
    made = session.ask()
    assert made.pair == ("A", "A"), "optimism learns nothing here"
    before = session.estimates()
    session.tell(made, "A")
    assert session._live.counters.totals.tolist() == [0.0] * 10
    np.testing.assert_array_equal(before.means, session.estimates().means)  # type: ignore[union-attr]


def asked(session: sl.Session) -> sl.types.Decision:
    """Ask until two are compared."""
    made = session.ask()
    while made.pair is not None and made.pair[0] == made.pair[1]:
        session.tell(made, 0.5)
        made = session.ask()
    return made


@pytest.mark.parametrize(
    "told",
    [2, -0.5, 1.0001, "Z", "", "a", None, True, np.nan, np.inf, [1.0], {"A": 1}, 10**400, b"A"],
    ids=repr,
)
def test_what_is_no_winner_is_refused_with_both_names(told: Any) -> None:
    session = new_session(policy=sl.IDS())
    made = asked(session)
    first, second = made.pair or ("", "")
    before = everything(session)
    sentence = f"the winner must be {first!r} or {second!r}, 1 or -1"
    with pytest.raises(ValueError, match=sentence) as caught:
        session.tell(made, told)
    assert "\n" not in str(caught.value)
    with pytest.raises(sl.types.RefusedRewardsError, match=sentence):
        session.tell_many({made.id: told})
    assert everything(session) == before
    session.tell(made, first)


REFUSED: dict[str, tuple[Callable[[sl.Session], object], str]] = {
    "nan": (lambda s: s.tell(s.pending()[0], np.nan), "outcome must be finite"),
    "text": (lambda s: s.tell(s.pending()[0], "first"), "outcome must be a number, got 'first'"),
    "list": (lambda s: s.tell(s.pending()[0], [1.0]), "outcome must be a number"),
    "large": (lambda s: s.tell(s.pending()[0], 1e80), "outcome must not exceed 1e"),
    "available": (lambda s: s.ask(available=[0]), "choosing among some options needs .* a game"),
    "retire": (lambda s: s.retire(0), "retiring an option needs options that show their rewards"),
    "add": (lambda s: s.add("new", [1.0, 1.0]), "adding an option needs options that show"),
    "context": (lambda s: s.ask(context="a"), "there are no contexts"),
    "actions": (lambda s: s.ask(options=PAID), "options must be left out"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_changes_nothing(what: str) -> None:
    call, sentence = REFUSED[what]
    session = new_session(GAME, sl.IDS())
    play(session, 5, seed=1)
    session.ask()
    before = everything(session)
    with pytest.raises(ValueError, match=sentence) as caught:
        call(session)
    assert "\n" not in str(caught.value)
    assert everything(session) == before
    session.ask()


def test_what_cannot_begin() -> None:
    with pytest.raises(ValueError, match="a duel needs at least 2 options, got 1"):
        sl.duel({"A": [1.0]})
    with pytest.raises(ValueError, match="a duel needs options that show their rewards"):
        sl.duel(DUEL)
    for options in (sl.stream(2, 3), sl.contexts({"a": np.eye(2)})):
        with pytest.raises(ValueError, match="a duel needs options that are all on offer"):
            sl.duel(options)
    with pytest.raises(ValueError, match="names must differ, got 'A vs B' twice"):
        sl.duel({"A": [1.0], "B": [0.0], "A vs B": [0.5]})
    with pytest.raises(ValueError, match="a plan needs options that show their rewards"):
        sl.plan(DUEL, traffic_per_day=100)
    with pytest.raises(ValueError, match=r"observations must have shape \(4, 2\)"):
        sl.game(PAID, SEEN[:2])
    with pytest.raises(ValueError, match="observations must be finite"):
        sl.game(PAID, np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match="on_timeout must be 'ignore' where options show 2"):
        new_session(SEVERAL, reward_window="2 rounds", on_timeout=0.0)
    with pytest.raises(ValueError, match="OSSB needs outcomes that are rewards"):
        sl.Session(DUEL, sl.OSSB())
    with pytest.raises(ValueError, match="must not have contexts"):
        Options(PAID, contexts=sl.contexts([PAID]).contexts, observations=SEEN)
    for changed in (
        {"observations": None},
        {"observations": DUEL.features.tolist()},
        {"features": (DUEL.features + 1.0).tolist()},
        {"items": ["A", "B"]},
    ):
        with pytest.raises(ValueError, match="options with items must be the pairs of these"):
            Options.build(DUEL.describe() | changed)


def test_a_game_that_shows_rewards_is_a_bandit() -> None:
    game, bandit = sl.game(PAID, PAID), PAID
    rng = np.random.default_rng(2)
    sessions = [sl.Session(options, sl.LinUCB(), 0.3, units="given") for options in (game, bandit)]
    for _ in range(30):
        arms = [session.ask() for session in sessions]
        value = rng.standard_normal()
        for session, made in zip(sessions, arms, strict=True):
            session.tell(made, value)
        assert arms[0].arm == arms[1].arm


def test_outcomes_that_do_not_come_are_learned_as_said() -> None:
    session = new_session(policy=sl.IDS(), reward_window="2 rounds", on_timeout=0.5)
    made = [session.ask() for _ in range(6)]
    assert session.status().expired == 4
    assert not session._live.counters.totals.any(), "ties"
    assert session._live.counters.told.sum() == 4
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.tell(made[0], 0.5)
    with pytest.raises(ValueError, match="on_timeout must be 'the first' or 'the second'"):
        new_session(reward_window="2 rounds", on_timeout=2.0)


@thorough
@every_policy
@every_game
def test_what_can_be_known(options: Options, policy: sl.extend.Policy, tmp_path: Path) -> None:
    noise = 1.0 if options is DUEL else 0.3
    with sl.Session.open(tmp_path / "journal.db", options, policy, noise, units="given") as session:
        session.plot()
        made = play(session, 30, 0)
        assert {one.pair is None for one in made} == {options is not DUEL}
        effects = session.effects()
        told, totals = session._live.counters.told, session._live.counters.totals
        y = np.sqrt(np.repeat(told, options.per_arm))[:, None] * options.seen
        V = noise**2 * np.eye(y.shape[1]) + y.T @ y
        theta = np.linalg.solve(V, options.seen.T @ totals)
        wanted = [one.vector @ theta for one in options.contrasts]
        np.testing.assert_allclose(effects.effect, wanted, atol=1e-9)
        figure = session.plot(tmp_path / "figure.png")
        assert "outcomes: " in figure.get_suptitle()
        for suffix in ("parquet", "csv"):
            path = tmp_path / f"log.{suffix}"
            session.export(path)
            log = pd.read_parquet(path) if suffix == "parquet" else pd.read_csv(path)
            assert log.option.tolist() == [one.option for one in made]
            assert "reward" not in log
            seen = log.filter(regex=r"^observation(:\d)?$")
            assert seen.shape[1] == options.per_arm
            assert seen.sum().sum() == pytest.approx(totals.sum())
            assert (~seen.isna()).all(axis=1).sum() == told.sum()
            if options is DUEL:
                found = list(zip(log["first"], log["second"], strict=True))
                assert found == [one.pair for one in made]
        assert session.status().told == told.sum()
        assert ("10 pairs of 4 options" if options is DUEL else "4 arms") in repr(session)
        assert "outcomes learned from" in repr(session)


def test_effects_that_no_outcome_can_tell_are_unknown() -> None:
    session = sl.Session(sl.game(np.eye(2), [[1.0, 0.0], [1.0, 0.0]]), sl.IDS(), units="given")
    effects = session.effects()
    assert effects.effect[0] == 0.0
    assert np.isnan(effects.effect[1])


def test_items_that_are_the_same_cannot_be_told_apart() -> None:
    session = sl.Session(sl.duel({"A": [1.0, 2.0], "B": [1.0, 2.0]}), units="given")
    for _ in range(5):
        session.tell(session.ask(), 1)
    np.testing.assert_array_equal(session.estimates().means, [0.0, 0.0])  # type: ignore[union-attr]
    assert session.effects().effect.tolist() == [0.0, 0.0]
    session.plot()


@pytest.mark.parametrize("min_probability", [0.05, 0.1])
def test_a_floor_holds_for_all_pairs(min_probability: float) -> None:
    session = new_session(policy=sl.IDS(), min_probability=min_probability)
    made = play(session, 40, 3)
    assert all(one.probability >= min_probability for one in made)
    assert len({one.arm for one in made}) > 5


def test_threads_tell_winners_at_once() -> None:
    session = new_session(policy=sl.EpsilonGreedy(epsilon=0.5))
    failed: list[BaseException] = []

    def compare(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(25):
                made = session.ask()
                session.tell(made, outcome_of(made, rng))
                session.tell_many({})
        except BaseException as error:  # for the test to raise
            failed.append(error)

    threads = [threading.Thread(target=compare, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    status = session.status()
    assert (status.round, status.told, status.pending) == (101, 100, 0)


@thorough
@pytest.mark.parametrize(
    "told",
    [
        1.0,
        [1.0],
        [1.0, 2.0, 3.0],
        [1.0, np.nan],
        [1.0, "a"],
        [1.0, 1e80],
        [1.0, [2.0]],
        [[1.0, 2.0]],
        [True, False],
        [],
        None,
        "ab",
        {},
    ],
    ids=repr,
)
def test_what_is_not_as_many_numbers_is_refused(told: Any) -> None:
    session = new_session(SEVERAL, sl.IDS())
    made = session.ask()
    before = everything(session)
    with pytest.raises(ValueError, match="outcome must") as caught:
        session.tell(made, told)
    assert "\n" not in str(caught.value)
    assert everything(session) == before
    session.tell(made, (1, 2))


def test_several_numbers_are_compared_when_told_again(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "journal.db", SEVERAL, sl.IDS(), 0.3, units="given") as session:
        made = session.ask()
        session.tell(made, [0.1, 0.2])
        session.tell(made.id, np.array([0.1, 0.2]))
        with pytest.raises(
            sl.types.ClosedDecisionError, match=r"before: \(0.1, 0.2\) .*\(0.1, 0.3\)"
        ):
            session.tell(made, [0.1, 0.3])
        session._live.decisions.closed.clear()  # as after a long time
        session.tell(made, [0.1, 0.2])
        with pytest.raises(sl.types.ClosedDecisionError):
            session.tell(made, [0.1, 0.3])


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        (SEVERAL, "body = '[1.0]'", "outcome must have shape"),
        (SEVERAL, "body = '[1.0, NaN]'", "outcome must be finite"),
        (SEVERAL, "body = '5'", "cannot be continued"),
        (SEVERAL, "body = NULL, reward = 1.0", "outcome must have shape"),
        (GAME, "body = '[1.0, 2.0]'", "tells several numbers, and an option shows one"),
    ],
)
def test_a_journal_that_was_changed_is_refused(
    options: Options, change: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    session = sl.Session.open(path, options, sl.IDS(), 0.3, units="given")
    session.tell(session.ask(), [0.1, 0.2] if options is SEVERAL else 0.1)
    crash(session)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE events SET {change} WHERE kind = 'told'")
    connection.close()
    with pytest.raises(ValueError, match=message):
        sl.Session.open(path)


def test_a_file_that_was_changed_is_refused() -> None:
    session = new_session(SEVERAL, sl.IDS())
    session.tell(session.ask(), [0.1, 0.2])
    snapshot = session._live.snapshot()
    for wrong in (np.zeros(1), np.zeros((1, 3)), np.zeros((1, 2), dtype=np.int64)):
        changed = snapshot._replace(arrays=snapshot.arrays | {"closed.reward": wrong})
        with pytest.raises(ValueError, match=r"columns of rewards are of another kind"):
            new_session(SEVERAL, sl.IDS())._live.fill(changed)
    changed = snapshot._replace(header=snapshot.header | {"window": [5.0, None, 0.0, False]})
    with pytest.raises(ValueError, match="on_timeout must be 'ignore'"):
        sl.Session._restored(changed, None)
