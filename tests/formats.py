"""Small files in every public format, which later versions must keep reading.

``python -m tests.formats`` writes them into ``tests/data/formats/1`` with the values that
``tests/test_formats.py`` expects.  The files of a released version are never written again: a later
version of a format gets a directory of its own, and the files of all versions are read.

    sessions.zip       saved sessions: one for each policy, and for each kind of options and rewards
    journal.db         a session as a crash leaves it: a snapshot, and events after it
    export.parquet     the decisions of that session
    store/             results of an experiment
    service.db         a database of the service with two experiments and a token
    service.parquet    an export of the service
    expected.json      what readers find in them
"""

from __future__ import annotations

import itertools
import json
import platform
import shutil
import sqlite3
import sys
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import sightline as sl
from sightline.experiments.compilation import default_policies
from sightline.service.store import Store
from sightline.service.tokens import create_token, list_tokens
from sightline.sessions.journal import Journal
from tests.service.running import Service, running

FORMATS = Path(__file__).parent / "data" / "formats"
FEATURES = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.7, 0.7]}
ROUNDS = 12
ATTRIBUTES = {"country": "DE", "visits": 3}
BEGAN = 1_700_000_000.0  # seconds since 1970


def kinds() -> dict[str, dict[str, Any]]:
    """Sessions to save: arguments of ``sl.Session``, and of ``ask`` under ``"where"``."""
    policies = {
        name: {"options": FEATURES, "policy": policy, "noise_std": 0.5}
        for name, policy in default_policies().items()
    }
    both = {"morning": FEATURES, "evening": {"d": [0.5, -0.5], "e": [-1.0, 0.0]}}
    sees = [[[1.0, 0.0], [0.0, 1.0]]] * 2  # both options show both coordinates
    rows = {"options": [[1.0, 0.0], [0.2, 0.8]]}
    settings: dict[str, dict[str, Any]] = {
        "clicks": {"options": sl.factorial({"text": ["x", "y"], "button": ["red", "blue"]})}
        | {"rewards": sl.Bernoulli()},
        "counts": {"options": FEATURES, "rewards": sl.Poisson()},
        "contexts": {"options": sl.contexts(both), "noise_std": 0.5},
        "contexts of a question": {"options": sl.contexts(both), "noise_std": 0.5}
        | {"policy": sl.IDS(), "where": {"context": "evening"}},
        "duel": {"options": sl.duel(FEATURES), "noise_std": 1.0},
        "game": {"options": sl.game(np.eye(2), np.array(sees)), "noise_std": 0.5},
        "learned units": {"options": FEATURES},
        "attributes": {"options": FEATURES, "where": {"attributes": ATTRIBUTES}},
        "noise of options": {"options": FEATURES, "noise_std": [0.1, 0.2, 0.3]},
        "stream": {"options": sl.stream(2, 3), "noise_std": 0.5, "where": rows},
        "waiting rewards": {"options": FEATURES, "noise_std": 0.5, "min_probability": 0.01}
        | {"reward_window": "5 rounds", "on_timeout": 0.0},
    }
    settings["contexts"]["where"] = {"context": "morning"}
    return policies | settings


def play(session: sl.Session, where: dict[str, Any]) -> None:
    """Ask and tell; every fourth decision stays open."""
    for i in range(ROUNDS):
        made = session.ask(**where)
        if i % 4 < 3:
            reward = float((i + made.arm) % 2)
            several = session.options.per_arm > 1
            session.tell(made, [reward] * session.options.per_arm if several else reward)


def found_in_session(session: sl.Session) -> dict[str, Any]:
    """Values that every reader of a saved session finds."""
    status, estimates = session.status(), session.estimates()
    return {
        "policy": type(session.policy).__name__,
        "round": status.round,
        "told": status.told,
        "open": status.pending + status.waiting,
        "options": len(session.options),
        "open ids": [one.id for one in session.pending()],
        "attributes": [one.attributes for one in session.pending()],
        "means": None if estimates is None else estimates.means.tolist(),
    }


def found_in_export(path: Path) -> dict[str, Any]:
    """Columns of an export, and what was told."""
    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    return {
        "columns": list(frame.columns),
        "arms": frame["arm"].tolist(),
        "rewards": frame["reward"].fillna(-1.0).tolist(),
        "outcomes": frame["outcome"].tolist(),
        "probabilities": frame["probability"].tolist(),
        "supports": [
            [list(arms), list(probabilities)]
            for arms, probabilities in zip(frame["support"], frame["probabilities"], strict=True)
        ],
        "countries": frame["attribute:country"].fillna("").tolist(),
    }


def found_in_store(path: Path) -> dict[str, Any]:
    """Columns of the results, and regret at the last checkpoint."""
    frame = sl.types.Results.load(path).frame
    last = frame[frame["t"] == frame["t"].max()]
    return {
        "columns": list(frame.columns),
        "rows": len(frame),
        "seeds": sorted({int(seed) for seed in frame["seed"]}),
        "regret": last.groupby("policy", observed=True)["regret"].mean().to_dict(),
    }


def found_in_service(database: Path) -> dict[str, Any]:
    """Experiments, events, tokens, and the answer to a repeated request; adds a token."""
    names = ("page", "words")
    with Store(f"sqlite:///{database}", serving=False) as store:
        tokens = [[one.name, one.role.name] for one in list_tokens(store)]
        token = create_token(store, "reader", "client")
    with running(f"sqlite:///{database}") as service:

        def get(path: str) -> Any:
            return service("GET", f"/v1/experiments/{path}", token=token).body

        request = "/v1/experiments/page/decisions", {"unit": "visitor 0"}, "key-0"
        again = service("POST", *request, token=token)
        events = {name: get(f"{name}/events")["events"] for name in names}
        status = {name: get(f"{name}/status") for name in names}
        return {
            "tokens": tokens,
            "kinds": {name: [one["kind"] for one in events[name]] for name in names},
            "rounds": {name: status[name]["round"] for name in names},
            "phases": {name: status[name]["phase"] for name in names},
            "first decision": [again.status, again.body["id"], again.body["probability"]],
        }


def experiment() -> sl.Experiment:
    return sl.Experiment(
        {"spheres": sl.problems.unit_sphere(k=4, d=2, seed=3)},
        {"IDS": sl.IDS(), "LinUCB": sl.LinUCB()},
        horizon=100,
        replications=2,
        seed=1,
    )


def use(service: Service) -> None:
    """Create two experiments, with every kind of request that changes the log."""
    page, words = "/v1/experiments/page", "/v1/experiments/words"
    factors = {"text": ["short", "long"], "button": ["red", "blue"]}
    body = {"factors": factors, "reward": {"kind": "bernoulli"}, "policy": "LinUCB"}
    requests: list[tuple[Any, ...]] = [("PUT", page, body)]
    requests.append(("PUT", words, {"options": FEATURES, "noise_std": 0.5, "policy": "IDS"}))
    for method, path, content in requests:
        assert service(method, path, content).status == 201
    for i in range(6):
        asked = {"unit": f"visitor {i}"} | ({"attributes": ATTRIBUTES} if i % 2 else {})
        made = service("POST", f"{page}/decisions", asked, f"key-{i}").body
        address = f"/v1/decisions/{made['id']}"
        if i < 4:
            assert service("PUT", f"{address}/reward", {"reward": i % 2}).status == 200
        if i == 3:
            assert service("PUT", f"{address}/reward?amend=1", {"reward": 0}, "k").status == 200
        if i == 4:
            assert service("PUT", f"{address}/give-up").status == 200
    for _ in range(2):
        made = service("POST", f"{words}/decisions", {"activate": False}).body
        assert service("PUT", f"/v1/decisions/{made['id']}/activation").status == 200
        assert service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5}).status == 200
    new = {"name": "d", "features": [0.5, -0.5]}
    assert service("POST", f"{words}/options", new).status < 300
    assert service("POST", f"{words}/options/a:retire").status == 200
    assert service("POST", f"{words}/decisions", {}).status == 200
    assert service("POST", f"{words}/pause").status == 200


def write_sessions(archive: Path) -> dict[str, Any]:
    """Save a session of every kind; the archive compresses what sessions do not."""
    found = {}
    with (
        tempfile.TemporaryDirectory() as temporary,
        zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as together,
    ):
        for name, arguments in kinds().items():
            given = dict(arguments)
            where = given.pop("where", {})
            session = sl.Session(**given, seed=1, now=itertools.count(BEGAN).__next__)
            play(session, where)
            path = Path(temporary, f"{name}.session")
            session.save(path)
            together.write(path, path.name)
            found[path.name] = found_in_session(session)
    return found


def write(folder: Path) -> None:
    """Write all files and the values expected from them."""
    folder.mkdir(parents=True)
    expected: dict[str, Any] = {"sessions.zip": write_sessions(folder / "sessions.zip")}
    journal, parquet = folder / "journal.db", folder / "export.parquet"
    now = itertools.count(BEGAN).__next__
    with sl.Session.open(journal, FEATURES, sl.EpsilonGreedy(), 0.5, seed=1, now=now) as session:
        play(session, {"attributes": ATTRIBUTES})
        session.export(parquet)
        expected["journal.db"] = found_in_session(session)
        log = session._live.journal
        assert isinstance(log, Journal)
        log.close()  # without a snapshot, as in a crash
    compact(journal)
    sl.run(experiment(), folder / "store")
    for lock in folder.rglob("*-lock"):
        lock.unlink()
    database = folder / "service.db"
    with running(f"sqlite:///{database}") as service:
        use(service)
        exported = service("GET", "/v1/experiments/page/export.parquet").body
        (folder / "service.parquet").write_bytes(exported)
        create_token(service.store, "website", "client")
    compact(database)
    expected |= {path.name: found_in_export(path) for path in sorted(folder.glob("*.parquet"))}
    expected["store"] = found_in_store(folder / "store")
    with tempfile.TemporaryDirectory() as copies:
        expected["service.db"] = found_in_service(Path(shutil.copy(database, copies)))
    text = json.dumps(expected, indent=1, allow_nan=False)
    (folder / "expected.json").write_text(text + "\n")


def compact(database: Path) -> None:
    """Make a SQLite file small; its contents stay the same."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for statement in (
            "PRAGMA journal_mode=DELETE",
            "PRAGMA page_size=1024",
            "VACUUM",
            "PRAGMA journal_mode=WAL",
        ):
            connection.execute(statement)


if __name__ == "__main__":
    target = FORMATS / "1"
    if target.exists():
        sys.exit(f"{target} exists: remove it first, unless its version has been released")
    with (
        mock.patch.object(platform, "node", return_value="machine"),
        mock.patch.object(platform, "platform", return_value="system"),
        mock.patch("os.cpu_count", return_value=2),
    ):
        write(target)
