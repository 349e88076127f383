"""The world: linear bandits with their true parameter and noise.  Policies never import it."""

from sightline.problems.bandit import LinearBandit
from sightline.problems.contextual import ContextualBandit
from sightline.problems.instances import (
    end_of_optimism,
    end_of_optimism_family,
    large_gaps,
    unit_sphere,
    unit_spheres,
)
from sightline.problems.noise import Bernoulli, Gaussian, Sampler, TwoPoint, Uniform

__all__ = [
    "Bernoulli",
    "ContextualBandit",
    "Gaussian",
    "LinearBandit",
    "Sampler",
    "TwoPoint",
    "Uniform",
    "end_of_optimism",
    "end_of_optimism_family",
    "large_gaps",
    "unit_sphere",
    "unit_spheres",
]
