"""Modules behind a module: those that it imports, directly or not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sightline as sl
from sightline import sources
from sightline.sources import hash_of, modules_behind, modules_named_in
from tests.changed_sources import changed

PACKAGE = Path(sl.__file__).parent


def test_the_closure_has_everything_that_importing_loads() -> None:
    code = "import sys, {0}; print(*(m for m in sys.modules if m.split('.')[0] == 'sightline'))"
    for module in ("sightline.simulation.simulate", "sightline.policies.ids"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(module)], capture_output=True, text=True, check=True
        )
        loaded = set(done.stdout.split()) - {"sightline", "sightline.version"}
        assert loaded <= set(modules_behind(module))


def test_the_package_itself_runs_no_imports_that_would_count() -> None:
    statements = ast.parse((PACKAGE / "__init__.py").read_text()).body
    imported = {node.module for node in statements if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "pathlib", "typing", "sightline.version"}


def test_modules_behind_a_module() -> None:
    assert modules_behind("sightline.version") == ("sightline.version",)
    modules = modules_behind("sightline.problems.noise")
    assert "sightline.problems" in modules
    assert "sightline.jit.dispatch" in modules
    assert "sightline" not in modules
    with pytest.raises(ValueError, match=r"no module 'sightline\.nothing'"):
        modules_behind("sightline.nothing")


def test_all_kinds_of_imports_are_read() -> None:
    text = """
from sightline.core import clock, linalg as i
from sightline.jit import (
    compiled,  # and from sightline.files import nothing
    generic,
)
import numpy, sightline.validation
if True:
    import sightline.experiments.store as s
    from sightline import problems
# from sightline.report import page
text = "see from sightline.files import write_atomically"
from sightlines import other
"""
    assert modules_named_in(text) == {
        "sightline.core.clock",
        "sightline.core.linalg",
        "sightline.jit",
        "sightline.validation",
        "sightline.experiments.store",
        "sightline.problems",
    }


def test_a_hash_changes_with_what_is_behind_it_only() -> None:
    before = hash_of("sightline.simulation.simulate")
    assert len(before) == 16
    with changed("sightline.core.clock"):
        assert hash_of("sightline.simulation.simulate") != before
    with changed("sightline.policies.lin_ucb"):
        assert hash_of("sightline.simulation.simulate") == before
    assert hash_of("sightline.simulation.simulate") == before


def test_only_code_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        '"""One."""\n\nx = 1  # one\n# two\ndef f():\n    r"""Say "no".\n\n    \\d\n    """\n'
        '    return """kept"""\n'
    )
    monkeypatch.setattr(sources, "_content", lambda _: text.encode())
    assert sources._code.__wrapped__("any") == b'x = 1  # one\ndef f():\n    return """kept"""\n'


def test_hashing_the_package_is_quick() -> None:
    code = """
import time
import sightline.sources as sources
began = time.process_time()
sources.hash_of(*sources._files())
print(time.process_time() - began)
"""
    seconds = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        seconds.append(float(done.stdout))
    assert min(seconds) < 0.2, "every first simulation of a process waits for this"
