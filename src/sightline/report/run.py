"""``sl.run``: compute and store the blocks of an experiment, and return its results."""

from __future__ import annotations

from concurrent.futures import Executor
from os import PathLike

from sightline.experiments.experiment import Experiment, size_of_results
from sightline.experiments.run import BlockStorage, Memory, execute
from sightline.experiments.store import ResultStore
from sightline.report.progress import shown
from sightline.report.results import Results
from sightline.validation import affordable, flag, instance


def run(
    experiment: Experiment,
    store: str | PathLike[str] | None = None,
    executor: Executor | None = None,
    *,
    progress: bool | None = None,
) -> Results:
    """Run an experiment, or what is missing of it, and return its :class:`Results`.

    An experiment has many runs.  For one run of one policy call ``sl.simulate``, which returns a
    ``sl.types.Trajectory``; with the seed of a replication it repeats that run.

    The results are the same bits for any executor and any number of workers.  An error or Ctrl-C
    keeps finished runs in the store, and the next call with the same store continues from there.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    store : path, optional
        Directory for the results, made if missing; one experiment each.  An experiment with more
        replications, policies or problems, and otherwise equal, extends it: only new runs are
        computed.  Without it the results are kept in memory only.
    executor : concurrent.futures.Executor, optional
        Computes the runs: a process pool, loky, MPI or
        ``dask.distributed.Client(...).get_executor()``.  By default threads over all cores, and
        processes for policies in plain Python.
    progress : bool, optional
        Whether to show progress on stderr; by default if that is a terminal.

    Returns
    -------
    Results
        All runs at all checkpoints, with summaries, comparisons and figures.
    """
    instance("experiment", experiment, Experiment, "an Experiment")
    if progress is not None:
        flag("progress", progress)
    if store is None:
        affordable("the results, without a store,", size_of_results(experiment))
    storage: BlockStorage = (
        Memory(experiment.grid) if store is None else ResultStore.create(store, experiment)
    )
    try:
        with shown(progress) as watch:
            execute(experiment, storage, executor, watch)
    except KeyboardInterrupt as interrupt:
        if store is not None:
            interrupt.add_note(f"What is finished is kept in {store}: run again to go on.")
        raise
    return Results(storage, experiment.problems)
