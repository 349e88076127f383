"""One library on one stream: python streams_worker.py LIBRARY INPUT.npz OUTPUT.json [--seconds S].

Executed by the interpreter of a throwaway environment, so it needs NumPy and that library only.
``benchmarks.streams`` writes the input, starts this script and reads what it wrote.

Every adapter says which model it has:

- ``shared``: one parameter for all arms, and a new row of features for every arm in every round.
- ``disjoint``: a parameter for every arm, and one context per round that all arms share.  The arms
  are the same in every round.  This is a shared model whose rows are the context in the block of
  the arm, so that on a classification stream the two are one model.  Where rows are arbitrary a
  disjoint model cannot express the problem: only its time says something there.

Regularisation is 1 and widths are half a standard deviation wherever a library lets one say so.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import random
import statistics
import sys
import time
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTH = 0.5
WARM_UP = 100


class Size(NamedTuple):
    """What an adapter is told before the first round; ``d`` is that of a row or of a context."""

    k: int
    d: int
    seed: int


class Learner:
    """What is measured: ``features`` are the rows, or the context where the model is disjoint."""

    def ask(self, features: Array) -> int:
        """Choose an arm."""
        raise NotImplementedError

    def tell(self, arm: int, reward: float) -> None:
        """Learn what the arm chosen last has paid."""
        raise NotImplementedError


class Entry(NamedTuple):
    """One policy of a library."""

    label: str
    model: str  # shared or disjoint
    make: Callable[[Size], Learner]
    only: str = ""  # speed or digits: where the other model of a library says the same for less


class VowpalWabbit(Learner):
    """cb_explore_adf: a shared linear model over action-dependent features, learned by SGD.

    It expresses streams as they are.  It answers with probabilities, from which we draw.  Examples
    are built from dictionaries and used for both prediction and learning: of the ways to hand it
    numbers from Python (text, parsed text, dictionaries, pushed features) the fastest.
    """

    def __init__(self, size: Size, options: str) -> None:
        package = importlib.import_module("vowpalwabbit")
        arguments = f"--cb_explore_adf {options} --random_seed {size.seed} --quiet"
        self.workspace = package.Workspace(arguments)
        self.rng = random.Random(size.seed)
        self.names = list(range(size.d))
        self.examples: list[Any] = []
        self.probability = 1.0

    def ask(self, features: Array) -> int:
        self.examples = []
        for row in features:
            used = np.flatnonzero(row)  # zeros need not be said
            names = self.names if used.size == row.size else used.tolist()
            values = row.tolist() if used.size == row.size else row[used].tolist()
            example = self.workspace.example({"a": list(zip(names, values, strict=True))})
            example.setup_example()
            self.examples.append(example)
        # RegCB gives arms that tie 1 each
        cumulative = list(accumulate(self.workspace.predict(self.examples)))
        arm = min(bisect(cumulative, self.rng.random() * cumulative[-1]), len(cumulative) - 1)
        before = cumulative[arm - 1] if arm else 0.0
        self.probability = (cumulative[arm] - before) / cumulative[-1]
        return arm

    def tell(self, arm: int, reward: float) -> None:
        self.examples[arm].set_label_string(f"0:{-reward}:{self.probability}")
        self.workspace.learn(self.examples)
        self.workspace.finish_example(self.examples)


class ContextualBandits(Learner):
    """One regression per arm on a shared context.  It has no features of arms."""

    def __init__(self, size: Size, policy: str, **options: Any) -> None:
        online = importlib.import_module("contextualbandits.online")
        self.policy = getattr(online, policy)(
            nchoices=size.k, fit_intercept=False, random_state=size.seed, **options
        )
        self.context = np.zeros((1, size.d))

    def ask(self, features: Array) -> int:
        self.context = features[None]
        return int(self.policy.predict(self.context)[0])

    def tell(self, arm: int, reward: float) -> None:
        self.policy.partial_fit(self.context, np.array([arm]), np.array([reward]))


class MABWiser(Learner):
    """One ridge regression per arm on a shared context.

    Features of arms serve warm starts only.  The first round is at random, as nothing can be
    predicted before a fit.
    """

    def __init__(self, size: Size, policy: str) -> None:
        mab = importlib.import_module("mabwiser.mab")
        self.first = random.Random(size.seed).randrange(size.k)
        self.fitted = False
        self.context = np.zeros((1, size.d))
        self.bandit = mab.MAB(
            arms=list(range(size.k)),
            learning_policy=getattr(mab.LearningPolicy, policy)(alpha=WIDTH, l2_lambda=1.0),
            seed=size.seed,
        )

    def ask(self, features: Array) -> int:
        self.context = features[None]
        return int(self.bandit.predict(self.context)) if self.fitted else self.first

    def tell(self, arm: int, reward: float) -> None:
        learn = self.bandit.partial_fit if self.fitted else self.bandit.fit
        learn(decisions=[arm], rewards=[reward], contexts=self.context)
        self.fitted = True


class RiverDisjoint(Learner):
    """LinUCBDisjoint: one Bayesian regression per arm on a shared context, a dictionary.

    The bound is the mean and one predictive standard deviation, noise included, at alpha = 1 and
    beta = 1; it has no width to set, and alpha other than 1 starts it from a precision and a
    covariance that are not inverses of each other.
    """

    def __init__(self, size: Size) -> None:
        bandit = importlib.import_module("river.bandit")
        self.policy = bandit.LinUCBDisjoint(seed=size.seed)
        self.arms = list(range(size.k))
        self.context: dict[int, float] = {}

    def ask(self, features: Array) -> int:
        self.context = dict(enumerate(features.tolist()))
        return int(self.policy.pull(self.arms, context=self.context))

    def tell(self, arm: int, reward: float) -> None:
        self.policy.update(arm, self.context, reward)


class RiverShared(Learner):
    """River has no policy with a shared model: its regression, with LinUCB put together by us."""

    def __init__(self, size: Size) -> None:
        linear_model = importlib.import_module("river.linear_model")
        self.regression = linear_model.BayesianLinearRegression()
        self.rows: list[dict[int, float]] = []

    def ask(self, features: Array) -> int:
        self.rows = [dict(enumerate(row)) for row in features.tolist()]
        bounds = []
        for row in self.rows:
            law = self.regression.predict_one(row, with_dist=True)
            # one would be noise of the reward, which is no reason to explore
            bounds.append(law.mu + WIDTH * max(law.sigma**2 - 1.0, 0.0) ** 0.5)
        return max(range(len(bounds)), key=bounds.__getitem__)

    def tell(self, arm: int, reward: float) -> None:
        self.regression.learn_one(self.rows[arm], reward)


class BayesianBanditsDisjoint(Learner):
    """ContextualAgent: one conjugate regression per arm on a shared context."""

    def __init__(self, size: Size, policy: str) -> None:
        package = importlib.import_module("bayesianbandits")
        precision = 1.0 / WIDTH**2  # of noise and prior: regularisation 1
        self.agent = package.ContextualAgent(
            [
                package.Arm(arm, learner=package.NormalRegressor(alpha=precision, beta=precision))
                for arm in range(size.k)
            ],
            getattr(package, policy)(),
            random_seed=size.seed,
        )
        self.context = np.zeros((1, size.d))

    def ask(self, features: Array) -> int:
        self.context = features[None]
        return int(self.agent.pull(self.context)[0])

    def tell(self, arm: int, reward: float) -> None:
        self.agent.select_for_update(arm).update(self.context, np.array([reward]))


class BayesianBanditsShared(Learner):
    """LipschitzContextualAgent: one regression, on features made of the context and the arm.

    Made for arms that stay.  New rows get in as one long context, of which the featuriser of an arm
    takes its part; the number of arms is fixed.
    """

    def __init__(self, size: Size, policy: str) -> None:
        package = importlib.import_module("bayesianbandits")

        class Rows(package.ArmFeaturizer):  # type: ignore[misc, name-defined]
            def transform(self, X: Any, *, action_tokens: Sequence[int]) -> Array:
                rows: Array = X.reshape(size.k, size.d)
                return rows if len(action_tokens) == size.k else rows[list(action_tokens)]

        precision = 1.0 / WIDTH**2
        self.agent = package.LipschitzContextualAgent(
            [package.Arm(arm, learner=None) for arm in range(size.k)],
            getattr(package, policy)(),
            Rows(),
            package.NormalRegressor(alpha=precision, beta=precision),
            random_seed=size.seed,
        )
        self.context = np.zeros((1, size.k * size.d))

    def ask(self, features: Array) -> int:
        self.context = features.reshape(1, -1)
        return int(self.agent.pull(self.context)[0])

    def tell(self, arm: int, reward: float) -> None:
        self.agent.select_for_update(arm).update(self.context, np.array([reward]))


class PlainNumPy(Learner):
    """LinUCB in a few lines of NumPy: what one has without any library."""

    def __init__(self, size: Size) -> None:
        self.inverse = np.eye(size.d)
        self.target = np.zeros(size.d)
        self.theta = np.zeros(size.d)
        self.rows = np.zeros((size.k, size.d))

    def ask(self, features: Array) -> int:
        self.rows = features
        widths = np.sqrt(((features @ self.inverse) * features).sum(axis=1))
        return int((features @ self.theta + WIDTH * widths).argmax())

    def tell(self, arm: int, reward: float) -> None:
        row = self.rows[arm]
        w = self.inverse @ row
        self.inverse -= np.outer(w, w) / (1.0 + row @ w)
        self.target += reward * row
        self.theta = self.inverse @ self.target


def _vw(options: str) -> Callable[[Size], Learner]:
    return lambda size: VowpalWabbit(size, options)


def _contextual(policy: str, **options: Any) -> Callable[[Size], Learner]:
    return lambda size: ContextualBandits(size, policy, **options)


def _wiser(policy: str) -> Callable[[Size], Learner]:
    return lambda size: MABWiser(size, policy)


def _bayesian(learner: Callable[[Size, str], Learner], policy: str) -> Callable[[Size], Learner]:
    return lambda size: learner(size, policy)


LIBRARIES: dict[str, list[Entry]] = {
    "vowpalwabbit": [
        Entry("epsilon-greedy, 0.05", "shared", _vw("--epsilon 0.05")),
        Entry("SquareCB", "shared", _vw("--squarecb")),
        Entry("RegCB, optimistic", "shared", _vw("--regcbopt --cb_min_cost -1 --cb_max_cost 0")),
    ],
    "contextualbandits": [
        Entry("LinUCB", "disjoint", _contextual("LinUCB", alpha=WIDTH)),
        Entry("LinTS", "disjoint", _contextual("LinTS", v_sq=WIDTH**2)),
        # the default samples coefficients, which on the digits did no better than chance
        Entry(
            'LinTS, sample_from="ci"',
            "disjoint",
            _contextual("LinTS", v_sq=WIDTH**2, sample_from="ci", beta_prior="auto"),
        ),
    ],
    "mabwiser": [
        Entry("LinUCB", "disjoint", _wiser("LinUCB")),
        Entry("LinTS", "disjoint", _wiser("LinTS")),
    ],
    "river": [
        Entry("LinUCBDisjoint", "disjoint", RiverDisjoint),
        Entry("BayesianLinearRegression, LinUCB by us", "shared", RiverShared),
    ],
    "bayesianbandits": [
        Entry(policy, model, _bayesian(learner, policy), only)
        for model, learner, only in (
            ("shared", BayesianBanditsShared, "speed"),
            ("disjoint", BayesianBanditsDisjoint, "digits"),
        )
        for policy in ("ThompsonSampling", "UpperConfidenceBound", "InformationDirectedSampling")
    ],
    "numpy": [Entry("LinUCB, a few lines", "shared", PlainNumPy)],
}


class Answer(NamedTuple):
    """What one policy did: medians in seconds, and rewards by order."""

    label: str
    model: str
    rounds: int
    ask: float
    tell: float
    both: float
    rewards: list[list[float]]


def _answer(entry: Entry, times: list[tuple[float, float]], rewards: list[list[float]]) -> Answer:
    asking, telling = zip(*times, strict=True)
    return Answer(
        entry.label,
        entry.model,
        len(times),
        statistics.median(asking),
        statistics.median(telling),
        statistics.median(a + b for a, b in times),
        rewards,
    )


def time_rounds(entry: Entry, actions: Array, rewards: Array, seconds: float) -> Answer:
    """Time rounds after a warm-up, until they or the seconds are used up.

    In time of the processor: on busy cores long rounds are interrupted and short ones are not.
    """
    n, k, d = actions.shape
    learner = entry.make(Size(k, d, 1))
    features = actions if entry.model == "shared" else actions[:, 0]
    times: list[tuple[float, float]] = []
    start = time.perf_counter()
    for t in range(n):
        began = time.process_time()
        arm = learner.ask(features[t])
        asked = time.process_time()
        learner.tell(arm, float(rewards[t, arm]))
        times.append((asked - began, time.process_time() - asked))
        if time.perf_counter() - start > seconds:  # slow ones are warm after fewer rounds
            break
    return _answer(entry, times[min(WARM_UP, len(times) // 2) :], [])


def classify(entry: Entry, contexts: Array, labels: Ints, orders: Ints, seconds: float) -> Answer:
    """Collect rewards on a classification stream, order by order while there is time."""
    k, p, rounds = int(labels.max()) + 1, contexts.shape[1], orders.shape[1]
    marks = [rounds // 8, rounds // 4, rounds // 2, rounds]
    rows = np.zeros((k, k * p))
    shared = entry.model == "shared"
    times: list[tuple[float, float]] = []
    collected: list[list[float]] = []
    start = time.perf_counter()
    for seed, order in enumerate(orders, 1):  # some refuse the seed 0
        learner = entry.make(Size(k, k * p if shared else p, seed))
        total, at_marks = 0.0, []
        for t, i in enumerate(order, 1):
            if shared:
                for arm in range(k):
                    rows[arm, arm * p : (arm + 1) * p] = contexts[i]
            features = rows if shared else contexts[i]
            began = time.process_time()
            arm = learner.ask(features)
            asked = time.process_time()
            reward = float(arm == labels[i])
            learner.tell(arm, reward)
            times.append((asked - began, time.process_time() - asked))
            total += reward
            if t in marks:
                at_marks.append(total)
        collected.append(at_marks)
        if time.perf_counter() - start > seconds:
            break
    return _answer(entry, times, collected)


def run(entries: Sequence[Entry], source: Path, seconds: float) -> list[Any]:
    """Let every policy loose on the stream of a file; an error is an answer too."""
    answers: list[Any] = []
    with np.load(source) as data:
        stream = dict(data)
    protocol = "speed" if "actions" in stream else "digits"
    for entry in entries:
        if entry.only not in ("", protocol):
            continue
        try:
            if protocol == "speed":
                answer = time_rounds(entry, stream["actions"], stream["rewards"], seconds)
            else:
                images = stream["contexts"], stream["labels"], stream["orders"]
                answer = classify(entry, *images, seconds)
            answers.append(answer._asdict())
        except Exception as error:
            answers.append({"label": entry.label, "model": entry.model, "error": repr(error)[:200]})
    return answers


def write_digits(target: Path) -> None:
    """Write the digits of scikit-learn, 1797 images of 64 pixels."""
    digits = importlib.import_module("sklearn.datasets").load_digits()
    np.savez(target, pixels=digits.data, labels=digits.target)


def main() -> None:
    """Run one library, or write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=[*LIBRARIES, "digits"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    if arguments.library == "digits":
        write_digits(arguments.source)
        return
    found = {
        "version": importlib.metadata.version(arguments.library),
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "answers": run(LIBRARIES[arguments.library], arguments.source, arguments.seconds),
    }
    arguments.target.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
