"""Every malformed input is refused with one sentence, before any work; those at the edge are not.

``python -m tests.attacks`` counts what becomes of them, by kind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.jit.numba_compat import is_disabled
from tests.attacks.attack import Attack, judge
from tests.attacks.kinds import KINDS

every_kind = pytest.mark.parametrize("kind", KINDS)


def successes(attacks: list[Attack], directory: Path) -> list[str]:
    """Attacks of which something else became than expected."""
    found = []
    for number, attack in enumerate(attacks):
        if attack.kernels and not is_disabled():
            continue  # kernels would be compiled for this alone: in the run without compilation
        place = directory / str(number)
        place.mkdir()
        verdict = judge(attack, place)
        if not verdict.as_expected:
            found.append(f"{attack}: {verdict.outcome}: {verdict.detail}")
    return found


@every_kind
def test_attacks_come_to_nothing(kind: str, tmp_path: Path) -> None:
    assert successes(KINDS[kind], tmp_path) == []


@every_kind
def test_there_are_many_of_every_kind(kind: str) -> None:
    names = [attack.name for attack in KINDS[kind]]
    assert len(set(names)) == len(names) >= 50
