"""The world: linear bandits with their true parameter and noise.  Policies never import it."""

from sightline.problems.bandit import LinearBandit
from sightline.problems.context_instances import (
    contextual_end_of_optimism,
    contextual_simple,
    product_problem,
    spanning_contexts,
)
from sightline.problems.contextual import ContextualBandit
from sightline.problems.features import product_features
from sightline.problems.game import LinearGame
from sightline.problems.instances import (
    end_of_optimism,
    end_of_optimism_family,
    large_gaps,
    unit_sphere,
    unit_spheres,
)
from sightline.problems.noise import Bernoulli, Gaussian, Sampler, TwoPoint, Uniform
from sightline.problems.streams import StreamBandit, recorded_stream, sphere_stream

__all__ = [
    "Bernoulli",
    "ContextualBandit",
    "Gaussian",
    "LinearBandit",
    "LinearGame",
    "Sampler",
    "StreamBandit",
    "TwoPoint",
    "Uniform",
    "contextual_end_of_optimism",
    "contextual_simple",
    "end_of_optimism",
    "end_of_optimism_family",
    "large_gaps",
    "product_features",
    "product_problem",
    "recorded_stream",
    "spanning_contexts",
    "sphere_stream",
    "unit_sphere",
    "unit_spheres",
]
