"""Move an experiment to another database: its log is copied, and goes on there bit for bit."""

from __future__ import annotations

from sqlalchemy import select

from sightline.service import direct, rows
from sightline.service.hosted import Notes
from sightline.service.schema import LOOKS, SNAPSHOTS
from sightline.service.store import Store

__all__ = ["copy_log"]


def copy_log(source: Store, target: Store, experiment: str) -> int:
    """Copy the log of an experiment, with its snapshots, all or nothing.

    It must be paused or stopped, so that it does not go on in both.

    Parameters
    ----------
    source, target : Store
        From where, and to where.
    experiment : str
        Id of the experiment, there as here.

    Returns
    -------
    int
        How many entries were copied.

    Raises
    ------
    ValueError
        If there is no such experiment, if it runs, or if the target has one of this name.
    """
    with source.reading() as reading, target.writing() as writing:
        direct.lock(writing, experiment)
        if rows.last_of(writing, experiment) > 0:
            raise ValueError(f"{target.name} has an experiment {experiment!r} already")
        notes, last = Notes(), 0
        for page in rows.pages(reading, experiment):
            for entry in page:
                notes.follow(entry)
            direct.append(writing, ((experiment, entry) for entry in page))
            last = page[-1].event.sequence
        if last == 0:
            raise ValueError(f"{source.name} has no experiment {experiment!r}")
        if notes.phase == "running":
            raise ValueError(
                f"experiment {experiment!r} is running: pause it first, so that it does not go on "
                "in both databases"
            )
        for table in (SNAPSHOTS, LOOKS):
            query = select(table).where(table.c.experiment == experiment)
            for row in reading.execute(query):
                writing.execute(table.insert().values(**row._mapping))
    return last
