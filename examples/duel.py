"""Which is better, A or B?  Find the best answer of a help page from comparisons of two answers.

An answer has a tone and a length: six answers from five effects, so a comparison of two tells
something about the others.  Ratings are not observed, only the winner of each comparison.
"""

import numpy as np

import sightline as sl

ANSWERS = sl.factorial({"tone": ["plain", "warm", "formal"], "length": ["short", "long"]})

# The true values of the answers, which the session does not know.
WORLD = np.random.default_rng(5)
VALUES = dict(zip(ANSWERS.names, [0.15, 0.05, 0.4, 0.3, -0.25, -0.35], strict=True))


def prefers_first(first: str, second: str) -> bool:
    return WORLD.random() < 0.5 * (1.0 + VALUES[first] - VALUES[second])


def main(rounds: int = 3000) -> None:
    # Session.open(path, ...) in place of Session(...) keeps a journal, which survives crashes
    session = sl.Session(sl.duel(ANSWERS))
    bad = 0
    for _ in range(rounds):
        decision = session.ask()
        assert decision.pair is not None
        first, second = decision.pair  # show both, in any order, and ask which is better
        if first == second:  # one answer alone: there is nothing to learn
            session.tell(decision, first)
            continue
        session.tell(decision, first if prefers_first(first, second) else second)
        bad += min(VALUES[first], VALUES[second]) < 0.0
    status, estimates = session.status(), session.estimates()
    assert estimates is not None  # some policies keep none
    print(f"best answer: {status.best}")
    print(status.at_stake(10_000))
    print(f"a bad answer was shown in {bad} of {rounds} rounds")
    rows = zip(estimates.names, estimates.means, estimates.standard_errors, strict=True)
    for name, mean, error in rows:
        print(f"{name:28} beats the best with probability {0.5 + mean / 2:.2f} ± {error / 2:.2f}")
    print(session.effects().to_string(index=False))


if __name__ == "__main__":
    main()
