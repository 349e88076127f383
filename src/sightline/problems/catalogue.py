"""Every named problem, and problems as plain dictionaries for files and the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sightline.core.likelihood import Likelihood, build_likelihood, describe_likelihood
from sightline.problems import games
from sightline.problems import games as finite_games
from sightline.problems.bandits import ContextualBandit, LinearBandit, LinearGame, NoisyRewards
from sightline.problems.base import TableProblem
from sightline.problems.context_instances import (
    contextual_end_of_optimism,
    contextual_simple,
    product_problem,
    spanning_contexts,
)
from sightline.problems.instances import (
    click_rates,
    end_of_optimism,
    end_of_optimism_family,
    large_gaps,
    unit_sphere,
    unit_spheres,
    website,
)
from sightline.problems.noise import (
    BernoulliNoise,
    Counts,
    GaussianNoise,
    Sampler,
    TwoPoint,
    Uniform,
)
from sightline.problems.streams import StreamBandit, sphere_stream
from sightline.validation import one_of

__all__ = ["PROBLEMS", "AnyProblem", "build", "describe"]

#: What the lab repeats, and files and the command line name.
AnyProblem = TableProblem | StreamBandit

PROBLEMS: dict[str, Callable[..., AnyProblem]] = {
    make.__name__: make
    for make in (
        end_of_optimism,
        end_of_optimism_family,
        large_gaps,
        unit_sphere,
        unit_spheres,
        contextual_end_of_optimism,
        contextual_simple,
        product_problem,
        spanning_contexts,
        sphere_stream,
        website,
        click_rates,
        *(getattr(module, name) for module in (games, finite_games) for name in module.__all__),
    )
}

_IN_FULL: dict[str, Callable[..., TableProblem]] = {
    cls.__name__: cls for cls in (LinearBandit, ContextualBandit, LinearGame)
}

_NOISES: dict[str, Callable[..., Any]] = {
    cls.__name__: cls for cls in (BernoulliNoise, Counts, GaussianNoise, TwoPoint, Uniform)
}


def describe(problem: AnyProblem) -> dict[str, Any]:
    """Problem as a plain dictionary: by name and parameters if it has them, else in full.

    Of a stream that has no name, arrays are told by their checksums: a data set is too large for
    a file that one reads.
    """
    if problem.origin is not None:
        return {
            name: _plain(value)
            for name, value in problem.origin.items()
            if name != "rewards" or value is not None  # by default there is no law of rewards
        }
    if isinstance(problem, StreamBandit):
        return {
            "type": "StreamBandit",
            "name": problem.name,
            "most": problem.most,
            "d": problem.d,
            **_describe_rewards_of(problem),
            "source": dict(problem.contents),
        }
    return {
        **_describe_arms(problem),
        "theta": problem.theta.tolist(),
        **_describe_noise_of(problem),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Likelihood):
        return describe_likelihood(value)
    return value.item() if isinstance(value, np.generic) else value


def _describe_rewards_of(stream: StreamBandit) -> dict[str, Any]:
    if stream.likelihood is not None:
        return {"rewards": describe_likelihood(stream.likelihood)}
    return {"noise_std": stream.noise.std}


def _describe_arms(problem: TableProblem) -> dict[str, Any]:
    if isinstance(problem, ContextualBandit):
        return {
            "type": "ContextualBandit",
            "name": problem.name,
            "action_sets": [arms.tolist() for arms in problem.action_sets],
            "probabilities": problem.probabilities.tolist(),
        }
    if isinstance(problem, LinearGame):
        return {
            "type": "LinearGame",
            "name": problem.name,
            "rewards": problem.actions.tolist(),
            "observations": problem.observations.tolist(),
        }
    return {"type": "LinearBandit", "name": problem.name, "actions": problem.actions.tolist()}


def _describe_noise_of(problem: TableProblem) -> dict[str, Any]:
    if isinstance(problem, NoisyRewards) and problem.likelihood is not None:
        return {"rewards": describe_likelihood(problem.likelihood)}
    rewards = {}
    if isinstance(problem, NoisyRewards) and problem.unknown_noise is not None:
        rewards = {"rewards": describe_likelihood(problem.unknown_noise)}
    if isinstance(problem.noise_std, float):
        return {"noise": _describe_noise(problem.noise)} | rewards
    return {"noise_std": problem.noise_std.tolist()} | rewards


def _describe_noise(noise: Any) -> dict[str, Any]:
    if isinstance(noise, Sampler):
        function = noise.draw
        name = f"{function.__module__}:{getattr(function, '__qualname__', '<')}"
        if "<" in name:  # a closure's name does not say what it encloses
            raise ValueError(
                f"rewards from {function!r} cannot be described: "
                "define the function at the top level of a module"
            )
        return {"type": "Sampler", "draw": name, "std": noise.std}
    return {"type": type(noise).__name__, **noise._asdict()}


def build(description: Mapping[str, Any]) -> AnyProblem:
    """Inverse of :func:`describe` for what the library knows."""
    fields = dict(description)
    if fields.get("type") == StreamBandit.__name__:
        raise ValueError(
            "of a stream only checksums are written down, and no arrays: make the experiment again "
            "from the arrays"
        )
    if isinstance(fields.get("rewards"), Mapping):
        fields["rewards"] = build_likelihood(fields["rewards"])
    if isinstance(fields.get("noise"), Mapping):
        fields["noise"] = _build(_NOISES, "type of noise", fields["noise"])
    problem: AnyProblem = _build(PROBLEMS | _IN_FULL, "type", fields)
    return problem


def _build(known: Mapping[str, Callable[..., Any]], what: str, description: Any) -> Any:
    fields = dict(description)
    kind = one_of(what, fields.pop("type", None), known)
    make = known[kind]
    parameters = inspect.signature(make).parameters
    for name in fields:
        one_of(f"field of {kind}", name, parameters)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in fields:
            raise ValueError(f"{kind} needs a value for {name}")
    return make(**fields)
