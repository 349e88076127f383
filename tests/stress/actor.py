"""An actor that calls all methods of a session, in random order."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sightline as sl
from sightline.sessions.state import LiveState
from tests.own_policies import EpsilonGreedy
from tests.stress.books import Deed, Record, asked

__all__ = ["POLICIES", "PROBLEM", "WINDOW", "Actor", "begin", "bits", "own", "where"]

PROBLEM = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
POLICIES: dict[str, sl.extend.Policy] = {
    "IDS": sl.IDS(),
    "LinUCB": sl.LinUCB(),
    "ThompsonSampling": sl.ThompsonSampling(),
    "BayesianIDS": sl.BayesianIDS(samples=200),
    "Stakes": sl.Stakes(),
    "EpsilonGreedy": EpsilonGreedy(0.3),
    "IDS in contexts": sl.IDS(context_probabilities="estimated"),
    "IDS on a stream": sl.IDS(contexts="conditional"),
    "Stakes in a game": sl.Stakes(guard=0.6),
}
CONTEXTS = sl.contexts(np.split(PROBLEM.actions, 2))
STREAM = sl.stream(2, max_arms=4)
GAME = sl.game(PROBLEM.actions, np.roll(PROBLEM.actions, 1, axis=0) * [[0.0], *[[1.0]] * 5])
SETS: list[list[list[float]]] = [PROBLEM.actions[:4].tolist(), PROBLEM.actions[4:].tolist()]
#: By rounds, so that a twin that does the same lets the same decisions expire.
_WINDOW = 40
MOST_OPTIONS = 12
WINDOW: dict[str, Any] = {"reward_window": f"{_WINDOW} rounds", "on_timeout": 0.0}
_OPEN, _EXPIRED = (
    _WINDOW - 5,
    _WINDOW + 5,
)  # rounds after which a decision is still open, and has expired


def begin(policy: sl.extend.Policy, journal: Path | None = None, **options: Any) -> sl.Session:
    """Begin a session, or continue it from its journal."""
    actions: Any = PROBLEM.actions
    if policy == POLICIES["IDS in contexts"]:
        actions = CONTEXTS
    elif policy == POLICIES["IDS on a stream"]:
        actions = STREAM
    elif policy == POLICIES["Stakes in a game"]:
        actions = GAME
    if journal is None:
        return sl.Session(actions, policy, 0.3, seed=1, **WINDOW | options)
    return sl.Session.open(journal, actions, policy, 0.3, seed=1, **WINDOW | options)


def where(session: sl.Session, number: int = 0) -> dict[str, Any]:
    """Arguments of ``ask`` that name a context, or bring options, where it needs them."""
    if session.options.stream:
        return {"options": SETS[number]}
    return {} if session.options.contexts is None else {"context": number}


def own(policy: sl.extend.Policy) -> sl.extend.Policy | None:
    """Return a policy that is not part of the library, which loading a file needs."""
    return policy if isinstance(policy, EpsilonGreedy) else None


def bits(state: LiveState, *, names: bool = True) -> dict[str, Any]:
    """The whole state of a session; on request without ids and times, which always differ."""
    snapshot = state.snapshot()
    arrays = {
        name: array.tobytes()
        for name, array in snapshot.arrays.items()
        if names or name.rpartition(".")[2] not in ("id", "made", "when", "received", "delays")
    }
    header = dict(snapshot.header)
    if header.get("sums") and not names:  # the rewards that set origin and unit, by decision
        setters = {key: (header["sums"][key] or [None, None])[1] for key in ("first", "other")}
        header["sums"] = {**header["sums"], **setters}
    return {**header, **arrays}


class Actor:
    """Asks, tells, looks and saves.

    Parameters
    ----------
    session : Session
        To which it is done.
    rng : random.Random
        What is done.
    folder : Path
        Where the session is saved.
    alone : bool
        Whether no other actor tells and gives up.

    Attributes
    ----------
    done : list of Deed
        What has returned.
    doing : Deed or None
        What has not, or not yet.
    acknowledged : list of Record
        What the session has answered.
    files : list of dict
        Bits of the states that the saved file may hold.
    """

    WEIGHTS: tuple[tuple[str, int], ...] = (
        ("ask", 30),
        ("tell", 30),
        ("ask_several", 2),
        ("tell_several", 5),
        ("status", 5),
        ("estimates", 3),
        ("pending", 3),
        ("tell_again", 3),
        ("tell_unknown", 2),
        ("ask_among_some", 5),
        ("tell_late", 2),
        ("give_up", 1),
        ("save", 2),
        ("add", 1),
        ("retire", 1),
    )

    def __init__(
        self, session: sl.Session, rng: random.Random, folder: Path, *, alone: bool = True
    ) -> None:
        self.session, self.rng, self.path, self.alone = session, rng, folder / "state", alone
        self.done: list[Deed] = []
        self.doing: Deed | None = None
        self.acknowledged: list[Record] = []
        self.files: list[dict[str, Any]] = []
        self.open: dict[int, str] = {}  # ids by round
        self._newest = 0
        self._told: collections.deque[tuple[str, float]] = collections.deque(maxlen=100)
        self._kinds, self._weights = zip(*self.WEIGHTS[: None if alone else 10], strict=True)

    def act(self) -> None:
        """Do something."""
        (kind,) = self.rng.choices(self._kinds, self._weights)
        getattr(self, f"_{kind}")()

    def _do(self, deed: Deed, call: Callable[[], Any]) -> Any:
        self.doing = deed
        result = call()
        self.done.append(deed)
        self.doing = None
        return result

    def _ask(self) -> None:
        here = where(self.session, self.rng.randrange(2))
        self._note([self._do(Deed("ask", (1, here)), lambda: self.session.ask(**here))])

    def _ask_several(self) -> None:
        if self.session.options.stream:
            return
        count = self.rng.randint(2, 6)
        here = where(self.session, self.rng.randrange(2))
        deed = Deed("ask", (count, here))
        self._note(self._do(deed, lambda: self.session.ask(count=count, **here)))

    def _ask_among_some(self) -> None:
        if self._changes:
            some = self.rng.sample(self._remaining(), 3)
            deed = Deed("ask", (1, {"available": some}))
            self._note([self._do(deed, lambda: self.session.ask(available=some))])

    @property
    def _changes(self) -> bool:
        """Whether options can come and go."""
        options = self.session.options
        game = options.observations is not None
        stay = options.contexts is None and not options.stream and not game
        return self.session.policy.supports.masks and stay

    def _remaining(self) -> list[int]:
        table = self.session._live.table
        return sorted(set(range(len(table.options))) - table.retired)

    def _add(self) -> None:
        k = len(self.session.options)
        if self._changes and k < MOST_OPTIONS:
            features = [self.rng.uniform(-0.7, 0.7) for _ in range(2)]
            self._do(Deed("add", features), lambda: self.session.add(f"new {k}", features))
            self.acknowledged.append(("added", None))

    def _retire(self) -> None:
        if self._changes and len(self._remaining()) > 4:
            arm = self.rng.choice(self._remaining())
            self._do(Deed("retire", arm), lambda: self.session.retire(arm))
            self.acknowledged.append(("retired", None))

    def _note(self, decisions: list[sl.types.Decision]) -> None:
        for one in decisions:
            self.open[one.round], self._newest = one.id, one.round
            self.acknowledged.append(asked(one.id, one.arm, one.probability, one.round))

    def _tell(self) -> None:
        self._tell_some(1, lambda pairs: self.session.tell(*pairs[0]))

    def _tell_several(self) -> None:
        self._tell_some(4, self.session.tell_many)

    def _tell_some(self, count: int, tell: Callable[[list[tuple[str, float]]], None]) -> None:
        rounds = [t for t in self.open if t > self._newest - _OPEN]
        chosen = self.rng.sample(rounds, min(count, len(rounds)))
        if not chosen:
            return
        pairs = [(self.open[t], self.rng.gauss(0.3, 0.3)) for t in chosen]
        told = {t: reward for t, (_, reward) in zip(chosen, pairs, strict=True)}
        try:
            self._do(Deed("tell", told), lambda: tell(pairs))
            self._told += pairs
            self.acknowledged += [("received", *pair) for pair in pairs]
        except (sl.types.ExpiredDecisionError, sl.types.RefusedRewardsError) as error:
            if self.alone:
                raise
            refused = getattr(error, "refused", dict(pairs))  # others have asked meanwhile
            kept = [pair for pair in pairs if pair[0] not in refused]
            self._told += kept
            self.acknowledged += [("received", *pair) for pair in kept]
            self.doing = None
        for t in chosen:
            del self.open[t]

    def _tell_late(self) -> None:
        expired = [t for t in self.open if t < self._newest - _EXPIRED]
        if expired:
            id_ = self.open[expired[0]]
            late = Deed("late", expired[0])
            self._do(late, lambda: self._refused(id_, sl.types.ExpiredDecisionError))
            self.acknowledged.append(("late", id_))
            del self.open[expired[0]]

    def _tell_again(self) -> None:
        if self._told:
            id_, reward = self.rng.choice(self._told)
            self._do(Deed("look"), lambda: self.session.tell(id_, reward))

    def _tell_unknown(self) -> None:
        self._do(Deed("look"), lambda: self._refused("x", sl.types.UnknownDecisionError))

    def _refused(self, id_: str, error: type[Exception]) -> None:
        try:
            self.session.tell(id_, 0.5)
        except error:
            return
        raise AssertionError(f"the reward of {id_} was accepted")

    def _give_up(self) -> None:
        before = max(self._newest - 30, 1)
        waiting = [id_ for t, id_ in self.open.items() if self._newest - _WINDOW < t < before]
        given_up = self._do(Deed("give up", before), lambda: self.session.give_up(before=before))
        if given_up != len(waiting):
            raise AssertionError(f"{given_up} were given up, and {len(waiting)} were open")
        self.acknowledged += [("given up", id_) for id_ in waiting]
        self.open = {t: id_ for t, id_ in self.open.items() if t >= before}

    def _status(self) -> None:
        self._do(Deed("look"), self.session.status)

    def _estimates(self) -> None:
        self._do(Deed("look"), self.session.estimates)

    def _pending(self) -> None:
        self._do(Deed("look"), self.session.pending)

    def _save(self) -> None:
        content = bits(self.session._live)
        self.files.append(content)
        self._do(Deed("save"), lambda: self.session.save(self.path))
        self.files = [content]

    def refresh(self) -> None:
        """Note open decisions, also those of calls that never returned."""
        pending = self.session.pending()
        self._newest = self.session.status().round - 1
        gone = {t: id_ for t, id_ in self.open.items() if t < self._newest - _EXPIRED}
        self.open = gone | {one.round: one.id for one in pending}

    def check_file(self) -> None:
        """Compare the saved file with what it may hold."""
        if not self.path.exists():
            return
        loaded = bits(sl.Session.load(self.path, own(self.session.policy))._live)
        if loaded not in self.files:
            raise AssertionError("the file holds neither the state before save nor that after it")
        self.files = [loaded]
