"""Which arrays of a state are kept, and its version."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from sightline.core.persistence import (
    persistent_arrays,
    persists,
    state_version,
    version_of,
)
from tests.naive import Array


@persists("kept")
class Declared(NamedTuple):
    kept: Array
    scratch: Array
    number: float = 1.5


@persists()
class Scratch(NamedTuple):
    values: Array


class Undeclared(NamedTuple):
    first: Array
    second: Array
    flag: bool = True
    arms: int = 3
    name: str = "x"
    level: Any = None


class Nested(NamedTuple):
    inner: Declared
    work: Scratch
    own: Array
    other: Undeclared


ONE, TWO = np.zeros(1), np.zeros(2)


def test_declared_arrays_are_kept() -> None:
    state = Declared(ONE, TWO)
    kept = dict(persistent_arrays(state))
    assert list(kept) == ["state.kept"]
    assert kept["state.kept"] is state.kept
    assert list(persistent_arrays(Scratch(ONE))) == []


def test_all_arrays_are_kept_where_nothing_is_declared() -> None:
    names = [name for name, _ in persistent_arrays(Undeclared(ONE, TWO), "policy")]
    assert names == ["policy.first", "policy.second"]


def test_numbers_of_numpy_are_configuration() -> None:
    state = Undeclared(ONE, TWO, level=np.float64(0.5), arms=np.int64(3))  # type: ignore[arg-type]
    assert len(list(persistent_arrays(state))) == 2


def test_nested_states_decide_for_themselves() -> None:
    state = Nested(Declared(ONE, TWO), Scratch(ONE), ONE, Undeclared(ONE, TWO))
    assert [name for name, _ in persistent_arrays(state)] == [
        "state.inner.kept",
        "state.own",
        "state.other.first",
        "state.other.second",
    ]


def test_a_declaration_of_the_outer_state_leaves_the_inner_one_alone() -> None:
    @persists("own")
    class Outer(NamedTuple):
        inner: Declared
        own: Array
        scratch: Array

    state = Outer(Declared(ONE, TWO), ONE, TWO)
    names = [name for name, _ in persistent_arrays(state)]
    assert names == ["state.inner.kept", "state.own"]


def test_a_subclass_declares_anew() -> None:
    """The declaration is that of the very class, as kernels are."""

    class Derived(Declared):
        pass

    names = [name for name, _ in persistent_arrays(Derived(ONE, TWO))]
    assert names == ["state.kept", "state.scratch"]


def test_a_field_that_does_not_exist_cannot_be_kept() -> None:
    class Small(NamedTuple):
        values: Array

    with pytest.raises(ValueError, match="Small has no field pulls, sums"):
        persists("values", "sums", "pulls")(Small)
    # and nothing was declared: all arrays are kept
    assert len(list(persistent_arrays(Small(np.zeros(1))))) == 1


@pytest.mark.parametrize("value", [[1.0], {"a": 1}, (1, 2), {1}, np.random.default_rng(0)])
def test_what_would_be_lost_is_refused(value: Any) -> None:
    state = Undeclared(ONE, TWO, level=value)
    with pytest.raises(TypeError, match=r"state\.level is a \w+, and would not be saved"):
        list(persistent_arrays(state))


def test_what_would_be_lost_is_named_where_it_is_nested() -> None:
    bad = Undeclared(ONE, TWO, level=[])
    state = Nested(Declared(ONE, TWO), Scratch(ONE), ONE, bad)
    with pytest.raises(TypeError, match=r"state\.other\.level is a list"):
        list(persistent_arrays(state))


@pytest.mark.parametrize("state", [[np.zeros(1)], np.zeros(1), None])
def test_only_named_tuples_are_states(state: Any) -> None:
    with pytest.raises(TypeError, match=f"NamedTuples of arrays .* got {type(state).__name__}"):
        list(persistent_arrays(state))


# --- versions -----------------------------------------------------------------------------------


def test_versions_begin_with_one() -> None:
    class Plain(NamedTuple):
        values: Array

    @state_version(2)
    class Changed(NamedTuple):
        values: Array

    assert (version_of(Plain), version_of(Changed)) == (1, 2)
