"""Parts that a user registers: copies of built-in parts give the same runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

import sightline as sl
from sightline.core.clock import Clock
from sightline.core.gains import WidthGain
from sightline.problems.streams import StreamBandit, draw_arms
from sightline.simulation.simulate import is_interpreted

PROBLEM = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
Array = NDArray[np.float64]


class PlainValues(NamedTuple):
    code: int = 0


@sl.extend.register_gaps("plain value", PlainValues())
def plain_values(rule: PlainValues, round_: sl.extend.Round, gaps: Array) -> None:
    arms, ucb = round_.estimate.arms, round_.ucb_arm
    highest = arms.means[ucb] + math.sqrt(round_.beta * max(arms.squared_widths[ucb], 0.0))
    gaps[:] = highest - arms.means


class PlainLogDet(NamedTuple):
    code: int = 0


@sl.extend.register_information("plain log-det", PlainLogDet())
def plain_log_det(rule: PlainLogDet, round_: sl.extend.Round, gains: Array) -> None:
    for x in range(len(gains)):
        gains[x] = math.log1p(max(round_.estimate.arms.seen_widths[x], 0.0))


class FastLogDet(NamedTuple):
    code: int = 0


sl.extend.register_information("fast log-det", FastLogDet())(numba.njit(plain_log_det))


class PlainBeta(NamedTuple):
    variance: float
    dimension: float


def _plain_beta(rule: PlainBeta, log_det: float, log_t: float) -> float:
    u = max(log_t, math.log(3.0))
    return 1.0 * rule.variance * (2.0 * u + rule.dimension * math.log(u))


def _plain_local_beta(rule: PlainBeta, log_det: float, s: int) -> float:
    return _plain_beta(rule, log_det, math.log(s))


sl.extend.register_confidence(PlainBeta, local=_plain_local_beta, overall=_plain_beta)


@dataclass(frozen=True)
class PlainLogLog(sl.extend.ConfidenceRule):
    def build(self, d: int, noise_std: float, regulariser: float) -> PlainBeta:
        return PlainBeta(noise_std**2, float(d))


class PlainGaussian(NamedTuple):
    std: float


@sl.extend.register_noise(PlainGaussian)
def draw_plain(noise: PlainGaussian, mean: float, rng: np.random.Generator) -> float:
    return mean + noise.std * rng.standard_normal()


PAIRS = {
    "gaps": (sl.IDS(gaps="plain value"), sl.IDS()),
    "gain": (sl.IDS(information="plain log-det"), sl.IDS(information="log-det")),
    "compiled gain": (sl.IDS(information="fast log-det"), sl.IDS(information="log-det")),
    "confidence": (sl.IDS(confidence=PlainLogLog()), sl.IDS(confidence=sl.LogLog())),
    "confidence of LinUCB": (
        sl.LinUCB(confidence=PlainLogLog()),
        sl.LinUCB(confidence=sl.LogLog()),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_copies_run_as_the_library_does(name: str) -> None:
    own, theirs = PAIRS[name]
    assert is_interpreted(PROBLEM, own) is ("compiled" not in name)
    for seed in range(2):
        run = sl.simulate(PROBLEM, own, 10**6 if own.commits else 300, seed, [100, 300])
        expected = sl.simulate(PROBLEM, theirs, 10**6 if own.commits else 300, seed, [100, 300])
        assert run.pulls.tolist() == expected.pulls.tolist()
        assert run.explorations.tolist() == expected.explorations.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_copies_serve_as_the_library_does(name: str) -> None:
    sessions = [sl.Session(PROBLEM.actions, policy, 0.3, seed=1) for policy in PAIRS[name]]
    rng = np.random.default_rng(0)
    for _ in range(40):
        decisions = [session.ask() for session in sessions]
        assert decisions[0].arm == decisions[1].arm
        reward = float(rng.normal())
        for session, decision in zip(sessions, decisions, strict=True):
            session.tell(decision.id, reward)
        first, second = (session.status() for session in sessions)
        assert first.best == second.best
        assert first.evidence == pytest.approx(second.evidence, rel=1e-12)


@pytest.mark.slow
def test_a_noise_in_plain_python_gives_the_same_rewards() -> None:
    plain = sl.LinearBandit(PROBLEM.actions, PROBLEM.theta, noise=PlainGaussian(0.3))
    compiled = sl.LinearBandit(PROBLEM.actions, PROBLEM.theta, 0.3)
    runs = [sl.simulate(problem, sl.IDS(), 10**4, seed=4) for problem in (plain, compiled)]
    assert runs[0].pulls.tolist() == runs[1].pulls.tolist()


class NotingState(NamedTuple):
    open: list[int]


class Noting(sl.extend.Policy):
    """Plays arm 0, and keeps the rounds of open outcomes."""

    def start(self, model: sl.extend.Model) -> NotingState:
        return NotingState([])


def choose_noting(state: NotingState, clock: Clock, offer: Any, rng: Any) -> sl.extend.Choice:
    return sl.extend.Choice(0, 1.0, clock)


def update_noting(state: NotingState, clock: Clock, arm: int, outcome: float) -> None:
    state.open.remove(int(clock.t))


def decided_noting(state: NotingState, clock: Clock, arm: int) -> None:
    state.open.append(int(clock.t))


sl.extend.register_policy(
    NotingState, choose=choose_noting, update=update_noting, decided=decided_noting
)


def test_a_policy_hears_of_open_decisions_and_of_the_round_of_an_outcome() -> None:
    session = sl.Session(PROBLEM.actions, Noting(), 1.0, units="given")
    first, second, third = (session.ask() for _ in range(3))
    assert session._live.state.open == [1, 2, 3]
    session.tell(third.id, 1.0)
    session.tell(first.id, 0.0)
    assert session._live.state.open == [2]
    assert second.round == 2


# What the parts below return from the fourth round on.
BAD = np.zeros(1)


class BadGain(NamedTuple):
    bad: Array


class FastBadGain(BadGain):
    pass


def write_gains(rule: Any, round_: sl.extend.Round, gains: Array) -> None:
    for x in range(len(gains)):
        late = round_.estimate.learned.rounds[0] >= 3
        gains[x] = rule.bad[0] if x == 1 and late else 1.0


class BadGaps(NamedTuple):
    bad: Array


class FastBadGaps(BadGaps):
    pass


class BadBeta(NamedTuple):
    bad: Array


class FastBadBeta(BadBeta):
    pass


def local_beta(rule: Any, log_det: float, s: int) -> float:
    return rule.bad[0] if s >= 4 else 1.0


def overall_beta(rule: Any, log_det: float, log_t: float) -> float:
    return rule.bad[0] if log_t > 1.3 else 1.0


def settled(rule: Any, log_det: float, evidence: float) -> float:
    return -math.inf


class BadNoise(NamedTuple):
    std: float


class FastBadNoise(BadNoise):
    pass


def draw_bad(noise: Any, mean: float, rng: np.random.Generator) -> float:
    return BAD_REWARD if rng.random() < 0.2 else mean


BAD_REWARD = math.nan  # a constant of compiled code


@dataclass(frozen=True)
class BadRule(sl.extend.ConfidenceRule):
    kind: type

    def build(self, d: int, noise_std: float, regulariser: float) -> Any:
        return self.kind(BAD)


for prefix, kinds, decorate in (
    ("plain", (BadGain, BadGaps, BadBeta, BadNoise), lambda function: function),
    ("fast", (FastBadGain, FastBadGaps, FastBadBeta, FastBadNoise), numba.njit),
):
    sl.extend.register_information(f"{prefix} bad", kinds[0](BAD))(decorate(write_gains))
    sl.extend.register_gaps(f"{prefix} bad", kinds[1](BAD))(decorate(write_gains))
    betas = {"local": local_beta, "overall": overall_beta, "settled": settled}
    sl.extend.register_confidence(
        kinds[2], **{name: decorate(each) for name, each in betas.items()}
    )
    sl.extend.register_noise(kinds[3])(decorate(draw_bad))

FAULTS = [(math.nan, "nan"), (-1.0, "a negative number"), (math.inf, "inf")]
SPEEDS = ["plain", pytest.param("fast", marks=pytest.mark.slow)]


@pytest.mark.parametrize("prefix", SPEEDS)
@pytest.mark.parametrize("part", ["information gain", "gap estimate", "overall beta"])
def test_what_is_no_gain_gap_or_beta_is_refused_in_its_first_round(part: str, prefix: str) -> None:
    beta = FastBadBeta if prefix == "fast" else BadBeta
    policy = {
        "information gain": sl.IDS(information=f"{prefix} bad"),
        "gap estimate": sl.IDS(gaps=f"{prefix} bad"),
        "overall beta": sl.LinUCB(confidence=BadRule(beta)),
    }[part]
    name = beta.__name__ if part == "overall beta" else f"{prefix} bad"
    assert is_interpreted(PROBLEM, policy) is (prefix == "plain")
    for BAD[0], wrong in FAULTS:
        with pytest.raises(ValueError, match=f"{part} .*{name}.* number >= 0, got {wrong}"):
            sl.simulate(PROBLEM, policy, 100)
    assert sl.simulate(PROBLEM, policy, 3).explorations[-1] == 3
    BAD[0] = math.nan
    session = sl.Session(PROBLEM.actions, policy, 0.3)
    for _ in range(3):
        session.tell(session.ask().id, 0.0)
    with pytest.raises(ValueError, match=f"{part} .*, got nan"):
        session.ask()
    assert session.pending() == []
    assert session._live.counters.t[0] == 4


def test_a_local_beta_must_be_a_finite_number() -> None:
    for BAD[0], wrong in FAULTS:
        with pytest.raises(ValueError, match=f"beta of BadBeta must .* >= 0, got {wrong}"):
            sl.simulate(PROBLEM, sl.IDS(confidence=BadRule(BadBeta)), 100)


class OwnSource(NamedTuple):
    written: int
    feature: float


@draw_arms.register(OwnSource)
def draw_own(source: OwnSource, rng: np.random.Generator, rows: Array, means: Array) -> int:
    rows[:] = means[:-1] = source.feature
    return source.written


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            OwnSource(4, 1.0),
            "OwnSource must return how many arms it has written, from 1 to max_arms",
        ),
        (
            OwnSource(0, 1.0),
            "OwnSource must return how many arms it has written, from 1 to max_arms",
        ),
        (OwnSource(3, math.nan), "features and mean rewards written by OwnSource must be finite"),
    ],
)
def test_what_is_no_set_of_new_arms_is_refused(source: OwnSource, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.simulate(StreamBandit(source, max_arms=3, d=1), sl.LinUCB(), 10)


@pytest.mark.parametrize("prefix", SPEEDS)
def test_what_is_no_reward_is_refused(prefix: str) -> None:
    noise = FastBadNoise(0.3) if prefix == "fast" else BadNoise(0.3)
    problem = sl.LinearBandit(PROBLEM.actions, PROBLEM.theta, noise=noise)
    with pytest.raises(ValueError, match=f"drawn by the noise of {type(noise).__name__} .*got nan"):
        sl.simulate(problem, sl.LinUCB(), 1000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sl.IDS(information="plain logdet"), "did you mean 'plain log-det'"),
        (lambda: sl.IDS(gaps="plain values"), "did you mean 'plain value'"),
        (lambda: sl.IDS(confidence=PlainBeta(1.0, 2.0)), "confidence must be LogDet"),  # type: ignore[arg-type]
    ],
)
def test_unregistered_names(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_functions_of_a_class_of_the_library_stay_its_own() -> None:
    with pytest.raises(ValueError, match="keeps its functions: register a class of your own"):
        sl.extend.register_information("own widths", WidthGain(0))(lambda rule, round_, gains: None)
