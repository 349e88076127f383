"""Benchmarks of games: python -m benchmarks.games [--runs N] [PART ...].

regret    policies on the named games to 10^6 rounds, and the exponent from 10^4 to 10^6
rates     largest regret over gaps that shrink with the horizon, and its growth
far       IDS and Stakes to 10^100 rounds over c* log n
noise     heteroscedastic noise: IDS that knows it, and IDS that does not
bound     c* beside cutting planes on random games
cost      a round with p numbers over a round of a bandit, in one run
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests import naive_games

import sightline as sl
from benchmarks.parts import Parts, run_parts
from benchmarks.stakes import Array, regrets
from sightline.core.clock import Clock
from sightline.core.model import Model, bandit_model
from sightline.jit import compiled
from sightline.policies.base import Choice, choose, register_policy, update

Game = sl.LinearGame | sl.LinearBandit

GAMES: dict[str, Game] = {
    "heteroscedastic": sl.problems.heteroscedastic(),
    "noise example": sl.problems.noise_example(),
    "dueling": sl.problems.dueling(),
    "localised dueling": sl.problems.localised_dueling(),
    "laser": sl.problems.laser(),
    "laser, indirect": sl.problems.laser(indirect=True),
    "ice cream": sl.problems.ice_cream(indirect=False),
    "ice cream, indirect": sl.problems.ice_cream(),
    "graph, star": sl.problems.graph_feedback(),
    "graph, cliques": sl.problems.graph_feedback("cliques"),
    "graph, loopless": sl.problems.graph_feedback("loopless"),
    "graph, cycle": sl.problems.graph_feedback("cycle"),
    "semi-bandit": sl.problems.semi_bandit(),
    "full information": sl.problems.full_information(),
    "transductive": sl.problems.transductive(),
    "label efficient": sl.problems.label_efficient(),
    "apple tasting": sl.problems.apple_tasting(),
    "dynamic pricing": sl.problems.dynamic_pricing(),
}
POLICIES: dict[str, sl.extend.Policy] = {
    "IDS": sl.IDS(gaps="difference"),
    "IDS, directed": sl.IDS("directed", gaps="difference"),
    "Stakes": sl.Stakes(),
    "GCB": sl.GCB(),
    "PEGE": sl.PEGE(),
    "MaximumInformation": sl.MaximumInformation(),
    "LinUCB": sl.LinUCB(),
    "Thompson": sl.ThompsonSampling(),
}


def _text(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _with_error(runs: Array) -> str:
    """Mean and standard error; that of runs which are the same up to rounding is 0."""
    mean, error = runs.mean(), runs.std(ddof=1) / math.sqrt(len(runs))
    return f"{_text(mean)} ± {_text(error if error > 1e-9 * abs(mean) else 0.0)}"


def regret(count: int) -> None:
    """Print mean regret of every policy on every game; those that commit come first, and fast."""
    marks = [10**3, 10**4, 10**6]
    print("| game | class | policy | 10^3 | 10^4 | 10^6 | exponent |\n" + "|---" * 7 + "|")
    kinds = {name: sl.observability(game).kind for name, game in GAMES.items()}
    cells: dict[tuple[str, str], list[str]] = {}
    for label, policy in POLICIES.items():
        for name, game in GAMES.items():
            try:
                found = regrets(game, policy, marks, range(count))
            except ValueError as error:
                print(f"| {name} | {kinds[name]} | {label} | {error} |", flush=True)
                continue
            mean = found.mean(axis=0)
            exponent = math.log(mean[2] / mean[1]) / math.log(100) if mean[1] > 0 else math.nan
            cells[name, label] = [*map(_with_error, found.T), f"{exponent:.2f}"]
            row = " | ".join(cells[name, label])
            print(f"| {name} | {kinds[name]} | {label} | {row} |", flush=True)
    for i, what in enumerate(("at 10^3", "at 10^4", "at 10^6", "exponent from 10^4 to 10^6")):
        head = f"| game | class | {' | '.join(POLICIES)} |\n|---|---{'|---:' * len(POLICIES)}|"
        print(f"\n{what}\n\n{head}")
        for name, kind in kinds.items():
            row = " | ".join(cells.get((name, label), [""] * 4)[i] for label in POLICIES)
            print(f"| {name} | {kind} | {row} |")


#: Games whose gaps are of a given size, and the power of the horizon at which they are hardest.
FAMILIES: dict[str, tuple[Callable[[float], Game], float]] = {
    "semi-bandit (local)": (lambda gap: sl.problems.semi_bandit(gap=gap), 1 / 2),
    "graph, cliques (local)": (lambda gap: sl.problems.graph_feedback("cliques", gap=gap), 1 / 2),
    "apple tasting (local)": (lambda gap: sl.problems.apple_tasting(-gap), 1 / 2),
    "label efficient (global)": (lambda gap: sl.problems.label_efficient(-gap), 1 / 3),
    "graph, star (global)": (
        lambda gap: sl.LinearGame(  # the centre pays as much less as ever
            np.eye(3), _star(), [0.0, gap, -0.5], name="star"
        ),
        1 / 3,
    ),
}


def _star() -> Array:
    observations = np.zeros((3, 3, 3))
    observations[2] = np.eye(3)
    return observations


def rates(count: int) -> None:
    """Print the largest mean regret over gaps c n^-a, for every horizon n."""
    horizons = [10**3, 10**4, 10**5, 10**6]
    sizes = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    print("| games | policy | 10^3 | 10^4 | 10^5 | 10^6 | exponent |\n" + "|---" * 7 + "|")
    for name, (make, power) in FAMILIES.items():
        for label in ("IDS", "IDS, directed", "Stakes", "LinUCB", "Thompson", "GCB", "PEGE"):
            worst = []
            for n in horizons:
                games = [make(size * n**-power) for size in sizes]
                means = [
                    regrets(game, POLICIES[label], [n], range(count))[:, 0].mean() for game in games
                ]
                worst.append(max(means))
            exponent = np.polyfit(np.log(horizons), np.log(worst), 1)[0]
            cells = " | ".join(map(_text, worst))
            print(f"| {name} | {label} | {cells} | {exponent:.2f} |", flush=True)


def far(count: int) -> None:
    """Print regret over c* log n."""
    marks = [10**6, 10**12, 10**100]
    print("| game | c* | policy | 10^6 | 10^12 | 10^100 | seconds per run |\n" + "|---" * 7 + "|")
    logs = np.array([math.log(t) for t in marks])
    for name in ("label efficient", "graph, star", "dueling", "localised dueling", "transductive"):
        bound = sl.lower_bound(GAMES[name]).value
        for label in ("IDS", "IDS, directed", "Stakes"):
            began = time.perf_counter()
            found = regrets(GAMES[name], POLICIES[label], marks, range(count))
            seconds = 2 * (time.perf_counter() - began) / count
            cells = " | ".join(f"{ratio:.2f}" for ratio in found.mean(axis=0) / (bound * logs))
            print(f"| {name} | {bound:.4g} | {label} | {cells} | {seconds:.1f} |", flush=True)


class ForgetfulState(NamedTuple):
    """IDS with rewards, whatever their noise."""

    inner: Any
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Forgetful(sl.extend.Policy):
    """IDS that takes the noise of every arm for the largest."""

    supports = sl.extend.Supports(noise_per_arm=True)

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead."""
        return True

    def start(self, model: Model) -> ForgetfulState:
        """State before any data."""
        plain = bandit_model(model.rewards, model.noise_std)
        return ForgetfulState(sl.IDS().start(plain), model.needs_weights("Forgetful"))


@compiled
def _choose(state: ForgetfulState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    return choose(state.inner, clock, offer, rng)


@compiled
def _update(state: ForgetfulState, clock: Clock, arm: int, outcome: Any) -> None:
    update(state.inner, clock, arm, outcome / state.weights[arm])


register_policy(ForgetfulState, choose=_choose, update=_update)


def noise(count: int) -> None:
    """Print regret with and without knowledge of the noise of each arm."""
    marks = [10**3, 10**4, 10**5]
    print("| game | policy | 10^3 | 10^4 | 10^5 |\n|---|---|---|---|---|")
    for name in ("heteroscedastic", "noise example"):
        for label, policy in (("IDS", sl.IDS()), ("IDS, one noise level", Forgetful())):
            found = regrets(GAMES[name], policy, marks, range(count))
            cells = " | ".join(map(_with_error, found.T))
            print(f"| {name} | {label} | {cells} |", flush=True)


def bound(count: int) -> None:
    """Print the largest difference of c* to cutting planes, over random games."""
    rng = np.random.default_rng(0)
    worst, gaps, seconds, infinite = 0.0, 0.0, [], 0
    for _ in range(count):
        game = naive_games.random_game(rng)
        began = time.perf_counter()
        found = sl.lower_bound(sl.LinearGame(*game))
        seconds.append(time.perf_counter() - began)
        lower, upper = naive_games.lower_bound(game)
        if math.isinf(upper):
            assert math.isinf(found.lower)
            infinite += 1
            continue
        gaps = max(gaps, found.gap)
        if upper > 0:
            worst = max(worst, abs(2.0 * found.value / (lower + upper) - 1.0))
    print(f"{count} games, {infinite} of infinite c*: largest relative difference {worst:.1e}")
    print(f"largest gap of a certificate {gaps:.1e}")
    print(f"median {np.median(seconds) * 1e3:.1f} ms, largest {max(seconds) * 1e3:.0f} ms")


def cost(count: int) -> None:
    """Print how long a round takes with p numbers, over a bandit with the same arms."""
    rng = np.random.default_rng(0)
    k, d = 18, 25
    actions, theta = rng.standard_normal((k, d)) / 5.0, rng.standard_normal(d) / 5.0
    bandit = sl.LinearBandit(actions, theta)
    one = sl.LinearGame(actions, rng.standard_normal((k, d)) / 5.0, theta)
    nine = sl.LinearGame(actions, rng.standard_normal((k, 9, d)) / 5.0, theta)
    print(f"k = {k}, d = {d}")
    for label in ("IDS", "IDS, directed", "LinUCB", "Thompson", "Stakes"):

        def seconds(game: Game, policy: sl.extend.Policy) -> float:
            began = time.process_time()  # which does not run while others have the processor
            run = sl.simulate(game, policy, 5_000, 0, [5_000])
            return (time.process_time() - began) / float(run.explorations[-1])

        policy = POLICIES[label]
        for game in (bandit, one, nine):
            seconds(game, policy)  # compiles
        times: Array = np.array(
            [[seconds(game, policy) for game in (bandit, one, nine)] for _ in range(count)]
        )
        first, second = np.median(times[:, 1:] / times[:, :1], axis=0)
        us = np.median(times[:, 0]) * 1e6
        print(f"{label}: bandit {us:.1f} us, p = 1 {first:.2f}, p = 9 {second:.2f}", flush=True)


PARTS: Parts = {
    "regret": (regret, 100),
    "rates": (rates, 20),
    "far": (far, 10),
    "noise": (noise, 100),
    "bound": (bound, 100),
    "cost": (cost, 15),
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
