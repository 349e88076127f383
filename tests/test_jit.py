"""Compilation: a new process finds cached kernels, unless a source has changed."""

from __future__ import annotations

import ast
import os
import pickle
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
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.jit import cache, shipped
from sightline.policies.base import choose
from sightline.problems.noise import GaussianNoise, draw
from sightline.sources import modules_behind

PACKAGE = Path(sl.__file__).parent

SIMULATE = """
import sightline as sl
from sightline.simulation import loop
run = sl.simulate(sl.problems.end_of_optimism(), sl.ThompsonSampling(), 1000, seed=1)
(outer,) = loop._CACHED.outers.values()
stats = outer.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), run.regret[-1].hex())
"""


def run_in_new_process(code: str, root: Path, cache: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout


def in_new_process(code: str, root: Path, cache: Path) -> list[str]:
    return run_in_new_process(code, root, cache).split()


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
    # what is no code, and what the kernel does not depend on, is no reason to compile it again
    source.write_text(
        text.replace('"""', '"""Not the same.  ', 1).replace("\n@", "\n# a comment\n@")
    )
    rival = root / "sightline" / "policies" / "lin_med.py"
    rival.write_text(rival.read_text() + "\n\nANOTHER = 1\n")
    assert in_new_process(SIMULATE, root, cache) == second


COMPILE = """
import sys, warnings
from sightline import jit
one, two = jit.compiled(lambda: 1), jit.compiled(lambda: 2)
print(jit.cache_directory(), file=sys.stderr)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(one() + two())
    print(*(warning.message for warning in said), sep="\\n")
"""


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_mentioned_once_and_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    result, *said = run_in_new_process(COMPILE, PACKAGE.parent, blocked).splitlines()
    assert result == "3"
    assert len(said) == 1
    assert f"the kernel cache {blocked / 'sightline'}" in said[0]
    assert "compiled again at every start" in said[0]
    assert "set the environment variable NUMBA_CACHE_DIR" in said[0]


@pytest.mark.slow
def test_nothing_is_said_of_an_unwritable_cache_before_a_kernel_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    code = "import warnings; warnings.simplefilter('error'); import sightline.simulation.simulate"
    assert run_in_new_process(code, PACKAGE.parent, tmp_path / "file") == ""


def danger(root: Path) -> str | None:
    directory = root / "sightline" / "kernels"
    return shipped.danger_in(directory, parents=(root, directory.parent))


def test_a_cache_that_is_made_is_private(tmp_path: Path) -> None:
    root = tmp_path / "new" / "cache"
    before = os.umask(0)
    try:
        cache._make(root / "sightline" / "kernels")
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    assert len(made) == 4
    assert danger(root) is None


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
@pytest.mark.parametrize("place", [".", "sightline", "sightline/kernels"])
def test_a_cache_that_others_can_write_is_dangerous(tmp_path: Path, place: str, mode: int) -> None:
    cache._make(tmp_path / "sightline" / "kernels")
    path = tmp_path / place
    path.chmod(mode)
    assert danger(tmp_path) == f"others may write to {path}"
    path.chmod(mode | 0o1000)  # others cannot remove what is not theirs, but they can add to it
    assert (danger(tmp_path) is None) == (place != "sightline/kernels")


@pytest.mark.parametrize("place", [".", "sightline", "sightline/kernels", "sightline/kernels/f"])
def test_a_cache_of_another_user_is_dangerous(tmp_path: Path, place: str) -> None:
    if os.getuid():
        pytest.skip("only the superuser can give files away")
    cache._make(tmp_path / "sightline" / "kernels")
    (tmp_path / "sightline/kernels/f").touch()
    assert danger(tmp_path) is None
    path = tmp_path / place
    os.chown(path, 65534, 65534)
    assert danger(tmp_path) == f"{path} belongs to another user"


def test_what_is_in_a_cache_must_be_closed_to_others_or_unreachable(tmp_path: Path) -> None:
    directory = tmp_path / "sightline" / "kernels"
    cache._make(directory)
    (directory / "f").touch()
    (directory / "f").chmod(0o666)
    assert danger(tmp_path) is None
    directory.chmod(0o755)
    assert danger(tmp_path) == f"others may write to {directory / 'f'}"
    assert danger(tmp_path / "nothing") is None


OWN_KERNEL = """
import sys
sys.path.insert(0, sys.argv[1])
from sightline import jit
seven = jit.compiled(lambda: 7)
print(seven())
"""


@pytest.mark.slow
def test_pickles_of_others_are_not_executed(tmp_path: Path) -> None:
    program, kept, ran = tmp_path / "own.py", tmp_path / "cache", tmp_path / "ran"
    program.write_text(OWN_KERNEL)

    def run() -> str:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(kept), "NUMBA_DISABLE_JIT": "0"}
        command = [sys.executable, str(program), str(PACKAGE.parent)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "7\n"
        return done.stderr

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(ran),)

    assert run() == ""
    (index,) = kept.rglob("*.nbi")
    directory = kept / "sightline" / "kernels"
    index.write_bytes(pickle.dumps(Evil()))
    directory.chmod(0o777)
    said = run()
    assert not ran.exists()
    assert said.count("is not used, since other users could put code there") == 1
    assert f"others may write to {directory}" in said
    directory.chmod(0o700)
    run()
    assert ran.exists(), "what numba keeps is executed: else there would be nothing to prevent"


# The superuser can write anywhere: taking permissions away would prove nothing.
READ_ONLY = """
import os, warnings
def refuse(path):
    raise PermissionError(path)
os.utime = refuse
warnings.simplefilter("error")
"""


@pytest.mark.slow
def test_a_cache_that_came_with_an_image_is_read(tmp_path: Path) -> None:
    first = in_new_process(SIMULATE, PACKAGE.parent, tmp_path)
    files = sorted(tmp_path.rglob("*"))
    second = in_new_process(READ_ONLY + SIMULATE, PACKAGE.parent, tmp_path)
    assert second == ["1", "0", first[2]]
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.slow
def test_saving_waits_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    here = cache._Cache(tmp_path, readable=True, writable=True)
    monkeypatch.setattr(cache, "_cache", lambda: here)

    @jit.compiled
    def seven() -> int:
        return 7

    with (tmp_path / "lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=seven)
        thread.start()
        while not any(one.signatures for one in seven.outers.values()):  # type: ignore[attr-defined]  # compiled, not yet saved
            time.sleep(0.01)
        assert not list(tmp_path.rglob("*.nbi"))
    thread.join()
    assert len(list(tmp_path.rglob("*.nbi"))) == 1


def test_every_file_with_kernels_is_hashed() -> None:
    modules = modules_behind(*cache.modules_with_kernels())
    paths = (PACKAGE.parent.joinpath(*module.split(".")) for module in modules)
    hashed = {path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths}
    kernels = re.compile(r"\b(compiled|compiled_apart|generic)\(|@(\w+\.)*(compiled|generic)")
    library = PACKAGE / "jit"  # which defines these names, and is behind every kernel
    found = {path for path in PACKAGE.rglob("*.py") if kernels.search(path.read_text())}
    found |= set(library.glob("*.py"))
    assert PACKAGE / "bounds" / "oracle.py" in found
    assert len(found) > 40
    assert found <= hashed, found - hashed
    assert PACKAGE / "report" / "figures.py" not in hashed, "a figure recompiles no kernels"


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


class LeftOfLeft(Left):
    """A class of its own in compiled code, one that inherits in the interpreter."""


def test_the_interpreter_finds_implementations_of_a_base() -> None:
    assert sign(LeftOfLeft(2.0)) == -2.0
    assert sign.dispatch(LeftOfLeft) is sign.dispatch(Left)


def test_generic_functions_are_pickled_by_name() -> None:
    for function in (choose, draw, sign):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.slow
def test_sources_outside_the_package_are_not_ours() -> None:
    assert jit.registered(GaussianNoise()).ours
    assert not jit.registered(Left(1.0)).ours


def test_kernels_that_count_no_references_return_no_arrays() -> None:
    records = "ActionSet|Choice|Clock|Comparison|Evidence|ExpectedLoss|Exploration|Mixture|Walk"
    numbers = rf"(None|bool|int|float|{records})"
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
    state = sl.IDS().start(bandit_model(np.eye(2)))
    first, rng = np.random.default_rng(0), np.random.default_rng(1)
    draw(GaussianNoise(), 0.0, first)  # compiled in a thread, which may outlive the call
    choose(state, clock_at(1), ALL_ARMS, first)
    before = sys.getrefcount(rng)
    for _ in range(10):
        draw(GaussianNoise(), 0.0, rng)
        choose(state, clock_at(1), ALL_ARMS, rng)
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
