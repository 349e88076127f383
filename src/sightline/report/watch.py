"""A page that shows IDS round by round: one HTML file with a slider, which fetches nothing."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from sightline.files import write_text_atomically
from sightline.policies.ids import IDS
from sightline.problems.bandits import LinearBandit
from sightline.simulation.trace import Frame, record_frames
from sightline.validation import instance

_DIGITS = 5  # more than a pixel shows


def write_watch_page(
    problem: LinearBandit, policy: IDS, path: str | PathLike[str], rounds: int, seed: int = 0
) -> int:
    """Run IDS on a problem whose arms span the plane, write the page, and count its frames."""
    instance("problem", problem, LinearBandit, "a LinearBandit")
    if problem.d != 2:
        raise ValueError(f"only problems in 2 dimensions can be watched, this one has {problem.d}")
    if np.linalg.matrix_rank(problem.actions) < 2:
        raise ValueError("only arms that span the plane can be watched; these lie on one line")
    frames = record_frames(problem, policy, rounds, seed)
    write_text_atomically(path, watch_page(problem, frames, f"{policy}, seed {seed}"))
    return len(frames)


def watch_page(problem: LinearBandit, frames: Sequence[Frame], subtitle: str) -> str:
    """Page as text, with a subtitle below the name of the problem."""
    data = {
        "problem": {
            "actions": problem.actions.tolist(),
            "theta": problem.theta.tolist(),
            "gaps": _short(problem.gaps),
        },
        "frames": [_plain(frame) for frame in frames],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    template = files("sightline.report").joinpath("watch.html").read_text(encoding="utf-8")
    page = template.replace("{{title}}", html.escape(problem.name))
    return page.replace("{{subtitle}}", html.escape(subtitle)).replace("{{data}}", text)


def _plain(frame: Frame) -> dict[str, Any]:
    """Frame as JSON has it, with the digits that can be seen."""
    plain = {name: _short(value) for name, value in vars(frame).items() if name != "covariance"}
    (a, b), (_, c) = frame.covariance
    return plain | {"covariance": _short(np.array([a, b, c]))}


def _short(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_short(float(entry)) for entry in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
