"""Private parts of numba: each failure names the function that needs repair."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from sightline.jit import numba_compat
from sightline.jit.dispatch import GenericFunction

pytestmark = pytest.mark.slow  # there is nothing to look at where numba is disabled

ROOT = Path(__file__).parents[1]


def repair(function: str) -> str:
    return f"numba {version('numba')} has changed: repair numba_compat.{function}"


def one_more(x: float) -> float:
    return x + 1.0


def zeros(n: int) -> float:
    return float(np.zeros(n).sum())


def kernel_of(function: Any, **options: bool) -> Any:
    chosen = {"cache": False, "inline": False, "counts": True} | options
    return numba_compat.compile_function(function, **chosen)


def test_the_version_is_bounded_from_above() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (bounds,) = (text for text in project["dependencies"] if text.startswith("numba"))
    limit = tuple(map(int, bounds.partition("<")[2].split(".")))
    assert tuple(map(int, version("numba").split(".")[:2])) < limit, bounds


def test_forced_inlining() -> None:
    for inline in (True, False):
        kernel = kernel_of(one_more, inline=inline)
        assert kernel(1.0) == 2.0
        (code,) = kernel.inspect_llvm().values()
        assert ("alwaysinline" in code) is inline, repair("_options: forceinline has no effect")


def test_kernels_without_the_runtime_cannot_allocate() -> None:
    assert kernel_of(zeros)(3) == 0.0
    try:
        kernel_of(zeros, counts=False)(3)
    except numba.errors.NumbaError:
        return
    pytest.fail(repair("_options: _nrt=False has no effect"))


def test_whether_references_are_counted_can_be_read_again() -> None:
    for counts in (True, False):
        kernel = kernel_of(one_more, counts=counts)
        message = repair("counts_references: _nrt is not in targetoptions")
        assert numba_compat.counts_references(kernel) is counts, message
        assert "_nrt" in kernel.targetoptions, message


def test_kernels_are_told_from_functions() -> None:
    assert numba_compat.is_kernel(kernel_of(one_more)), repair("is_kernel")
    assert not numba_compat.is_kernel(one_more)


class Pair(NamedTuple):
    first: float
    second: float


def test_types_of_named_tuples_know_their_class() -> None:
    pair = numba.typeof(Pair(1.0, 2.0))  # type: ignore[no-untyped-call]
    assert numba_compat.class_of(pair) is Pair, repair("class_of")
    assert numba_compat.class_of(numba.float64) is type(None)
    assert numba_compat.type_name(Pair(1.0, 2.0)) != numba_compat.type_name((1.0, 2.0))


def default(pair: Any) -> float:
    raise TypeError


def test_an_object_can_be_called_in_compiled_code() -> None:
    total = GenericFunction(default)
    total.register(Pair)(kernel_of(lambda pair: pair.first + pair.second))

    def twice(pair: Pair) -> float:
        return 2.0 * total(pair)

    assert kernel_of(twice)(Pair(1.0, 2.0)) == 6.0, repair("overload_with")


def test_kernels_are_kept_where_the_context_says(tmp_path: Path) -> None:
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    with numba_compat.caching_in(tmp_path):
        kernel = kernel_of(one_more, cache=True)
    assert before == numba.config.CACHE_DIR  # type: ignore[attr-defined]
    kernel(1.0)
    assert list(tmp_path.rglob("*.nbi")), repair("caching_in: config.CACHE_DIR has no effect")


def test_kernels_are_found_again_without_writing(tmp_path: Path) -> None:
    for hits in (0, 1):
        with numba_compat.caching_in(tmp_path / "new"):
            kernel = kernel_of(one_more, cache=True)
        message = repair("caching_in: numba writes to try the directory")
        assert (tmp_path / "new").exists() is bool(hits), message
        assert kernel(1.0) == 2.0
        assert sum(kernel.stats.cache_hits.values()) == hits, repair("caching_in")


@pytest.mark.parametrize("cache", [True, False])
def test_loading_and_saving_can_be_wrapped(tmp_path: Path, cache: bool) -> None:
    calls = []

    def load(inner: Any, *arguments: Any) -> Any:
        calls.append("load")
        return inner(*arguments)

    def save(inner: Any, *arguments: Any) -> None:
        calls.append("save")
        inner(*arguments)

    with numba_compat.caching_in(tmp_path):
        kernel = kernel_of(one_more, cache=cache)
    numba_compat.wrap_cache(kernel, load, save)
    assert kernel(1.0) == 2.0
    assert calls == ["load", "save"], repair("wrap_cache")
    numba_compat.wrap_cache(one_more, load, save)  # what numba gives where it is disabled


def test_linked_code_reaches_its_caller() -> None:
    for counts in (True, False):
        inner = numba_compat.compile_linked(one_more, inline=not counts, counts=counts)

        def twice(x: float, inner: Any = inner) -> float:
            return float(2.0 * inner(x))

        assert kernel_of(twice)(3.0) == 8.0, repair("compile_linked")


def test_linked_code_is_neither_optimised_nor_loaded() -> None:
    """Each method that is replaced must be one that numba still calls."""
    library = numba_compat._LinkedLibrary
    for name in (
        "codegen",
        "get_pointer_to_function",
        "_optimize_final_module",
        "_finalize_final_module",
    ):
        assert name in vars(library), name
        assert any(name in vars(base) for base in library.__mro__[1:]), repair(f"{library}.{name}")
    inner = numba_compat.compile_linked(one_more, inline=False, counts=True)

    def user(x: float) -> float:
        return float(inner(x))

    assert kernel_of(user)(1.0) == 2.0
    ((_, compiled),) = inner.overloads.items()
    assert isinstance(compiled.library, library), repair("_LinkedCompiler")
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0


class Outer(NamedTuple):
    pair: Pair
    number: float


def test_classes_of_a_signature() -> None:
    typeof: Any = numba.typeof
    signature = (typeof(Outer(Pair(1.0, 2.0), 3.0)), numba.float64)
    assert numba_compat.classes_in(signature) == {Outer, Pair}, repair("classes_in")


def some_numbers(rng: np.random.Generator, numbers: Any) -> None:
    for i in range(0, numbers.shape[0], 4):
        numbers[i] = rng.random()
        numbers[i + 1] = rng.standard_normal()
        numbers[i + 2] = rng.standard_exponential()
        numbers[i + 3] = rng.integers(0, 1000)


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_generators_of_all_kinds_draw_numpy_s_numbers(name: str) -> None:
    generators = [np.random.Generator(getattr(np.random, name)(7)) for _ in range(2)]
    numbers = np.zeros((2, 400))
    arguments = (generators[0], numbers[0])
    numba_compat.entry_point(kernel_of(some_numbers), arguments)(*arguments)
    some_numbers(generators[1], numbers[1])
    message = "numba or NumPy has changed: repair numba_compat.GeneratorType"
    assert numbers[0].tolist() == numbers[1].tolist(), message
    assert generators[0].random() == generators[1].random(), message


def test_types_are_told_apart_without_python_code() -> None:
    array = np.zeros((4, 4))
    read_only = np.zeros((4, 4))
    read_only.flags.writeable = False
    different = [array, array[0], array[:, 1], array.T[:2], array > 0, read_only, 1, 1.0, True]
    found = {numba_compat.fingerprint((value,)) for value in different}
    message = repair("fingerprint")
    assert len(found) == len(different), message
    assert numba_compat.fingerprint((2, array)) == numba_compat.fingerprint((3, array)), message
