"""A posterior fed with data."""

from sightline.core.posterior.gaussian import Posterior, absorb, gaussian_posterior
from tests.naive import Array, Ints


def posterior_of(actions: Array, arms: Ints, rewards: Array, noise_std: float) -> Posterior:
    """Return the posterior of a prior of standard deviation 1.5 after the given data."""
    posterior = gaussian_posterior(actions, actions, noise_std, 1.5)
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        absorb(posterior, arm, reward)
    return posterior
