"""``sl.Client``: the verbs of a session, for experiments of a service; with nothing to install.

A request that gets no answer is sent again, with the same key: the service carries it out once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Self
from urllib.parse import quote, urlencode

from sightline.service.transport import ServiceError, Transport

__all__ = ["Client", "RemoteDecision", "ServiceError"]

_COMPILATION = 300.0  # seconds in which a service has compiled any policy


@dataclass(frozen=True)
class RemoteDecision:
    """Answer to one question, as of a :class:`Session`; times are texts, in UTC.

    Attributes
    ----------
    id : str
        Under which to tell the reward.
    experiment : str
        Of which experiment.
    option : str
        What to show.
    arm : int
        Its row.
    levels : mapping or None
        Its level of every factor.
    pair : list of str or None
        The two to be compared, in a duel.
    context : str or None
        Its context.
    unit : str or None
        Who it is for.
    probability : float or None
        With which it was drawn; None if unknown.
    exploring : bool
        Whether the policy will learn from the reward.
    round : int
        Number of the question.
    sequence : int
        Number of its entry in the log.
    model_version : int
        Changes when options are added or retired.
    activated : bool
        Whether it was in use when it was made.
    asked_at : str
        When.
    expires_at : str or None
        End of its reward window, if that is a time.
    expires_after_round : int or None
        End of its reward window, if that is counted in rounds.
    probabilities : mapping of str to float, or None
        Of all options that it could have been, by name; None if unknown.
    """

    id: str
    experiment: str
    option: str
    arm: int
    levels: Mapping[str, Any] | None
    pair: list[str] | None
    context: str | None
    unit: str | None
    probability: float | None
    exploring: bool
    round: int
    sequence: int
    model_version: int
    activated: bool
    asked_at: str
    expires_at: str | None
    expires_after_round: int | None
    probabilities: Mapping[str, float] | None = None


_KNOWN = frozenset(field.name for field in fields(RemoteDecision))


class Client:
    """A service of experiments, from anywhere.

    It may be used by several threads: each has a connection of its own.

    Parameters
    ----------
    url : str
        Address of the service, such as ``"http://127.0.0.1:8000"``.
    token : str, optional
        As ``sightline token create`` has printed it; none for a service without tokens.
    patience : float
        Seconds for which a request is sent again if the service does not answer.
    timeout : float
        Seconds after which a single try is given up.

    Examples
    --------
    >>> client = sl.Client("http://127.0.0.1:8000", token)  # doctest: +SKIP
    >>> client.create("page", factors={"picture": ["large", "small"]}, noise_std=0.5)
    >>> decision = client.ask("page", unit="visitor 17")
    >>> client.tell(decision, 0.7)
    >>> client.status("page")["settled"]
    """

    def __init__(
        self, url: str, token: str | None = None, *, patience: float = 30.0, timeout: float = 30.0
    ) -> None:
        self._transport = Transport(url, token, patience, timeout)
        self._json = self._transport.json

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def create(self, experiment: str, **specification: Any) -> dict[str, Any]:
        """Begin an experiment; the same again changes nothing.

        Parameters
        ----------
        experiment : str
            Its id: letters, digits, ``.``, ``_`` and ``-``.
        **specification
            ``factors``, ``options``, ``contexts``, ``duel`` or ``stream``; ``noise_std`` or
            ``reward``, ``policy``, ``seed``, ``reward_deadline``, ``on_timeout``,
            ``early_rewards``, ``floor``, ``control``, ``stop``, ``description``.
        """
        patience = max(self._transport.patience, _COMPILATION)
        return self._json("PUT", self._path(experiment), specification, patience=patience)

    def ask(
        self,
        experiment: str,
        count: int | None = None,
        *,
        unit: str | None = None,
        available: Iterable[str | int] | None = None,
        context: str | int | None = None,
        actions: Any = None,
        activate: bool = True,
        key: str | None = None,
    ) -> Any:
        """Ask for a decision, or for several; durable when this returns.

        Parameters
        ----------
        experiment : str
            Id of the experiment.
        count : int, optional
            How many decisions to make at once.
        unit : str, optional
            Who it is for: the same unit always gets the same decision.
        available : iterable of str or int, optional
            Options that may be chosen this time.
        context : str or int, optional
            The present context.
        actions : array_like, shape (k, d), optional
            Features of the options on offer, where they are new in every round.
        activate : bool
            Whether the decision is used at once; if not, :meth:`activate` says so later.
        key : str, optional
            The same key gets the same answer, also from another process; a new one by default.

        Returns
        -------
        RemoteDecision
            Or a list of them, if ``count`` is given.
        """
        body: dict[str, Any] = {
            "count": count,
            "unit": unit,
            "available": None if available is None else list(available),
            "context": context,
            "actions": None if actions is None else [[float(x) for x in row] for row in actions],
        }
        body = {name: value for name, value in body.items() if value is not None}
        if not activate:
            body["activate"] = False
        path = self._path(experiment, "decisions")
        headers = {"Idempotency-Key": uuid.uuid4().hex if key is None else key}
        answer = self._json("POST", path, body, headers)
        if count is None:
            return _decision(answer)
        return [_decision(one) for one in answer["decisions"]]

    def tell(self, decision: RemoteDecision | str, reward: Any) -> dict[str, Any]:
        """Tell the reward of a decision; the same again changes nothing."""
        return self._json("PUT", _of(decision, "reward"), {"reward": reward})

    def tell_many(
        self, rewards: Mapping[str, Any] | Iterable[tuple[RemoteDecision | str, Any]]
    ) -> None:
        """Tell the rewards of several decisions, one request each.

        Parameters
        ----------
        rewards : mapping or iterable of pairs
            Decisions or their ids, and rewards.

        Raises
        ------
        RefusedRewardsError
            If some were refused, after all others were told: ``refused`` has the reason of each,
            by the id of its decision.
        """
        from sightline.sessions.decisions import DecisionError, RefusedRewardsError

        pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
        refused: dict[str, Exception] = {}
        for decision, reward in pairs:
            try:
                self.tell(decision, reward)
            except (DecisionError, ValueError) as error:
                refused[decision if isinstance(decision, str) else decision.id] = error
        if refused:
            raise RefusedRewardsError(refused, len(pairs))

    def amend(
        self, decision: RemoteDecision | str, reward: Any, *, key: str | None = None
    ) -> dict[str, Any]:
        """Correct the reward of a decision; one that is still open is told.

        Parameters
        ----------
        decision : RemoteDecision or str
            The decision, or its id.
        reward : float or str
            What is right.
        key : str, optional
            The same key gets the same answer, also after later corrections; a new one by default.
        """
        path = f"{_of(decision, 'reward')}?amend=1"
        headers = {"Idempotency-Key": uuid.uuid4().hex if key is None else key}
        return self._json("PUT", path, {"reward": reward}, headers)

    def missing(self, decision: RemoteDecision | str) -> dict[str, Any]:
        """Say that no reward will come."""
        return self._json("PUT", _of(decision, "missing"))

    def activate(self, decision: RemoteDecision | str) -> dict[str, Any]:
        """Say that a decision is used, which was asked for with ``activate=False``."""
        return self._json("PUT", _of(decision, "activation"))

    def add(self, experiment: str, option: str, **values: Any) -> dict[str, Any]:
        """Add an option, with its ``features`` or ``levels``."""
        return self._json("POST", self._path(experiment, "options"), {"name": option, **values})

    def retire(self, experiment: str, option: str) -> dict[str, Any]:
        """Stop choosing an option."""
        path = self._path(experiment, "options")
        return self._json("POST", f"{path}/{quote(option, safe='')}:retire")

    def pause(self, experiment: str) -> dict[str, Any]:
        """Make no more decisions until :meth:`resume`."""
        return self._json("POST", self._path(experiment, "pause"))

    def resume(self, experiment: str) -> dict[str, Any]:
        """Go on."""
        return self._json("POST", self._path(experiment, "resume"))

    def stop(self, experiment: str) -> dict[str, Any]:
        """Make no more decisions, for ever."""
        return self._json("POST", self._path(experiment, "stop"))

    def experiments(self) -> list[dict[str, Any]]:
        """List all experiments."""
        return list(self._json("GET", "/v1/experiments")["experiments"])

    def status(self, experiment: str) -> dict[str, Any]:
        """Say where an experiment stands."""
        return self._json("GET", self._path(experiment, "status"))

    def estimates(self, experiment: str, delta: float = 0.05) -> list[dict[str, Any]]:
        """Estimate every option; with a control its difference to that, with an interval."""
        path = f"{self._path(experiment, 'estimates')}?{urlencode({'delta': delta})}"
        return list(self._json("GET", path)["estimates"])

    def effects(self, experiment: str, delta: float = 0.05) -> list[dict[str, Any]]:
        """Estimate every effect, with intervals that hold at all rounds at once."""
        path = f"{self._path(experiment, 'effects')}?{urlencode({'delta': delta})}"
        return list(self._json("GET", path)["effects"])

    def pending(self, experiment: str) -> list[RemoteDecision]:
        """List decisions that wait for their rewards, the oldest first, 1000 at most."""
        answer = self._json("GET", f"{self._path(experiment, 'pending')}?most=1000")
        return [_decision(one) for one in answer["decisions"]]

    def events(self, experiment: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """Go through what has happened, in its order."""
        while True:
            query = urlencode({"after": after})
            page = self._json("GET", f"{self._path(experiment, 'events')}?{query}")
            if not page["events"]:
                return
            yield from page["events"]
            after = page["next"]

    def export(self, experiment: str, path: str | PathLike[str]) -> None:
        """Write all decisions to a Parquet file."""
        content = self._transport.send("GET", self._path(experiment, "export.parquet"))
        with open(path, "wb") as file:
            file.write(content)

    def tokens(self) -> list[dict[str, Any]]:
        """List all tokens, without their secrets; for admins."""
        return list(self._json("GET", "/v1/tokens")["tokens"])

    def create_token(self, name: str, role: str) -> str:
        """Make a token, and return it: nobody can read it again; for admins.

        An answer that is lost on the way loses the token: revoke it, and make another one.
        """
        return str(self._json("POST", "/v1/tokens", {"name": name, "role": role})["token"])

    def revoke_token(self, name: str) -> dict[str, Any]:
        """Make a token useless; for admins."""
        return self._json("DELETE", f"/v1/tokens/{quote(name, safe='')}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection of this thread."""
        self._transport.close()

    def _path(self, experiment: str, *parts: str) -> str:
        return "/".join(["/v1/experiments", quote(experiment, safe=""), *parts])


def _of(decision: RemoteDecision | str, verb: str) -> str:
    id_ = decision if isinstance(decision, str) else decision.id
    return f"/v1/decisions/{quote(id_, safe='')}/{verb}"


def _decision(answer: Mapping[str, Any]) -> RemoteDecision:
    """Read a decision; a later service may tell more of it."""
    return RemoteDecision(**{name: value for name, value in answer.items() if name in _KNOWN})
