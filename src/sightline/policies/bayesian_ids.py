"""Bayesian information-directed sampling (Russo, Van Roy, 2014; 2018), with a Gaussian posterior.

| symbol                 | here                          | shape |
|------------------------|-------------------------------|-------|
| posterior of theta, prior N(0, prior_std^2 I) | ``posterior`` |  |
| p(z) = P(x* = z)       | ``cells``                     | (c,)  |
| Delta(x) = E max_z <z, theta> - <x, E theta>  | ``gaps`` | (k,) |
| I(x)                   | ``gains``                     | (k,)  |
| mu                     | ``Mixture``                   | two arms |

A round minimises Delta(mu)^2 / I(mu) over distributions mu on the arms, where

    I(x) = sum_z p(z) (E[<x, theta> | x* = z] - <x, E theta>)^2       "variance"
    I(x) = I(x*; y | x)                                               "mutual-information"

and all expectations are those of the posterior.  If one arm is the best with probability one it is
played.  Guarantee: Bayesian regret at most sqrt(d H(x*) n / 2) for rewards of range one, H(x*) the
entropy of the best arm under the prior.  In a game, where the outcome of an arm is Y_x theta and
not its reward, the variance is that of the outcome, summed over its p numbers; the guarantee is
for bandits, and mutual information is for bandits only.

Clicks and counts: the posterior is that of Laplace, gaps are those of mean rewards, and the gain
is the variance of E[mean reward | x*] over that of a reward
(:mod:`sightline.core.posterior.gains`).  No bound on regret is known for it.

With M samples from the posterior, cells rarer than 1 / M vanish: the policy then is greedy, and
stays so unless the arm it plays disappoints.  M must grow with the horizon.  For a while its regret
lies below c* log n, which no consistent policy can sustain: it has a small probability of
regret that grows linearly.  In the plane ``posterior="angular"`` is exact and needs no M.

Cost per round: O(M c d) at first, c the number of arms that can be best, and far less when most
samples agree; see :mod:`sightline.core.posterior.samples`.  Mutual information costs O(k M d) more,
and so do clicks and counts.  The policy learns from every round and never commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import ActionSet, withhold
from sightline.core.clock import Clock
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import none_if_unknown, persists
from sightline.core.posterior.cells import (
    Cells,
    admit,
    blank_cells,
    hull_around,
    hull_vertices,
    is_settled,
    measure_cells,
    plane_angles,
    whiten,
)
from sightline.core.posterior.gains import (
    bayesian_gains,
    bayesian_gaps,
    likelihood_variance,
    mutual_information,
    row_variance,
    variance,
)
from sightline.core.posterior.gaussian import Posterior, best_under, posterior_for, posterior_mean
from sightline.core.posterior.samples import fixed_samples, samples_size
from sightline.core.ratio import SAMPLING, Mixture, least_ratio
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Evidence,
    Policy,
    Supports,
    choose_from,
    register_policy,
    spread,
)
from sightline.policies.thompson import learn_posterior, show_posterior
from sightline.validation import LARGEST, affordable, integer, one_of, scale, shown

BAYESIAN_INFORMATION = ("variance", "mutual-information")
_SAMPLING = {name: SAMPLING[name] for name in ("pair", "exact")}
_POSTERIOR = ("samples", "angular")


@dataclass(frozen=True)
class BayesianIDS(Policy):
    """Information-directed sampling under a Gaussian posterior.

    Parameters
    ----------
    samples : int
        Number M of posterior samples; not used by ``posterior="angular"``.
    information : {"variance", "mutual-information"}
        Information gain about the best arm.
    sampling : {"pair", "exact"}
        Minimise the information ratio over pairs with the arm of least gap, or over all pairs.
    posterior : {"samples", "angular"}
        Cells from samples, or exactly by integration over the angle, for arms in the plane.
    prior_std : float, optional
        Standard deviation of every coordinate of theta before any data.  None is a wide prior in
        units of the noise, for rewards of any scale; files write ``"unknown"`` for it.
    """

    samples: int = 10_000
    information: str = "variance"
    sampling: str = "pair"
    posterior: str = "samples"
    prior_std: float | None = 1.0

    def __post_init__(self) -> None:
        integer("samples", self.samples, at_least=1)
        one_of("information", self.information, BAYESIAN_INFORMATION)
        one_of("sampling", self.sampling, _SAMPLING)
        one_of("posterior", self.posterior, _POSTERIOR)
        none_if_unknown(self, "prior_std")
        if self.prior_std is not None:
            scale("prior_std", self.prior_std)
        self._check_size(1)

    def _check_size(self, d: int) -> None:
        """Refuse samples that do not fit into memory."""
        if self.posterior == "samples":
            what = f"samples = {shown(self.samples)} in {d} dimension{'s' * (d > 1)}"
            affordable(what, samples_size(int(self.samples), d))

    @property
    def supports(self) -> Supports:
        """What the policy can play beyond a plain bandit."""
        return Supports(
            contexts=self.posterior == "samples",
            streams=self.posterior == "samples",
            games=self.information == "variance",
            noise_per_arm=True,
            likelihoods=self.information == "variance",
            unknown_noise=True,
            delays=True,
        )

    def start(self, model: Model) -> BayesianState:
        """State before any data."""
        if self.posterior == "angular":
            model.needs_fixed_arms("BayesianIDS with an angular posterior")
        if self.information == "mutual-information":
            model.needs_weights("BayesianIDS with mutual information")
        k, d = model.rewards.shape
        angular = self.posterior == "angular"
        if angular and d != 2:
            raise ValueError(f'posterior="angular" needs arms in the plane, got dimension {d}')
        self._check_size(d)
        fixed = model.contexts is None and not model.stream
        if angular:
            vertices = hull_around(model.rewards)
        elif fixed:  # arms that can be best
            vertices = hull_vertices(model.rewards)
        else:  # space for the largest action set
            sizes = [model.stream] if model.contexts is None else np.diff(model.contexts.starts)
            vertices = np.arange(max(sizes))
        c = vertices.size
        posterior = posterior_for(model, self.prior_std)
        return BayesianState(
            posterior=posterior,
            source=plane_angles(c) if angular else fixed_samples(int(self.samples), d, c),
            information=self._gain(model, posterior, c),
            sampling=_SAMPLING[self.sampling],
            cells=blank_cells(posterior.actions, vertices, fixed),
            gaps=np.zeros(k),
            gains=np.zeros(k),
        )

    def _gain(self, model: Model, posterior: Posterior, c: int) -> Any:
        """Information gain, with its workspace."""
        if model.likelihood is not None:
            return likelihood_variance(model.likelihood, len(model.rewards), c)
        if model.weights is None:
            return row_variance(model.observations, posterior.factor)
        if self.information == "variance":
            return variance(model.rewards.shape[1], model.weights)
        unit = model.noise_std if model.noise_known else 1.0
        return mutual_information(c, unit / model.weights)


@persists()
class BayesianState(NamedTuple):
    """Posterior, the rules of a configuration, and a workspace."""

    posterior: Posterior
    source: Any  # Samples or Angles
    information: Any  # Variance, RowVariance, LikelihoodVariance or MutualInformation
    sampling: int  # a Sampling
    cells: Cells
    gaps: Array  # (k,)
    gains: Array  # (k,)


@compiled
def _choose(state: BayesianState, clock: Clock, offer: ActionSet, rng: Generator) -> Choice:
    return choose_from(bayesian_mixture(state, offer), clock, rng)


@compiled
def bayesian_mixture(state: BayesianState, offer: ActionSet) -> Mixture:
    """IDS distribution of the current posterior; gaps and gains are left in the state."""
    posterior, source, cells = state.posterior, state.source, state.cells
    # p(z) = P(x* = z), for the arms z that can be best
    admit(offer, cells)
    leader = whiten(posterior, cells)
    excess = measure_cells(source, cells, leader)
    # Delta(x) = E max_z <z, theta> - <x, E theta>
    best = bayesian_gaps(state.information, source, cells, leader, excess, offer, state.gaps)
    if is_settled(cells, leader):  # nothing to learn, and the ratio would be 0 / 0
        arm = cells.vertices[leader]
        return Mixture(arm, arm, 0.0, 0.0)
    # I(x): variance of E[<x, theta> | x*], or mutual information of x* and y
    bayesian_gains(state.information, source, cells, leader, state.gains)
    withhold(offer, state.gains, 0.0)
    withhold(offer, state.gaps, LARGEST)
    # mu = argmin Delta(mu)^2 / I(mu)
    return least_ratio(state.sampling, state.gaps, state.gains, best)


@compiled
def current_bayesian_gains(state: BayesianState, offer: ActionSet) -> None:
    """Write the information gains into the state; if one arm is certain, they do not change."""
    bayesian_mixture(state, offer)


@compiled
def _inspect(state: BayesianState, clock: Clock, offer: ActionSet) -> Evidence:
    """Report the best arm of the posterior mean, without a confidence level."""
    theta = state.cells.theta
    posterior_mean(state.posterior, theta)
    return Evidence(best_under(state.posterior, theta, offer), math.nan, math.nan, clock)


@compiled
def _probabilities(
    state: BayesianState, clock: Clock, offer: ActionSet, rng: Generator, probabilities: Array
) -> None:
    spread(bayesian_mixture(state, offer), probabilities)


register_policy(
    BayesianState,
    choose=_choose,
    update=learn_posterior,
    inspect=_inspect,
    probabilities=_probabilities,
    show=show_posterior,
)
