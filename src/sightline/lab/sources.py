"""What decided the numbers besides the specification: the sources that computed them."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

from sightline.jit import source_hash
from sightline.policies.base import Policy
from sightline.problems.bandit import LinearBandit
from sightline.problems.noise import Sampler

__all__ = ["sources_of"]

# The lab is not among them: it repeats and stores, and the seeds it chose are in every block.
_PARTS = ("core", "engine", "policies", "problems", "jit.py", "validation.py")


def sources_of(problem: LinearBandit, policy: Policy) -> str:
    """Hash of the sources behind one cell: ours, and the files of a policy of one's own.

    Modules that a policy of one's own imports are not looked into.
    """
    digest = hashlib.sha256()
    for part in (source_hash(*_PARTS), np.__version__, numba.__version__):
        digest.update(part.encode() + b"\0")
    for part in _own_parts(problem, policy):
        digest.update(_content(part))
    return digest.hexdigest()[:16]


def _own_parts(problem: LinearBandit, policy: Policy) -> list[Any]:
    """Classes of the policy and its state, and the noise, if they are not part of this package."""
    state = policy.start(np.array(problem.actions), problem.noise_std)
    noise = problem.noise.draw if isinstance(problem.noise, Sampler) else type(problem.noise)
    package = __name__.split(".")[0]
    parts = (type(policy), type(state), noise)
    return [part for part in parts if part.__module__.split(".")[0] != package]


@functools.cache  # by class: the file may be edited while the code that runs is still the old one
def _content(part: Any) -> bytes:
    """Content of the file that defines a class or function."""
    path = getattr(sys.modules.get(part.__module__), "__file__", None)
    try:
        return Path(str(path)).read_bytes()
    except OSError:
        raise ValueError(
            f"results of code that is in no file cannot be kept in a store: put what is in module "
            f"{part.__module__!r} into a file"
        ) from None
