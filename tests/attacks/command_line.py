"""The command line: one line on stderr and exit code 2."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner

from sightline.cli import app
from tests.attacks.attack import Attack
from tests.attacks.experiments import TEXTS

__all__ = ["ATTACKS"]

SIMULATE = ("simulate", "--problem", "large_gaps", "--policy", "ids", "--horizon", "20")


class RefusedError(Exception):
    """What the command line wrote to stderr, with exit code 2."""


def invoke(arguments: Sequence[str], directory: Path) -> object:
    result = CliRunner().invoke(
        app, [text.replace("DIRECTORY", str(directory)) for text in arguments]
    )
    if result.exit_code == 0:
        return result.output
    if not isinstance(result.exception, SystemExit):
        assert result.exception is not None
        raise result.exception
    said = result.stderr.removesuffix("\n")
    if result.exit_code != 2 or "Traceback" in result.output:
        raise RuntimeError(f"exit code {result.exit_code}: {said}")
    raise RefusedError(said)


OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "policy: unknown": (("--policy", "idss"), ("'idss'", "'IDS'")),
    "policy: empty": (("--policy", ""), ("--policy", "''")),
    "policy: only a label": (("--policy", "a="), ("--policy", "'a='")),
    "policy: field without value": (("--policy", "ids:cell"), ("'cell'",)),
    "policy: empty field": (("--policy", "a=ids:=3"), ("''",)),
    "policy: unknown field": (("--policy", "ids:informtion=cell"), ("'informtion'",)),
    "policy: a field twice": (
        ("--policy", "a=ids:information=cell,information=halfspace"),
        ("information", "twice"),
    ),
    "policy: a part twice": (
        ("--policy", "a=ids:confidence=LogDet,confidence=LogLog"),
        ("confidence", "twice"),
    ),
    "policy: a part after its fields": (
        ("--policy", "a=ids:confidence.factor=2,confidence=LogLog"),
        ("confidence", "twice"),
    ),
    "policy: a field of a part twice": (
        ("--policy", "a=ids:confidence.factor=2,confidence.factor=3"),
        ("confidence.factor", "twice"),
    ),
    "policy: field of a number": (("--policy", "a=ids:regulariser=1,regulariser.x=1"), ("has no",)),
    "policy: nan": (("--policy", "a=ids:regulariser=nan"), ("regulariser", "nan")),
    "policy: inf": (("--policy", "a=ids:regulariser=inf"), ("regulariser", "inf")),
    "policy: 1e300": (("--policy", "a=ids:regulariser=1.0e300"), ("regulariser", "1e+300")),
    "policy: 10^400": (("--policy", "a=ids:regulariser=10^400"), ("regulariser", "10**400")),
    "policy: 10^99999": (("--policy", "a=e4:horizon=10^99999"), ("10^99999",)),
    "policy: text": (("--policy", "a=ids:regulariser=much"), ("regulariser", "'much'")),
    "policy: date": (("--policy", "a=ids:regulariser=2024-02-29"), ("regulariser", "2024")),
    "policy: list": (("--policy", "a=ids:regulariser=[1]"), ("regulariser", "[1]")),
    "policy: nested too deep": (("--policy", "a=ids:regulariser=" + "[" * 9999), ("regulariser",)),
    "policy: a comment": (("--policy", "a=ids:regulariser=1 # 2"), ("regulariser", "1 # 2")),
    "policy: two lines": (("--policy", "a=ids:regulariser=1\nx = 2"), ("regulariser",)),
    "policy: norm_bound 1e300": (
        ("--policy", "a=ids:confidence.norm_bound=1e300"),
        ("norm_bound",),
    ),
    "policy: a rule of no kind": (("--policy", "a=ids:confidence=5"), ("confidence", "5")),
    "policy: a policy as a rule": (("--policy", "a=ids:confidence=linucb"), ("confidence",)),
    "policy: matched to LogLog": (
        ("--policy", "a=ids:confidence=LogLog,regulariser=matched"),
        ("matched", "LogLog"),
    ),
    "policy: no horizon": (("--policy", "e4"), ("E4", "horizon")),
    "policy: samples 10^12": (("--policy", "a=bayesian-ids:samples=10^12"), ("samples",)),
    "policy: redraws 0": (("--policy", "a=top-two:redraws=0"), ("redraws", "0")),
    "policy: twice": (("--policy", "ids"), ("--policy", "'ids'")),
    "problem: unknown": (("--problem", "large_gap"), ("'large_gap'", "'large_gaps'")),
    "problem: k 10^12": (("--problem", "unit_sphere:k=10^12"), ("k", "10**12")),
    "problem: d 10^12": (("--problem", "end_of_optimism_family:d=10^12"), ("d", "10**12")),
    "problem: k of text": (("--problem", "unit_sphere:k=many"), ("k", "'many'")),
    "problem: k of a float": (("--problem", "unit_sphere:k=6.0"), ("k", "6.0")),
    "problem: k of true": (("--problem", "unit_sphere:k=true"), ("k", "True")),
    "problem: noise 1e300": (
        ("--problem", "a=large_gaps:noise_variance=1.0e300"),
        ("noise_variance", "1e+300"),
    ),
    "problem: a field twice": (("--problem", "unit_sphere:k=5,k=6"), ("k", "twice")),
    "problem: no field": (("--problem", "unit_sphere:"), ("unit_sphere:",)),
    "problem: a field of a file": (("--problem", "x.json:seed=3"), ("'seed'",)),
    "horizon: text": (("--horizon", "many"), ("--horizon", "'many'")),
    "horizon: float": (("--horizon", "1.5"), ("--horizon", "'1.5'")),
    "horizon: negative": (("--horizon", "-5"), ("--horizon", "'-5'")),
    "horizon: zero": (("--horizon", "0"), ("--horizon", "0")),
    "horizon: empty": (("--horizon", ""), ("--horizon", "''")),
    "horizon: 10^5000": (("--horizon", "10^5000"), ("--horizon", "10^5000")),
    "horizon: tower": (("--horizon", "9999^9999"), ("--horizon", "9999^9999")),
    "horizon: too far": (("--horizon", "10^20", "--policy", "lin-ucb"), ("horizon", "10**20")),
    "replications: 0": (("--replications", "0"), ("replications", "0")),
    "replications: 10^12": (("--replications", "1000000000000"), ("replications", "TB")),
    "replications: text": (("--replications", "many"), ("--replications", "many")),
    "replications: float": (("--replications", "2.5"), ("--replications", "2.5")),
    "seed: negative": (("--seed", "-1"), ("seed", "-1")),
    "seed: text": (("--seed", "x"), ("--seed", "x")),
    "threads: 0": (("--threads", "0"), ("--threads", "0")),
    "threads: text": (("--threads", "all"), ("--threads", "all")),
    "threads: 10^9": (("--threads", "1000000000"), ("--threads", "1000000000")),
    "threads and dask": (("--threads", "2", "--dask", "x"), ("--threads", "--dask")),
    "config and options": (("--config", "x.toml"), ("--config",)),
    "unknown option": (("--replication", "5"), ("--replication",)),
    "option without value": (("--seed",), ("--seed",)),
    "a stray argument": (("stray",), ("stray",)),
    "figure: format": (("--figure", "DIRECTORY/x.xyz"), ("x.xyz", "format")),
}

COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "no such command": (("simulat",), ("simulat",)),
    "simulate nothing": (("simulate",), ("--problem",)),
    "game of nothing": (("game",), ("problem",)),
    "game: unknown": (("game", "large_gap"), ("'large_gap'",)),
    "game: contexts": (("game", "contextual_simple"), ("contexts",)),
    "game: box nan": (("game", "large_gaps", "--box", "nan"), ("--box", "nan")),
    "game: box and simplex": (("game", "large_gaps", "--box", "1", "--simplex"), ("--simplex",)),
    "bound of nothing": (("bound",), ("problem",)),
    "bound: unknown": (("bound", "large_gap"), ("'large_gap'",)),
    "bound: two": (("bound", "large_gaps", "large_gaps"), ("large_gaps",)),
    "bound: tolerance 0": (("bound", "large_gaps", "--tolerance", "0"), ("tolerance", "0")),
    "bound: tolerance nan": (("bound", "large_gaps", "--tolerance", "nan"), ("tolerance", "nan")),
    "bound: tolerance text": (("bound", "large_gaps", "--tolerance", "x"), ("tolerance", "x")),
    "bound: box nan": (("bound", "large_gaps", "--box", "nan"), ("--box", "nan")),
    "bound: box negative": (("bound", "large_gaps", "--box", "-1"), ("--box", "-1")),
    "bound: box 1e300": (("bound", "large_gaps", "--box", "1e300"), ("--box", "1e+300")),
    "bound: box too small": (("bound", "large_gaps", "--box", "0.5"), ("contain theta",)),
    "bound: noise": (("bound", "large_gaps", "--noise-std", "2"), ("--noise-std",)),
    "bound: figure": (("bound", "large_gaps", "--figure", "x.xyz"), ("x.xyz",)),
    "bound: figure in three dimensions": (
        ("bound", "unit_sphere:d=3", "--figure", "DIRECTORY/x.png"),
        ("2 dimensions", "3"),
    ),
    "watch: unknown": (("watch", "large_gap"), ("'large_gap'",)),
    "watch: rounds 0": (("watch", "--rounds", "0"), ("--rounds", "0")),
    "watch: rounds text": (("watch", "--rounds", "10^6"), ("--rounds", "10^6")),
    "watch: too many rounds": (("watch", "--rounds", str(2**60)), ("rounds", "2**53")),
    "watch: another policy": (("watch", "--policy", "lin-ucb"), ("--policy", "'lin-ucb'")),
    "watch: three dimensions": (("watch", "unit_sphere:d=3"), ("2 dimensions", "3")),
    "compile: unknown": (("compile", "idss"), ("'idss'",)),
    "reproduce: unknown": (("reproduce", "figure9"), ("'figure9'",)),
    "reproduce: profile": (("reproduce", "--profile", "slow"), ("--profile", "slow")),
    "reproduce: threads": (("reproduce", "--threads", "-1"), ("--threads", "-1")),
    "bench: unknown": (("bench", "rust", "--out", "DIRECTORY"), ("'rust'",)),
    "bench: repeats": (("bench", "--repeats", "0"), ("--repeats", "0")),
    "list: a stray argument": (("list", "policies"), ("policies",)),
}


def _configured(content: str, directory: Path) -> object:
    (directory / "file.toml").write_text(content)
    options = ("--config", "DIRECTORY/file.toml", "--store", "DIRECTORY/store")
    return invoke(("simulate", *options), directory)


def _attacks() -> list[Attack]:
    commands = {
        f"simulate {name}": ((*SIMULATE, "--store", "DIRECTORY/store", *options), texts)
        for name, (options, texts) in OPTIONS.items()
    }
    attacks = [
        Attack(name, functools.partial(invoke, arguments), texts, RefusedError)
        for name, (arguments, texts) in (commands | COMMANDS).items()
    ]
    attacks += [
        Attack(
            f"config {name}",
            functools.partial(_configured, content),
            ("file.toml", said),
            RefusedError,
        )
        for name, (content, said) in TEXTS.items()
    ]
    return [
        *attacks,
        Attack("list", functools.partial(invoke, ("list",)), None),
        Attack("version", functools.partial(invoke, ("--version",)), None),
        Attack("help", functools.partial(invoke, ("simulate", "--help")), None),
    ]


ATTACKS: list[Attack] = _attacks()
