"""A process of its own that compiles the kernels of one experiment, which are then on disk."""

from __future__ import annotations

import json
import os
import sys

from sightline.service.beginning import begin
from sightline.service.bodies import Specification
from sightline.service.loading import warm
from sightline.service.parent import end_with_parent
from sightline.service.settings import Settings

__all__ = ["compile_kernels"]


def compile_kernels(wanted: Specification, everything: bool) -> None:
    """Use an experiment, which was admitted before, once, or in every way once."""
    most = sys.maxsize
    settings = Settings(most_options=most, most_work=most, experiment_memory=most)
    warm(begin(wanted, settings).snapshot(), wanted if everything else None)


if __name__ == "__main__":
    os.nice(5)  # decisions come first
    everything, wanted = json.loads(sys.stdin.readline())
    end_with_parent()
    compile_kernels(Specification.model_validate(wanted), everything)
    os._exit(0)
