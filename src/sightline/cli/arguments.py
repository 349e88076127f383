"""Parse problems and policies: ``ids:information=halfspace-ucb,confidence.factor=0.5``.

Fields follow the name after a colon.  Capitals, ``-`` and ``_`` in names do not matter.  A problem
may be a file, ``problem.json:noise_std=0.3``.  A policy may be a user's class,
``my_module.MyPolicy:epsilon=0.1``; the current directory is searched first.  A dot sets a field of
a part; the class name sets the part itself, ``confidence=LogLog``.  Values are numbers (also
``10^6``), ``true``, ``false`` or text.  ``label=`` before the name sets a label.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import tomllib
from collections.abc import Iterable
from typing import Any

from sightline.core.projections import LARGEST_ENTRY, Polytope
from sightline.policies import catalogue as policies
from sightline.policies.base import Policy
from sightline.problems import descriptions as problems
from sightline.problems.bandits import LinearBandit, LinearGame
from sightline.problems.base import TableProblem
from sightline.problems.descriptions import AnyProblem, is_problem_file, read_problem
from sightline.simulation.simulate import parse_rounds
from sightline.validation import number, one_of, shown

_ROUNDS = re.compile(r"\d+(\^|\*\*|e)\d+")  # as a horizon is written: 10^6, 10**6, 1e6


def parse_problems(texts: Iterable[str], option: str = "--problem") -> dict[str, AnyProblem]:
    """Parse problems, by label or name; also from files."""

    def build(kind: str, fields: dict[str, Any]) -> AnyProblem:
        if is_problem_file(kind):
            for field in fields:
                one_of("field of a file", field, ["noise_std"])
            return read_problem(kind, fields.get("noise_std"))
        return problems.build({"type": _find(kind, problems.PROBLEMS), **fields})

    known: dict[str, AnyProblem] = _parse(option, texts, build, lambda problem, _: problem.name)
    return known


def parse_table(text: str) -> TableProblem:
    """Parse a problem with a fixed table of arms: a bandit, a contextual bandit or a game."""
    (problem,) = parse_problems([text], "problem").values()
    return fixed_table(problem)


def fixed_table(problem: AnyProblem) -> TableProblem:
    """Refuse a stream, which has new arms in every round."""
    if not isinstance(problem, TableProblem):
        raise ValueError(
            f"problem {problem.name} has new arms in every round; this command needs fixed arms"
        )
    return problem


def parameter_set(
    problem: TableProblem, box: float | None, simplex: bool = False
) -> Polytope | None:
    """Set of parameters that the options --box and --simplex describe; None for all."""
    if simplex and box is not None:
        raise ValueError("give --box or --simplex, not both")
    if simplex:
        return Polytope.simplex(problem.d)
    if box is None:
        return None
    number("--box", box, above=0, at_most=LARGEST_ENTRY)
    return Polytope.box([-box] * problem.d, [box] * problem.d)


def parse_bandit(text: str) -> LinearBandit:
    """Parse a bandit whose fixed arms show their rewards."""
    (problem,) = parse_problems([text], "problem").values()
    if isinstance(problem, LinearGame):
        raise ValueError(f"problem {problem.name} is a game; this command needs a bandit")
    if not isinstance(problem, LinearBandit):
        arms = "new arms in every round" if problem.model.stream else "contexts"
        raise ValueError(f"problem {problem.name} has {arms}; this command needs fixed arms")
    return problem


def parse_policies(texts: Iterable[str], option: str = "--policy") -> dict[str, Policy]:
    """Parse policies, by label or by their text."""

    def build(kind: str, fields: dict[str, Any]) -> Policy:
        if "." in kind:
            own: Policy = _imported(kind)(**fields)
            return own
        name = _find(kind, policies.POLICIES)
        for field in dataclasses.fields(policies.POLICIES[name]):  # type: ignore[arg-type]
            part = fields.get(field.name)
            if isinstance(part, dict) and field.default_factory is not dataclasses.MISSING:
                part.setdefault("type", type(field.default_factory()).__name__)
        policy: Policy = policies.build({"type": name, **fields})
        return policy

    known: dict[str, Policy] = _parse(option, texts, build, lambda _, text: text)
    return known


def _imported(path: str) -> type[Policy]:
    """Import a user's policy class."""
    module, _, name = path.rpartition(".")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ValueError(f"module {module} cannot be imported: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ValueError(f"{name} of module {module} must be a Policy class, got {found!r}")
    return found


def _parse(option: str, texts: Iterable[str], build: Any, name: Any) -> Any:
    members: dict[str, Any] = {}
    for text in texts:
        label, kind, fields = _split(text)
        try:
            member = build(kind, fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{option} {shown(text)}: {error}") from None
        key = label or name(member, text)
        if key in members:
            raise ValueError(f"{option}: two of them have the name {key!r}; write label={text}")
        members[key] = member
    return members


def _split(text: str) -> tuple[str, str, dict[str, Any]]:
    """Split a text into label, name and fields."""
    head, colon, rest = text.partition(":")
    label, _, kind = head.rpartition("=")
    fields: dict[str, Any] = {}
    for item in rest.split(",") if colon else []:
        key, sign, value = item.partition("=")
        if not sign:
            raise ValueError(
                f"{text!r}: after the colon come fields such as seed=3, got {shown(item)}"
            )
        _set(fields, key.strip().split("."), _value(value.strip()))
    return label.strip(), kind.strip(), fields


def _set(fields: dict[str, Any], path: list[str], value: Any) -> None:
    *parts, last = path
    for part in parts:
        inner = fields.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{'.'.join(path)}: {part} has no fields, it is {shown(inner)}")
        fields = inner
    if isinstance(value, str):
        # Capitals do not matter, hyphens do: log-det is an information gain, LogDet a coefficient.
        by_letters = {name.lower(): name for name in policies.PARTS}
        kind = by_letters.get(value.lower())
        value = value if kind is None else {"type": kind}
    if last in fields:
        raise ValueError(
            f"{'.'.join(path)} is given twice: give every field once, and a part before its fields"
        )
    fields[last] = value


def _value(text: str) -> Any:
    if _ROUNDS.fullmatch(text):
        return parse_rounds("a number", text)
    if not text.isprintable() or "#" in text:  # TOML would read only a part of it
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):  # not TOML, or an integer with too many digits
        return text


def _find(kind: str, known: Iterable[str]) -> str:
    """Known name, ignoring capitals, ``-`` and ``_``."""
    by_letters = {_letters(name): name for name in known}
    if _letters(kind) in by_letters:
        return by_letters[_letters(kind)]
    return one_of("name", kind, list(by_letters.values()))


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
