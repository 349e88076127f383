"""From what a request says to the session of a new experiment."""

from __future__ import annotations

import secrets
from typing import Any

from sightline.core.likelihood import Bernoulli, Gaussian, Likelihood, Poisson
from sightline.policies.base import Policy
from sightline.policies.catalogue import build
from sightline.policies.stakes import Stakes
from sightline.service.bodies import Reward, Specification
from sightline.service.costs import check_shape, shape_of
from sightline.service.hosted import Hosted
from sightline.service.settings import Settings
from sightline.sessions.designs import contexts, duel, factorial, stream
from sightline.sessions.options import Options, as_options
from sightline.validation import shown

__all__ = ["begin", "bounds_of", "control_of"]

_WAYS = ("options", "factors", "contexts", "duel", "stream")


def begin(wanted: Specification, settings: Settings) -> Hosted:
    """Make the session of an experiment, which nobody writes down yet.

    Raises
    ------
    ValueError
        If something is missing, or does not fit.
    Problem
        If it is too large.
    """
    given = [name for name in _WAYS if getattr(wanted, name) is not None]
    if len(given) != 1:
        raise ValueError(f"give one of {', '.join(_WAYS)}, got {' and '.join(given) or 'none'}")
    policy = _policy(wanted.policy)
    acting = Stakes() if policy is None else policy
    check_shape(shape_of(wanted), acting, wanted.floor, settings)  # before it is built
    options = _options(wanted)
    control_of(wanted, options)
    if wanted.stop is not None:
        options.needs_lasting_options("stop")
    noise, law = _noise(wanted)
    bounds, missing = bounds_of(wanted.reward), wanted.on_timeout
    if bounds is not None and missing != "ignore" and not bounds[0] <= missing <= bounds[1]:
        raise ValueError(
            f"on_timeout must be from {bounds[0]:g} to {bounds[1]:g}, as rewards, got {missing:g}"
        )
    try:
        return Hosted(
            options,
            policy,
            noise_std=noise,
            rewards=law,
            seed=secrets.randbits(62) if wanted.seed is None else wanted.seed,
            reward_window=wanted.reward_deadline,
            on_timeout=wanted.on_timeout,
            early_rewards=wanted.early_rewards,
            floor=wanted.floor,
        )
    except (TypeError, OverflowError) as error:  # of a policy's fields, which may be anything
        raise ValueError(f"policy: {error}") from None


def _options(wanted: Specification) -> Options:
    if wanted.factors is not None:
        terms = None if wanted.interactions == "none" else wanted.interactions
        return factorial(wanted.factors, terms, wanted.forbidden)
    if wanted.interactions != "none" or wanted.forbidden:
        raise ValueError("interactions and forbidden are for factors only")
    if wanted.contexts is not None:
        return contexts(wanted.contexts)
    if wanted.duel is not None:
        return duel(wanted.duel)
    if wanted.stream is not None:
        return stream(len(wanted.stream.features), wanted.stream.most, wanted.stream.features)
    return as_options(wanted.options or {})


def control_of(wanted: Specification, options: Options) -> tuple[int, ...]:
    """Row of the control, one for every context; in a duel, number of the item; () without one.

    Raises
    ------
    ValueError
        If there is no such option.
    """
    control = wanted.control
    if control is None:
        return ()
    options.needs_lasting_options("control")
    if isinstance(control, dict):
        if options.levels is None:
            raise ValueError("control must be a name: options of this experiment have no levels")
        if control not in options.levels:
            raise ValueError(f"control must be one of the options, got {shown(control)}")
        return (options.levels.index(control),)
    if options.items is not None and control not in options.items:
        raise ValueError(f"control must be one of {shown(options.items)}, got {shown(control)}")
    try:
        if options.contexts is None:
            return (options.index(control),)
        return tuple(options.index(control, context) for context in options.contexts.names)
    except KeyError as error:
        raise ValueError(f"control: {error.args[0]}") from None


def _policy(wanted: str | dict[str, Any] | None) -> Policy | None:
    if wanted is None:
        return None
    made = build({"type": wanted} if isinstance(wanted, str) else wanted)
    if not isinstance(made, Policy):
        raise ValueError(f"policy must be the name of a policy, got {type(made).__name__}")
    return made


#: What each kind of reward says of itself; all else must be left out.
_FIELDS = {
    "gaussian": ("std",),
    "bounded": ("low", "high"),
    "bernoulli": ("link",),
    "poisson": (),
}


def _noise(wanted: Specification) -> tuple[float | list[float] | None, Likelihood | None]:
    """Noise level, or the likelihood of the rewards."""
    rewards = wanted.reward
    if rewards is None:
        return wanted.noise_std, None
    if wanted.noise_std is not None:
        raise ValueError("give reward or noise_std, not both")
    allowed = _FIELDS[rewards.kind]
    for name in ("std", "link", "low", "high"):
        if name not in allowed and getattr(rewards, name) is not None:
            raise ValueError(f"a {rewards.kind} reward has no {name}")
    if rewards.kind == "gaussian":
        return None, Gaussian(rewards.std)
    if rewards.kind == "bernoulli":
        return None, Bernoulli(rewards.link or "logistic")
    if rewards.kind == "poisson":
        return None, Poisson()
    low, high = bounds_of(rewards) or (0.0, 0.0)
    return 0.5 * (high - low), None  # the sub-Gaussian parameter of anything between


def bounds_of(rewards: Reward | None) -> tuple[float, float] | None:
    """Least and largest reward, where rewards have bounds; laws refuse by themselves."""
    if rewards is None or rewards.kind != "bounded":
        return None
    if rewards.low is None or rewards.high is None or not rewards.low < rewards.high:
        raise ValueError(
            f"a bounded reward needs low below high, got {rewards.low} and {rewards.high}"
        )
    return rewards.low, rewards.high
