"""Sessions of streams: arms that are new in every round come with the question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import sightline as sl
from sightline.core.action_set import ActionSet, block
from sightline.core.clock import clock_at, is_before
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares, observe, show_arms
from sightline.core.model import Model, stream_model
from sightline.jit import callable_for
from sightline.policies.base import Choice, choose, decided, register_policy, show, update
from sightline.problems.streams import draw_arms, sphere_stream
from sightline.sessions import decisions, state
from sightline.sessions.journal import actions_from_bytes
from sightline.sessions.options import Options
from sightline.simulation.loop import context_stream, streams
from tests import naive
from tests.marks import thorough, without_compilation
from tests.naive import Array
from tests.sessions.test_journal import crash, everything, refuses

DATA = Path(__file__).parents[1] / "data"
MOST, D, NOISE = 6, 3, 0.2
THETA = np.array([1.0, 0.3, -0.5])
POLICIES: list[sl.extend.Policy] = [
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.IDS(),
    sl.IDS(contexts="conditional"),
    sl.EpsilonGreedy(),
    sl.Stakes(),
    sl.BayesianIDS(200),
]
RARE = [sl.EpsilonGreedy(), sl.BayesianIDS(200)]
COMPILED = [sl.LinUCB(), sl.Stakes()]


def _marks(policy: sl.extend.Policy) -> Any:
    if policy in RARE:
        return without_compilation
    return () if policy in COMPILED else thorough


every_policy = pytest.mark.parametrize(
    "policy",
    [pytest.param(policy, marks=_marks(policy)) for policy in POLICIES],
    ids=lambda policy: str(policy)[-60:],
)


def new_session(policy: sl.extend.Policy | None = None, **changes: Any) -> sl.Session:
    changes = {"units": "given", **changes}
    return sl.Session(sl.stream(D, MOST), policy or sl.LinUCB(), NOISE, seed=4, **changes)


def sets_of(n: int, seed: int = 0) -> list[Array]:
    """Sets of arms of any size."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(1, MOST + 1), D)) for _ in range(n)]


class Played(NamedTuple):
    """One decision."""

    arm: int
    exploring: bool


def by_hand(policy: sl.extend.Policy, sets: list[Array], errors: Array, delay: int) -> list[Played]:
    """Show, choose and update, with delayed rewards."""
    state = policy.start(stream_model(MOST, D, NOISE))
    rng, _ = streams(4)
    place, ask, learn = (callable_for(part, state) for part in (show, choose, update))
    announce = callable_for(decided, state)
    played: list[Played] = []
    for t, rows in enumerate(sets, 1):
        place(state, rows, 0, len(rows))
        arm, _, wake = ask(state, clock_at(t), block(0, len(rows)), rng)
        played.append(Played(int(arm), not is_before(clock_at(t), wake)))
        if played[-1].exploring:
            announce(state, clock_at(t), int(arm))
        if t > delay and played[t - delay - 1].exploring:
            then = t - delay - 1
            row = sets[then][played[then].arm]
            place(state, row[None].copy(), MOST, MOST + 1)
            learn(state, clock_at(then + 1), MOST, float(row @ THETA + errors[then]))
    return played


@without_compilation
@every_policy
@pytest.mark.parametrize("delay", [0, 5])
def test_a_session_decides_as_the_formulas_do(policy: sl.extend.Policy, delay: int) -> None:
    sets = sets_of(120)
    errors = NOISE * np.random.default_rng(1).standard_normal(120)
    session = new_session(policy)
    made: list[sl.types.Decision] = []
    for t, rows in enumerate(sets, 1):
        made.append(session.ask(options=rows))
        assert made[-1].features.tolist() == rows[made[-1].arm].tolist()
        if t > delay:
            one = made[t - delay - 1]
            session.tell(one, float(one.features @ THETA + errors[t - delay - 1]))
    assert [Played(one.arm, one.exploring) for one in made] == by_hand(policy, sets, errors, delay)
    assert all(one.exploring for one in made) != (policy == sl.IDS(contexts="conditional"))


@every_policy
def test_a_session_decides_as_a_simulation_does(policy: sl.extend.Policy) -> None:
    problem = sphere_stream(MOST, D, NOISE**2)
    run = sl.simulate(problem, policy, 80, 4, range(1, 81))
    source, coming, noise = problem.source, context_stream(4), streams(4)[1]
    session = new_session(policy)
    rows, means = np.zeros((MOST, D)), np.zeros(MOST + 1)
    arms = []
    for _ in range(80):
        count = draw_arms(source, coming, rows, means)
        decision = session.ask(options=rows[:count])
        error = NOISE * noise.standard_normal() if decision.exploring else 0.0
        session.tell(decision, means[decision.arm] + error)
        arms.append(decision.arm)
    assert arms == np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1).tolist()


def test_rewards_are_learned_in_the_order_in_which_they_are_told() -> None:
    rng = np.random.default_rng(2)
    session = new_session(sl.LinUCB(regulariser=0.5))
    made = [session.ask(options=rows) for rows in sets_of(40)]
    order = rng.permutation(40)[:30]
    xs, ys = [made[i].features for i in order], rng.standard_normal(30).tolist()
    state = least_squares(stream_model(MOST, D, NOISE), 0.5)
    for i, y in zip(order, ys, strict=True):
        session.tell(made[i], y)
        show_arms(state, made[i].features[None].copy(), MOST, MOST + 1)
        observe(state, MOST, y)
    estimates = session.estimates()
    assert estimates is not None
    np.testing.assert_array_equal(estimates.means, state.learned.theta)
    np.testing.assert_allclose(estimates.means, naive.ridge(np.array(xs), np.array(ys), 0.5))
    V = naive.covariance(np.array(xs), 0.5)
    errors = [NOISE * np.sqrt(naive.squared_norm(e, V)) for e in np.eye(D)]
    np.testing.assert_allclose(estimates.standard_errors, errors)
    left = {made[i].id for i in range(40)} - {made[i].id for i in order}
    assert {one.id for one in session.pending()} == left
    for one in session.pending():
        assert one.features == tuple(made[one.round - 1].features.tolist())
    assert session.give_up(before=41) == 10
    np.testing.assert_array_equal(session.estimates().means, state.learned.theta)  # type: ignore[union-attr]


def test_rewards_that_do_not_come_are_learned_as_said() -> None:
    session = new_session(reward_window="3 rounds", on_timeout=0.0)
    made = [session.ask(options=rows) for rows in sets_of(10)]
    xs = np.array([one.features for one in made[:7]])  # others are open
    assert session.status().expired == 7
    session.tell(made[8], 0.7)
    for rows in sets_of(2):  # until the windows of the 8th and the 9th close
        session.ask(options=rows)
    xs = np.vstack([xs, made[7].features, made[8].features])
    ys = np.array([0.0] * 8 + [0.7])
    np.testing.assert_allclose(session.estimates().means, naive.ridge(xs, ys, 1.0))  # type: ignore[union-attr]
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.tell(made[0], 1.0)


def play(session: sl.Session, rounds: int, seed: int) -> list[sl.types.Decision]:
    """Ask and tell, with rewards that come late, out of order, or never."""
    rng = np.random.default_rng(seed)
    made: list[sl.types.Decision] = []
    open_: list[Any] = sorted(session.pending(), key=lambda one: one.round)
    for rows in sets_of(rounds, seed):
        made.append(session.ask(options=rows))
        open_.append(made[-1])
        while open_ and rng.random() < 0.6:
            session.tell(open_.pop(int(rng.integers(len(open_)))), rng.standard_normal())
        if rng.random() < 0.1:
            session.give_up(before=max(made[-1].round - 8, 1))
            open_ = [one for one in open_ if one.round >= made[-1].round - 8]
    return made


def nameless(session: sl.Session) -> dict[str, Any]:
    """The state of a session without ids and times, which no two have in common."""
    named = ("id", "made", "when", "delays")
    return {k: v for k, v in everything(session).items() if k.rpartition(".")[2] not in named}


@every_policy
@pytest.mark.parametrize("min_probability", [0.0, 0.05])
def test_a_saved_session_goes_on_as_if_nothing_had_happened(
    policy: sl.extend.Policy, min_probability: float, tmp_path: Path
) -> None:
    path = tmp_path / "session.npz"
    whole, part = (
        new_session(policy, min_probability=min_probability),
        new_session(policy, min_probability=min_probability),
    )
    for seed in range(3):
        play(whole, 25, seed)
        play(part, 25, seed)
        assert part.pending()
        part.save(path)
        before = everything(part)
        part = sl.Session.load(path)
        assert everything(part) == before
        assert nameless(part) == nameless(whole)


def test_a_file_need_not_keep_the_arms_that_were_shown(tmp_path: Path) -> None:
    """The first reward refreshes all estimates, but not for arms that have gone."""
    session = new_session(sl.LinUCB(regulariser=1e-4))
    decision = session.ask(options=sets_of(1)[0])
    session.save(tmp_path / "session.npz")
    loaded = sl.Session.load(tmp_path / "session.npz", now=lambda: 5.0)
    session.tell(decision, 1.0)
    loaded.tell(decision.id, 1.0)
    assert nameless(loaded) == nameless(session)


@every_policy
@pytest.mark.parametrize("every", [7, 10_000])
def test_a_killed_session_goes_on_from_its_journal(
    policy: sl.extend.Policy, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "SNAPSHOT_EVERY", every)
    path = tmp_path / "journal.db"
    arguments: Any = (sl.stream(D, MOST), policy, NOISE, 4)
    whole, session = new_session(policy), sl.Session.open(path, *arguments, units="given")
    for seed in range(3):
        play(whole, 15, seed)
        made = play(session, 15, seed)
        before = everything(session)
        crash(session)
        session = sl.Session.open(path)
        assert everything(session) == before
        assert nameless(session) == nameless(whole)
        asked = [event for event in session.events() if event.kind == "asked"][-15:]
        for event, one, rows in zip(asked, made, sets_of(15, seed), strict=True):
            kept = actions_from_bytes(event.actions or b"", D)
            assert kept.tolist() == rows.tolist()
            assert kept[event.arm or 0].tolist() == one.features.tolist()
    session.close()
    sl.Session.open(path, *arguments, units="given").close()
    with pytest.raises(ValueError, match="begun with another options, actions"):
        sl.Session.open(path, sl.stream(D, MOST + 1), policy, NOISE, 4, units="given")


def test_a_journal_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    session = sl.Session.open(path, sl.stream(D, MOST), sl.LinUCB(), NOISE, 4, units="given")
    for rows in (np.eye(3), np.eye(3)):
        session.tell(session.ask(options=rows), -1.0)
    crash(session)
    changes = {
        "NULL": "options must be given with every question",
        "x'00'": "cannot be continued",
        "zeroblob(32)": "cannot be continued",
        "zeroblob(240)": "options must be an array of shape",
        "x'" + "ff" * 24 + "'": "options must be finite",
        f"x'{np.eye(3)[[1, 2, 0]].astype('<f8').tobytes().hex()}'": "event 3 recorded arm 1",
    }
    update = "UPDATE events SET actions = {} WHERE sequence = 3"
    refuses(path, {update.format(value): message for value, message in changes.items()})


def test_a_file_that_was_changed_is_refused() -> None:
    session = new_session()
    session.ask(options=np.eye(3))
    snapshot = session._live.snapshot()
    wrong: dict[str, Any] = {
        "of another kind": np.zeros((1, D + 1)),
        "must be between": np.full((1, D), np.inf),
    }
    for message, features in wrong.items():
        changed = snapshot._replace(arrays=snapshot.arrays | {"open.features": features})
        with pytest.raises(ValueError, match=message):
            new_session()._live.fill(changed)


def test_nothing_grows_with_the_number_of_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "REMEMBERED", 100)
    session, path, sizes = new_session(), tmp_path / "session.npz", []
    open_: list[sl.types.Decision] = []
    for t, rows in enumerate(sets_of(3000), 1):
        open_.append(session.ask(options=rows))
        if len(open_) > 10:
            session.tell(open_.pop(0), 0.1)
        if t in (200, 1000, 3000):
            session.save(path)
            sizes.append(path.stat().st_size)
    assert max(sizes) - min(sizes) < 64 * 5 * 8 + 20  # blocks of the history; digits of counts
    assert len(session._live.decisions.closed) == 100
    assert all(one.decision.features is None for one in session._live.decisions.closed.values())


GOOD = np.eye(3)
REFUSED: dict[str, tuple[Callable[[sl.Session], object], str]] = {
    "none": (lambda s: s.ask(), r"options must be given .* shape \(k, 3\), k from 1 to 6"),
    "nan": (lambda s: s.ask(options=[[1.0, np.nan, 0.0]]), "options must be finite, got nan"),
    "infinite": (lambda s: s.ask(options=[[1.0, np.inf, 0.0]]), "options must be finite"),
    "columns": (lambda s: s.ask(options=np.eye(4)), r"shape \(k, 3\), .*got shape \(4, 4\)"),
    "rows": (lambda s: s.ask(options=np.ones((7, 3))), r"k from 1 to 6, got shape \(7, 3\)"),
    "empty": (lambda s: s.ask(options=np.ones((0, 3))), "options must not be empty"),
    "nothing": (lambda s: s.ask(options=[]), "options must have shape"),
    "one row": (lambda s: s.ask(options=[1.0, 2.0, 3.0]), "options must have shape"),
    "ragged": (lambda s: s.ask(options=[[1.0], [1.0, 2.0]]), "in rows of equal length"),
    "text": (lambda s: s.ask(options="abc"), "options must be an array of real numbers"),
    "texts": (lambda s: s.ask(options=[["a", "b", "c"]]), "array of real numbers, got 'a'"),
    "complex": (lambda s: s.ask(options=1j * GOOD), "it is complex"),
    "object": (lambda s: s.ask(options=object()), "array of real numbers"),  # type: ignore[call-overload]
    "large": (lambda s: s.ask(options=1e80 * GOOD), "options must not exceed 1e"),
    "large for its prior": (lambda s: s.ask(options=1e60 * GOOD), "too far apart"),
    "context": (lambda s: s.ask(options=GOOD, context="a"), "there are no contexts"),
    "available": (lambda s: s.ask(options=GOOD, available=[0]), "available must be left out"),
    "count": (lambda s: s.ask(2, options=GOOD), "count must be left out"),  # type: ignore[call-overload]
    "count alone": (lambda s: s.ask(2), "count must be left out"),
    "reward": (lambda s: s.tell(s.pending()[0], np.nan), "reward must be finite"),
    "retire": (lambda s: s.retire(0), "these are new in every round"),
    "add": (lambda s: s.add("new", [1.0, 1.0, 1.0]), "these are new in every round"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_changes_nothing(what: str) -> None:
    call, sentence = REFUSED[what]
    session = new_session()
    play(session, 5, seed=1)
    session.ask(options=GOOD)
    before = everything(session)
    with pytest.raises(ValueError, match=sentence) as caught:
        call(session)
    assert "\n" not in str(caught.value)
    assert everything(session) == before
    session.ask(options=GOOD)


def test_what_cannot_begin() -> None:
    arms = sl.stream(D, MOST)
    for policy in (sl.Stakes(randomised=False), sl.OSSB(), sl.LinMED(), sl.IDS(information="cell")):
        with pytest.raises(ValueError, match="needs arms that come again"):
            sl.Session(arms, policy)
    with pytest.raises(
        ValueError, match="min_probability must be at most 1/6, as there can be 6 options"
    ):
        sl.Session(arms, sl.LinUCB(), min_probability=0.2)
    with pytest.raises(ValueError, match="noise_std must be a number"):
        sl.Session(arms, sl.LinUCB(), [0.1] * MOST)
    with pytest.raises(ValueError, match=r"a plan needs options .* are new in every round"):
        sl.plan(arms, traffic_per_day=100)
    for arguments in ((0, 3), (3, 0), (1.5, 3), ("a", 3)):
        with pytest.raises(ValueError, match="must be"):
            sl.stream(*arguments)
    with pytest.raises(ValueError, match="new in every round have no features"):
        Options(np.eye(2), stream=True)
    with pytest.raises(ValueError, match="stream must be True or False"):
        Options(np.eye(2), stream=1)  # type: ignore[arg-type]
    plain = sl.Session(np.eye(2), sl.LinUCB())
    before = everything(plain)
    for call in (lambda: plain.ask(options=np.eye(2)), lambda: plain.ask(3, options=np.eye(2))):  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="options must be left out of a question"):
            call()
    assert everything(plain) == before


def test_a_set_belongs_to_the_session_once_it_was_given() -> None:
    session = new_session()
    rows = np.array([[1, 0, 0], [3, 0, 0]], dtype=np.int32)[::-1]
    decision = session.ask(options=rows)
    rows[...] = 7
    assert decision.features.tolist() == [3.0, 0.0, 0.0]
    decision.features[...] = 9.0
    assert session.pending()[0].features == (3.0, 0.0, 0.0)
    assert (decision.option, decision.levels, decision.context) == ("0", {}, None)
    assert "at most 6 new arms per round in 3 dimensions" in repr(session)
    assert repr(session.options) == "Options(new in every round, at most 6 in 3 dimensions)"


def test_a_reward_that_is_not_learned_from_is_taken_note_of() -> None:
    session = new_session(sl.IDS(contexts="conditional"))
    decision = session.ask(options=[[1.0, 0.0, 0.0]])  # one arm is always settled
    assert not decision.exploring
    assert decision.probability == 1.0
    session.tell(decision, 1.0)
    assert session.status().next_exploration == 2
    assert session.status().told == 1
    assert session.status().explorations == 0
    assert session.ask(options=np.eye(3)).exploring, "the next arms were unknown"


@every_policy
def test_probabilities_are_those_of_a_mixture(policy: sl.extend.Policy) -> None:
    """With a min_probability, where even Thompson sampling finds its probabilities."""
    plain, floored = new_session(policy), new_session(policy, min_probability=0.1)
    for rows in sets_of(20):
        one = plain.ask(options=rows)
        unknown = isinstance(policy, sl.ThompsonSampling)
        assert np.isnan(one.probability) if unknown else 0.0 < one.probability <= 1.0
        assert 0.1 <= floored.ask(options=rows).probability <= 1.0 + 1e-12
    certain = floored.ask(options=[[1.0, 1.0, 1.0]]).probability
    assert certain == pytest.approx(1.0)


@every_policy
def test_what_can_be_known(policy: sl.extend.Policy, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    arms = sl.stream(D, MOST, columns=["age", "price", "length"])
    with sl.Session.open(path, arms, policy, NOISE, units="given") as session:
        assert session.effects().effect.tolist() == [0.0] * 3
        rng = np.random.default_rng(0)
        made = []
        for rows in sets_of(150):
            made.append(session.ask(options=rows))
            session.tell(made[-1], float(made[-1].features @ THETA + NOISE * rng.standard_normal()))
        made.append(session.ask(options=GOOD))
        effects = session.effects(norm_bound=2.0)
        assert effects.term.tolist() == ["age", "price", "length"]
        assert (effects.lower < THETA).all()
        assert (effects.upper > THETA).all()
        estimates = session.estimates()
        assert estimates is not None
        np.testing.assert_allclose(estimates.means, effects.effect, rtol=1e-9)
        assert (np.abs(estimates.means - THETA) < 5 * estimates.standard_errors).all()
        status = session.status()
        assert (status.best, status.settled, status.round) == (None, None, 152)
        assert np.isnan([status.evidence, status.threshold, status.expected_loss]).all()
        assert "does not say" in status.at_stake(100)
        figure = session.plot(tmp_path / "figure.png")
        assert [axes.get_title() for axes in figure.axes] == ["Effects"]
        session.export(tmp_path / "log.parquet")
        session.export(tmp_path / "log.csv")
    log = pd.read_parquet(tmp_path / "log.parquet")
    assert [row.tolist() for row in log.features] == [one.features.tolist() for one in made]
    offered = [np.array(rows.tolist()).tolist() for rows in log.actions]
    assert offered == [rows.tolist() for rows in [*sets_of(150), GOOD]]
    assert log.arm.tolist() == [one.arm for one in made]
    assert "features" not in pd.read_csv(tmp_path / "log.csv")


class OwnState(NamedTuple):
    """State of a policy in plain Python."""

    estimate: LeastSquares


@dataclass(frozen=True)
class Own(sl.extend.Policy):
    """The best arm by least squares."""

    supports = sl.extend.Supports(masks=True, contexts=True, streams=True)

    def start(self, model: Model) -> OwnState:
        return OwnState(least_squares(model, 1.0))


def _choose_own(state: OwnState, clock: Any, offer: ActionSet, rng: Any) -> Choice:
    return Choice(int(state.estimate.arms.means[: offer.stop].argmax()), 1.0, clock)


def _update_own(state: OwnState, clock: Any, arm: int, outcome: float) -> None:
    observe(state.estimate, arm, outcome)


register_policy(OwnState, choose=_choose_own, update=_update_own)


def test_a_policy_of_ones_own() -> None:
    session = new_session(Own())
    xs, ys = np.zeros((0, D)), np.zeros(0)
    for rows in sets_of(30):
        one = session.ask(options=rows)
        assert one.arm == (rows @ naive.ridge(xs, ys, 1.0)).argmax()
        session.tell(one, float(one.features @ THETA))
        xs, ys = np.vstack([xs, one.features]), np.append(ys, one.features @ THETA)
