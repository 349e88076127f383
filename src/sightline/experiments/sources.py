"""Hashes of the sources that computed a cell, which decide its numbers with the specification."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

from sightline.jit import parts_of
from sightline.policies.base import Policy
from sightline.problems.descriptions import AnyProblem
from sightline.problems.noise import Sampler
from sightline.sources import hash_of, modules_named_in

_PACKAGE = __name__.split(".")[0]


def sources_of(problem: AnyProblem, policy: Policy) -> str:
    """Hash of the sources behind one cell: those of the library, and the files of a user.

    The library's are the loop over rounds, the policy, its state, the problem, the noise and the
    source of new arms, with all that they import.  ``experiments`` is not among them: it repeats
    and stores runs, and their seeds are in every block.  A user's file counts with what it imports
    from the library; other modules that it imports do not count.
    """
    modules = {"sightline.simulation.simulate"}
    digest = hashlib.sha256()
    for part in _parts(problem, policy):
        if part.__module__.split(".")[0] == _PACKAGE:
            modules.add(part.__module__)
        else:
            content = _content(part)
            digest.update(content + b"\0")
            modules |= modules_named_in(content.decode(errors="replace"))
    for text in (hash_of(*sorted(modules)), np.__version__, numba.__version__):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:16]


def _parts(problem: AnyProblem, policy: Policy) -> list[Any]:
    """Classes behind one cell, and the function that draws its noise if there is one."""
    state = policy.start(problem.model)
    noise = problem.noise.draw if isinstance(problem.noise, Sampler) else type(problem.noise)
    source = [] if problem.source is None else [type(problem.source)]
    return [type(problem), type(policy), *map(type, parts_of(state)), noise, *source]


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
