"""Kernels of the package ``sightline-kernels``: found, trusted, equal, and compiled for others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from release.kernels import Family, families, write_package

from sightline.jit import shipped
from sightline.jit.numba_compat import VERSION, Processor
from sightline.version import __version__

USE = """
from numba.core import event


class Count(event.Listener):
    found = 0

    def on_start(self, event):
        Count.found += 1

    def on_end(self, event):
        pass


event.register("numba:compile", Count())
import sightline as sl
from sightline.jit import ORIGINS
problem = sl.problems.unit_sphere(k=6, d=2, seed=3)
regret = sl.simulate(problem, sl.LinUCB(), 2000, seed=1).regret[-1]
print(float(regret).hex(), Count.found, dict(ORIGINS))
"""


def in_new_process(code: str, cache: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "SIGHTLINE_KERNELS": ""} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(not families(), reason="no kernels are shipped for this kind of machine")
def test_shipped_kernels_compile_nothing_and_give_the_same_numbers(tmp_path: Path) -> None:
    family = families()[-1]
    portable = {"NUMBA_CPU_NAME": family.cpu, "NUMBA_CPU_FEATURES": family.features}
    made, functions, origins = in_new_process(USE, tmp_path / "made", **portable).split(" ", 2)
    assert int(functions) > 0
    assert "compiler" in origins
    write_package(tmp_path, {family: tmp_path / "made"})
    package = tmp_path / "sightline_kernels"
    found = {"SIGHTLINE_KERNELS": str(package)}
    used = in_new_process(USE, tmp_path / "empty", **found)
    assert used == f"{made} 0 {{'package': {origins.rpartition(' ')[2]}"
    assert not list((tmp_path / "empty").rglob("*.nbc"))
    # of another version, or where others could put code, they are compiled again
    manifest = package / "kernels.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(f'"sightline": "{__version__}"', '"sightline": "0.0.1"'))
    assert "'compiler'" in in_new_process(USE, tmp_path / "second", **found)
    native = in_new_process(USE, tmp_path / "second", **found)
    assert native.startswith(f"{made} 0 {{'cache'")


def chosen(
    root: Path, monkeypatch: pytest.MonkeyPatch, features: set[str], **changes: Any
) -> shipped.ShippedKernels:
    manifest = {
        "sightline": __version__,
        "numba": VERSION,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "targets": [
            {"directory": "wide", "triple": "t", "cpu": "new", "features": "+a,+b,-c"},
            {"directory": "narrow", "triple": "t", "cpu": "old", "features": ""},
        ],
    }
    root.mkdir(mode=0o700, exist_ok=True)
    (root / "kernels.json").write_text(json.dumps(manifest | changes))
    monkeypatch.setattr(shipped, "is_disabled", lambda: False)
    here = Processor("t", "here", ",".join(f"+{one}" for one in sorted(features)) + ",-z")
    monkeypatch.setattr(shipped, "processor_in_use", lambda: here)
    monkeypatch.setenv("SIGHTLINE_KERNELS", str(root))
    shipped.shipped_kernels.cache_clear()
    try:
        return shipped.shipped_kernels()
    finally:
        shipped.shipped_kernels.cache_clear()


def test_the_first_target_whose_features_are_present_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = chosen(tmp_path, monkeypatch, {"a", "b"}).found
    assert found == shipped.Shipped(tmp_path / "wide", Processor("t", "new", "+a,+b,-c"))
    narrow = chosen(tmp_path, monkeypatch, {"a"}).found
    assert narrow is not None
    assert narrow.directory == tmp_path / "narrow"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"numba": "0.1"}, "was made for numba 0.1, and this is"),
        ({"python": "2.7"}, "was made for python 2.7, and this is"),
        ({"targets": []}, "has no kernels for this processor (t)"),
        ({"targets": [{"directory": "wide"}]}, "cannot be read: KeyError('triple')"),
        ({"targets": 3}, "cannot be read: TypeError"),
    ],
)
def test_kernels_that_cannot_be_used_have_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], reason: str
) -> None:
    found = chosen(tmp_path, monkeypatch, set(), **changes)
    assert found.found is None
    assert reason in found.reason


def test_a_directory_of_a_manifest_cannot_lead_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("../../elsewhere", "..", "", "/tmp"):
        outside = [{"directory": name, "triple": "t", "cpu": "x", "features": ""}]
        found = chosen(tmp_path, monkeypatch, set(), targets=outside)
        assert found.found is None
        assert "directory must be a name" in found.reason


def test_a_triple_may_have_the_version_of_its_system() -> None:
    assert shipped._system("arm64-apple-darwin23.4.0") == shipped._system("arm64-apple-darwin24")
    assert shipped._system("x86_64-unknown-linux-gnu") == "x86_64-unknown-linux-gnu"


def test_links_and_parents_that_others_can_write_are_dangerous(tmp_path: Path) -> None:
    root = tmp_path / "open" / "kernels"
    root.mkdir(parents=True, mode=0o700)
    assert shipped.danger_in(root, root.parents) is None
    (tmp_path / "open").chmod(0o777)
    assert shipped.danger_in(root, root.parents) == f"others may write to {tmp_path / 'open'}"
    (tmp_path / "open").chmod(0o700)
    (root / "target").symlink_to(tmp_path)
    assert shipped.danger_in(root, root.parents) == f"{root / 'target'} is a link"


def test_a_group_that_can_write_the_sources_can_write_kernels(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    gid = tmp_path.stat().st_gid
    assert shipped.danger_in(tmp_path) == f"others may write to {tmp_path}"
    assert shipped.danger_in(tmp_path, groups=(gid,)) is None


@pytest.mark.parametrize("place", [".", "kernels.json"])
def test_kernels_that_others_can_write_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root = tmp_path / "package"
    assert chosen(root, monkeypatch, {"a"}).found is not None
    root.chmod(0o755)
    (root / place).chmod(0o777)
    found = chosen(root, monkeypatch, {"a"})
    assert found.found is None
    assert found.refused
    assert f"others may write to {root / place}" in found.reason.replace("/.", "")
    monkeypatch.setattr(shipped, "shipped_kernels", lambda: found)
    with pytest.warns(RuntimeWarning, match="others could put code there"):
        shipped.warn_of_refusal()
    shipped.warn_of_refusal()  # once per process


def test_without_the_package_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_KERNELS", "")
    monkeypatch.setattr(shipped, "is_disabled", lambda: False)
    shipped.shipped_kernels.cache_clear()
    assert shipped.shipped_kernels().reason == "the package sightline-kernels is not installed"
    shipped.shipped_kernels.cache_clear()


def test_families_are_listed_from_the_most_specific_one_on() -> None:
    assert [one.name for one in families()] in (["x86-64-v3", "x86-64"], ["arm64"], [])
    assert all(isinstance(one, Family) for one in families())
