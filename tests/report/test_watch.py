"""The page on which IDS can be watched: its data, its safety, and a look at it in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

import sightline as sl
from sightline.report.watch import watch_page, write_watch_page
from sightline.simulation.trace import record_frames

EOO = sl.problems.end_of_optimism(epsilon=0.1, slope=2.0, noise_variance=0.1)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def data_in(page: str) -> Any:
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page)
    return json.loads(text)


def test_the_page_holds_every_frame() -> None:
    frames = record_frames(EOO, sl.IDS(), 200, seed=4)
    data = data_in(watch_page(EOO, frames, "subtitle"))
    assert len(data["frames"]) == len(frames)
    assert data["problem"]["actions"] == EOO.actions.tolist()
    for shown, frame in zip(data["frames"], frames, strict=True):
        assert (shown["t"], shown["until"], shown["arm"]) == (frame.t, frame.until, frame.arm)
        assert shown["probabilities"] == pytest.approx(frame.probabilities, rel=1e-4)
        assert shown["covariance"][1] == pytest.approx(frame.covariance[0, 1], rel=1e-4)


def test_the_page_fetches_nothing_and_no_name_breaks_it() -> None:
    name = "</script><b>{{data}}"
    problem = sl.LinearBandit(EOO.actions, EOO.theta, 0.3, name=name)
    page = watch_page(problem, record_frames(problem, sl.IDS(), 5), "a & b")
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "<b>" not in page
    assert "a &amp; b" in page
    assert len(data_in(page)["frames"]) == 5


def test_only_the_plane_can_be_watched(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with pytest.raises(ValueError, match="in 2 dimensions"):
        write_watch_page(sl.problems.unit_sphere(k=4, d=3), sl.IDS(), page, 10)
    with pytest.raises(ValueError, match="lie on one line"):
        write_watch_page(sl.LinearBandit([[1, 0], [2, 0]], [1, 0]), sl.IDS(), page, 10)
    assert not page.exists()


@pytest.mark.slow
def test_a_browser_shows_it(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium on PATH")
    page = tmp_path / "page.html"
    write_watch_page(EOO, sl.IDS(), page, 400, seed=4)
    frames = record_frames(EOO, sl.IDS(), 400, seed=4)
    shown = max(range(len(frames)), key=lambda i: frames[i].until - frames[i].t)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    address = f"{page.as_uri()}#{shown}"
    done = subprocess.run([*command, profile, address], capture_output=True, text=True, timeout=300)
    (words,) = re.findall(r'<p id="words"[^>]*>(.*?)</p>', done.stdout)
    frame = frames[shown]
    assert words.startswith(f"Rounds {frame.t:,} to {frame.until:,}. The evidence that arm")
    assert "does not look at the rewards" in words
    assert done.stdout.count("<rect") > 9
    assert done.stdout.count("<ellipse") == 1


@pytest.mark.slow
def test_it_plays_by_itself_and_obeys_the_keyboard(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium on PATH")
    page = tmp_path / "page.html"
    frames = record_frames(EOO, sl.IDS(), 400, seed=4)
    write_watch_page(EOO, sl.IDS(), page, 400, seed=4)
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = window.new_page()
        troubles: list[str] = []
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.goto(page.as_uri())

        def at() -> int:
            return int(tab.input_value("#slider"))

        first = frames[at()]
        assert first.exploring
        assert first.gains.max() > 3.0 * first.gains.min()
        assert tab.inner_text("#play") == "Pause"
        began = at()
        tab.wait_for_function(f"+document.getElementById('slider').value > {began}")
        tab.keyboard.press("Space")
        assert tab.inner_text("#play") == "Play"
        seen = {}
        for key in ("Home", "ArrowRight", "ArrowLeft", "End", "p", "n"):
            tab.keyboard.press(key)
            seen[key] = at()
        tab.keyboard.press("ArrowUp")
        speed = tab.inner_text("#speed")
        window.close()
    last = len(frames) - 1
    assert (seen["Home"], seen["ArrowRight"], seen["ArrowLeft"], seen["End"]) == (0, 1, 0, last)
    turned = frames[seen["p"]], frames[seen["p"] - 1]
    assert turned[0].exploring != turned[1].exploring or turned[0].best != turned[1].best
    assert seen["p"] < seen["n"] <= last
    assert speed == "8 steps per second"
    assert troubles == []
