"""The contract of a policy, and the kernels that most policies share.

A policy is a frozen configuration.  Its :meth:`Policy.start` makes a state from a model: a
``NamedTuple`` of arrays that is mutated in place.  :func:`register_policy` adds the functions for
the class of that state; ``choose`` and ``update`` are required.

A :class:`Choice` says until when it holds.  If ``wake`` is the current round, the policy explores
and learns the outcome.  If ``wake`` lies ahead, the policy commits: until then it plays its best
arm of every action set and does not learn, so a simulation may jump there.

Shared kernels take states with an ``estimate`` by least squares and, where they need them, a
``confidence`` coefficient and ``alternatives`` (half-spaces or projections).  They learn, run the
exploitation test of IDS and report on it.

*Scheduled exploration* draws the round of the next exploration in one step.  While playing x-hat
changes nothing that is known, every round has the same distribution: another arm with probability
p.  The number of rounds before that arm is geometric.  Drawing this number once and drawing in
every round give the same distribution.  A geometric time has no memory, so cancelling it costs
nothing.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import ActionSet, first_largest_offered, is_offered, withhold
from sightline.core.alternatives import Comparison, compare, restrict_alternatives
from sightline.core.clock import FAR, Clock, is_before, later, log_round, tick
from sightline.core.confidence import ConfidenceRule, adapt, adapt_to, global_beta, next_exploration
from sightline.core.confidence_rules import FixedBeta, LogDet, leave_out, ridge
from sightline.core.estimate import LeastSquares, Noise, basis_of_differences
from sightline.core.least_squares import least_squares, observe, show_arms
from sightline.core.linalg import Array, Ints, draw_index
from sightline.core.model import Model
from sightline.core.persistence import State, invariant, may_hold
from sightline.core.ratio import Mixture
from sightline.jit import compiled, compiled_apart, generic, parts_of
from sightline.validation import flag, instance


class Choice(NamedTuple):
    """An arm, the probability with which it was drawn, and how long it holds.

    The probability is nan for policies that only estimate it by draws (``probability_by_draws``).
    """

    arm: int
    probability: float
    wake: Clock


class Evidence(NamedTuple):
    """What a policy knows about its best arm.

    Attributes
    ----------
    best : int
        Empirically best arm.
    evidence : float
        m_s: half the squared distance to the nearest parameter with another best arm.
    threshold : float
        beta/2 in the current round; the best arm is settled where ``evidence >= threshold``.
        nan if the policy has no confidence level.
    wake : Clock
        First round in which the policy may play another arm.
    """

    best: int
    evidence: float
    threshold: float
    wake: Clock


@dataclass(frozen=True, kw_only=True)
class Supports:
    """Kinds of problems that a policy can play beyond a plain bandit.

    A plain bandit has the same arms in every round and rewards with one known noise level that
    arrive at once.  Every policy plays it; every other kind of problem must be declared.

    Attributes
    ----------
    masks : bool
        Only some arms are in the action set: options that retire, or ``ask(available=...)``.
    contexts : bool
        Each round offers the arms of one context.
    masks_in_contexts : bool
        Only some arms of a context are in the action set: ``ask(context=..., available=...)``.
    streams : bool
        Every round has new arms.
    games : bool
        Partial monitoring: an arm shows something other than its reward; the policy learns from
        ``model.observations``.
    noise_per_arm : bool
        Heteroscedastic noise: each arm has its own noise level; the policy learns from
        ``model.observations``, in units of the noise of the arm.
    likelihoods : bool
        Rewards are clicks or counts (generalised linear bandit); the policy learns by the
        likelihood ``model.likelihood``.
    unknown_noise : bool
        The model does not know the noise level; the policy learns it from the outcomes.
    delays : bool
        Outcomes arrive late, in any order, several at once.  Simulations with a delay need it; in
        a session the caller decides when to tell a reward.
    """

    masks: bool = False
    contexts: bool = False
    masks_in_contexts: bool = False
    streams: bool = False
    games: bool = False
    noise_per_arm: bool = False
    likelihoods: bool = False
    unknown_noise: bool = False
    delays: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            flag(name, value)


#: Every kind of problem, for policies that leave out few.
EVERY_KIND = Supports(**dict.fromkeys((kind.name for kind in dataclasses.fields(Supports)), True))


class Policy(ABC):
    """Base of all policies; subclasses are frozen dataclasses."""

    @property
    def supports(self) -> Supports:
        """Kinds of problems beyond a plain bandit; a class attribute may replace this property."""
        return Supports()

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead; if not, a run costs every round of its horizon."""
        return False

    @property
    def any_horizon(self) -> bool:
        """Whether runs beyond 2^53 rounds are possible, because commitments skip most rounds."""
        return self.commits

    @property
    def settles_by_committing(self) -> bool:
        """Whether it commits only where its test says that the best arm is settled."""
        return self.commits

    @property
    def randomises(self) -> bool:
        """Whether choices are drawn at random given the state and the round."""
        return True

    @property
    def probability_by_draws(self) -> bool:
        """Whether the probability of a choice can only be estimated, by many draws."""
        return False

    def with_unknown_scale(self) -> Policy:
        """Return this policy for rewards of any scale.

        Values learned from the data replace defaults that assume a scale of rewards (priors, bounds
        on the norm of theta).  A policy that cannot learn the noise level is returned unchanged.
        """
        if not self.supports.unknown_noise:
            return self
        changes: dict[str, Any] = {
            name: None for name in _SCALES if getattr(self, name, None) == _ASSUMED
        }
        rule = getattr(self, "confidence", None)
        if isinstance(rule, LogDet):
            if rule.norm_bound == _ASSUMED:
                changes["confidence"] = dataclasses.replace(rule, norm_bound=None)
            if getattr(self, "regulariser", None) == _ASSUMED:
                changes["regulariser"] = "matched"
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @property
    def tells_scale(self) -> bool:
        """Whether the configuration has a prior or bounds on theta in units of the reward."""
        rule = getattr(self, "confidence", None)
        if isinstance(rule, FixedBeta):
            return True
        scales = [getattr(self, name, None) for name in (*_SCALES, "parameter_set")]
        scales.append(rule.norm_bound if isinstance(rule, LogDet) else None)
        return any(value not in (None, _ASSUMED) for value in scales)

    @abstractmethod
    def start(self, model: Model) -> Any:
        """State before any data, for the arms, observations and noise of a model."""


# Fields of policies in units of the reward, and the default that stands for an unknown value.
_SCALES, _ASSUMED = ("norm_bound", "prior_std"), 1.0


def _checked(choice: Any) -> Choice:
    """Check the choice of a policy in plain Python."""
    try:
        arm, probability, wake = choice
        arm, (t, log_t) = operator.index(arm), wake
    except (TypeError, ValueError):
        raise ValueError(
            f"choose must return Choice(arm, probability, wake), wake being a Clock; got {choice!r}"
        ) from None
    if arm < 0:
        raise ValueError(f"choose must return an arm from 0, got {arm}")
    return Choice(arm, probability, Clock(t, log_t))


def _choose(state: State, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Choose an arm on offer for the current round."""
    raise TypeError(f"no policy is registered for a state of type {type(state).__name__}")


@compiled
def _inspect(state: State, clock: Clock, offer: Any) -> Evidence:
    """Report on the best arm: without random numbers, and without effect on later choices."""
    return Evidence(-1, math.nan, math.nan, clock)


@generic
def update(state: State, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from the outcome of an exploration round, decided at ``clock``."""
    raise TypeError(f"no policy is registered for a state of type {type(state).__name__}")


@generic
@compiled
def decided(state: State, clock: Clock, arm: int) -> None:
    """Note that an arm was decided and its outcome is still open; optional."""


@generic
@compiled
def dropped(state: State, clock: Clock, arm: int) -> None:
    """Note that the outcome of a decided arm will never come; optional."""


@compiled
def put_all_on(arm: int, probabilities: Array) -> None:
    """Put all probability on one arm."""
    for x in range(probabilities.shape[0]):
        probabilities[x] = 1.0 if x == arm else 0.0


@compiled
def spread(mixture: Mixture, probabilities: Array) -> None:
    """Write the probabilities of a draw from two arms, which may be the same."""
    put_all_on(mixture.first, probabilities)
    probabilities[mixture.first] -= mixture.probability
    probabilities[mixture.second] += mixture.probability


@generic
@compiled
def write_probabilities(
    state: State, clock: Clock, offer: Any, rng: Generator, probabilities: Array
) -> None:
    """Write the action probabilities of this round; by default all on the arm that is chosen.

    The generator is for policies that estimate their probabilities by draws.
    """
    put_all_on(choose(state, clock, offer, rng).arm, probabilities)


@generic
@compiled
def at_stake(state: State, clock: Clock, offer: Any) -> tuple[float, float]:
    """Return the expected loss per round of stopping now, and the price of a nat; optional."""
    return math.nan, math.nan


@generic
@compiled
def best_of(state: State, clock: Clock, offer: Any) -> int:
    """Arm of an action set that a committed policy plays; by default what it reports as best."""
    return inspect(state, clock, offer).best


@generic
@compiled
def show(state: Any, rows: Array, start: int, stop: int) -> None:
    """Put new arms into rows ``start`` to ``stop`` of the table; by default, of the estimate."""
    show_arms(state.estimate, rows, start, stop)


def _rebuild_choice(arm: int, probability: float, t: int, log_t: float) -> Choice:
    return Choice(arm, probability, Clock(t, log_t))


def _rebuild_evidence(best: int, m: float, threshold: float, t: int, log_t: float) -> Evidence:
    return Evidence(best, m, threshold, Clock(t, log_t))


choose = generic(_choose, rebuild=_rebuild_choice, check=_checked)
inspect = generic(_inspect, rebuild=_rebuild_evidence)


def check_supports(policy: Policy, model: Model, *, delays: bool = False) -> None:
    """Refuse a problem that a policy does not declare; ``delays`` if outcomes arrive late."""
    name, supports = type(policy).__name__, policy.supports
    instance(f"{name}.supports", supports, Supports, "a Supports such as Supports(contexts=True)")
    scaled = not model.shows_rewards and model.weights is not None
    beyond_plain = {
        "streams": (model.stream, "arms that come again; this problem has new ones in every round"),
        "likelihoods": (
            model.likelihood is not None,
            "rewards that are <x, theta> and noise; those of this problem are clicks or counts",
        ),
        "contexts": (
            model.contexts is not None,
            "the same arms in every round; this problem has contexts",
        ),
        "unknown_noise": (
            not model.noise_known,
            "to know the noise level: give noise_std, or choose Stakes, IDS, LinUCB, "
            "ThompsonSampling or BayesianIDS, which learn it",
        ),
        "noise_per_arm": (scaled, "one noise level for all arms; this problem has one for each"),
        "games": (
            not model.shows_rewards and not scaled,
            "outcomes that are rewards; this problem shows something else",
        ),
        "delays": (delays, "rewards that come at once; those of this run come late"),
    }
    for field, (present, needs) in beyond_plain.items():
        if present and not getattr(supports, field):
            raise ValueError(f"{name} needs {needs}; {name}.supports does not declare {field}")


def started(policy: Policy, model: Model, *, delays: bool = False) -> Any:
    """State of a policy before any data, after checking that it can play a model.

    A commitment holds in all contexts, so a policy that commits must say what it plays in each.
    """
    check_supports(policy, model, delays=delays)
    state = policy.start(model)
    if model.contexts is not None and policy.commits:
        on_best: tuple[Any, ...] = (best_of, inspect)
        if all(part.dispatch(type(state)) is part.dispatch(object) for part in on_best):
            raise ValueError(
                f"{type(policy).__name__} commits and does not say to which arm of a context: "
                "register_policy(..., best_of=...) does"
            )
    return state


@choose.returns_plainly
@compiled_apart
def _choose_plainly(
    state: State, clock: Clock, offer: Any, rng: Generator
) -> tuple[int, float, int, float]:
    choice = choose(state, clock, offer, rng)
    return choice.arm, choice.probability, choice.wake.t, choice.wake.log_t


@inspect.returns_plainly
@compiled_apart
def _inspect_plainly(
    state: State, clock: Clock, offer: Any
) -> tuple[int, float, float, int, float]:
    report = inspect(state, clock, offer)
    return report.best, report.evidence, report.threshold, report.wake.t, report.wake.log_t


_CONTRACT: tuple[Any, ...] = (
    choose,
    update,
    inspect,
    decided,
    dropped,
    write_probabilities,
    at_stake,
    best_of,
    show,
)


def register_policy(
    cls: type,
    *,
    choose: Callable[..., Choice],
    update: Callable[..., None],
    inspect: Callable[..., Evidence] | None = None,
    decided: Callable[..., None] | None = None,
    dropped: Callable[..., None] | None = None,
    probabilities: Callable[..., None] | None = None,
    at_stake: Callable[..., tuple[float, float]] | None = None,
    best_of: Callable[..., int] | None = None,
    show: Callable[..., None] | None = None,
) -> None:
    """Add a policy: its functions, compiled or plain, for the class of its state.

    Parameters
    ----------
    cls : type
        Class of the state, a ``NamedTuple``.
    choose : callable
        ``choose(state, clock, offer, rng)`` returns a :class:`Choice`.
    update : callable
        ``update(state, clock, arm, outcome)`` learns from the outcome of a round in which the
        policy explored; ``clock`` is that of the decision.
    inspect : callable, optional
        ``inspect(state, clock, offer)`` returns an :class:`Evidence`: without random numbers, and
        without effect on later choices.  By default no best arm (-1) is reported.
    decided : callable, optional
        ``decided(state, clock, arm)`` notes an arm whose outcome is still open.
    dropped : callable, optional
        ``dropped(state, clock, arm)`` notes that this outcome will never come.
    probabilities : callable, optional
        ``probabilities(state, clock, offer, rng, out)`` writes the probability of every arm; for a
        policy that randomises, where a session guarantees every option a least probability.
    at_stake : callable, optional
        ``at_stake(state, clock, offer)`` returns two numbers: what playing the best arm from now on
        is expected to lose per round (with contexts, on average over them), and the price of a nat,
        the regret that it costs to lower this loss by the factor e.  By default both are nan.
    best_of : callable, optional
        ``best_of(state, clock, offer)`` returns the arm that a committed policy plays of an action
        set; by default what ``inspect`` reports as best.
    show : callable, optional
        ``show(state, rows, start, stop)`` puts new arms into the table of a policy that takes
        streams; by default into ``state.estimate``.
    """
    parts = (choose, update, inspect, decided, dropped, probabilities, at_stake, best_of, show)
    for function, implementation in zip(_CONTRACT, parts, strict=True):
        if implementation is not None:
            function.register(cls)(implementation)


@compiled
def choose_from(mixture: Mixture, clock: Clock, rng: Generator) -> Choice:
    """Draw one of two arms, for the current round only."""
    if rng.random() < mixture.probability:
        return Choice(mixture.second, mixture.probability, clock)
    return Choice(mixture.first, 1.0 - mixture.probability, clock)


@compiled
def choose_among(probabilities: Array, clock: Clock, rng: Generator) -> Choice:
    """Draw one of all arms, for the current round only."""
    arm = draw_index(probabilities, rng)
    return Choice(arm, probabilities[arm], clock)


def begin(
    model: Model,
    regulariser: float | str,
    rule: ConfidenceRule,
    *,
    reduce: bool = True,
    noise: Noise | None = None,
) -> tuple[LeastSquares, Any]:
    """Estimates before any data (see ``least_squares``), and their confidence coefficient."""
    ridge_ = ridge(regulariser, rule, model)
    estimate = least_squares(model, ridge_, reduce=reduce, noise=noise)
    build = rule.build if estimate.noise.known else rule.build_without_noise
    rewards = estimate.arms.rewards
    confidence = build(rewards.shape[1], model.noise_std, ridge_)
    if not (model.shows_rewards or model.stream):
        leave_out(confidence, basis_of_differences(rewards, estimate.arms.observations.rows))
    adapt_to(confidence, estimate)
    return estimate, confidence


def readapt(state: Any) -> None:
    """Let confidence coefficients follow estimates that were loaded."""
    for part in parts_of(state):
        if hasattr(part, "estimate") and hasattr(part, "confidence"):
            adapt_to(part.confidence, part.estimate)


@compiled
def learn(state: Any, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn an outcome by least squares."""
    observe(state.estimate, arm, outcome)
    adapt(state.confidence, state.estimate)


@compiled
def best_on_offer(state: Any, clock: Clock, offer: Any) -> int:
    """Empirically best arm of an action set."""
    return first_largest_offered(offer, state.estimate.arms.means)


@compiled
def compare_to_best(state: Any, offer: Any) -> Comparison:
    """Compare the arms of an action set with the empirically best of them."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    comparison = compare(state.alternatives, state.estimate, best)
    return restrict_alternatives(offer, state.alternatives, comparison)


@compiled
def settled_before(state: Any, comparison: Comparison, clock: Clock) -> Clock:
    """First round >= now at which m_s < beta_{s, t log t} / 2, the exploitation test failing."""
    log_det = state.estimate.learned.log_det[0]
    return next_exploration(state.confidence, log_det, comparison.least, clock)


@compiled
def evidence_of(state: Any, comparison: Comparison, clock: Clock, wake: Clock) -> Evidence:
    """m_s against beta_{s, t log t} / 2."""
    log_det = state.estimate.learned.log_det[0]
    beta = global_beta(state.confidence, log_det, log_round(clock))
    return Evidence(comparison.best, 0.5 * comparison.least, 0.5 * beta, wake)


@compiled
def report(state: Any, clock: Clock, offer: Any) -> Evidence:
    """Report m_s against beta_{s, t log t} / 2, for a policy that never acts on it."""
    return evidence_of(state, compare_to_best(state, offer), clock, clock)


@compiled
def report_commitment(state: Any, clock: Clock, offer: Any) -> Evidence:
    """Report m_s against beta_{s, t log t} / 2, and until when x-hat is settled."""
    comparison = compare_to_best(state, offer)
    return evidence_of(state, comparison, clock, settled_before(state, comparison, clock))


#: Draws behind a probability: its standard error is at most 1 / (2 sqrt(4096)) = 0.008.
PROBABILITY_DRAWS = 4096


@compiled
def share_draws(offer: Any, counts: Array) -> None:
    """Turn counts of draws into probabilities, with at least half a draw for every arm on offer."""
    for x in range(counts.shape[0]):
        counts[x] = max(counts[x], 0.5)
    withhold(offer, counts, 0.0)
    total = 0.0
    for x in range(counts.shape[0]):
        total += counts[x]
    for x in range(counts.shape[0]):
        counts[x] /= total


@may_hold(nan=("log_t",))
class ScheduledExploration(NamedTuple):
    """The next exploration of a commitment; arrays of length one."""

    t: Ints  # its round, 0 if none is scheduled
    log_t: Array
    arm: Ints  # played then, if it is on offer
    probability: Array  # p: of an exploration in each round


@invariant(ScheduledExploration)
def _check(scheduled: ScheduledExploration, name: str) -> None:
    if not 0 <= scheduled.t[0] <= FAR:
        raise ValueError(f"{name}.t must be a round, got {scheduled.t[0]}")


def nothing_scheduled() -> ScheduledExploration:
    """Empty schedule."""
    t, arm = (np.zeros(1, dtype=np.int64) for _ in range(2))
    return ScheduledExploration(t, np.zeros(1), arm, np.zeros(1))


@compiled
def cancel(scheduled: ScheduledExploration) -> None:
    """Cancel the exploration: what it was drawn from has changed."""
    scheduled.t[0] = 0


@compiled
def schedule(
    scheduled: ScheduledExploration,
    best: int,
    arm: int,
    log_probability: float,
    clock: Clock,
    offer: ActionSet,
    rng: Generator,
) -> Choice:
    """Draw the next round in which ``arm`` is played; play x-hat until then."""
    offered = is_offered(offer, arm)
    begin = clock if offered else tick(clock)
    probability = min(math.exp(log_probability), 1.0)
    waiting = -math.log1p(-rng.random())  # exponential; over -log(1 - p), it is geometric
    # -log(1 - p) = p to the last bit where p is small, and p may be no float
    small = probability < 1e-9 or probability == 1.0
    log_rate = log_probability if small else math.log(-math.log1p(-probability))
    wake = later(begin, math.log(waiting) - log_rate if waiting > 0.0 else -math.inf)
    if offered and (probability == 1.0 or not is_before(clock, wake)):
        return Choice(arm, probability, clock)
    scheduled.t[0], scheduled.log_t[0] = wake.t, wake.log_t
    scheduled.arm[0] = arm
    scheduled.probability[0] = probability
    return Choice(best, 1.0 - probability if offered else 1.0, wake)


@compiled
def play_scheduled(
    scheduled: ScheduledExploration, best: int, clock: Clock, offer: ActionSet
) -> Choice:
    """Play x-hat before the scheduled round and its arm then; arm -1 if that is not on offer."""
    wake = Clock(scheduled.t[0], scheduled.log_t[0])
    offered = is_offered(offer, scheduled.arm[0])
    if is_before(clock, wake):
        return Choice(best, 1.0 - scheduled.probability[0] if offered else 1.0, wake)
    scheduled.t[0] = 0
    return Choice(scheduled.arm[0] if offered else -1, scheduled.probability[0], clock)
