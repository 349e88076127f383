"""Factorial designs: all combinations, effects that sum to zero, means that are sums of effects."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import sightline as sl
from tests.sessions.test_options import same_bits

PAGES: dict[str, list[Any]] = {
    "picture": ["large", "small"],
    "text": ["short", "long"],
    "price": [9, 10.5, 12],
}
MODELS: list[Any] = [None, "pairs", [("picture", "price")], [("price", "picture", "text")]]


def effects_of(means: dict[tuple[Any, ...], float], factors: dict[str, list[Any]]) -> Any:
    """Return the effect of any set of levels, from means alone: averages minus lower effects."""

    def effect(where: dict[str, Any]) -> float:
        cells = [
            mean
            for cell, mean in means.items()
            if where.items() <= dict(zip(factors, cell, strict=True)).items()
        ]
        subsets = (
            dict(subset)
            for size in range(len(where))
            for subset in itertools.combinations(where.items(), size)
        )
        return float(np.mean(cells)) - sum(effect(subset) for subset in subsets)

    return effect


def test_all_combinations_are_named_in_order() -> None:
    options = sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})
    assert options.names == (
        "picture=large, text=short",
        "picture=large, text=long",
        "picture=small, text=short",
        "picture=small, text=long",
    )
    assert options.features.tolist() == [[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]]
    assert options.columns == ("grand mean", "picture", "text")
    assert options.levels is not None
    assert options.levels[2] == {"picture": "small", "text": "short"}


@pytest.mark.parametrize("interactions", MODELS, ids=str)
def test_columns_are_orthonormal_over_all_combinations(interactions: Any) -> None:
    X = sl.factorial(PAGES, interactions).features
    assert X.T @ X / len(X) == pytest.approx(np.eye(X.shape[1]), abs=1e-14)


@pytest.mark.parametrize("interactions", MODELS, ids=str)
def test_a_mean_is_the_grand_mean_and_effects_to_the_last_bit(interactions: Any) -> None:
    options = sl.factorial(PAGES, interactions)
    assert options.levels is not None
    for row, levels in zip(options.features, options.levels, strict=True):
        parts = [
            contrast.vector
            for contrast in options.contrasts
            if contrast.where is not None and contrast.where.items() <= levels.items()
        ]
        assert np.sum(parts, axis=0).tobytes() == row.tobytes()


def test_contrasts_are_deviations_from_averages() -> None:
    """With all interactions the model fits any means, and effects are those of the averages."""
    model = ["picture text", "picture price", "text price", "picture text price"]
    options = sl.factorial(PAGES, [term.split() for term in model])
    means = np.random.default_rng(0).normal(size=len(options))
    theta = np.linalg.solve(options.features, means)
    table = dict(zip(itertools.product(*PAGES.values()), means, strict=True))
    effect = effects_of(table, PAGES)
    assert len(options.contrasts) == 1 + 7 + 4 + 6 + 6 + 12
    for contrast in options.contrasts:
        assert contrast.where is not None
        assert contrast.vector @ theta == pytest.approx(effect(contrast.where), abs=1e-14)
    assert theta @ theta == pytest.approx(np.mean(means**2))


def test_labels_of_contrasts() -> None:
    options = sl.factorial(PAGES, [("price", "picture")])
    labels = [(contrast.term, contrast.level) for contrast in options.contrasts]
    assert labels[:3] == [("grand mean", ""), ("picture", "large"), ("picture", "small")]
    assert labels[-1] == ("picture:price", "small:12")
    assert options.columns[3:] == ("price 1", "price 2", "picture:price 1", "picture:price 2")


def test_forbidden_combinations_are_left_out() -> None:
    forbidden: list[dict[str, Any]] = [
        {"picture": "large", "text": "long"},
        {"price": 12, "picture": "small"},
    ]
    options = sl.factorial(PAGES, forbidden=forbidden)
    everything = sl.factorial(PAGES)
    kept = [
        name
        for name in everything.names
        if not ("large, text=long" in name or ("small" in name and "price=12" in name))
    ]
    assert list(options.names) == kept
    assert len(kept) == 12 - 3 - 2
    rows = [everything.index(name) for name in kept]
    assert options.features.tolist() == everything.features[rows].tolist()


def test_a_combination_can_be_added_later() -> None:
    options = sl.factorial(PAGES, "pairs", forbidden=[{"picture": "small", "price": 12}])
    more = options
    for text in ("short", "long"):
        levels = {"picture": "small", "text": text, "price": 12}
        more = more.with_option(f"cheap, {text}", levels=levels)
    everything = sl.factorial(PAGES, "pairs")
    rows = [everything.index(f"picture=small, text={text}, price=12") for text in ("short", "long")]
    assert more.features[-2:].tobytes() == everything.features[rows].tobytes()
    assert more.levels is not None
    assert more.levels[-1] == {"picture": "small", "text": "long", "price": 12}
    assert same_bits(sl.types.Options.build(more.describe()), more)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (None, "an option of a factorial design needs levels, one for every factor"),
        ({"picture": "large", "text": "long"}, "'price' is missing"),
        ({"picture": "huge", "text": "long", "price": 9}, "picture=huge is no level of this"),
        ({"picture": "large", "text": "long", "price": 9, "x": 1}, "x=1 is no level of this"),
        ("large", "levels must be mappings of factor to level, got 'large'"),
    ],
)
def test_combinations_that_cannot_be_added(levels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.factorial(PAGES).with_option("new", levels=levels)


def test_numbers_of_numpy_are_levels() -> None:
    options = sl.factorial({"price": np.array([9, 12]), "n": np.array([0.5, 1.5])})
    assert options.levels is not None
    assert options.levels[0] == {"price": 9, "n": 0.5}
    assert options.with_option("x", levels={"price": np.int64(9), "n": 0.5}).features[-1, 1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "factors must be a mapping of factor to levels, got {}"),
        ((["a"],), "factors must be a mapping of factor to levels"),
        (({"": ["a", "b"]},), "names of factors must be printable text, got ''"),
        (({1: ["a", "b"]},), "names of factors must be printable text, got 1"),
        (({"grand mean": ["a", "b"]},), "cannot be called 'grand mean'"),
        (({"a": "xy"},), "factor 'a' needs a list of levels, got 'xy'"),
        (({"a": 3},), "factor 'a' needs a list of levels, got 3"),
        (({"a": ["x"]},), r"factor 'a' needs at least two levels, got \['x'\]"),
        (({"a": ["x", "x"]},), "levels of factor 'a' must differ"),
        (({"a": [1, "1"]},), "levels of factor 'a' must differ"),
        (({"a": ["x", None]},), "level of 'a' must be printable text or a finite number"),
        (({"a": [1, np.nan]},), r"a finite number up to 1e\+300, got nan"),
        (({"a": [1, 10**400]},), r"a finite number up to 1e\+300, got 10\*\*400"),
        (({"a": [1, -(10**5000) - 1]},), r"1e\+300, got about -10\*\*5000"),
        ((PAGES, "pair"), "interactions must be one of 'pairs', got 'pair'; did you mean"),
        ((PAGES, 2), "interactions must be 'pairs' or a list of pairs, got 2"),
        ((PAGES, ["price"]), "an interaction is between two or more factors, got 'price'"),
        ((PAGES, [("price",)]), "an interaction is between two or more factors"),
        ((PAGES, [("price", "price")]), "an interaction is between two or more factors"),
        ((PAGES, [("price", "txt")]), "got 'txt'; did you mean 'text'?"),
        ((PAGES, [("price", "text"), ("text", "price")]), "got text:price twice"),
        ((PAGES, None, {"picture": "large"}), "forbidden must be a list of mappings"),
        ((PAGES, None, ["large"]), "forbidden must have mappings of factor to level, got 'large'"),
        ((PAGES, None, [{}]), "forbidden must have mappings of factor to level, got {}"),
        ((PAGES, None, [{"size": "large"}]), "factor of a forbidden combination must be one of"),
        ((PAGES, None, [{"picture": "larg"}]), "got 'larg'; did you mean 'large'?"),
        ((PAGES, None, [{"price": 13}]), "level of 'price' must be one of '9', '10.5', '12'"),
        ((PAGES, None, [{"price": p} for p in (9, 10.5, 12)]), "no option is left"),
    ],
)
def test_bad_designs(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        sl.factorial(*arguments)
    assert "\n" not in str(raised.value)


def test_a_design_that_is_too_large_is_refused_before_it_is_made() -> None:
    with pytest.raises(ValueError, match="has 1099511627776 combinations with 41 features each"):
        sl.factorial({f"f{i}": ["on", "off"] for i in range(40)})
    assert len(sl.factorial({f"f{i}": ["on", "off"] for i in range(15)})) == 2**15
