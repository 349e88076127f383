"""A recommendation with user features: which article to show depends on the visitor.

Visitors belong to four segments, described by two numbers each.  An article has a base rate, and
an effect for each of the two numbers: nine numbers for twelve combinations of segment and article,
so a click in one segment tells something about the others.
"""

import numpy as np

import sightline as sl

SEGMENTS = {  # loyal or new, on a desktop or on a mobile device
    "loyal, desktop": [1.0, 1.0],
    "loyal, mobile": [1.0, -1.0],
    "new, desktop": [-1.0, 1.0],
    "new, mobile": [-1.0, -1.0],
}
ARTICLES = {"news": [1, 0, 0], "sports": [0, 1, 0], "offers": [0, 0, 1]}
OPTIONS = sl.contexts(
    {
        segment: {article: np.kron(which, [1.0, *user]) for article, which in ARTICLES.items()}
        for segment, user in SEGMENTS.items()
    },
    columns=[f"{article}{of}" for article in ARTICLES for of in ("", " x loyal", " x desktop")],
)

# The true rates, which the session does not know: base rate, then effects of loyal and desktop.
WORLD = np.random.default_rng(3)
RATES = OPTIONS.features @ [0.45, 0.2, 0.05, 0.4, -0.05, 0.15, 0.45, -0.25, -0.15]
SHARES = [0.4, 0.2, 0.15, 0.25]  # of the segments


def main(visitors: int = 4000) -> None:
    # Session.open(path, ...) in place of Session(...) keeps a journal, which survives crashes
    session = sl.Session(OPTIONS, sl.IDS(), noise_std=0.5)  # rewards are in [0, 1]
    clicks, best = 0.0, 0.0
    for segment in WORLD.choice(list(SEGMENTS), size=visitors, p=SHARES).tolist():
        decision = session.ask(context=segment)  # decision.option is the article to show
        click = float(WORLD.random() < RATES[decision.arm])
        session.tell(decision, click)
        clicks += click
        best += max(RATES[OPTIONS.index(article, segment)] for article in ARTICLES)
    status = session.status()
    for segment, article in status.bests.items():
        print(f"{segment}: {article}")
    print(
        f"all settled: {status.settled}, evidence {status.evidence:.2f} of {status.threshold:.2f}"
    )
    print(f"{clicks:.0f} clicks; always the best article: {best:.0f} on average")
    print(session.effects().to_string(index=False))


if __name__ == "__main__":
    main()
