"""Streams beside other libraries: python -m benchmarks.streams install DIR; ... run DIR [PART ...].

install   make a virtual environment in DIR, and install every library there by its name
run       measure, with that environment; tables to standard output, and all of it to --json FILE

speed     microseconds per ask and tell, arms new in every round
digits    reward collected on scikit-learn's digits as a stream, 64 pixels per class
reduced   the same with 16 numbers per class

Every library runs in a separate process (``benchmarks/others/streams_worker.py``, which does not
import this library) on the same file of arms and rewards, with one thread.  Processes take turns in
repeated cycles; results are medians over cycles of the medians within a cycle, in processor time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.bench import machine
from benchmarks.others import streams_worker
from benchmarks.others.streams_worker import WIDTH, Entry, Learner, Size
from sightline.core.action_set import ALL_ARMS, ActionSet
from sightline.core.clock import Clock, clock_at, is_before, tick
from sightline.core.model import stream_model
from sightline.jit import compiled_apart, entry_for
from sightline.policies.base import choose, show, update

Array = NDArray[np.float64]

SIZES = [(k, d) for k in (10, 50, 200) for d in (10, 50)]
ROUNDS = 1500
NOISE_STD = 0.5
WORKER = Path(streams_worker.__file__)
PACKAGES = ["vowpalwabbit", "contextualbandits", "mabwiser", "river", "bayesianbandits"]
OTHERS = [*PACKAGES, "numpy"]


class Live(Learner):
    """A session."""

    def __init__(self, size: Size, policy: sl.extend.Policy) -> None:
        stream = sl.stream(size.d, max_arms=size.k)
        self.session = sl.Session(stream, policy, noise_std=NOISE_STD, seed=size.seed)

    def ask(self, features: Array) -> int:
        self.decision = self.session.ask(options=features)
        return self.decision.arm

    def tell(self, arm: int, reward: float) -> None:
        self.session.tell(self.decision, reward)


_NO_MASK = ALL_ARMS.mask


@compiled_apart
def _ask(
    state: Any, rows: Array, t: int, log_t: float, rng: np.random.Generator
) -> tuple[int, bool]:
    """Show new arms and choose; say also whether the outcome is to be learned from."""
    clock = Clock(t, log_t)
    show(state, rows, 0, rows.shape[0])
    choice = choose(state, clock, ActionSet(0, rows.shape[0], _NO_MASK, 0), rng)
    return choice.arm, not is_before(clock, choice.wake)


@compiled_apart
def _tell(state: Any, t: int, log_t: float, arm: int, reward: float) -> None:
    update(state, Clock(t, log_t), arm, reward)


class Kernels(Learner):
    """Kernels of a policy, one call each, whose machine code is looked up once as in sessions.

    There is none of the bookkeeping of a session.
    """

    def __init__(self, size: Size, policy: sl.extend.Policy) -> None:
        self.state = policy.start(stream_model(size.k, size.d, NOISE_STD))
        self.clock = clock_at(1)
        self.rng = np.random.default_rng(size.seed)
        self.learns = True
        rows = np.zeros((size.k, size.d))
        self.call_ask = entry_for(_ask, (self.state, rows, *self.clock, self.rng), self.state)
        self.call_tell = entry_for(_tell, (self.state, *self.clock, 0, 0.0), self.state)

    def ask(self, features: Array) -> int:
        t, log_t = self.clock
        arm, self.learns = self.call_ask(self.state, features, t, log_t, self.rng)
        return int(arm)

    def tell(self, arm: int, reward: float) -> None:
        if self.learns:
            t, log_t = self.clock
            self.call_tell(self.state, t, log_t, arm, reward)
        self.clock = tick(self.clock)


def _ours(policy: sl.extend.Policy) -> Callable[[Size], Learner]:
    return lambda size: Live(size, policy)


def _kernels(policy: sl.extend.Policy) -> Callable[[Size], Learner]:
    return lambda size: Kernels(size, policy)


_FIXED = sl.FixedBeta(WIDTH**2)
OURS = [
    Entry("LinUCB, width 0.5", "shared", _ours(sl.LinUCB(_FIXED))),
    Entry("LinUCB", "shared", _ours(sl.LinUCB()), "digits"),
    Entry("ThompsonSampling", "shared", _ours(sl.ThompsonSampling(prior_std=WIDTH))),
    Entry("IDS, conditional", "shared", _ours(sl.IDS(contexts="conditional"))),
    Entry(
        "IDS, conditional, width 0.5",
        "shared",
        _ours(sl.IDS(contexts="conditional", confidence=_FIXED)),
        "digits",
    ),
    Entry("EpsilonGreedy, 0.05", "shared", _ours(sl.EpsilonGreedy(0.05))),
    Entry("Stakes", "shared", _ours(sl.Stakes())),
    Entry("LinUCB, width 0.5, kernels", "shared", _kernels(sl.LinUCB(_FIXED)), "speed"),
    Entry("ThompsonSampling, kernels", "shared", _kernels(sl.ThompsonSampling()), "speed"),
]


def install(folder: Path) -> None:
    """Make the environment; a library that does not install is reported and left out."""
    venv.create(folder, with_pip=True)
    for package in [*PACKAGES, "scikit-learn"]:
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", package]
        done = subprocess.run(command, capture_output=True, text=True)
        last = done.stderr.strip().splitlines()[-1:] if done.returncode else ["installed"]
        print(f"{package}: {' '.join(last)}", flush=True)


def _call(folder: Path, library: str, source: Path, seconds: float) -> dict[str, Any]:
    """One library on one file, in a separate process."""
    target = source.with_suffix(f".{library}.json")
    command = [str(folder / "bin" / "python"), str(WORKER), library]
    if library == "sightline":
        command = [sys.executable, "-m", "benchmarks.streams", "ours"]
    command += [str(source), str(target), "--seconds", str(seconds)]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    target.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **one_thread})
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return {"version": "", "answers": [], "error": reason[:200]}
    found: dict[str, Any] = json.loads(target.read_text())
    return found


def _ours_alone(source: Path, target: Path, seconds: float) -> None:
    """Our side of a comparison; compiles everything before anything is timed."""
    for entry in OURS:
        learner = entry.make(Size(3, 2, 1))
        for _ in range(3):
            learner.tell(learner.ask(np.eye(3, 2)), 0.5)
    found = {"version": sl.__version__, "answers": streams_worker.run(OURS, source, seconds)}
    target.write_text(json.dumps(found))


def _write_speed(target: Path, k: int, d: int) -> None:
    rng = np.random.default_rng((k, d))
    actions = rng.standard_normal((ROUNDS, k, d)) / math.sqrt(d)
    noise = NOISE_STD * rng.standard_normal((ROUNDS, k))
    np.savez(target, actions=actions, rewards=actions @ rng.standard_normal(d) + noise)


def speed(folder: Path, work: Path, cycles: int, seconds: float) -> list[dict[str, Any]]:
    """Time every policy at every size."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for k, d in SIZES:
        source = work / f"speed-{k}-{d}.npz"
        _write_speed(source, k, d)
        for cycle in range(cycles):
            for library in ["sightline", *OTHERS]:
                found = _call(folder, library, source, seconds)
                if "error" in found:
                    print(f"{library}: {found['error']}", file=sys.stderr)
                for answer in found["answers"]:
                    key = (library, answer["label"], answer["model"])
                    row = rows.setdefault(key, {"version": found["version"], "times": {}})
                    row["times"].setdefault(f"{k}, {d}", []).append(answer)
            print(f"k = {k}, d = {d}, cycle {cycle + 1}", file=sys.stderr, flush=True)
        source.unlink()
    return [
        {"library": key[0], "policy": key[1], "model": key[2], **row} for key, row in rows.items()
    ]


def _microseconds(answers: list[dict[str, Any]], what: str = "both") -> str:
    if any("error" in answer for answer in answers) or not answers:
        return "failed"
    value = statistics.median(answer[what] for answer in answers) * 1e6
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def print_speed(rows: list[dict[str, Any]]) -> None:
    """Print microseconds per round."""
    sizes = [f"{k}, {d}" for k, d in SIZES]
    print("| library | policy | model | " + " | ".join(sizes) + " |")
    print("|---|---|---|" + "---:|" * len(sizes))
    for row in rows:
        cells = [_microseconds(row["times"].get(size, [])) for size in sizes]
        print(f"| {row['library']} | {row['policy']} | {row['model']} | {' | '.join(cells)} |")


def _write_digits(folder: Path, work: Path, target: Path, width: int, passes: int) -> None:
    """Images of norm 1, or their coordinates along the first singular vectors; five orders."""
    raw = work / "raw.npz"
    command = [str(folder / "bin" / "python"), str(WORKER), "digits", str(raw)]
    subprocess.run(command, check=True)
    with np.load(raw) as data:
        contexts, labels = data["pixels"], data["labels"]
    contexts = contexts / np.linalg.norm(contexts, axis=1)[:, None]
    if width < contexts.shape[1]:
        contexts = contexts @ np.linalg.svd(contexts, full_matrices=False)[2][:width].T
    orders = [
        np.concatenate([rng.permutation(len(labels)) for _ in range(passes)])
        for rng in map(np.random.default_rng, range(5))
    ]
    np.savez(target, contexts=contexts, labels=labels, orders=np.array(orders))


def digits(
    folder: Path, work: Path, width: int, passes: int, seconds: float
) -> list[dict[str, Any]]:
    """Let every policy classify the digits, each for all orders or as many as there is time for."""
    source = work / f"digits-{width}.npz"
    _write_digits(folder, work, source, width, passes)
    rows = []
    for library in ["sightline", *OTHERS]:
        found = _call(folder, library, source, seconds)
        if "error" in found:
            print(f"{library}: {found['error']}", file=sys.stderr)
        for answer in found["answers"]:
            rows.append({"library": library, "version": found["version"], **answer})
        print(f"digits, {width} per class: {library}", file=sys.stderr, flush=True)
    return rows


def print_digits(rows: list[dict[str, Any]], rounds: int) -> None:
    """Print rewards, best first."""
    marks = [rounds // 8, rounds // 4, rounds // 2, rounds]
    print("| library | policy | model | " + " | ".join(f"{mark:,}" for mark in marks), end="")
    print(" | share | orders | µs per round |\n|---|---|---|" + "---:|" * 7)
    done = [row for row in rows if "error" not in row]
    for row in sorted(done, key=lambda row: -float(np.mean(row["rewards"], axis=0)[-1])):
        rewards = np.array(row["rewards"])
        count = len(rewards)
        errors = rewards.std(axis=0, ddof=1) / math.sqrt(count) if count > 1 else 4 * [math.nan]
        means = rewards.mean(axis=0)
        cells = [f"{m:,.0f} ± {e:.0f}" for m, e in zip(means, errors, strict=True)]
        cells += [f"{means[-1] / rounds:.3f}", str(count), _microseconds([row])]
        print(f"| {row['library']} | {row['label']} | {row['model']} | {' | '.join(cells)} |")
    for row in rows:
        if "error" in row:
            print(f"\n{row['library']}, {row['label']}: {row['error']}")


DIGITS = {"digits": (64, 1), "reduced": (16, 3)}  # numbers per class, passes over the images


def run(
    folder: Path, parts: list[str], cycles: int, seconds: float, json_file: Path | None
) -> None:
    """Measure some parts, or all, and print tables."""
    found: dict[str, Any] = {"date": date.today().isoformat(), "machine": machine()}
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for part in parts or ["speed", *DIGITS]:
            if part == "speed":
                found[part] = speed(folder, work, cycles, seconds)
            else:
                width, passes = DIGITS[part]
                found[part] = digits(folder, work, width, passes, 60 * seconds)
    print(found["date"], found["machine"])
    every = [row for part in ("speed", *DIGITS) for row in found.get(part, [])]
    versions = {row["library"]: row["version"] for row in every}
    print(", ".join(f"{library} {version}" for library, version in versions.items()))
    for part in found:
        if part == "speed":
            print("\nMicroseconds per ask and tell, by k, d\n")
            print_speed(found[part])
        elif part in DIGITS:
            width, passes = DIGITS[part]
            print(f"\nReward on digits, {width} numbers per class, passes: {passes}\n")
            print_digits(found[part], 1797 * passes)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1))


def main() -> None:
    """Install or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("install")
    one.add_argument("folder", type=Path)
    one = commands.add_parser("run")
    one.add_argument("folder", type=Path)
    one.add_argument("parts", nargs="*", help="speed, digits, reduced; all if none is given")
    one.add_argument("--cycles", type=int, default=3)
    one.add_argument("--seconds", type=float, default=1.0, help="per policy, size and cycle")
    one.add_argument("--json", type=Path)
    one = commands.add_parser("ours")  # started by ``run``
    one.add_argument("source", type=Path)
    one.add_argument("target", type=Path)
    one.add_argument("--seconds", type=float)
    arguments = parser.parse_args()
    if arguments.command == "install":
        install(arguments.folder)
    elif arguments.command == "ours":
        _ours_alone(arguments.source, arguments.target, arguments.seconds)
    else:
        run(arguments.folder, arguments.parts, arguments.cycles, arguments.seconds, arguments.json)


if __name__ == "__main__":
    main()
