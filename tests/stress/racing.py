"""Many processes try to open one journal: python -m tests.stress.racing COUNT [--processes 4].

Every process opens and closes the same journal COUNT times, and asks one question each time.  While
it has the journal open it has made a file that no other process may have made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import sightline as sl
from tests.stress.actor import POLICIES, begin

__all__ = ["survive"]


def _contend(path: Path, count: int) -> int:
    """Open a journal so many times; return how often it was refused."""
    holding = path.with_suffix(".held")
    refused = 0
    while count:
        try:
            session = begin(POLICIES["LinUCB"], path)
        except BlockingIOError:
            refused += 1
            time.sleep(0.0005)
            continue
        os.close(os.open(holding, os.O_CREAT | os.O_EXCL))  # raises if another process holds it
        session.ask()
        holding.unlink()
        session.close()
        count -= 1
    return refused


def _contending_process(path: Path, count: int, threads: int) -> int:
    """Let a new process contend, with so many threads; return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        done: list[int] = []
        shares = [count // threads + (i < count % threads) for i in range(threads)]
        workers = [
            threading.Thread(target=lambda share=share: done.append(_contend(path, share)))
            for share in shares
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        code = 0 if len(done) == threads else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def survive(count: int, processes: int, threads: int, folder: Path) -> dict[str, Any]:
    """Let processes contend, and look into the journal."""
    path = folder / "journal.db"
    session = begin(POLICIES["LinUCB"], path)
    session.tell(session.ask(), 0.5)  # compiles
    session.close()
    children = [_contending_process(path, count, threads) for _ in range(processes)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        raise AssertionError(f"processes ended with {codes}")
    with sl.Session.open(path) as session:
        rounds = [event.round for event in session.events() if event.kind == "asked"]
    if rounds != list(range(1, count * processes + 2)):
        raise AssertionError("a question was answered twice, or is lost")
    return {"processes": processes, "threads": threads, "opened": count * processes}


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = survive(given.count, given.processes, given.threads, Path(folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
