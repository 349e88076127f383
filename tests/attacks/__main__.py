"""``python -m tests.attacks``: what becomes of every attack, counted by kind."""

from __future__ import annotations

import collections
import sys
import tempfile
from pathlib import Path

from tests.attacks.attack import judge
from tests.attacks.kinds import KINDS

OUTCOMES = ("sentence", "accepted", "no sentence", "traceback", "silent", "hang")


def main(chosen: list[str]) -> None:
    print(f"{'kind':22}" + "".join(f"{name:>12}" for name in ("inputs", *OUTCOMES)), flush=True)
    totals: collections.Counter[str] = collections.Counter()
    for kind, attacks in KINDS.items():
        if chosen and kind not in chosen:
            continue
        counts: collections.Counter[str] = collections.Counter(inputs=len(attacks))
        wrong = []
        for attack in attacks:
            with tempfile.TemporaryDirectory() as directory:
                verdict = judge(attack, Path(directory))
            counts[verdict.outcome] += 1
            if not verdict.as_expected:
                wrong.append(f"    {attack}: {verdict.outcome}: {verdict.detail[:160]!r}")
        totals.update(counts)
        print(f"{kind:22}" + "".join(f"{counts[name]:12}" for name in ("inputs", *OUTCOMES)))
        print("\n".join(wrong), flush=True)
    print(f"{'all':22}" + "".join(f"{totals[name]:12}" for name in ("inputs", *OUTCOMES)))


if __name__ == "__main__":
    main(sys.argv[1:])
