"""Metadata of the package: one version, one address, a README that the package page can show."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import sightline

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
METADATA = PROJECT["project"]
README = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]


def workflow(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
    return found


def test_the_version_is_in_one_place() -> None:
    assert "version" in METADATA["dynamic"]
    source = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'\n__version__ = "{sightline.__version__}"\n' in source.read_text()


def test_the_address_of_the_project_is_the_same_everywhere() -> None:
    address = METADATA["urls"]["Repository"]
    assert f'repository-code: "{address}"' in (ROOT / "CITATION.cff").read_text()
    name = address.removeprefix("https://github.com/")
    for url in METADATA["urls"].values():
        assert url.endswith(name.partition("/")[2]) or url.startswith(address), url
    for rule in README["substitutions"]:
        assert f"/{name}/" in rule["replacement"]


def test_links_of_the_package_page_are_absolute() -> None:
    page = (ROOT / "README.md").read_text()
    for rule in README["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert len(targets) > 20
    for target in targets:
        assert target.startswith(("https://", "#")), target
    assert re.search(r"!\[[^]]*\]\(https://raw\.[^)]*/v\$HFPR_VERSION/docs/assets/\w+\.svg\)", page)


def test_versions_of_python_are_those_that_are_tested_and_published() -> None:
    prefix = "Programming Language :: Python :: 3."
    stated = [one.removeprefix(prefix) for one in METADATA["classifiers"] if one.startswith(prefix)]
    assert METADATA["requires-python"] == f">=3.{stated[0]}"
    wanted = [f"3.{minor}" for minor in stated]
    assert workflow("test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == wanted
    assert workflow("publish.yml")["jobs"]["kernels"]["strategy"]["matrix"]["python"] == wanted


def test_publishing_happens_on_tags_without_secrets() -> None:
    found = workflow("publish.yml")
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text()
    assert found[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as a truth value
    assert found["permissions"] == {}
    for action in re.findall(r"uses: (\S+)", text):
        assert re.fullmatch(r"\./.*|[\w/-]+@[0-9a-f]{40}", action), "an action without its hash"
    jobs = found["jobs"]
    assert jobs["upload"]["permissions"] == {"id-token": "write"}
    assert {"test", "package", "kernels"} <= set(jobs["upload"]["needs"])
    assert "secrets." not in text
    for name, job in jobs.items():
        writes = [what for what, how in job["permissions"].items() if how == "write"]
        assert writes == {"upload": ["id-token"], "documents": ["contents"]}.get(name, []), name
        assert "uses" in job or job["timeout-minutes"] <= 360, name
    machines = jobs["kernels"]["strategy"]["matrix"]["system"]
    assert machines == ["ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "windows-2025"]


def test_the_paper_has_its_sections_and_references() -> None:
    text = (ROOT / "joss" / "paper.md").read_text()
    body = text[text.index("# Summary") :]
    assert 900 <= len(body.split()) <= 1300
    for section in ("Statement of need", "State of the field", "Software design", "References"):
        assert f"\n# {section}\n" in body
    cited = set(re.findall(r"@(\w+)", body))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "joss" / "paper.bib").read_text(), re.M))
    assert cited == known
