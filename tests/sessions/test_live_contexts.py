"""Sessions with contexts: ask in a context, commit in all of them, save and replay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import block
from sightline.core.clock import Clock, clock_at, is_before
from sightline.jit import callable_for
from sightline.policies.base import best_of, choose, update, write_probabilities
from sightline.sessions import state
from sightline.sessions.options import Options
from sightline.simulation.loop import context_stream, streams
from tests.marks import thorough, without_compilation
from tests.naive_contexts import contexts_drawn
from tests.sessions.test_journal import crash, everything, refuses

LAW = [0.2, 0.5, 0.3]
SEGMENTS: dict[str, Any] = {
    "mobile": {"red": [1.0, 0.0], "blue": [0.0, 1.0]},
    "desktop": {"red": [1.0, 0.5], "blue": [0.2, 1.0], "green": [0.1, 0.1]},
    "tablet": [[1.0, -1.0]],
}
THETA = np.array([1.0, 0.3])
OPTIONS = sl.contexts(SEGMENTS, LAW)
PROBLEM = sl.ContextualBandit(np.split(OPTIONS.features, [2, 5]), THETA, LAW, 0.1)
POLICIES: list[sl.extend.Policy] = [
    sl.IDS(),
    sl.IDS(context_probabilities="estimated"),
    sl.IDS(contexts="conditional"),
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.OAM(horizon=1000),
]
RARE = [
    POLICIES[1],
    POLICIES[5],
]  # compiled in tests/simulation/test_contexts.py only
every_policy = pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, marks=without_compilation if policy in RARE else ())
        for policy in POLICIES
    ],
    ids=lambda policy: str(policy)[-60:],
)


def new_session(policy: sl.extend.Policy | None = None, **changes: Any) -> sl.Session:
    changes = {"units": "given", **changes}
    return sl.Session(OPTIONS, policy or sl.IDS(), 0.1, seed=4, **changes)


class Played(NamedTuple):
    """One decision."""

    arm: int
    exploring: bool
    round: int


def by_hand(
    policy: sl.extend.Policy, contexts: list[int], errors: list[float], delay: int
) -> list[Played]:
    """Play as the loop of a simulation does, with delayed rewards."""
    state = policy.start(PROBLEM.model)
    rng, _ = streams(4)
    ask, learn = callable_for(choose, state), callable_for(update, state)
    wake: Clock | None = None
    played: list[Played] = []
    for t, context in enumerate(contexts, 1):
        offer = PROBLEM.model.contexts.offer(context)  # type: ignore[union-attr]
        if wake is not None and is_before(clock_at(t), wake):
            arm = callable_for(best_of, state)(state, clock_at(t), offer)
        else:
            arm, _, wake = ask(state, clock_at(t), offer, rng)
        played.append(Played(int(arm), not is_before(clock_at(t), wake), t))
        if t > delay and played[t - delay - 1].exploring:
            one = played[t - delay - 1]
            reward = PROBLEM.means[one.arm] + 0.1 * errors[one.round - 1]
            learn(state, clock_at(one.round), one.arm, reward)
            wake = None
    return played


@without_compilation
@every_policy
@pytest.mark.parametrize("delay", [0, 6])
def test_a_session_decides_as_the_loop_does(policy: sl.extend.Policy, delay: int) -> None:
    rng = np.random.default_rng(3)
    contexts = rng.choice(3, size=150, p=LAW).tolist()
    errors = rng.standard_normal(150).tolist()
    session = new_session(policy)
    decisions: list[sl.types.Decision] = []
    for t, context in enumerate(contexts, 1):
        by_name = bool(t % 2)
        decisions.append(
            session.ask(context=OPTIONS.contexts.names[context] if by_name else context)  # type: ignore[union-attr]
        )
        if t > delay:
            one = decisions[t - delay - 1]
            session.tell(one, PROBLEM.means[one.arm] + 0.1 * errors[one.round - 1])
    truth = by_hand(policy, contexts, errors, delay)
    assert [Played(one.arm, one.exploring, one.round) for one in decisions] == truth
    if policy.commits and not delay:
        assert not all(one.exploring for one in truth[-20:]), "the case of interest has come"


@pytest.mark.parametrize(
    "policy", [sl.LinUCB(), pytest.param(sl.ThompsonSampling(), marks=thorough)], ids=str
)
def test_a_policy_that_never_commits_plays_as_in_a_simulation(policy: sl.extend.Policy) -> None:
    run = sl.simulate(PROBLEM, policy, 100, 4, range(1, 101))
    noise = streams(4)[1]
    session = new_session(policy)
    arms = []
    for context in contexts_drawn(np.array(LAW), context_stream(4).random(100)).tolist():
        decision = session.ask(context=context)
        session.tell(decision, PROBLEM.means[decision.arm] + 0.1 * noise.standard_normal())
        arms.append(decision.arm)
    assert arms == np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1).tolist()


def play(session: sl.Session, rounds: int, seed: int) -> list[sl.types.Decision]:
    """Ask in random contexts, also in batches; rewards come late or never."""
    rng = np.random.default_rng(seed)
    made: list[sl.types.Decision] = []
    open_: list[sl.types.Decision] = []
    for _ in range(rounds):
        context = int(rng.choice(3, p=LAW))
        count = 3 if rng.random() < 0.2 else 1
        decisions = session.ask(count, context=context)
        made += decisions
        open_ += decisions
        while open_ and rng.random() < 0.7:
            one = open_.pop(int(rng.integers(len(open_))))
            session.tell(one, PROBLEM.means[one.arm] + 0.1 * rng.standard_normal())
        if rng.random() < 0.05:
            session.give_up(before=max(made[-1].round - 20, 1))
            open_ = [one for one in open_ if one.round >= made[-1].round - 20]
    return made


def test_a_decision_says_what_was_chosen_and_where() -> None:
    session = new_session()
    decision = session.ask(context="desktop")
    assert decision.context == "desktop"
    assert 2 <= decision.arm < 5
    assert decision.option == ["red", "blue", "green"][decision.arm - 2]
    assert decision.features.tolist() == OPTIONS.features[decision.arm].tolist()
    batch = session.ask(count=5, context=2)
    assert [(one.context, one.option, one.arm) for one in batch] == [("tablet", "0", 5)] * 5
    assert "6 arms in 3 contexts and 2 dimensions" in repr(session)
    plain = sl.Session([[1.0], [2.0]], sl.LinUCB())
    assert plain.ask().context is None
    assert plain.status().bests == {}


def test_a_commitment_is_to_the_best_of_every_context() -> None:
    session = new_session()
    late = session.ask(context="mobile")
    for t in range(400):
        decision = session.ask(context=t % 3)
        session.tell(decision, PROBLEM.means[decision.arm])
    status = session.status()
    assert status.settled
    assert status.best is None
    assert status.bests == {"mobile": "red", "desktop": "red", "tablet": "0"}
    assert (status.next_exploration or math.inf) > status.round
    before = session.status().explorations
    decisions = [session.ask(context=t % 3) for t in range(6)]
    assert [one.arm for one in decisions] == [0, 2, 5] * 2
    assert not any(one.exploring for one in decisions)
    assert [one.arm for one in session.ask(count=2, context=1)] == [2, 2]
    session.tell(late, -50.0)  # it may change the decision in all contexts
    assert session.status().explorations == before + 1
    assert [session.ask(context=c).arm for c in range(3)] == [1, 4, 5]


def test_a_batch_of_a_policy_that_does_not_randomise_varies() -> None:
    session = new_session(sl.LinUCB())
    arms = [one.arm for one in session.ask(count=6, context="desktop")]
    assert len(set(arms)) > 1
    assert set(arms) <= {2, 3, 4}
    assert session.status().round == 7


@every_policy
@pytest.mark.parametrize("every", [7, 10_000])
def test_a_reopened_session_is_the_same_in_all_bits(
    policy: sl.extend.Policy, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "SNAPSHOT_EVERY", every)
    path = tmp_path / "experiment.db"
    options: Any = {"reward_window": "30 rounds", "on_timeout": 0.0}
    arguments: Any = (OPTIONS, policy, 0.1, 4)
    session = sl.Session.open(path, *arguments, **options, units="given")
    for part in range(3):
        play(session, 20, seed=part)
        before = everything(session)
        crash(session)
        session = (
            sl.Session.open(path, *arguments, **options, units="given")
            if part
            else sl.Session.open(path)
        )
        assert everything(session) == before
        assert session.options.describe() == OPTIONS.describe()
    session.close()


@every_policy
def test_a_loaded_session_goes_on_bit_for_bit(policy: sl.extend.Policy, tmp_path: Path) -> None:
    sessions = [new_session(policy), new_session(policy)]
    for part in range(4):
        made = [play(session, 12, seed=part) for session in sessions]
        assert [one.arm for one in made[0]] == [one.arm for one in made[1]]
        sessions[1].save(tmp_path / "file")
        sessions[1] = sl.Session.load(tmp_path / "file")
        for one in sessions:
            one.give_up(before=10**6)  # ids differ


def test_the_journal_says_in_which_context(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    with sl.Session.open(path, OPTIONS, sl.LinUCB(), 0.1, seed=4, units="given") as session:
        session.ask(context="desktop")
        session.ask(count=2, context="mobile", available=["blue"])
        assert [event.context for event in session.events()] == [1, 0, 0]
        assert [event.body for event in session.events()] == [None, "[1]", None]
        session.tell(session.pending()[0], 0.5)
        assert session.events()[-1].context is None
        crash(session)
    changes = {
        "UPDATE events SET context = 0 WHERE sequence = 1": "event 1 recorded arm",
        "UPDATE events SET context = NULL": "context must be given",
        "UPDATE events SET context = 3": "contexts have the numbers 0 to 2, got 3",
    }
    refuses(path, changes)
    with pytest.raises(ValueError, match="was begun with another options"):
        sl.Session.open(path, sl.contexts(SEGMENTS), sl.LinUCB(), 0.1, seed=4, units="given")
    sl.Session.open(path, OPTIONS, sl.LinUCB(), 0.1, seed=4, units="given").close()


REFUSED: dict[str, tuple[Callable[[sl.Session], object], type[Exception], str]] = {
    "no context": (lambda s: s.ask(), ValueError, "context must be given: one of 'mobile', "),
    "no context, several": (lambda s: s.ask(3), ValueError, "context must be given: one of"),
    "unknown": (lambda s: s.ask(context="mobil"), KeyError, "did you mean 'mobile'"),
    "unlike any": (lambda s: s.ask(context="x"), KeyError, "there are 'mobile', 'desktop'"),
    "number": (
        lambda s: s.ask(context=3),
        KeyError,
        "numbers 0 to 2, got 3: there are 'mobile', 'desktop', 'tablet'",
    ),
    "negative": (lambda s: s.ask(context=-1), KeyError, "numbers 0 to 2, got -1"),
    "flag": (lambda s: s.ask(context=True), ValueError, "a name or a number, got True"),
    "float": (lambda s: s.ask(context=1.0), ValueError, "a name or a number, got 1.0"),  # type: ignore[call-overload]
    "array": (lambda s: s.ask(context=np.eye(9)), ValueError, "a name or a number, got array"),  # type: ignore[call-overload]
    "count": (lambda s: s.ask(0, context=0), ValueError, "count must be at least 1"),
    "available elsewhere": (
        lambda s: s.ask(context=0, available=["green"]),
        KeyError,
        "no option in context 'mobile' has the name 'green': there are 'red', 'blue'",
    ),
    "row elsewhere": (
        lambda s: s.ask(context=1, available=[0]),
        KeyError,
        "options in context 'desktop' have the rows 2 to 4, got 0",
    ),
    "available": (
        lambda s: s.ask(context=1, available=["red"]),
        ValueError,
        r"IDS\(.*cannot choose among some options of a context only",
    ),
    "retire": (lambda s: s.retire("red"), ValueError, "retiring an option needs options that are"),
    "retire row": (lambda s: s.retire(0), ValueError, "all on offer in every decision; these have"),
    "add": (lambda s: s.add("new", [1.0, 1.0]), ValueError, "adding an option needs options that"),
    "events": (lambda s: s.events(), RuntimeError, "keeps no journal"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_changes_nothing(what: str) -> None:
    call, error, sentence = REFUSED[what]
    session = new_session()
    play(session, 5, seed=1)
    before = everything(session)
    with pytest.raises(error, match=sentence) as caught:
        call(session)
    assert "\n" not in str(caught.value)
    assert everything(session) == before
    session.ask(context=0)


def test_a_session_without_contexts_takes_none() -> None:
    session = sl.Session([[1.0], [2.0]], sl.LinUCB())
    before = everything(session)
    for context in ("mobile", 0):
        with pytest.raises(ValueError, match="there are no contexts: context must be left out"):
            session.ask(context=context)
    assert everything(session) == before


def test_policies_that_need_fixed_arms_say_so() -> None:
    for policy in (sl.OSSB(), sl.LinIMED(), sl.IDS(information="cell")):
        with pytest.raises(ValueError, match="needs the same arms in every round"):
            new_session(policy)
    with pytest.raises(ValueError, match="a plan needs options that are all on offer"):
        sl.plan(OPTIONS, traffic_per_day=100)


@pytest.mark.parametrize("policy", [sl.LinUCB(), sl.ThompsonSampling()], ids=str)
def test_some_options_of_a_context(policy: sl.extend.Policy) -> None:
    session = new_session(policy)
    play(session, 10, seed=0)
    choices: list[list[str | int]] = [["blue", "green"], [3, 4], ["blue", 4]]
    for available in choices:
        decisions = session.ask(count=4, context="desktop", available=available)
        assert {one.arm for one in decisions} <= {3, 4}
        assert {one.context for one in decisions} == {"desktop"}
    with pytest.raises(ValueError, match="no option is left to choose"):
        session.ask(context="desktop", available=[])


@thorough
@pytest.mark.parametrize("policy", POLICIES[:4], ids=lambda policy: str(policy)[-60:])
def test_with_a_floor_every_option_of_the_context_has_its_share(policy: sl.extend.Policy) -> None:
    session = new_session(policy, min_probability=0.1)
    rng = np.random.default_rng(0)
    counts = np.zeros(6)
    weights = np.zeros(6)
    for t in range(300):
        decision = session.ask(context=t % 3)
        counts[decision.arm] += 1
        assert decision.probability >= 0.1
        weights[decision.arm] += 1.0 / decision.probability
        session.tell(decision, PROBLEM.means[decision.arm] + 0.1 * rng.standard_normal())
    assert counts[:2].sum() == counts[2:5].sum() == counts[5] == 100
    assert (counts > 0).all()
    # inverse probabilities sum, on average, to the number of rounds with the option on offer
    np.testing.assert_allclose(weights, 100, atol=5 * math.sqrt(100 / 0.1))
    with pytest.raises(ValueError, match=r"at most 1/3, as there are 3 options in a context"):
        new_session(policy, min_probability=0.4)


@pytest.mark.slow
def test_probabilities_by_drawing() -> None:
    session = new_session(sl.ThompsonSampling())
    decisions = [session.ask(context=t % 3) for t in range(9)]
    assert all(0.0 < one.probability <= 1.0 for one in decisions)
    assert all(one.probability == 1.0 for one in decisions[2::3]), "there is one option"


def test_windows_end_in_all_contexts() -> None:
    time = [0.0]
    session = new_session(reward_window=10.0, on_timeout=0.0, now=lambda: time[0])
    first = session.ask(context=0)
    time[0] = 11.0
    session.ask(context=1)
    status = session.status()
    assert (status.expired, status.pending, status.explorations) == (1, 1, 1)
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.tell(first, 1.0)


@thorough
@pytest.mark.parametrize("policy", [*POLICIES[1:], sl.Stakes()], ids=lambda one: str(one)[-60:])
def test_what_is_made_of_it(policy: sl.extend.Policy, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    with sl.Session.open(
        tmp_path / "journal.db", OPTIONS, policy, 0.1, seed=4, units="given"
    ) as session:
        made = play(session, 60, seed=2)
        status = session.status()
        assert status.bests == {"mobile": "red", "desktop": "red", "tablet": "0"}
        silent = "This policy does not say what is at stake."
        assert (status.at_stake(100) == silent) != isinstance(policy, sl.Stakes)
        estimates = session.estimates()
        assert estimates is not None
        assert estimates.means == pytest.approx(PROBLEM.means, abs=0.3)
        effects = session.effects()
        assert effects["term"].tolist() == ["x0", "x1"]
        assert (effects["lower"] < THETA).all()
        assert (effects["upper"] > THETA).all()
        figure = session.plot(tmp_path / "figure.svg")
        written = (tmp_path / "figure.svg").read_text()
        assert "desktop: green" in written
        assert "Best option of every context" in figure.get_suptitle()
        session.export(tmp_path / "log.parquet")
        session.export(tmp_path / "log.csv")
    frame = pd.read_parquet(tmp_path / "log.parquet")
    assert frame["context"].tolist() == [one.context for one in made]
    assert frame["option"].tolist() == [one.option for one in made]
    assert frame["arm"].tolist() == [one.arm for one in made]
    rows = {"mobile": [0, 1], "desktop": [2, 3, 4], "tablet": [5]}
    assert [list(one) for one in frame["offered"]] == [rows[one.context or ""] for one in made]
    table = pd.read_csv(tmp_path / "log.csv")
    assert table["context"].tolist() == [one.context for one in made]


def test_evidence_is_that_of_the_weakest_context() -> None:
    """From separate reports of each context."""
    session = new_session(sl.LinUCB())
    play(session, 40, seed=5)
    reports = session._live.reports()
    assert [report.best for report in reports] == [0, 2, 5]
    assert session.status().evidence == min(report.evidence for report in reports)
    assert reports[2].evidence == math.inf


def test_one_context_is_a_session_without() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.standard_normal(80)
    features = OPTIONS.features[2:5]
    arms = []
    for options in (sl.contexts([features]), features):
        session = sl.Session(options, sl.IDS(), 0.5, seed=1, units="given")
        where: Any = {} if session.options.contexts is None else {"context": 0}
        made = []
        for reward in rewards:
            made.append(session.ask(**where))
            session.tell(made[-1], reward)
        arms.append([(one.arm, one.exploring, one.probability) for one in made])
    assert arms[0] == arms[1]


def test_contexts_by_name_and_number() -> None:
    assert OPTIONS.names == ("red", "blue", "red", "blue", "green", "0")
    assert OPTIONS.labels[3] == "desktop: blue"
    assert OPTIONS.index("blue", context="desktop") == OPTIONS.index(3, 1) == 3
    assert repr(OPTIONS).startswith("Options(6 in 2 dimensions and 3 contexts: 'red'")
    again = Options.build(OPTIONS.describe())
    assert again.describe() == OPTIONS.describe()
    assert again.contexts == OPTIONS.contexts
    named = sl.contexts(SEGMENTS, {"tablet": 0.3, "mobile": 0.2, "desktop": 0.5})
    assert named.contexts == OPTIONS.contexts
    numbered = sl.contexts([np.eye(2), np.ones((3, 2))], columns=["age", "income"])
    assert numbered.contexts is not None
    assert numbered.contexts.names == ("0", "1")
    assert numbered.columns == ("age", "income")
    assert numbered.contexts.contexts().offer(1) == block(2, 5, 1)
    with pytest.raises(ValueError, match="context must be given"):
        OPTIONS.index("red")
    with pytest.raises(ValueError, match="adding an option needs"):
        OPTIONS.with_option("x", [1.0, 1.0])


@pytest.mark.parametrize(
    ("options", "probabilities", "sentence"),
    [
        (3, None, "contexts must be a mapping of context to options or a list of arrays, got 3"),
        ("ab", None, "contexts must be a mapping of context to options or a list of arrays"),
        ({}, None, "contexts must not be empty"),
        ([], None, "contexts must not be empty"),
        ({"a": {}}, None, "options of context 'a': options must not be empty"),
        ({"a": [1.0, 2.0]}, None, r"options of context 'a': features must have shape"),
        ({"a": [[math.nan]]}, None, "options of context 'a': features must"),
        ({"a": {"x": [1.0], "y": [1.0, 2.0]}}, None, "'a': all options need equally many"),
        ({"a": [[1.0]], "b": [[1.0, 2.0]]}, None, "got 1 in context 'a' and 2 in context 'b'"),
        ([[[1.0]], [[1.0, 2.0]]], None, "got 1 in context 0 and 2 in context 1"),
        ({"a": sl.factorial({"f": [1, 2]})}, None, "got Options: take their features"),
        ({1: [[1.0]]}, None, "contexts must be printable text, got 1"),
        ({"a": {"x": [1.0], 2: [1.0]}}, None, "options of context 'a': names must be printable"),
        ([[[1.0]], [[2.0]]], [0.5, 0.6], "probabilities must sum to 1"),
        ([[[1.0]], [[2.0]]], [1.0, 0.0], "probabilities must be > 0"),
        ([[[1.0]], [[2.0]]], [1.0], "probabilities must have shape"),
        ({"a": [[1.0]], "b": [[2.0]]}, {"a": 1.0}, "probabilities must have one for every"),
    ],
)
def test_contexts_that_cannot_be(options: Any, probabilities: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        sl.contexts(options, probabilities)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"starts": [0, 2, 6]}, "probabilities must have shape"),
        ({"starts": [0, 2, 2, 6]}, "contexts must have consecutive rows"),
        ({"starts": [0, 2, 5, 7]}, "contexts must be Blocks of 6 rows"),
        ({"starts": [1, 2, 5, 6]}, "contexts must have consecutive rows from 0"),
        ({"starts": ["a"]}, "first row of a context must be an integer"),
        ({"names": ["a", "a", "b"]}, "contexts must differ, got 'a' twice"),
        ({"probabilities": [1.0, 1.0, 1.0]}, "probabilities must sum to 1"),
        ({"more": 1}, "contexts have names, starts, probabilities and nothing else"),
    ],
)
def test_files_with_contexts_that_cannot_be(change: dict[str, Any], sentence: str) -> None:
    description = OPTIONS.describe()
    description["contexts"] |= change
    with pytest.raises(ValueError, match=sentence):
        Options.build(description)


def test_a_file_with_contexts_has_no_retired_options() -> None:
    session = new_session(sl.LinUCB())
    snapshot = session._live.snapshot()
    snapshot.header["retired"] = [1]
    with pytest.raises(ValueError, match="a retired option needs options that are all on offer"):
        session._live.fill(snapshot)


class GreedyState(NamedTuple):
    """Sums and counts of every arm."""

    totals: np.ndarray[Any, np.dtype[np.float64]]
    counts: np.ndarray[Any, np.dtype[np.float64]]


class SilentState(NamedTuple):
    """The same, for a policy that does not report its commitments."""

    totals: np.ndarray[Any, np.dtype[np.float64]]
    counts: np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Greedy(sl.extend.Policy):
    """In plain Python: play every arm twice, then commit."""

    silent: bool = False

    @property
    def commits(self) -> bool:
        return True

    @property
    def randomises(self) -> bool:
        return False

    supports = sl.extend.Supports(masks=True, contexts=True)

    def start(self, model: sl.extend.Model) -> GreedyState | SilentState:
        arrays = np.zeros(len(model.rewards)), np.zeros(len(model.rewards))
        return SilentState(*arrays) if self.silent else GreedyState(*arrays)


def choose_greedily(
    state: Any, clock: Clock, offer: Any, rng: np.random.Generator
) -> sl.extend.Choice:
    if state.counts.min() >= 2:
        return sl.extend.Choice(best_greedily(state, clock, offer), 1.0, sl.extend.never())
    counts = state.counts[offer.start : offer.stop]
    return sl.extend.Choice(offer.start + int(counts.argmin()), 1.0, clock)


def learn_greedily(state: Any, clock: Clock, arm: int, outcome: float) -> None:
    state.totals[arm] += outcome
    state.counts[arm] += 1


def best_greedily(state: Any, clock: Clock, offer: Any) -> int:
    means = state.totals / state.counts
    return int(offer.start + means[offer.start : offer.stop].argmax())


sl.extend.register_policy(
    GreedyState, choose=choose_greedily, update=learn_greedily, best_of=best_greedily
)
sl.extend.register_policy(SilentState, choose=choose_greedily, update=learn_greedily)


def test_a_policy_in_plain_python(tmp_path: Path) -> None:
    session = new_session(Greedy())
    for t in range(18):
        decision = session.ask(context=t % 3)
        session.tell(decision, PROBLEM.means[decision.arm])
    decisions = [session.ask(context=t % 3) for t in range(6)]
    assert [one.arm for one in decisions] == [0, 2, 5] * 2
    assert not any(one.exploring for one in decisions)
    status = session.status()
    assert (status.best, status.bests, status.settled) == (None, {}, None)
    assert status.next_exploration is None
    session.plot(tmp_path / "figure.svg")
    session.save(tmp_path / "file")
    again = sl.Session.load(tmp_path / "file", Greedy())
    assert [again.ask(context=t).arm for t in range(3)] == [0, 2, 5]
    with pytest.raises(ValueError, match="Greedy commits and does not say to which arm"):
        new_session(Greedy(silent=True))
    with pytest.raises(ValueError, match="Greedy commits and does not say to which arm"):
        sl.simulate(PROBLEM, Greedy(silent=True), 10)


@without_compilation
def test_probabilities_are_those_of_the_law_in_every_context() -> None:
    """Also while Stakes is committed, with an exploration ahead in one context only."""
    arms = sl.problems.end_of_optimism(epsilon=0.1).actions
    first, second = np.zeros((3, 3)), np.zeros((3, 3))
    first[:, :2], second[:, [0, 2]] = arms, arms
    session = sl.Session(
        sl.contexts([first, second], [0.7, 0.3]), sl.Stakes(), 0.3, seed=1, units="given"
    )
    rng = np.random.default_rng(0)
    committed: dict[float, int] = {}
    for _ in range(1500):
        context = int(rng.random() < 0.3)
        state, clock = session._live.state, session._live.clock
        probabilities = np.zeros(6)
        write_probabilities(
            state, clock, block(3 * context, 3 * context + 3, context), rng, probabilities
        )
        decision = session.ask(context=context)
        assert decision.probability == pytest.approx(probabilities[decision.arm], abs=1e-12)
        if not decision.exploring:
            committed[context] = committed.get(context, 0) + (decision.probability < 1.0)
        session.tell(decision, float(arms[decision.arm % 3, 0] + 0.3 * rng.standard_normal()))
    assert 0 in committed.values()
    assert max(committed.values()) > 0


@thorough
@pytest.mark.parametrize("policy", [sl.Stakes(), sl.IDS()], ids=["Stakes", "IDS"])
def test_a_loaded_session_knows_how_often_contexts_came(
    policy: sl.extend.Policy, tmp_path: Path
) -> None:
    session = sl.Session(
        sl.contexts(SEGMENTS), policy, 0.1, seed=4, units="given"
    )  # it must count contexts
    rng = np.random.default_rng(0)
    for _ in range(30):
        decision = session.ask(context="desktop" if rng.random() < 0.8 else "mobile")
        session.tell(decision, float(rng.standard_normal()))
    session.save(tmp_path / "session.npz")
    loaded = sl.Session.load(tmp_path / "session.npz")
    assert repr(loaded.status()) == repr(session.status())
    probabilities = np.zeros(6), np.zeros(6)
    for one, found in zip((session, loaded), probabilities, strict=True):
        write_probabilities(one._live.state, one._live.clock, block(2, 5, 1), rng, found)
    np.testing.assert_array_equal(*probabilities)
