"""What ``import sightline`` offers."""

from __future__ import annotations

import pytest

import sightline as sl
from sightline.policies.catalogue import POLICIES


def test_every_public_name_resolves() -> None:
    for name in dir(sl):
        assert getattr(sl, name) is not None


def test_every_policy_of_the_catalogue_is_public() -> None:
    assert set(POLICIES) <= set(dir(sl))
    assert sl.IDS is POLICIES["IDS"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'IDSS'; did you mean 'IDS'"):
        sl.IDSS  # type: ignore[attr-defined]  # noqa: B018
