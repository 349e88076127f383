"""Cost of a session: python -m benchmarks.live [FOLDER].

Six options in two dimensions, and options that are new in every round (``python -m benchmarks.live
streams`` measures these only, ``... probabilities`` what it costs to record the probabilities of
all options).  Times are medians over many calls, and the least of several such
medians, because other work on the machine can only add.  Journals are kept in FOLDER, by default
a temporary one: a call with a journal costs as much as one fsync there.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.bench import in_units, machine
from sightline.sessions import state
from sightline.sessions.journal import Journal, replay
from sightline.sessions.snapshot import read_snapshot

PROBLEM = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
MANY = sl.problems.unit_sphere(k=100, d=5, noise_variance=0.1, seed=3)
POLICIES: dict[str, sl.extend.Policy] = {
    "LinUCB": sl.LinUCB(),
    "IDS": sl.IDS(),
    "ThompsonSampling": sl.ThompsonSampling(),
    "BayesianIDS": sl.BayesianIDS(samples=200),
    "Stakes": sl.Stakes(),
}
STREAM_POLICIES: dict[str, sl.extend.Policy] = {
    "LinUCB": sl.LinUCB(),
    "ThompsonSampling": sl.ThompsonSampling(),
    "IDS, conditional": sl.IDS(contexts="conditional"),
}
#: Policies that draw, and LinUCB, which does not.
RECORDED: dict[str, sl.extend.Policy] = {
    **{name: POLICIES[name] for name in ("LinUCB", "IDS", "ThompsonSampling", "Stakes")},
    "LinMED": sl.LinMED(),
}
BATCH = 100
EVENTS = 100_000
OPEN = 100_000
CALLS, BLOCKS = 100, 31  # decisions of a block, and blocks


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def single(session: sl.Session, calls: int) -> tuple[float, float]:
    """Median seconds per ask and per tell."""
    asking, telling = [], []
    for _ in range(calls):
        began = time.perf_counter()
        decision = session.ask()
        asked = time.perf_counter()
        session.tell(decision, 0.1)
        telling.append(time.perf_counter() - asked)
        asking.append(asked - began)
    return statistics.median(asking), statistics.median(telling)


def batches(session: sl.Session, calls: int) -> tuple[float, float]:
    """Median seconds per batch of ask and tell."""
    asking, telling = [], []
    for _ in range(calls):
        began = time.perf_counter()
        decisions = session.ask(count=BATCH)
        asked = time.perf_counter()
        session.tell_many([(one, 0.1) for one in decisions])
        telling.append(time.perf_counter() - asked)
        asking.append(asked - began)
    return statistics.median(asking), statistics.median(telling)


def _least(medians: list[tuple[float, float]]) -> tuple[float, float]:
    first, second = zip(*medians, strict=True)
    return min(first), min(second)


def calls(folder: Path) -> None:
    """Print what calls cost, with and without a journal."""
    print(f"{'':28}{'ask':>12}{'tell':>12}{f'ask({BATCH})':>12}{f'tell {BATCH}':>12}")
    for name, policy in POLICIES.items():
        for journal in (False, True):
            arguments = (PROBLEM.actions, policy, 0.3)
            session = (
                sl.Session.open(folder / f"{name}.db", *arguments)
                if journal
                else sl.Session(*arguments)
            )
            session.tell_many([(one, 0.1) for one in session.ask(count=BATCH)])  # compiles
            session.tell(session.ask(), 0.1)
            times = (
                *_least([single(session, 1000) for _ in range(7)]),
                *_least([batches(session, 15) for _ in range(5)]),
            )
            session.close()
            label = f"{name}{', journal' if journal else ''}"
            print(f"{label:<28}" + "".join(f"{in_units(one):>12}" for one in times), flush=True)


def _leave(session: sl.Session) -> None:
    """Leave as a killed process does."""
    assert session._live.journal is not None
    session._live.journal.close()


def journals(folder: Path) -> None:
    """Print how large a journal is, and how long it takes to open it."""
    path = folder / "journal.db"
    every, state.SNAPSHOT_EVERY = state.SNAPSHOT_EVERY, 10**9
    session = sl.Session.open(path, PROBLEM.actions, sl.IDS(), 0.3)
    began = time.perf_counter()
    for _ in range(EVENTS // (2 * BATCH)):
        session.tell_many([(one, 0.1) for one in session.ask(count=BATCH)])
    print(f"{EVENTS} events in batches of {BATCH}: {in_units(time.perf_counter() - began)}")
    _leave(session)
    replayed = _seconds(lambda: _leave(sl.Session.open(path)))
    print(f"opening, all {EVENTS} events replayed: {in_units(replayed)}")
    megabytes = sum(one.stat().st_size for one in folder.glob("journal.db*")) / 1e6
    print(f"size per 10^6 events: {megabytes * 1e6 / EVENTS:.0f} MB")
    reopened = min(_seconds(lambda: _leave(sl.Session.open(path))) for _ in range(5))
    print(f"opening, snapshot of the last event: {in_units(reopened)}")
    session = sl.Session.open(path)
    for _ in range(every // (2 * BATCH)):
        session.tell_many([(one, 0.1) for one in session.ask(count=BATCH)])
    _leave(session)
    reopened = _seconds(lambda: _leave(sl.Session.open(path)))
    print(f"opening, {every} events after the snapshot (the most): {in_units(reopened)}")
    state.SNAPSHOT_EVERY = every


def probabilities(folder: Path) -> None:
    """Print what recording the probabilities of all options costs, live and by a replay.

    Two sessions with a journal make the same decisions in alternating blocks, one without recording
    them; the ratio is the median over pairs of blocks.  The replay finds the same probabilities
    from a journal without them.
    """
    heads = ("without", "with", "ratio", "drawn", "bytes", "more", "replay")
    print(f"\n{'ask and tell, journal':<28}" + "".join(f"{head:>10}" for head in heads))
    for problem in (PROBLEM, MANY):
        for name, policy in RECORDED.items():
            paths = [folder / f"{name}-{problem.k}-{which}.db" for which in range(2)]
            sessions = [
                sl.Session.open(path, problem.actions, policy, problem.noise_std) for path in paths
            ]
            sessions[0]._live.states_probabilities = False
            noises = [np.random.default_rng(1) for _ in sessions]
            blocks = [
                [_played(*one, problem) for one in zip(sessions, noises, strict=True)]
                for _ in range(BLOCKS + 1)
            ]
            asked = [
                [one for one in session.events() if one.arm is not None] for session in sessions
            ]
            assert [one.arm for one in asked[0]] == [one.arm for one in asked[1]]
            for session in sessions:
                session.close()
            made = len(asked[0])
            ratio = statistics.median(second / first for first, second in blocks[1:])
            without, recorded = (
                statistics.median(column) for column in zip(*blocks[1:], strict=True)
            )
            drawn = sum(one.support is not None for one in asked[1]) / made
            sizes = [path.stat().st_size / made for path in paths]
            replayed = _replayed(paths[0]) / made
            print(
                f"{f'{name}, k = {problem.k}':<28}{in_units(without):>10}{in_units(recorded):>10}"
                f"{ratio:>10.2f}{drawn:>10.0%}{sizes[0]:>10.0f}{sizes[1] - sizes[0]:>10.0f}"
                f"{in_units(replayed):>10}",
                flush=True,
            )


def _played(session: sl.Session, rng: np.random.Generator, problem: sl.LinearBandit) -> float:
    """Seconds per ask and tell in a block."""
    began = time.perf_counter()
    for _ in range(CALLS):
        made = session.ask()
        noise = problem.noise_std * rng.standard_normal()
        session.tell(made, float(problem.means[made.arm] + noise))
    return (time.perf_counter() - began) / CALLS


def _replayed(path: Path) -> float:
    """Seconds in which a replay of a journal finds all probabilities."""
    journal = Journal(path)
    found = journal.snapshot(first=True)
    assert found is not None
    session = sl.Session._restored(read_snapshot(io.BytesIO(found[1])), None)
    session._live.states_probabilities = True
    seconds = _seconds(lambda: replay(session._live, journal.events()))
    journal.close()
    return seconds


def files(folder: Path) -> None:
    """Print how long it takes to save and load many open decisions."""
    session = sl.Session(PROBLEM.actions, sl.ThompsonSampling(), 0.3)
    for _ in range(OPEN // 1000):
        session.ask(count=1000)
    saved = min(_seconds(lambda: session.save(folder / "state")) for _ in range(5))
    size = (folder / "state").stat().st_size / 1e6
    loaded = min(_seconds(lambda: sl.Session.load(folder / "state")) for _ in range(3))
    print(f"{OPEN} open decisions: save {in_units(saved)}, load {in_units(loaded)}, {size:.1f} MB")
    asked = statistics.median(_seconds(session.ask) for _ in range(1000))
    print(f"ask with as many open: {in_units(asked)}")


def streams() -> None:
    """Print what a question and its reward cost where options are new in every round."""
    rng = np.random.default_rng(0)
    print(f"\n{'new options in every round':<40}{'ask':>12}{'tell':>12}")
    for name, policy in STREAM_POLICIES.items():
        for d in (10, 50):
            for k in (10, 50, 200):
                sets = rng.standard_normal((64, k, d)) / d**0.5
                session = sl.Session(sl.stream(d, max_arms=k), policy, 0.3)
                medians = [_with_sets(session, sets, rng) for _ in range(6)]
                ask, tell = _least(medians[1:])  # the first one compiles
                label = f"{name}, k = {k}, d = {d}"
                print(f"{label:<40}{in_units(ask):>12}{in_units(tell):>12}", flush=True)


def _with_sets(
    session: sl.Session, sets: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, float]:
    """Median seconds per ask and per tell."""
    asking, telling = [], []
    for n in range(200):
        rows, noise = sets[n % len(sets)], 0.3 * rng.standard_normal()
        began = time.perf_counter()
        decision = session.ask(options=rows)
        asked = time.perf_counter()
        reward = float(decision.features[0] + noise)
        called = time.perf_counter()
        session.tell(decision, reward)
        telling.append(time.perf_counter() - called)
        asking.append(asked - began)
    return statistics.median(asking), statistics.median(telling)


def main() -> None:
    """Measure everything."""
    print(machine())
    if sys.argv[1:] == ["streams"]:
        streams()
        return
    only_probabilities = "probabilities" in sys.argv[1:]
    folders = [one for one in sys.argv[1:] if one != "probabilities"]
    with tempfile.TemporaryDirectory(dir=folders[0] if folders else None) as name:
        if only_probabilities:
            probabilities(Path(name))
            return
        calls(Path(name))
        probabilities(Path(name))
        journals(Path(name))
        files(Path(name))
    streams()


if __name__ == "__main__":
    main()
