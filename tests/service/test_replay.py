"""A live experiment equals its replayed log, bit for bit, on both databases and after a copy."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sightline.service import events
from sightline.service.events import Entry, copy_log
from sightline.service.experiment import Lifecycle
from sightline.service.loading import load_session
from sightline.service.store import Store
from sightline.sessions import state
from sightline.sessions.journal import Event
from tests.service.databases import Server, new_database
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running
from tests.stress.actor import bits

PAGE = "/v1/experiments/page"


def busy(service: Service, seed: int, requests: int = 60) -> None:
    """Do everything that can be done to an experiment."""
    rng = random.Random(seed)
    path = PAGE
    waiting: list[str] = []
    told: list[str] = []
    for i in range(requests):
        dice = rng.random()
        if dice < 0.5 or not waiting:
            body: dict[str, Any] = {"count": 3} if dice < 0.1 else {"activate": dice < 0.4}
            made = service("POST", f"{path}/decisions", body).body
            waiting += [one["id"] for one in made.get("decisions", [made])]
        elif dice < 0.9:
            id_ = waiting.pop(rng.randrange(len(waiting)))
            service("PUT", f"/v1/decisions/{id_}/reward", {"reward": rng.gauss(0.3, 0.3)})
            told.append(id_)
            if dice > 0.8:
                amended = {"reward": rng.gauss(0.3, 0.3)}
                service("PUT", f"/v1/decisions/{rng.choice(told)}/reward?amend=1", amended)
        elif dice < 0.95:
            service("PUT", f"/v1/decisions/{waiting.pop()}/give-up")
        else:
            option = {"name": f"new {i}", "features": [rng.random(), rng.random()]}
            service("POST", f"{path}/options", option)
    service("POST", f"{path}/options/b:retire")


def states(store: Store) -> list[dict[str, Any]]:
    """State from the last snapshot, and from the first."""
    found = []
    with store.reading() as connection:
        for first in (False, True):
            loaded = load_session(connection, "page", first=first)
            assert loaded is not None
            session, last, _ = loaded
            found.append({**bits(session.live), "lifecycle": session.lifecycle, "last": last})
    return found


def test_live_is_the_log_done_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SNAPSHOT_EVERY", 25)
    with running(database) as service:
        limits = {"reward_deadline": "10 rounds", "on_timeout": 0.1, "early_rewards": False}
        service("PUT", PAGE, {**SPECIFICATION, **limits})
        busy(service, 1)
        one = service.runtime._writer._loaded["page"]
        known = {
            **bits(one.session.live),
            "lifecycle": one.session.lifecycle,
            "last": one.log.last,
        }
        assert known["last"] > 50
        assert known["lifecycle"].amended > 0
        assert states(service.store) == [known, known]
        with service.runtime.readers.replica("page") as (follower, _):
            assert bits(follower.session.live) == bits(one.session.live)
        with service.store.reading() as connection:
            kept = events.read_snapshot(connection, "page")
            assert kept is not None
            assert 1 < kept.sequence < known["last"]
    with running(database) as service:  # and after a restart
        assert service("GET", f"{PAGE}/status").body["sequence"] == known["last"]
        service("POST", f"{PAGE}/decisions", {})


def test_notes_that_are_ahead_of_a_snapshot_are_the_same_in_the_end() -> None:
    """A snapshot may be taken in the middle of a transaction, whose notes are those of its end."""
    body = json.dumps({"arms": [1]})
    entries = [
        Entry(Event(1, "asked", 1.0, "x"), extra={"active": False}),
        Entry(Event(2, "told", 2.0, "x")),
        Entry(Event(3, "amended", 3.0, "x")),
        Entry(Event(4, "settled", 4.0, body=body)),
        Entry(Event(5, "amended", 5.0, "x")),
        Entry(Event(6, "committed", 6.0, body=body)),
        Entry(Event(7, "paused", 7.0)),
    ]
    notes = Lifecycle()
    for entry in entries:
        notes.apply(entry)
    assert (notes.amended, notes.settled, notes.settled_at) == (2, (1,), 6.0)
    again = Lifecycle.from_json(notes.to_json())
    for entry in entries[2:]:
        again.apply(entry)
    assert again == notes


def test_workers_take_turns(postgresql: Server) -> None:
    """Two processes would do the same: each folds what the other has written."""
    with new_database(postgresql) as url, running(url) as one, running(url) as other:
        one("PUT", PAGE, SPECIFICATION)
        both = [one, other]
        for i in range(20):
            made = both[i % 2]("POST", f"{PAGE}/decisions", {}, f"key-{i}").body
            assert made["round"] == i + 1
            assert both[(i + 1) % 2]("POST", f"{PAGE}/decisions", {}, f"key-{i}").body == made
            told = both[(i // 2) % 2]("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
            assert told.status == 200
            assert both[i % 2]("GET", f"{PAGE}/status").body["told"] == i + 1
        assert states(one.store)[0] == states(other.store)[1]


def test_an_experiment_moves_to_another_database(postgresql: Server, tmp_path: Path) -> None:
    """The same rewards lead to the same decisions there and here."""
    here = f"sqlite:///{tmp_path}/x.db"
    with new_database(postgresql) as there:
        with running(here) as service:
            service("PUT", PAGE, SPECIFICATION)
            busy(service, 2)
        with Store(here, serving=False) as source, Store(there, serving=False) as target:
            with pytest.raises(ValueError, match="is running: pause it first"):
                copy_log(source, target, "page")
            with pytest.raises(ValueError, match="has no experiment 'nothing'"):
                copy_log(source, target, "nothing")
        with running(here) as service:
            service("POST", f"{PAGE}/pause")
        with Store(here, serving=False) as source, Store(there, serving=False) as target:
            assert copy_log(source, target, "page") > 50
            assert states(source) == states(target)
            with pytest.raises(ValueError, match="has an experiment 'page' already"):
                copy_log(source, target, "page")
        decided = []
        for url in (here, there):
            with running(url) as service:
                service("POST", f"{PAGE}/resume")
                made = [service("POST", f"{PAGE}/decisions", {}).body for _ in range(10)]
                decided.append([(one["arm"], one["probability"], one["round"]) for one in made])
        assert decided[0] == decided[1]


def test_rewards_in_any_order_lead_to_the_same_state(tmp_path: Path) -> None:
    """Counts and sums to the last bit; estimates but for the rounding of their updates.

    The first reward is the same in every order: the prior of the offset is around it.
    """
    found = []
    for order in ("as asked", "reversed", "shuffled"):
        with running(f"sqlite:///{tmp_path}/{order}.db") as service:
            service("PUT", PAGE, SPECIFICATION)
            made = service("POST", f"{PAGE}/decisions", {"count": 60}).body["decisions"]
            told = [(one["id"], (7 * one["round"] % 16) / 16) for one in made]
            if order == "reversed":
                told[1:] = reversed(told[1:])
            elif order == "shuffled":
                told[1:] = random.Random(1).sample(told[1:], len(told) - 1)
            for id_, reward in told:
                assert (
                    service("PUT", f"/v1/decisions/{id_}/reward", {"reward": reward}).status == 200
                )
            found.append(
                (
                    [(one["arm"], one["round"]) for one in made],
                    service("GET", f"{PAGE}/estimates").body["estimates"],
                    service("GET", f"{PAGE}/effects").body["effects"],
                    service("GET", f"{PAGE}/status").body,
                )
            )
    decisions, estimates, effects, status = found[0]
    for others in found[1:]:
        assert others[0] == decisions
        for one, other in zip(estimates, others[1], strict=True):
            assert (one["asked"], one["told"]) == (other["asked"], other["told"])
            assert one["mean_reward"] == other["mean_reward"]
            assert one["mean"] == pytest.approx(other["mean"], rel=1e-9)
            assert one["standard_error"] == pytest.approx(other["standard_error"], rel=1e-9)
        for one, other in zip(effects, others[2], strict=True):
            assert one["effect"] == pytest.approx(other["effect"], rel=1e-9)
        assert others[3]["reward"] == status["reward"]
        assert others[3]["evidence"] == pytest.approx(status["evidence"], rel=1e-6)
