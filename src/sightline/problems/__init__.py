"""The world: linear bandits with their true parameter and noise.  Policies never import it."""

from sightline.problems.bandit import LinearBandit
from sightline.problems.clicks import click_rates, website
from sightline.problems.context_instances import (
    contextual_end_of_optimism,
    contextual_simple,
    product_problem,
    spanning_contexts,
)
from sightline.problems.contextual import ContextualBandit
from sightline.problems.features import product_features
from sightline.problems.finite_games import (
    apple_tasting,
    dynamic_pricing,
    full_information,
    graph_feedback,
    label_efficient,
    semi_bandit,
)
from sightline.problems.game import LinearGame
from sightline.problems.games import (
    dueling,
    heteroscedastic,
    ice_cream,
    laser,
    localised_dueling,
    noise_example,
    transductive,
)
from sightline.problems.instances import (
    end_of_optimism,
    end_of_optimism_family,
    large_gaps,
    unit_sphere,
    unit_spheres,
)
from sightline.problems.noise import Bernoulli, Counts, Gaussian, Sampler, TwoPoint, Uniform
from sightline.problems.streams import StreamBandit, recorded_stream, sphere_stream

__all__ = [
    "Bernoulli",
    "ContextualBandit",
    "Counts",
    "Gaussian",
    "LinearBandit",
    "LinearGame",
    "Sampler",
    "StreamBandit",
    "TwoPoint",
    "Uniform",
    "apple_tasting",
    "click_rates",
    "contextual_end_of_optimism",
    "contextual_simple",
    "dueling",
    "dynamic_pricing",
    "end_of_optimism",
    "end_of_optimism_family",
    "full_information",
    "graph_feedback",
    "heteroscedastic",
    "ice_cream",
    "label_efficient",
    "large_gaps",
    "laser",
    "localised_dueling",
    "noise_example",
    "product_features",
    "product_problem",
    "recorded_stream",
    "semi_bandit",
    "spanning_contexts",
    "sphere_stream",
    "transductive",
    "unit_sphere",
    "unit_spheres",
    "website",
]
