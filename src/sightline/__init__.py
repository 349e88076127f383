"""Sightline: linear bandits at the information-theoretic limit.

Public names are listed in ``__init__.pyi`` and imported on first use, so that ``import sightline``
stays light.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

from sightline.version import __version__ as __version__


@functools.cache
def _modules() -> dict[str, str]:
    """Map every name that ``__init__.pyi`` lists, but for policies, to its module."""
    import ast

    # beside the sources in a checkout as in a wheel: one list for people, tools and this function
    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: str(statement.module)
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.name != "*"
    }


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")
    module = _modules().get(name)
    if module == __name__:
        return importlib.import_module(f"{module}.{name}")
    if module is not None:
        return getattr(importlib.import_module(module), name)
    from sightline.policies.catalogue import POLICIES

    if name in POLICIES:
        return POLICIES[name]
    from sightline.validation import nearest

    meant = nearest(name, (*_modules(), *POLICIES))
    hint = f"; did you mean {meant!r}?" if meant else ""
    raise AttributeError(f"module 'sightline' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    from sightline.policies.catalogue import POLICIES

    return sorted({*_modules(), *POLICIES})
