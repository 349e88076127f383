"""A confidence rule and a noise of your own, each added by one call."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import sightline as sl
from sightline import extend


class PlainLog(NamedTuple):
    """Confidence coefficient sigma^2 (1 + 2 log t)."""

    variance: float


@dataclass(frozen=True)
class Log(extend.ConfidenceRule):
    """Configuration of this coefficient: ``build`` makes the tuple for one problem."""

    def build(self, d: int, noise_std: float, regulariser: float) -> PlainLog:
        return PlainLog(noise_std**2)


extend.register_confidence(
    PlainLog,
    local=lambda rule, log_det, s: rule.variance * (1.0 + 2.0 * math.log(s)),
    overall=lambda rule, log_det, log_t: rule.variance * (1.0 + 2.0 * log_t),
)


class Laplace(NamedTuple):
    """Noise with heavier tails than normal noise."""

    std: float


@extend.register_noise(Laplace)
def draw_laplace(noise: Laplace, mean: float, rng: np.random.Generator) -> float:
    return float(rng.laplace(mean, noise.std / math.sqrt(2.0)))


sphere = sl.problems.unit_sphere(seed=3)
problem = sl.LinearBandit(sphere.actions, sphere.theta, noise=Laplace(0.3))
for name, policy in {"IDS": sl.IDS(), "own confidence": sl.IDS(confidence=Log())}.items():
    print(f"{name}: regret {sl.simulate(problem, policy, horizon=2000).regret[-1]:.3f}")
