"""Problems and policies as texts: ``ids:information=halfspace-ucb,confidence.factor=0.5``.

A name, then fields after a colon.  Names may be written without capitals, with ``-`` or ``_``; a
problem may also be a file, ``problem.json:noise_std=0.3``, and a policy a class of one's own,
``my_module.MyPolicy:epsilon=0.1``, which is looked for in the current directory first.
Fields of a part are set with a dot; the part itself by its class, ``confidence=LogLog``.  Values
are numbers, also ``10^6``, ``true``, ``false`` or text.  ``label=`` before the name gives a label.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import tomllib
from collections.abc import Iterable
from typing import Any

from sightline.policies import catalogue as policies
from sightline.policies.base import Policy
from sightline.problems import descriptions as problems
from sightline.problems.bandits import LinearBandit, LinearGame
from sightline.problems.base import TableProblem
from sightline.problems.descriptions import AnyProblem, is_problem_file, read_problem
from sightline.simulation.simulate import parse_rounds
from sightline.validation import one_of, shown

__all__ = ["lasting", "parse_bandit", "parse_policies", "parse_problems", "parse_table"]

_ROUNDS = re.compile(r"\d+(\^|\*\*|e)\d+")  # as a horizon is written: 10^6, 10**6, 1e6


def parse_problems(texts: Iterable[str], option: str = "--problem") -> dict[str, AnyProblem]:
    """Problems by their labels or names; also from files."""

    def build(kind: str, fields: dict[str, Any]) -> AnyProblem:
        if is_problem_file(kind):
            for field in fields:
                one_of("field of a file", field, ["noise_std"])
            return read_problem(kind, fields.get("noise_std"))
        return problems.build({"type": _find(kind, problems.PROBLEMS), **fields})

    known: dict[str, AnyProblem] = _parse(option, texts, build, lambda problem, _: problem.name)
    return known


def parse_table(text: str) -> TableProblem:
    """Problem of a command that needs arms that stay, in contexts or a game as well."""
    (problem,) = parse_problems([text], "problem").values()
    return lasting(problem)


def lasting(problem: AnyProblem) -> TableProblem:
    """Refuse a problem whose arms are new in every round."""
    if not isinstance(problem, TableProblem):
        raise ValueError(
            f"problem {problem.name} has new arms in every round; this command needs arms that stay"
        )
    return problem


def parse_bandit(text: str) -> LinearBandit:
    """Problem of a command that needs the same arms in every round, and their rewards."""
    (problem,) = parse_problems([text], "problem").values()
    if isinstance(problem, LinearGame):
        raise ValueError(f"problem {problem.name} is a game; this command needs a bandit")
    if not isinstance(problem, LinearBandit):
        arms = "new arms in every round" if problem.model.stream else "contexts"
        raise ValueError(f"problem {problem.name} has {arms}; this command needs fixed arms")
    return problem


def parse_policies(texts: Iterable[str], option: str = "--policy") -> dict[str, Policy]:
    """Policies by their labels, or by what was written."""

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
    """Class of a policy that is not part of the library."""
    module, _, name = path.rpartition(".")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ValueError(f"module {module} cannot be imported: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ValueError(f"{name} of module {module} must be a class of policies, got {found!r}")
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
    """Label, name and fields."""
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
        # in any case, but to the letter: log-det is an information gain, LogDet a coefficient
        by_letters = {name.lower(): name for name in policies.PARTS}
        kind = by_letters.get(value.lower())
        value = value if kind is None else {"type": kind}
    if last in fields:
        raise ValueError(
            f"{'.'.join(path)} is given twice: every field once, and a part before its own fields"
        )
    fields[last] = value


def _value(text: str) -> Any:
    if _ROUNDS.fullmatch(text):
        return parse_rounds("a number", text)
    if not text.isprintable() or "#" in text:  # TOML would read a part of it
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):  # no TOML, or an integer of too many digits
        return text


def _find(kind: str, known: Iterable[str]) -> str:
    """Known name that is meant, in any case, with ``-`` or ``_``."""
    by_letters = {_letters(name): name for name in known}
    if _letters(kind) in by_letters:
        return by_letters[_letters(kind)]
    return one_of("name", kind, list(by_letters.values()))


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
