"""Compilation: kernels are found again by a new process, and never when a source has changed."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline import jit
from sightline.core.clock import clock_at
from sightline.policies.base import choose
from sightline.problems.noise import Gaussian, draw

PACKAGE = Path(sl.__file__).parent

SIMULATE = """
import sightline as sl
from sightline.engine import simulate
run = sl.simulate(sl.problems.end_of_optimism(), sl.ThompsonSampling(), 1000, seed=1)
stats = simulate._advance_cached.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), run.regret[-1].hex())
"""


def in_new_process(code: str, root: Path, cache: Path) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout.split()


@pytest.mark.slow
def test_a_new_process_reuses_kernels_until_any_source_changes(tmp_path: Path) -> None:
    root, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(PACKAGE, root / "sightline")
    first = in_new_process(SIMULATE, root, cache)
    second = in_new_process(SIMULATE, root, cache)
    assert first[:2] == ["0", "1"]
    assert second[:2] == ["1", "0"]
    assert first[2] == second[2]
    # a callee in another file: numba alone would go on using the old kernel
    source = root / "sightline" / "problems" / "noise.py"
    text = source.read_text()
    assert "noise.std * rng.standard_normal()" in text
    source.write_text(text.replace("noise.std * rng.standard_normal()", "0.0"))
    third = in_new_process(SIMULATE, root, cache)
    assert third[:2] == ["0", "1"]
    assert third[2] != first[2]


@pytest.mark.slow
def test_an_unwritable_cache_is_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    output = in_new_process(
        "from sightline import jit; print(jit.cache_directory(), jit.compiled(lambda: 7)())",
        PACKAGE.parent,
        blocked,
    )
    assert output == ["None", "7"]


@pytest.mark.slow
def test_saving_waits_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(jit, "cache_directory", lambda: tmp_path)

    @jit.compiled
    def seven() -> int:
        return 7

    with (tmp_path / "lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=seven)
        thread.start()
        while not seven.signatures:  # type: ignore[attr-defined]  # compiled, not yet saved
            time.sleep(0.01)
        assert not list(tmp_path.rglob("*.nbi"))
    thread.join()
    assert len(list(tmp_path.rglob("*.nbi"))) == 1


def test_only_hashed_packages_have_kernels() -> None:
    packages = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^@(compiled|generic|\w+\.register)\b", path.read_text(), re.MULTILINE)
    }
    assert {"core", "policies"} <= packages <= set(jit.ROOMS_WITH_KERNELS)


def test_importing_is_light() -> None:
    heavy = ["numba", "matplotlib", "rich", "typer", "pandas"]
    code = f"import sys, sightline; print([m for m in {heavy} if m in sys.modules])"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"


class Left(NamedTuple):
    value: float


class Right(NamedTuple):
    value: float


@jit.generic
def sign(side: Any) -> float:
    raise TypeError


@sign.register(Left)
@jit.uncached
def _left(side: Left) -> float:
    return -side.value


@sign.register(Right)
@jit.uncached
def _right(side: Right) -> float:
    return side.value


@jit.uncached
def total(left: Left, right: Right) -> float:
    return 10.0 * sign(left) + sign(right)


def test_generic_functions_dispatch_on_the_class_in_both_worlds() -> None:
    assert sign(Left(2.0)) == -2.0
    assert total(Left(2.0), Right(3.0)) == -17.0
    with pytest.raises(TypeError):
        sign(3.0)


@pytest.mark.slow
def test_sources_outside_the_package_are_not_ours() -> None:
    assert jit.is_ours(draw, Gaussian())
    assert not jit.is_ours(sign, Left(1.0))


def test_kernels_that_count_no_references_return_no_arrays() -> None:
    numbers = r"(None|bool|int|float|Choice|Clock|Evidence|Mixture)"
    checked = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and "compiled" in map(
                ast.unparse, node.decorator_list
            ):
                assert node.returns is not None
                returned = ast.unparse(node.returns)
                pattern = rf"{numbers}|tuple\[{numbers}(, {numbers})*\]"
                assert re.fullmatch(pattern, returned), f"{path}: {node.name} -> {returned}"
                checked += 1
    assert checked > 100


def test_generators_are_given_back() -> None:
    rng = np.random.default_rng(1)
    before = sys.getrefcount(rng)
    state = sl.IDS().start(np.eye(2), 1.0)
    for _ in range(10):
        draw(Gaussian(), 0.0, rng)
        choose(state, clock_at(1), rng)
    assert sys.getrefcount(rng) == before


class Between(NamedTuple):
    left: float
    right: float


@sign.register(Between)
@jit.uncached
def _between(side: Between) -> float:
    ends = np.array([side.left, side.right])
    return float(ends.mean())


@jit.uncached
def twice(side: Between) -> float:
    return 2.0 * sign(side)


def test_kernels_of_a_user_may_allocate() -> None:
    assert twice(Between(1.0, 2.0)) == 3.0
