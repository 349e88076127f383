"""Documents match the code: names of the notation exist, examples of the README run."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import random
import re
from pathlib import Path
from typing import Any

import pytest

import sightline

ROOT = Path(__file__).parents[1]


def every_name() -> dict[str, object]:
    names: dict[str, object] = {}
    for module in pkgutil.walk_packages(sightline.__path__, "sightline."):
        names |= vars(importlib.import_module(module.name))
    return names


def notation() -> list[str]:
    rows = re.findall(r"^\|([^|]*)\|([^|]*)\|", (ROOT / "NOTATION.md").read_text(), re.MULTILINE)
    return [name for _, cell in rows[2:] for name in re.findall(r"`([^`]+)`", cell)]


def test_every_name_of_the_notation_exists() -> None:
    names = every_name()
    listed = notation()
    assert len(listed) > 30
    for name in listed:
        holder, _, attribute = name.partition(".")
        assert holder in names, name
        if attribute:
            cls: Any = names[holder]
            fields = {*dir(cls), *getattr(cls, "__annotations__", {})}
            fields |= set(re.findall(r"self\.(\w+)", inspect.getsource(cls)))
            assert attribute in fields, name


@pytest.mark.slow
def test_the_examples_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(examples) == 2
    random.seed(0)  # visitors of the second example
    for example in examples:
        exec(example, {})
    output = capsys.readouterr().out
    (ratio,) = re.findall(r"after 10\^300 rounds: (\d\.\d+)$", output, re.MULTILINE)
    assert 0.8 < float(ratio) < 1.2
    assert "Bracket(lower=0.7999" in output
    clicks = int(re.findall(r"^(\d+) clicks, where", output, re.MULTILINE)[0])
    assert 240 < clicks < 400, "far above an equal split"
    assert "Stopping now" in output
    assert {"regret.png", "experiment.db", "decisions.parquet"} <= set(os.listdir(tmp_path))


def test_the_pictures_of_the_readme_and_its_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert len(targets) > 4
    for target in targets:
        assert (ROOT / target).exists(), target
