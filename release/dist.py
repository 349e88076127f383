"""Build everything that a release publishes into ``dist``, and try it: ``make dist``.

    python -m release.dist [--out dist] [--policies POLICY ...] [--without-kernels]

1. The version of ``src/sightline/version.py`` is that of the newest section of the changelog and of
   ``CITATION.cff``.
2. Source distribution and wheel are built, and the wheel of kernels (:mod:`release.kernels`).
3. ``twine check --strict`` reads their metadata.
4. The wheels are installed into a new environment, without the checkout.  There the examples of the
   README run, ``sightline reproduce figure2`` draws, and ``sightline serve`` answers.  With kernels
   of all policies, nothing is compiled meanwhile, and ``sightline compile --list`` misses none.
5. Checksums of all files are written to ``SHA256SUMS``.

Nothing is uploaded.  ``--policies`` builds kernels of some policies only, for a trial.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline.version import __version__

ROOT = Path(__file__).parents[1]


def run(*command: object, **options: Any) -> None:
    """Run a command and print how long it took."""
    began = time.perf_counter()
    subprocess.run([str(one) for one in command], check=True, **options)
    print(f"{time.perf_counter() - began:7.1f} s  {' '.join(str(one) for one in command[-4:])}")


def check_version() -> None:
    """Compare the version with the changelog and the citation."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    if newest is None or newest[1] != __version__:
        raise SystemExit(f"the newest section of CHANGELOG.md must be that of {__version__}")
    if f"\nversion: {__version__}\n" not in (ROOT / "CITATION.cff").read_text():
        raise SystemExit(f"CITATION.cff must have version: {__version__}")


def examples() -> list[str]:
    """Code blocks of the README."""
    text = (ROOT / "README.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def try_wheels(wheels: Sequence[Path], *, complete: bool) -> None:
    """Install wheels into a new environment and use them, away from the checkout.

    With ``complete`` kernels nothing may be compiled.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        bin_ = home / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        python, command = bin_ / "python", bin_ / "sightline"
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        # Wheels of this project come from this build, everything else from the registry.
        named = [
            str(one) if "kernels" in one.name else f"sightline[service] @ {one.as_uri()}"
            for one in wheels
        ]
        run(*pip, "-c", ROOT / "constraints.txt", *named, cwd=home)
        away: dict[str, Any] = {
            "cwd": home,
            "env": {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            | {"NUMBA_CACHE_DIR": str(home / "cache"), "MPLBACKEND": "agg"},
        }
        for i, code in enumerate(examples()):
            (home / f"example{i}.py").write_text(code)
            run(python, f"example{i}.py", **away)
        run(command, "reproduce", "figure2", "--profile", "quick", "--out", "figure2", **away)
        if not (home / "figure2" / "report.html").is_file():
            raise SystemExit("sightline reproduce figure2 wrote no report")
        _try_service(command, home, away["env"])
        compiled = len(list((home / "cache").rglob("*.nbc")))
        print(f"{compiled} kernels were compiled meanwhile")
        if complete:
            listed = subprocess.run(
                [command, "compile", "--list"], check=True, capture_output=True, text=True, **away
            ).stdout
            missing = re.findall(r"^.*: missing$", listed, re.MULTILINE)
            if compiled or missing:
                raise SystemExit("\n".join([f"{compiled} kernels were compiled", *missing]))


def _try_service(command: Path, home: Path, environment: dict[str, str]) -> None:
    port = "8317"
    address = f"http://127.0.0.1:{port}/v1/health"
    service = subprocess.Popen(
        [command, "serve", "--database", "sqlite:///service.db", "--port", port],
        cwd=home,
        env=environment,
    )
    try:
        began = time.perf_counter()
        while True:
            try:
                with urllib.request.urlopen(address, timeout=5) as answer:
                    break
            except OSError:
                if service.poll() is not None or time.perf_counter() - began > 60:
                    raise SystemExit("sightline serve does not answer") from None
                time.sleep(0.05)
        print(f"{time.perf_counter() - began:7.1f} s  sightline serve: {answer.status}")
    finally:
        service.terminate()
        service.wait(20)


def main() -> None:
    """Build, check and try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--policies", nargs="*", default=[], help="kernels of these only")
    parser.add_argument("--without-kernels", action="store_true")
    given = parser.parse_args()
    check_version()
    out = given.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", out, ROOT, stdout=subprocess.DEVNULL)
    if not given.without_kernels:
        run(sys.executable, "-m", "release.kernels", "--out", out, *given.policies, cwd=ROOT)
    built = sorted(out.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *built)
    complete = not given.without_kernels and not given.policies
    try_wheels([path for path in built if path.suffix == ".whl"], complete=complete)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built]
    (out / "SHA256SUMS").write_text("".join(sums))
    for path in built:
        print(f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}")


if __name__ == "__main__":
    main()
