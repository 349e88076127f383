"""What ``import sightline`` offers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sightline as sl
from sightline import validation
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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LinTS", "ThompsonSampling"),
        ("OFUL", "LinUCB"),
        ("GreedyLinUCB", "LinUCB"),
        ("LogisticBandit", "LinearBandit(rewards=Bernoulli())"),
        ("LinerBandit", "LinearBandit"),
        ("sesion", "Session"),
        ("lowerbound", "lower_bound"),
        ("Obs", None),
        ("EXP3", None),
        ("Klient", "Client"),
        ("Tents", None),
        ("posterior", None),
    ],
)
def test_suggestions_are_misspellings_and_synonyms(name: str, meant: str | None) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(sl, name)
    hint = f"; did you mean {meant!r}?" if meant else ""
    assert str(caught.value) == f"module 'sightline' has no attribute {name!r}{hint}"


def test_every_synonym_is_of_a_public_name_and_none_itself() -> None:
    names = {name.lower().replace("_", "") for name in dir(sl)}
    for synonym, meant in validation._SYNONYMS.items():
        assert meant.partition("(")[0] in dir(sl)
        assert synonym not in names


def test_private_names_are_refused_without_importing_anything() -> None:
    code = "import sys, sightline; hasattr(sightline, '_x'); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_names_are_listed_once() -> None:
    """The stub is the list; neither the module nor this file repeats it."""
    stub = Path(sl.__file__).with_suffix(".pyi").read_text()
    listed = set(re.findall(r"^from [\w.]+ import (\w+) as \1$", stub, re.MULTILINE))
    assert listed | set(POLICIES) == set(dir(sl))
    assert "Session" not in Path(sl.__file__).read_text()
