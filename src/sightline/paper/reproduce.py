"""Run items: results are stored on disk, resumed after an interruption, and never recomputed.

report.html                    the page
figures/  curves/              every figure as PNG, PDF and SVG; every curve as CSV
results/EXPERIMENT-SOURCES/    stores of experiments; items with the same experiment share one
results/calculations/          results of calculations, one JSON file each
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.experiments.block import Task
from sightline.experiments.experiment import Experiment
from sightline.experiments.run import missing_tasks
from sightline.experiments.sources import sources_of
from sightline.experiments.store import ResultStore
from sightline.files import sealed, unsealed, write_text_atomically
from sightline.paper.item import Calculation, Findings, Item, ItemResults
from sightline.report.picture import Picture, picture_of, svg_of
from sightline.report.results import Results
from sightline.report.run import run
from sightline.sources import hash_of, modules_named_in
from sightline.validation import one_of


@dataclass(frozen=True)
class ResultsFolder:
    """Directory with results, and the executor that computes them."""

    directory: Path
    executor: Executor | None = None

    def store_of(self, experiment: Experiment) -> Path:
        """Directory of an experiment; its name changes with the experiment and the sources."""
        sources = hashlib.sha256()
        for cell in experiment.cells:
            problem, policy = experiment.problems[cell.problem], experiment.policies[cell.policy]
            sources.update(sources_of(problem, policy).encode())
        return self.directory / f"{experiment.digest[:12]}-{sources.hexdigest()[:8]}"

    def missing_tasks(self, experiment: Experiment) -> list[Task]:
        """Blocks of an experiment that are not in the store."""
        store = ResultStore.create(self.store_of(experiment), experiment)
        return missing_tasks(experiment, store)

    def holds(self, item: Item, profile: str) -> bool:
        """Whether an item is complete."""
        size = item.sizes[profile]
        return not any(map(self.missing_tasks, item.experiments(size).values())) and all(
            self.file_of(f"{item.name}-{name}", calculation).exists()
            for name, calculation in item.calculations(size).items()
        )

    def results_of(self, experiment: Experiment) -> Results:
        """Run the missing blocks of an experiment."""
        return run(experiment, self.store_of(experiment), self.executor)

    def file_of(self, name: str, calculation: Calculation) -> Path:
        """File of a calculation; its name changes with the arguments and the sources."""
        function = calculation.function
        text = json.dumps(
            [function.__qualname__, _sources(function.__module__), calculation.arguments],
            sort_keys=True,
        )
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        safe = "".join(c if c.isalnum() else "-" for c in name)[:60]
        return self.directory / "calculations" / f"{safe}-{digest}.json"

    def value_of(self, name: str, calculation: Calculation) -> dict[str, Any]:
        """Read or compute a calculation: a dict with its "value" and "seconds"."""
        path = self.file_of(name, calculation)
        try:
            return unsealed(json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            pass  # it is missing or damaged
        began = time.perf_counter()
        value = calculation.function(**calculation.arguments)
        seconds = time.perf_counter() - began
        path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(sealed({"value": value, "seconds": seconds}), allow_nan=False)
        write_text_atomically(path, content)
        return unsealed(json.loads(content))


@functools.cache
def _sources(module: str) -> str:
    """Hash of the sources that determine the value of a calculation.

    These are the module of its function and all modules that it imports, such as the settings.
    Arguments are in the key of the file.
    """
    own = Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")
    imported = modules_named_in(own)
    versions = [importlib.metadata.version(name) for name in ("numba", "numpy", "scipy")]
    text = json.dumps([module, own, hash_of(*sorted(imported)), versions])
    return hashlib.sha256(text.encode()).hexdigest()


def run_item(item: Item, profile: str, folder: ResultsFolder) -> ItemResults:
    """Run the missing parts of an item."""
    size = item.sizes[profile]
    results, values, seconds = {}, {}, 0.0
    for name, experiment in item.experiments(size).items():
        results[name] = folder.results_of(experiment)
        seconds += sum(results[name].seconds.values())
    for name, calculation in item.calculations(size).items():
        found = folder.value_of(f"{item.name}-{name}", calculation)
        values[name] = found["value"]
        seconds += found["seconds"]
    return ItemResults(size, results, values, seconds)


def write_findings(item: Item, findings: Findings, out: Path) -> list[Picture]:
    """Write figures as PNG, PDF and SVG, and curves as CSV; return the pictures for a page."""
    pictures = []
    for name, (caption, figure) in findings.figures.items():
        path = out / "figures" / f"{item.name}-{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        pictures.append(picture_of(figure, path.name, caption))
        figure.savefig(path.with_suffix(".png"), dpi=150)
        figure.savefig(path.with_suffix(".pdf"))
        path.with_suffix(".svg").write_text(svg_of(figure, path.name), encoding="utf-8")
    for name, frame in findings.curves.items():
        path = out / "curves" / f"{item.name}-{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(path, index=False)
    return pictures


def selected(names: Iterable[str], items: Mapping[str, Item]) -> list[Item]:
    """Select items by name, in the order of the catalogue; ``all`` selects every item."""
    wanted = set(names)
    for name in sorted(wanted):
        one_of("item", name, ["all", *items])
    return [item for item in items.values() if "all" in wanted or item.name in wanted]
