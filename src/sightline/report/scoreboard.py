"""Scoreboard: the regret of policies over that of the best one, on many problems.

| symbol                                              | here                  |
|-----------------------------------------------------|-----------------------|
| R(p, n, i), mean regret of policy i on problem p    | ``Record.means``      |
| r(p, n, i) = R(p, n, i) / min R(p, n, j)            | ``Scoreboard.ratios`` |
| score of i: geometric mean of r over problems and n | ``geometric_mean``    |

The minimum is over the yardsticks, a fixed list of policies.  Rounds n are 10^2, 10^3, ... to the
horizon.  Ratios grow with n for most policies, so a score is a mean over those n that all policies
have (``Scoreboard.common``): neither a shorter nor a longer run is an advantage.  All policies play
replication j with the same seed.  The results of the yardsticks on the standard problems are
recorded in ``scoreboard.json`` beside this file, which ``python -m benchmarks.scoreboard`` writes.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.experiments.experiment import Experiment
from sightline.policies.base import Policy
from sightline.policies.bayesian_ids import BayesianIDS
from sightline.policies.catalogue import describe
from sightline.policies.thompson import ThompsonSampling
from sightline.problems.bandits import LinearBandit
from sightline.problems.instances import drawn_suite, standard_suite
from sightline.report.run import run
from sightline.report.statistics import mean_and_error
from sightline.report.style import new_figure, saved
from sightline.validation import file_path, integer

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
_FIRST = 10**2
RECORDS = Path(__file__).with_suffix(".json")
#: Yardsticks on problems without records: the best policies of the library except Stakes.
YARDSTICKS: Mapping[str, Policy] = {
    "ThompsonSampling": ThompsonSampling(),
    "BayesianIDS": BayesianIDS(),
}
_LONGEST_DRAWN = 10**5


@dataclass(frozen=True)
class Record:
    """One policy on all problems."""

    policy: dict[str, Any]  # its configuration, as plain data
    replications: int  # runs on each problem
    rounds: list[int]  # when regret was recorded
    # By problem: mean regret at these rounds, and the standard error of its logarithm.
    means: dict[str, list[float]]
    errors: dict[str, list[float]]
    # By problem: regret of replication 0, from which a test sees whether the record is stale.
    first: dict[str, list[float]]


def _rounds(horizon: int) -> list[int]:
    marks = [_FIRST]
    while marks[-1] * 10 <= horizon:
        marks.append(marks[-1] * 10)
    return marks


def measured(
    problems: Mapping[str, LinearBandit],
    policies: Mapping[str, Policy],
    horizon: int,
    replications: int,
    store: str | PathLike[str] | None = None,
    executor: Executor | None = None,
) -> dict[str, Record]:
    """Run policies on problems, or what the store does not hold, and sum up.

    Each experiment has a directory of its own in the store; an interrupted run goes on from there.
    Seeds are those of ``seed=0``.
    """
    marks = _rounds(integer("horizon", horizon, at_least=_FIRST))
    replications = integer("replications", replications, at_least=2)
    experiment = Experiment(problems, policies, marks[-1], replications, checkpoints=marks)
    place = None if store is None else file_path("store", store) / experiment.digest
    results = run(experiment, place, executor)

    def relative(runs: Array) -> list[float]:
        mean, error = mean_and_error(runs)
        return list((error / np.maximum(mean, 1e-300)).tolist())

    records = {}
    for label, policy in policies.items():
        regret = {name: results.regret(name, label) for name in problems}
        records[label] = Record(
            policy=describe(policy),
            replications=replications,
            rounds=marks,
            means={name: runs.mean(axis=0).tolist() for name, runs in regret.items()},
            errors={name: relative(runs) for name, runs in regret.items()},
            first={name: runs[0].tolist() for name, runs in regret.items()},
        )
    return records


def _power(t: int) -> str:
    return f"10^{len(str(t)) - 1}"


def _plain(value: Any) -> Any:
    """Return a value for JSON, which has no nan and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def recorded() -> dict[str, Record]:
    """Policies of the library on the standard problems, as they were measured."""
    content = json.loads(RECORDS.read_text(encoding="utf-8"))
    return {label: Record(**fields) for label, fields in content.items()}


class Scoreboard:
    """Policies ranked by their regret over that of the best yardstick.

    Parameters
    ----------
    records : mapping of label to Record
        All policies, on the same problems.
    yardsticks : iterable of str
        Labels of those that make the minimum.

    Attributes
    ----------
    problems : list of str
        Names of the problems.
    rounds : list of int
        All n that any policy has.
    common : list of int
        Those n that all policies have: the ranking is by these.
    """

    def __init__(self, records: Mapping[str, Record], yardsticks: list[str]) -> None:
        self.records = dict(records)
        self.yardsticks = yardsticks
        rounds = [set(record.rounds) for record in records.values()]
        self.rounds = sorted(set.union(*rounds))
        self.common = sorted(set.intersection(*rounds))
        if not self.common:
            raise ValueError("policies on one scoreboard must have a round n in common")
        self.problems = list(next(iter(records.values())).means)

    @functools.cached_property
    def best(self) -> dict[str, dict[int, tuple[float, str]]]:
        """Least mean regret of all yardsticks, and whose it is: by problem and round."""
        best: dict[str, dict[int, tuple[float, str]]] = {name: {} for name in self.problems}
        for label in self.yardsticks:
            record = self.records[label]
            for problem, found in best.items():
                for t, mean in zip(record.rounds, record.means[problem], strict=True):
                    found[t] = min(found.get(t, (math.inf, "")), (mean, label))
        return best

    def ratios(self, label: str) -> Array:
        """Compute r of one policy, shape (problems, rounds); nan where it was not run."""
        record, best = self.records[label], self.best
        ratios = np.full((len(self.problems), len(self.rounds)), np.nan)
        for i, problem in enumerate(self.problems):
            for t, mean in zip(record.rounds, record.means[problem], strict=True):
                least, _ = best[problem].get(t, (math.nan, ""))
                # where no policy loses anything, all are equal
                ratio = mean / least if least else math.inf if mean else 1.0
                ratios[i, self.rounds.index(t)] = ratio
        return ratios

    @property
    def table(self) -> pd.DataFrame:
        """One row per policy, the best first.

        ``geometric_mean``, its ``standard_error`` and ``worst`` are over all problems and the n
        that all policies have (``common``).  The columns ``10^2``, ``10^3``, ... are over all
        problems at one n, nan where a policy was not run.
        """
        import pandas as pd

        shared = [self.rounds.index(t) for t in self.common]
        rows = []
        for label, record in self.records.items():
            ratios = self.ratios(label)
            with np.errstate(divide="ignore"):
                logs = np.log(ratios)
            mean = math.exp(float(logs[:, shared].mean()))
            by_round = {_power(t): math.exp(logs[:, i].mean()) for i, t in enumerate(self.rounds)}
            rows.append(
                {
                    "policy": label,
                    "geometric_mean": mean,
                    "standard_error": mean * self._spread(record),
                    "worst": float(ratios[:, shared].max()),
                    **by_round,
                    "replications": record.replications,
                }
            )
        return pd.DataFrame(rows).sort_values("geometric_mean", ignore_index=True)

    def _spread(self, record: Record) -> float:
        """Compute the standard error of the logarithm of a score.

        The regrets of one problem at different rounds come from the same runs.  They are taken as
        fully correlated, which overstates the error by a fifth or so.
        """
        shared = [record.rounds.index(t) for t in self.common]
        errors = [np.mean(np.array(record.errors[name])[shared]) for name in self.problems]
        return float(np.sqrt(np.square(errors).sum())) / len(errors)

    @property
    def scope(self) -> str:
        """Rounds by which policies are ranked, and those that are shown only, in a sentence."""
        left_out = [_power(t) for t in self.rounds if t not in self.common]
        scope = f"ranked by n = {', '.join(map(_power, self.common))}, which all policies have"
        return f"{scope}; {', '.join(left_out)} is shown only" if left_out else scope

    def to_json(self) -> str:
        """Table and all ratios as text."""
        table = [
            {name: _plain(value) for name, value in row.items()}
            for row in self.table.to_dict("records")
        ]
        ratios = {
            label: {
                problem: {str(t): _plain(value) for t, value in zip(self.rounds, row, strict=True)}
                for problem, row in zip(self.problems, self.ratios(label).tolist(), strict=True)
            }
            for label in self.records
        }
        content = {"yardsticks": self.yardsticks, "ranked_by": self.common, "table": table}
        return json.dumps(content | {"ratios": ratios}, allow_nan=False, indent=1)

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the ratio to the best at every n: geometric mean over problems, and the worst.

        Parameters
        ----------
        path : path, optional
            File to write; its suffix decides the format.
        """
        figure = new_figure(11, 5.2)
        left, right = figure.subplots(1, 2, sharey=True)
        for i, label in enumerate(self.table["policy"]):
            ratios = self.ratios(label)
            style = ("-", "--", ":")[i // 10 % 3]
            means = np.exp(np.log(np.maximum(ratios, 1e-300)).mean(axis=0))
            left.plot(self.rounds, means, style, marker="o", markersize=3, label=label)
            right.plot(self.rounds, ratios.max(axis=0), style, marker="o", markersize=3)
        for axes, title in ((left, "geometric mean over problems"), (right, "worst problem")):
            axes.axhline(1.0, color="k", linewidth=0.8)
            axes.set(xscale="log", yscale="log", xlabel="rounds n", title=title)
        left.set_ylabel("mean regret over that of the best yardstick")
        figure.legend(loc="outside right center", fontsize="small")
        return saved(figure, path)


def scoreboard(
    policies: Mapping[str, Policy] | None = None,
    seed: int | None = None,
    *,
    horizon: int = 10**5,
    replications: int = 100,
    store: str | PathLike[str] | None = None,
    executor: Executor | None = None,
) -> Scoreboard:
    """Place policies on the scoreboard.

    All policies are ranked by those n that all of them have: one that is run to 10^4 shortens the
    ranking of all to 10^4.

    Parameters
    ----------
    policies : mapping of label to Policy, optional
        Policies to run.  On the standard problems those of the library are on the board already.
    seed : int, optional
        Rank on problems drawn from this seed, where yardsticks are run as well, to 10^5 rounds at
        most; by default on the standard problems.
    horizon : int
        Rounds, a power of ten.
    replications : int
        Runs per policy and problem.
    store : path, optional
        Where results are kept; an interrupted run goes on from there.
    executor : concurrent.futures.Executor, optional
        As in :func:`sightline.run`.
    """
    own = dict(policies or {})
    settings: dict[str, Any] = {"store": store, "executor": executor}
    if seed is None:
        known = recorded()
        yardsticks = [label for label in known if not label.startswith("Stakes")]
        for label in own:
            if label in known:
                raise ValueError(f"{label!r} is on the board already: give yours another label")
        new = measured(standard_suite(), own, horizon, replications, **settings) if own else {}
        return Scoreboard({**known, **new}, yardsticks)
    for label in own:
        if label in YARDSTICKS:
            raise ValueError(f"{label!r} is a yardstick: give yours another label")
    if horizon > _LONGEST_DRAWN:
        raise ValueError(
            f"horizon must be at most 10^5 on drawn problems, where yardsticks are run that take "
            f"every round, got {horizon}"
        )
    together = {**YARDSTICKS, **own}
    records = measured(drawn_suite(seed), together, horizon, replications, **settings)
    return Scoreboard(records, list(YARDSTICKS))
