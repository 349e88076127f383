"""Worker processes that compile kernels or compute lower bounds, so that decisions need not wait.

A worker reads one line of JSON.  It ends with the service, however that ends: the service holds the
other end of its input.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sightline.service.schemas import Specification


def command_of(task: str) -> list[str]:
    """Return the command of a worker for a task: ``bound`` or ``compile``."""
    return [sys.executable, "-m", "sightline.service.worker", task]


def compile_in_process(
    wanted: Specification, everything: bool, started: Callable[[subprocess.Popen[str]], None]
) -> None:
    """Let a worker compile the kernels of an experiment; they are then in the cache on disk.

    ``everything`` includes kernels that only some experiments use.  ``started`` is called with the
    process, which may be killed.
    """
    with subprocess.Popen(command_of("compile"), stdin=subprocess.PIPE, text=True) as process:
        started(process)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the process was killed
            process.stdin.write(f"{json.dumps([everything, wanted.model_dump()])}\n")
            process.stdin.flush()
            process.wait()  # its input stays open meanwhile
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def compile_kernels(wanted: Specification, everything: bool) -> None:
    """Warm up an experiment, whose size was checked before."""
    from sightline.service.loading import create_session, warm_up
    from sightline.service.settings import Settings

    most = sys.maxsize
    settings = Settings(most_options=most, most_work=most, experiment_memory=most)
    warm_up(create_session(wanted, settings).snapshot(), wanted if everything else None)


def bound_values(description: dict[str, Any]) -> dict[str, Any]:
    """Compute c* of a problem with its bracket, or return the reason why there is none."""
    from sightline.bounds.asymptotic import lower_bound
    from sightline.bounds.certificate import ConvergenceWarning
    from sightline.problems.base import TableProblem
    from sightline.problems.descriptions import build

    try:
        problem = build(description)
        assert isinstance(problem, TableProblem)
        with warnings.catch_warnings():
            # the response has both ends of the bracket, and the log would repeat the warning
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = lower_bound(problem)
    except ValueError as error:
        return {"reason": str(error)}
    if not math.isfinite(found.upper):
        return {"reason": "no decision shows which option is best: regret is not logarithmic"}
    return {"value": found.value, "lower": found.lower, "upper": found.upper}


def _end_with_service() -> None:
    sys.stdin.read()  # returns when the service has ended, also by SIGKILL
    os._exit(1)


def _main(task: str) -> None:
    os.nice(10 if task == "bound" else 5)  # decisions come first
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_service, daemon=True).start()
    if task == "bound":
        print(json.dumps(bound_values(request)), flush=True)
    else:
        from sightline.service.schemas import Specification

        everything, wanted = request
        compile_kernels(Specification.model_validate(wanted), everything)
    os._exit(0)  # the other thread still waits for input


if __name__ == "__main__":
    _main(sys.argv[1])
