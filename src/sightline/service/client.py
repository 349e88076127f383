"""``sl.Client``: a session's methods for experiments of a service, without further dependencies.

A request without a response is sent again, under the same key: the service executes it once.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from socket import gaierror
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from sightline.version import __version__

_COMPILATION = 300.0  # seconds in which a service compiles any policy
_RETRIED = (429, 502, 503, 504)  # statuses after which a request is sent again
_MAX_PAUSE = 5.0
_ECHO = "Sightline-Request"  # header that the service returns
_FIRST_CONTACT = 2.0  # seconds that an address which was never reached gets to respond


class ServiceError(RuntimeError):
    """The service has refused a request, or does not respond.

    Attributes
    ----------
    status : int
        HTTP status; 0 without a response.
    kind : str
        Kind of the error, in one word.
    """

    def __init__(self, message: str, status: int = 0, kind: str = "no-answer") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


@dataclass(frozen=True)
class RemoteDecision:
    """A decision of a service; times are texts, in UTC.

    Attributes
    ----------
    id : str
        Id under which to report the reward.
    experiment : str
        Id of the experiment.
    option : str
        Option to show.
    arm : int
        Row of the option.
    levels : mapping or None
        Level of every factor.
    pair : list of str or None
        The two items to compare, in a duel.
    context : str or None
        Context.
    unit : str or None
        Unit of the experiment.
    probability : float or None
        Probability with which the option was drawn; None if unknown.
    exploring : bool
        Whether the policy learns from the reward.
    round : int
        Number of the round.
    sequence : int
        Number of the entry in the log.
    model_version : int
        Changes when options are added or retired.
    activated : bool
        Whether it was in use when it was made.
    asked_at : str
        Time of the decision.
    expires_at : str or None
        End of its reward window, if that is a time.
    expires_after_round : int or None
        End of its reward window, if that is a round.
    probabilities : mapping of str to float, or None
        Probabilities of all options that could have been chosen, by name; None if unknown.
    attributes : mapping
        Recorded attributes.
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
    attributes: Mapping[str, Any] = field(default_factory=dict)


_KNOWN = frozenset(one.name for one in fields(RemoteDecision))


class Client:
    """Client of a service of experiments.

    Several threads may use it: each has a separate connection.

    Parameters
    ----------
    url : str
        Address of the service, such as ``"http://127.0.0.1:8000"``.
    token : str, optional
        Token that ``sightline token create`` has printed; none for a service without tokens.
    patience : float
        Seconds for which a request is sent again if the service does not respond.
    timeout : float
        Seconds after which a single attempt is given up.

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
        self._transport = _Transport(url, token, patience, timeout)

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def create(self, experiment: str, **specification: Any) -> dict[str, Any]:
        """Create an experiment; doing so again changes nothing.

        Parameters
        ----------
        experiment : str
            Id: letters, digits, ``.``, ``_`` and ``-``.
        **specification
            ``factors``, ``options``, ``contexts``, ``duel`` or ``stream``; ``noise_std`` or
            ``reward``, ``policy``, ``seed``, ``reward_deadline``, ``on_timeout``,
            ``early_rewards``, ``min_probability``, ``control``, ``stop``, ``description``.
        """
        patience = max(self._transport.patience, _COMPILATION)
        return self._json("PUT", _path(experiment), specification, patience=patience)

    def ask(
        self,
        experiment: str,
        count: int | None = None,
        *,
        unit: str | None = None,
        available: Iterable[str | int] | None = None,
        context: str | int | None = None,
        options: Any = None,
        attributes: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
        activate: bool = True,
        key: str | None = None,
    ) -> Any:
        """Ask for one decision or several; they are durable when this returns.

        Parameters
        ----------
        experiment : str
            Id of the experiment.
        count : int, optional
            Number of decisions.
        unit : str, optional
            Unit of the experiment: the same unit always gets the same decision.
        available : iterable of str or int, optional
            Options that may be chosen this time.
        context : str or int, optional
            Present context.
        options : array_like, shape (k, d), optional
            Features of the options on offer, if they are new in every round.
        attributes : mapping or list of mappings, optional
            What to record beside the decision, or one for each: names with texts, numbers or bools.
        activate : bool
            Whether the decision is used at once; if not, call :meth:`activate` later.
        key : str, optional
            The same key gets the same response, also from another process; random by default.

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
            "options": None if options is None else [[float(x) for x in row] for row in options],
            "attributes": attributes
            if attributes is None or isinstance(attributes, Mapping)
            else list(attributes),
        }
        body = {name: value for name, value in body.items() if value is not None}
        if not activate:
            body["activate"] = False
        answer = self._json("POST", _path(experiment, "decisions"), body, _key_header(key))
        if count is None:
            return _decision(answer)
        return [_decision(one) for one in answer["decisions"]]

    def tell(self, decision: RemoteDecision | str, reward: Any) -> dict[str, Any]:
        """Report the reward of a decision; the same again changes nothing."""
        return self._json("PUT", _decision_path(decision, "reward"), {"reward": reward})

    def tell_many(
        self, rewards: Mapping[str, Any] | Iterable[tuple[RemoteDecision | str, Any]]
    ) -> None:
        """Report the rewards of several decisions, one request each.

        Parameters
        ----------
        rewards : mapping or iterable of pairs
            Decisions or their ids, and rewards.

        Raises
        ------
        RefusedRewardsError
            If some were refused, after all others were reported; ``refused`` maps the ids of their
            decisions to the errors.
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
        """Correct the reward of a decision; an open decision gets its first one.

        Parameters
        ----------
        decision : RemoteDecision or str
            The decision, or its id.
        reward : float or str
            Correct reward.
        key : str, optional
            The same key gets the same response, also after later corrections; random by default.
        """
        path = f"{_decision_path(decision, 'reward')}?amend=1"
        return self._json("PUT", path, {"reward": reward}, _key_header(key))

    def give_up(self, decision: RemoteDecision | str) -> dict[str, Any]:
        """Report that no reward will come."""
        return self._json("PUT", _decision_path(decision, "give-up"))

    def activate(self, decision: RemoteDecision | str) -> dict[str, Any]:
        """Report that a decision is used, which was requested with ``activate=False``."""
        return self._json("PUT", _decision_path(decision, "activation"))

    def add(self, experiment: str, option: str, **values: Any) -> dict[str, Any]:
        """Add an option, with its ``features`` or ``levels``."""
        return self._json("POST", _path(experiment, "options"), {"name": option, **values})

    def retire(self, experiment: str, option: str) -> dict[str, Any]:
        """Stop choosing an option."""
        path = f"{_path(experiment, 'options')}/{quote(option, safe='')}:retire"
        return self._json("POST", path)

    def pause(self, experiment: str) -> dict[str, Any]:
        """Make no decisions until :meth:`resume`."""
        return self._json("POST", _path(experiment, "pause"))

    def resume(self, experiment: str) -> dict[str, Any]:
        """Make decisions again."""
        return self._json("POST", _path(experiment, "resume"))

    def stop(self, experiment: str) -> dict[str, Any]:
        """Make no more decisions, permanently."""
        return self._json("POST", _path(experiment, "stop"))

    def experiments(self) -> list[dict[str, Any]]:
        """List all experiments."""
        return list(self._json("GET", "/v1/experiments")["experiments"])

    def status(self, experiment: str) -> dict[str, Any]:
        """Return the status of an experiment."""
        return self._json("GET", _path(experiment, "status"))

    def estimates(self, experiment: str, delta: float = 0.05) -> list[dict[str, Any]]:
        """Estimate every option; with a control also its difference to that, with an interval."""
        path = f"{_path(experiment, 'estimates')}?{urlencode({'delta': delta})}"
        return list(self._json("GET", path)["estimates"])

    def effects(self, experiment: str, delta: float = 0.05) -> list[dict[str, Any]]:
        """Estimate every effect, with intervals that hold at all rounds at once."""
        path = f"{_path(experiment, 'effects')}?{urlencode({'delta': delta})}"
        return list(self._json("GET", path)["effects"])

    def pending(self, experiment: str) -> list[RemoteDecision]:
        """List decisions that wait for their rewards, the oldest first, 1000 at most."""
        answer = self._json("GET", f"{_path(experiment, 'pending')}?limit=1000")
        return [_decision(one) for one in answer["decisions"]]

    def events(self, experiment: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """Iterate over the events of an experiment."""
        while True:
            query = urlencode({"after": after})
            page = self._json("GET", f"{_path(experiment, 'events')}?{query}")
            if not page["events"]:
                return
            yield from page["events"]
            after = page["next"]

    def export(self, experiment: str, path: str | PathLike[str]) -> None:
        """Write all decisions to a Parquet file."""
        content = self._transport.send("GET", _path(experiment, "export.parquet"))
        with open(path, "wb") as file:
            file.write(content)

    def report(
        self, experiment: str, path: str | PathLike[str] | None = None, delta: float | None = None
    ) -> str:
        """Return the report on an experiment as Markdown, or write it to a file.

        A file ``.html`` gets the page with charts, any other file Markdown.  By default ``delta``
        is the level of the stop rule, or 0.05 without one.
        """
        is_page = path is not None and os.fspath(path).lower().endswith(".html")
        given = {} if delta is None else {"delta": delta}
        query = urlencode({**given, "format": "html" if is_page else "markdown"})
        content = self._transport.send("GET", f"{_path(experiment, 'report')}?{query}").decode()
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        return content

    def tokens(self) -> list[dict[str, Any]]:
        """List all tokens, without their secrets; for admins."""
        return list(self._json("GET", "/v1/tokens")["tokens"])

    def create_token(self, name: str, role: str) -> str:
        """Create a token and return its secret, which is not stored; for admins.

        A lost response loses the token: revoke it, and create another one.
        """
        return str(self._json("POST", "/v1/tokens", {"name": name, "role": role})["token"])

    def revoke_token(self, name: str) -> dict[str, Any]:
        """Revoke a token; for admins."""
        return self._json("DELETE", f"/v1/tokens/{quote(name, safe='')}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection of this thread."""
        self._transport.close()

    def _json(self, *request: Any, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._transport.send(*request, **more))
        return answer


def _path(experiment: str, *parts: str) -> str:
    return "/".join(["/v1/experiments", quote(experiment, safe=""), *parts])


def _decision_path(decision: RemoteDecision | str, part: str) -> str:
    id_ = decision if isinstance(decision, str) else decision.id
    return f"/v1/decisions/{quote(id_, safe='')}/{part}"


def _key_header(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex if key is None else key}


def _decision(answer: Mapping[str, Any]) -> RemoteDecision:
    """Read a decision; a later service may add fields."""
    return RemoteDecision(**{name: value for name, value in answer.items() if name in _KNOWN})


class _OtherResponseError(http.client.HTTPException):
    """The response belongs to another request."""


class _Transport:
    """Connections to a service, one per thread and process.

    Two processes on one connection would read each other's responses.  A forked process therefore
    closes what it has inherited, and every response must name its request.
    """

    def __init__(self, url: str, token: str | None, patience: float, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be such as http://127.0.0.1:8000, got {url!r}")
        self._address = parts
        self._token, self._timeout = token, float(timeout)
        self.patience = float(patience)
        self._own = threading.local()
        self._reached = False

    @property
    def url(self) -> str:
        return self._address.geturl()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()  # the service notices once no process has it open
            self._own.connection = None

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> bytes:
        """Send a request until there is a response, or patience ends; requests are idempotent."""
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        began = time.monotonic()
        deadline = began + (self.patience if patience is None else patience)
        pause = 0.02
        while True:
            wait = pause * random.uniform(0.5, 1.5)
            trouble: Exception
            try:
                status, answer, retry_after = self._try(method, path, content, headers or {})
            except (OSError, http.client.HTTPException) as error:
                self.close()
                trouble = ServiceError(f"{self.url} does not answer: {error!r}")
                if isinstance(error, _OtherResponseError):
                    trouble = ServiceError(f"{self.url} does not answer this request: {error}")
                if not self._reached and isinstance(error, ConnectionRefusedError | gaierror):
                    # probably a wrong address, not a service that restarts
                    deadline = min(deadline, began + _FIRST_CONTACT)
                    trouble = ServiceError(
                        f"no service listens at {self.url} ({error.strerror}): start one with "
                        "sightline serve, or correct the address"
                    )
            else:
                self._reached = True
                if status < 400:
                    return answer
                trouble = _error_of(status, answer)
                if status not in _RETRIED:
                    raise trouble
                wait = max(wait, min(retry_after, _MAX_PAUSE))
            if time.monotonic() + wait > deadline:
                raise trouble
            time.sleep(wait)
            pause = min(2.0 * pause, _MAX_PAUSE)

    def _try(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, float]:
        """Send a request once; return status, body and Retry-After."""
        request = uuid.uuid4().hex
        sent = {"User-Agent": f"sightline/{__version__}", _ECHO: request, **headers}
        if content is not None:
            sent["Content-Type"] = "application/json"
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            connection = self._connection()
            connection.request(method, self._address.path.rstrip("/") + path, content, sent)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:  # also an interrupt: the next request would read this response
            self.close()
            raise
        echo = response.getheader(_ECHO)
        if echo != request and not (echo is None and response.status >= 400):  # None: of a proxy
            self.close()
            raise _OtherResponseError(f"it must name the request in {_ECHO}, got {echo!r}")
        later = response.getheader("Retry-After") or "0"
        return response.status, answer, float(later) if later.isdigit() else 0.0

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self._own, "process", None) != os.getpid():
            self.close()
            self._own.process = os.getpid()
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            host, port = self._address.hostname or "", self._address.port
            if self._address.scheme == "https":
                trusted = ssl.create_default_context()
                found = http.client.HTTPSConnection(
                    host, port, timeout=self._timeout, context=trusted
                )
            else:
                found = http.client.HTTPConnection(host, port, timeout=self._timeout)
            self._own.connection = found
        return found


def _error_of(status: int, answer: bytes) -> Exception:
    """Return the error that a session would have raised."""
    try:
        problem = json.loads(answer)
        detail, kind = str(problem["detail"]), str(problem["type"]).rpartition(":")[2]
    except (ValueError, KeyError, TypeError):  # the response of a proxy
        return ServiceError(f"the service responds with status {status}", status, "http")
    if kind in ("unknown-decision", "closed-decision", "expired-decision"):
        from sightline.sessions import decisions  # imports NumPy, which no other response needs

        names = {404: "UnknownDecisionError", 409: "ClosedDecisionError"}
        error: Exception = getattr(decisions, names.get(status, "ExpiredDecisionError"))(detail)
        return error
    if status in (401, 403):
        return PermissionError(detail)
    if status == 422:
        return ValueError(detail)
    return ServiceError(detail, status, kind)
