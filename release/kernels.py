"""Build the wheel of ``sightline-kernels``: compiled kernels for families of processors.

    python -m release.kernels --out dist [--targets x86-64-v3 x86-64] [POLICY ...]

For every target a process compiles all policies in all settings (``sightline compile``), with numba
told to generate code for that family of processors instead of this one.  The caches of
these processes become directories of the package, beside ``kernels.json``
(:mod:`sightline.jit.shipped`).  The wheel requires exactly the versions it was made with, because a
kernel is of no use to others.

With several policies in several settings this takes an hour on two cores; naming policies makes a
smaller package for tests.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from sightline.jit.numba_compat import processor_in_use
from sightline.version import __version__

__all__ = ["TARGETS", "build_wheel", "collect"]


class Family(NamedTuple):
    """Processors for which one set of kernels is compiled."""

    name: str
    machines: tuple[str, ...]  # as ``platform.machine`` names them
    cpu: str
    features: str


_V3 = (
    "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,"
    "+ssse3,+xsave"
)
TARGETS = (
    Family("x86-64-v3", ("x86_64", "AMD64"), "x86-64-v3", _V3),
    Family("x86-64", ("x86_64", "AMD64"), "x86-64", ""),
    Family("arm64", ("aarch64", "arm64"), "generic", ""),
)

_PROJECT = """\
[build-system]
requires = ["hatchling=={hatchling}"]
build-backend = "hatchling.build"

[project]
name = "sightline-kernels"
version = "{version}"
description = "Compiled kernels of Sightline: first results without compilation"
readme = "README.md"
license = "MIT"
requires-python = "=={python}.*"
dependencies = ["sightline=={version}", "numba=={numba}", "llvmlite=={llvmlite}"]

[tool.hatch.build.targets.wheel]
packages = ["sightline_kernels"]

[tool.hatch.build.targets.wheel.hooks.custom]
"""
_HOOK = """\
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["tag"] = "{tag}"
        build_data["pure_python"] = False
"""
_README = """\
# sightline-kernels

Compiled kernels of Sightline {version} for numba {numba} and
Python {python}. Install it by `pip install "sightline[fast]"`. Sightline finds the kernels by
itself; `sightline compile --list` says which are used.
"""


def families() -> tuple[Family, ...]:
    """Families to which this machine belongs, from the most specific one on."""
    return tuple(one for one in TARGETS if platform.machine() in one.machines)


def compile_for(family: Family, cache: Path, policies: list[str]) -> None:
    """Compile policies for a family into a cache directory, in new processes."""
    environment = os.environ | {
        "NUMBA_CPU_NAME": family.cpu,
        "NUMBA_CPU_FEATURES": family.features,
        "NUMBA_CACHE_DIR": str(cache),
        "SIGHTLINE_KERNELS": "",
    }
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-m", "sightline", "compile", *policies]
    subprocess.run(command, env=environment, check=True)


def collect(family: Family, cache: Path, package: Path) -> dict[str, str]:
    """Copy kernels of a cache into the package; return the entry of the family."""
    target = package / family.name
    shutil.copytree(
        cache / "sightline" / "kernels", target, ignore=shutil.ignore_patterns("lock", "paper-*")
    )
    for folder in target.iterdir():  # made for kernels that were looked for and not compiled
        if not any(folder.rglob("*.nbc")):
            shutil.rmtree(folder)
    return {
        "directory": family.name,
        "triple": processor_in_use().triple,
        "cpu": family.cpu,
        "features": family.features,
    }


def write_package(root: Path, caches: dict[Family, Path]) -> Path:
    """Write the package with the kernels of all caches."""
    package = root / "sightline_kernels"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Compiled kernels of Sightline."""\n')
    manifest = {
        "sightline": __version__,
        "numba": version("numba"),
        "python": _python(),
        "targets": [collect(family, cache, package) for family, cache in caches.items()],
    }
    (package / "kernels.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return package


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _tag() -> str:
    """Tag of the wheel: kernels call nothing of the C library that old versions lack."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    system = here.replace("linux_", "manylinux_2_17_") if sys.platform == "linux" else here
    return f"cp{_python().replace('.', '')}-none-{system}"


def build_wheel(caches: dict[Family, Path], out: Path) -> Path:
    """Build the wheel from caches, one for each family, most specific first."""
    known = {
        "version": __version__,
        "numba": version("numba"),
        "llvmlite": version("llvmlite"),
        "python": _python(),
        "hatchling": "1.33.0",
        "tag": _tag(),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_package(root, caches)
        for name, text in (
            ("pyproject.toml", _PROJECT),
            ("hatch_build.py", _HOOK),
            ("README.md", _README),
        ):
            (root / name).write_text(text.format(**known))
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
                *("--disable-pip-version-check", "--wheel-dir", str(out), str(root)),
            ],
            check=True,
        )
    (built,) = out.glob(f"sightline_kernels-{__version__}-{known['tag']}.whl")
    return built


def main() -> None:
    """Parse arguments, compile and build."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", help="all by default")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--targets", nargs="*", help="all of this machine by default")
    parser.add_argument("--work", type=Path, default=Path("build/kernels"), help="for caches")
    given = parser.parse_args()
    caches = {}
    for family in families():
        if given.targets is None or family.name in given.targets:
            caches[family] = (given.work / family.name).absolute()
            compile_for(family, caches[family], given.policies)
    built = build_wheel(caches, given.out)
    print(f"{built}: {built.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
