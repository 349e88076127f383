"""Options by name: what is accepted, what is refused, and files that give the same bits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.sessions.options import Contrast, as_options

FEATURES = [[1.0, 0.1], [1.0, 1 / 3], [0.0, -0.0]]


def test_an_array_gets_numbers_for_names() -> None:
    options = as_options(FEATURES)
    assert options.names == ("0", "1", "2")
    assert options.columns == ("x0", "x1")
    assert options.levels is None
    assert len(options) == 3
    assert [contrast.term for contrast in options.contrasts] == ["x0", "x1"]
    assert np.array([contrast.vector for contrast in options.contrasts]).tolist() == [
        [1, 0],
        [0, 1],
    ]


def test_a_mapping_gives_names() -> None:
    options = as_options({"old page": [1.0, 0.0], "new page": (1.0, 1.0)})
    assert options.names == ("old page", "new page")
    assert options.features.tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert as_options(options) is options


def test_features_are_a_copy_that_cannot_be_written() -> None:
    features = np.array(FEATURES)
    options = sl.types.Options(features)
    features[0, 0] = 7.0
    assert options.features[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        options.features[0, 0] = 7.0


def test_options_are_found_by_name_and_by_row() -> None:
    options = sl.types.Options(FEATURES, ["large", "small", "none"])
    assert options.index("small") == options.index(1) == options.index(np.int64(1)) == 1
    assert as_options(FEATURES).index("2") == 2


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        (
            "smal",
            KeyError,
            "no option has the name 'smal'; did you mean 'small'? There are 'large', 'small', "
            "'none'",
        ),
        ("xyz", KeyError, "no option has the name 'xyz': there are 'large', 'small', 'none'"),
        (3, KeyError, "options have the rows 0 to 2, got 3: there are 'large', 'small', 'none'"),
        (-1, KeyError, "options have the rows 0 to 2, got -1: there are 'large', 'small', 'none'"),
        (True, ValueError, "an option is a name or a row, got True"),
        (0.5, ValueError, "an option is a name or a row, got 0.5"),
        (None, ValueError, "an option is a name or a row, got None"),
    ],
)
def test_options_that_do_not_exist(option: Any, error: type[Exception], message: str) -> None:
    options = sl.types.Options(FEATURES, ["large", "small", "none"])
    with pytest.raises(error) as raised:
        options.index(option)
    assert raised.value.args == (message,)


def test_one_more_option() -> None:
    options = as_options({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    more = options.with_option("c", [0.5, 0.5])
    assert more.names == ("a", "b", "c")
    assert more.features.tolist() == [[1, 0], [0, 1], [0.5, 0.5]]
    assert len(options) == 2
    assert more.contrasts[0].vector.tolist() == options.contrasts[0].vector.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", [1.0, 1.0]), "names must differ, got 'a' twice"),
        (("c", [1.0]), r"features must have shape \(2\), got \(1,\)"),
        (("c", [1.0, np.inf]), "features must be finite"),
        (("c",), "features must be given"),
        (("c", [1.0, 1.0], {"page": "c"}), "levels are for options of a factorial design only"),
        (("", [1.0, 1.0]), "names must be printable text, got ''"),
    ],
)
def test_one_option_too_many(arguments: Any, message: str) -> None:
    options = as_options({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    with pytest.raises(ValueError, match=message):
        options.with_option(*arguments)


def same_bits(one: sl.types.Options, other: sl.types.Options) -> bool:
    return (
        one.features.tobytes() == other.features.tobytes()
        and one.names == other.names
        and one.columns == other.columns
        and one.levels == other.levels
        and [c[:2] for c in one.contrasts] == [c[:2] for c in other.contrasts]
        and [c.where for c in one.contrasts] == [c.where for c in other.contrasts]
        and all(
            a.vector.tobytes() == b.vector.tobytes()
            for a, b in zip(one.contrasts, other.contrasts, strict=True)
        )
    )


@pytest.mark.parametrize(
    "options",
    [
        as_options(FEATURES),
        as_options({"ä": [1e-300, 1 / 3], "b, c": [1e60, -0.0]}),
        sl.factorial({"a": ["x", "y", "z"], "n": [1, 2.5, True]}, interactions="pairs"),
    ],
    ids=repr,
)
def test_a_file_gives_the_same_bits(options: sl.types.Options) -> None:
    text = json.dumps(options.describe(), allow_nan=False)
    assert same_bits(sl.types.Options.build(json.loads(text)), options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": None}, None),  # the default
        ({"extra": 1}, "a description of options has features, names, levels"),
        ({"features": [[1.0], [2.0, 3.0]]}, "features must be an array of real numbers"),
        ({"contrasts": [{"term": "x"}]}, "contrasts must be a list of term, level, vector"),
        ({"contrasts": 3}, "contrasts must be a list of term, level, vector"),
    ],
)
def test_files_that_are_no_options(change: dict[str, Any], message: str | None) -> None:
    description = as_options(FEATURES).describe() | change
    if message is None:
        assert sl.types.Options.build(description).names == ("0", "1", "2")
    else:
        with pytest.raises(ValueError, match=message):
            sl.types.Options.build(description)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0], r"features must have shape \(any, any\), one arm per row, got \(2,\)"),
        ([[]], "features must not be empty"),
        ([[np.nan]], "features must be finite"),
        ([["a"]], "features must be an array of real numbers"),
        ([[1e71]], "features must not exceed 1e\\+70"),
        ({}, "options must not be empty"),
        ({"a": [1.0], "b": [1.0, 2.0]}, r"equally many features, got \[1, 2\]"),
        ({"a": 1.0}, None),
        ({"a": "text"}, "features of option 'a' must be an array of real numbers"),
        ({"a": [[1.0]]}, r"features of option 'a' must have shape \(any\)"),
        ({1: [1.0]}, "names must be printable text, got 1"),
        (None, "features must be an array"),
    ],
)
def test_bad_options(value: Any, message: str | None) -> None:
    if message is None:
        assert as_options(value).features.shape == (1, 1)
    else:
        with pytest.raises(ValueError, match=message) as raised:
            as_options(value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"names": "abc"}, "names must be a list of 3 texts, got 'abc'"),
        ({"names": ["a", "b"]}, "names must be 3 texts, got 2"),
        ({"names": ["a", "b", " "]}, "names must be printable text, got ' '"),
        ({"names": ["a", "b", "a"]}, "names must differ, got 'a' twice"),
        ({"names": 3}, "names must be a list"),
        ({"columns": ["a", "a"]}, "columns must differ, got 'a' twice"),
        ({"levels": [{}]}, "levels must be 3 mappings, one per option, got 1"),
        ({"levels": {"a": "b"}}, "levels must be a list of 3 mappings"),
        ({"levels": [{"a": "x"}, {"a": "y"}, {}]}, "need a level of every factor"),
        ({"levels": [{"a": None}] * 3}, "level of 'a' must be printable text or a finite number"),
        ({"levels": [{"a": np.nan}] * 3}, "level of 'a' must be printable text or a finite number"),
        ({"contrasts": [("a", "", [1.0, 0.0])]}, "contrasts must be of class Contrast"),
        ({"contrasts": [Contrast("a", "", np.ones(3))]}, r"must have shape \(2\)"),
        ({"contrasts": [Contrast("a", "", np.ones(2))] * 2}, "contrasts must differ"),
        ({"contrasts": [Contrast(1, "", np.ones(2))]}, "term and level of a contrast must be"),  # type: ignore[arg-type]
    ],
)
def test_bad_fields(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.types.Options(FEATURES, **fields)
