"""Pages: content, escaping, forms and roles."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from sightline.service.pages.forms import EMPTY, specification_of
from sightline.service.pages.rendering import ASSETS
from sightline.service.readers import Readers
from sightline.service.store import Store
from sightline.service.tokens import create_token
from tests.report.test_page import VOID, Structure
from tests.service.running import Answer, Service, running

SCRIPT = "<script>alert('x')</script>\"'&{{ 7*7 }}"
LONG = 200 * "W"
HEBREW = "\u05e9\u05dc\u05d5\u05dd (1) \u05e2\u05d5\u05dc\u05dd"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
ROLES = ("reader", "client", "experimenter", "admin")
VOID |= {"input"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def extremes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for experiments with extreme numbers."""
    with running(f"sqlite:///{tmp_path_factory.mktemp('extremes')}/x.db") as found:
        yield found


def begin(service: Service, name: str, **body: Any) -> None:
    whole = {"noise_std": 0.1, "policy": "IDS", "seed": 1, **body}
    made = service("PUT", f"/v1/experiments/{name}", whole)
    assert made.status == 201, made


def play(service: Service, name: str, rounds: int, **question: Any) -> None:
    """Decide, and tell rewards: the last arm has the largest."""
    draws = random.Random(1)
    for _ in range(rounds):
        made = service("POST", f"/v1/experiments/{name}/decisions", question).body
        noisy = 0.8 * made["arm"] + draws.gauss(0.0, 0.1)
        reward = noisy if made["pair"] is None else made["pair"][0]  # who has won
        told = service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": reward})
        assert told.status == 200, told


def text_of(answer: Answer) -> str:
    """Text of a page that is whole, and that a strict policy protects."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text: str = answer.body.decode()
    structure = Structure()
    structure.feed(text)
    assert structure.open == []
    assert len(set(structure.ids)) == len(structure.ids)
    assert all(address.startswith("/") for address in structure.addresses)
    assert re.findall(r"\sstyle=|<style|\son\w+=|<script>", text) == []
    return text


def shown(service: Service, name: str) -> str:
    answer = service("GET", f"/experiments/{name}")
    assert answer.status == 200, answer
    return text_of(answer)


def send(
    service: Service, path: str, headers: dict[str, str] | None = None, /, **fields: str
) -> Answer:
    """Send a form as a page of the service does."""
    origin = {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    body = urlencode(fields).encode()
    return service("POST", path, body, headers={**FORM, **origin, **(headers or {})})


def test_pages_of_a_service_without_experiments(service: Service) -> None:
    text = text_of(service("GET", "/"))
    assert "There are no experiments yet" in text
    assert "Create experiment" in text
    missing = service("GET", "/experiments/none", headers={"Accept": "text/html"})
    assert missing.status == 404
    assert "there is no experiment" in text_of(missing)


def test_an_experiment_from_its_first_decision_until_it_is_settled(service: Service) -> None:
    begin(
        service,
        "page",
        options={"a": [1.0, 0.0], "b": [0.0, 1.0]},
        reward_deadline="2 hours",
        early_rewards=True,
    )
    assert "No results yet: no reward has arrived." in shown(service, "page")
    service("POST", "/v1/experiments/page/decisions", {})
    assert "Window ends" in shown(service, "page")
    play(service, "page", 1)
    assert "too few rewards have arrived for a test" in shown(service, "page")
    play(service, "page", 60)
    settled = shown(service, "page")
    assert re.search(r"<bdi>b</bdi> is best. That is settled: evidence \d+\.\d of \d+\.\d", settled)
    assert settled.count("<svg") == 2 + 3  # options, and figures over time
    listed = text_of(service("GET", "/"))
    assert '<span class="state settled">settled</span>' in listed
    assert '<td data-name="Decisions" class="right">62</td>' in listed


@pytest.mark.parametrize(
    ("body", "question", "words"),
    [
        (
            {"contexts": {"phone": {"a": [1, 0], "b": [0, 1]}, "desk": {"a": [1, 1], "b": [0, 2]}}},
            {"context": "desk"},
            ("Best so far in every context", "phone: a"),
        ),
        ({"duel": {"a": [1, 0], "b": [0, 1]}}, {}, ("2 P(win)",)),
        (
            {"factors": {"picture": ["large", "small"], "text": ["short", "long"]}},
            {},
            ("picture", "large", "Effect, 95 % interval"),
        ),
    ],
)
def test_contexts_duels_and_factors(
    service: Service, body: dict[str, Any], question: dict[str, Any], words: tuple[str, ...]
) -> None:
    begin(service, "x", **body)
    for rounds in (0, 3):
        play(service, "x", rounds, **question)
        text = shown(service, "x")
        assert all(word in text for word in words)


@pytest.mark.parametrize(
    ("body", "rewards"),
    [
        ({}, (-1e30,)),
        ({}, (1e70, -1e70, 1e70)),
        ({}, (1e69,)),
        ({"noise_std": 1e69}, (1e69, -1e30)),
        ({"noise_std": 1e-70}, (1e-70, 5e-324)),
        ({"stop": {"delta": 5e-324}}, (1e13, 1e-13)),
        ({"control": "a"}, (-1e30, 1e70)),
        ({"options": {"a": [1e69], "b": [1.0]}}, (1e69, 1e-300)),
        ({"options": {"a": [1e-320], "b": [0.0]}, "noise_std": 1.0}, (1.0,)),
        ({"options": None, "factors": {"f": [1e300, -1e300, 2**50, 5e-324]}}, (1e30, -1e30)),
        ({"reward_deadline": 1e-9}, (1.0,)),
        ({"reward_deadline": 1e10}, (1e70,)),
        ({"reward_deadline": f"{10**15} rounds"}, (1e70,)),
    ],
    ids=str,
)
def test_numbers_of_any_size_are_shown(
    extremes: Service, body: dict[str, Any], rewards: tuple[float, ...]
) -> None:
    name = f"x{next(NUMBERS)}"
    begin(extremes, name, **{"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, **body})
    for reward in rewards:
        made = extremes("POST", f"/v1/experiments/{name}/decisions", {})
        assert made.status == 200
        told = extremes("PUT", f"/v1/decisions/{made.body['id']}/reward", {"reward": reward})
        assert told.status in (200, 410)
        text = shown(extremes, name)
        drawn = " ".join(re.findall(r' (?:d|cx|x|y)="([^"]*)"', text))
        assert "nan" not in drawn
        assert "inf" not in drawn
        assert re.findall(r"\d{17}|(?:\d{3},){6}", re.sub(r"<[^>]*>", " ", text)) == []
    for part in ("status", "estimates", "effects", "history", "pending"):
        assert extremes("GET", f"/v1/experiments/{name}/{part}").status == 200
    assert "unreadable" not in text_of(extremes("GET", "/"))


@pytest.mark.parametrize("level", [10**301, -(10**400), 10**4000])
def test_levels_beyond_floats_are_refused(extremes: Service, level: int) -> None:
    refused = extremes("PUT", "/v1/experiments/y", {"factors": {"f": ["a", level]}})
    assert refused.status == 422
    assert "must be printable text or a finite number up to 1e+300" in refused.body["detail"]


def test_pages_on_both_databases(database: str) -> None:
    with running(database) as service:
        begin(service, "x", options={"a": [1.0, 0.0], "b": [0.0, 1.0]}, noise_std=1.0)
        play(service, "x", 3)
        assert "Not settled: evidence" in shown(service, "x")
        assert '<td data-name="Decisions" class="right">3</td>' in text_of(service("GET", "/"))


def test_one_experiment_that_cannot_be_read_hides_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("well", "ill"):
        begin(service, name, options={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    read = Readers.replica

    def failing(readers: Readers, experiment: str) -> Any:
        if experiment == "ill":
            raise ValueError("the log says otherwise")
        return read(readers, experiment)

    monkeypatch.setattr(Readers, "replica", failing)
    text = text_of(service("GET", "/"))
    assert '<span class="state unreadable">unreadable</span>' in text
    assert '<span class="state running">running</span>' in text


def test_names_are_text_and_nothing_else(service: Service) -> None:
    rows = {SCRIPT: [1.0, 0.0, 0.0], LONG: [0.0, 1.0, 0.0], HEBREW: [0.0, 0.0, 1.0]}
    begin(service, "x", options=rows, description=f"\u202e{SCRIPT}")
    play(service, "x", 20)
    service("POST", "/v1/experiments/x/decisions", {})
    for text in (shown(service, "x"), text_of(service("GET", "/"))):
        assert "<script>" not in text
        assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&#39;&amp;{{ 7*7 }}" in text
        # isolated, so that marks do not turn around what stands beside them
        assert all("<bdi" in line for line in text.splitlines() if "\u202e" in line)
    factors = {f"{SCRIPT}{i}": [SCRIPT, LONG, HEBREW] for i in range(2)}
    begin(service, "y", factors=factors)
    play(service, "y", 5)
    assert "<script>" not in shown(service, "y")


def test_intervals_of_clicks_hold_the_share_of_clicks(service: Service) -> None:
    """In units of rewards, whatever the estimates are made of."""
    options = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    begin(service, "x", options=options, noise_std=None, reward={"kind": "bernoulli"})
    for i in range(40):
        made = service("POST", "/v1/experiments/x/decisions", {}).body
        service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": float(i % 4 == 0)})
    text = shown(service, "x")
    ends = re.findall(r'class="hint">(\S+) to ([^<]+)</span>', text)
    means = re.findall(r'data-name="Mean reward">([\d.]+)</td>', text)
    assert len(ends) == len(means) == 2
    for (low, high), mean in zip(ends, means, strict=True):
        assert float(low.replace("\u2212", "-")) < float(mean) < float(high)


def test_pages_that_wait_delay_no_decision(service: Service) -> None:
    """More of them than there are threads for readers."""
    begin(service, "x", options={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    shown(service, "x")
    with ThreadPoolExecutor(8) as pool:
        with service.runtime.readers.replica("x"):
            waiting = [pool.submit(shown, service, "x") for _ in range(8)]
            play(service, "x", 5)
            assert not any(page.done() for page in waiting)
        for page in waiting:
            page.result(timeout=60)


def test_an_unchanged_page_is_not_sent_again(service: Service) -> None:
    begin(service, "x", options={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    for path in ("/", "/experiments/x"):
        tag = service("GET", path).headers["etag"]
        assert service("GET", path, headers={"If-None-Match": tag}).status == 304
        service("POST", "/v1/experiments/x/decisions", {})
        assert service("GET", path, headers={"If-None-Match": tag}).status == 200


def test_the_form_creates_experiments(service: Service) -> None:
    made = send(service, "/experiments", name="one", options="a\nb: c\n", policy="IDS")
    assert (made.status, made.headers["location"]) == (303, "/experiments/one")
    wanted = service("GET", "/v1/experiments/one").body["specification"]
    assert wanted["options"] == ["a", "b: c"]
    assert wanted["reward"]["kind"] == "bernoulli"


def test_the_form_knows_every_kind_of_experiment() -> None:
    """Policy, contexts, duels, kinds of rewards, control and stop rule, as in the API."""
    forms: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
        "contexts": (
            {
                "kind": "contexts",
                "contexts": "phone / a\nphone / b\ndesk / a\n desk/b",
                "control": "a",
                "policy": "LinUCB",
                "reward": "counts",
            },
            {
                "contexts": {"phone": ["a", "b"], "desk": ["a", "b"]},
                "control": "a",
                "policy": "LinUCB",
                "reward": {"kind": "poisson", "std": None, "link": None, "low": None, "high": None},
            },
        ),
        "duel": (
            {"kind": "duel", "options": "a: 1, 0\nb: 0, 1", "control": "b", "policy": "LinUCB"},
            {"duel": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "reward": None, "control": "b"},
        ),
        "factors": (
            {
                "kind": "factors",
                "factors": "p: x, y\nq: v, w",
                "control": "x, w",
                "stop": "commit",
                "delta": "0.01",
                "min_probability": "0.1",
                "policy": "IDS",
                "reward": "numbers",
                "std": "0.5",
            },
            {
                "control": {"p": "x", "q": "w"},
                "stop": {"delta": 0.01, "action": "commit"},
                "min_probability": 0.1,
                "policy": {"type": "IDS", "regulariser": "matched"},
            },
        ),
    }
    for fields, expected in forms.values():
        wanted = specification_of({**EMPTY, **fields}).model_dump()
        assert {field: wanted[field] for field in expected} == expected


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "a/b", "options": "a\nb"}, "the name must have letters"),
        ({"name": "x", "options": "a"}, "at least two options"),
        ({"name": "x", "options": "a\na"}, "two options have the name"),
        ({"name": "x", "options": "a: 1\nb"}, "either all options have features or none"),
        ({"name": "x", "kind": "factors", "factors": "a"}, "a factor is a name"),
        ({"name": "x", "options": "a\nb", "reward": "numbers", "std": "-1"}, "greater than 0"),
        ({"name": "x", "options": "a\nb", "reward": "bounded"}, "smallest reward must be a number"),
        ({"name": "x", "options": "a\nb", "window": "soon"}, "reward_window"),
        ({"name": "x", "options": "a\nb", "seed": SCRIPT}, "seed"),
        (
            {"name": "x", "options": "a\nb", "kind": SCRIPT},
            "kind must be options, factors, contexts or duel",
        ),
        ({"name": "x", "options": "a\nb", "policy": SCRIPT}, "type must be one of"),
        (
            {"name": "x", "options": "a\nb", "control": "c"},
            "control: no option has the name",
        ),
        ({"name": "x", "options": "a\nb", "stop": "notify", "delta": "2"}, "less than 1"),
        ({"name": "x", "options": "a\nb", "stop": "never"}, "stop.action"),
        (
            {"name": "x", "options": "a\nb", "min_probability": "0.9"},
            "min_probability must be at most 1/2",
        ),
        ({"name": "x", "kind": "contexts", "contexts": "a\nb"}, "context / option"),
        ({"name": "x", "kind": "contexts", "contexts": "a/b\na / b"}, "two options have the name"),
        (
            {"name": "x", "kind": "factors", "factors": "p: x, y", "control": "x, y"},
            "a level of each of 1 factors",
        ),
    ],
)
def test_a_form_that_is_wrong_comes_back(
    nothing_begun: Service, fields: dict[str, str], words: str
) -> None:
    answer = send(nothing_begun, "/experiments", **fields)
    assert answer.status == 422
    text = text_of(answer)
    assert words in text
    assert 'role="alert"' in text
    assert nothing_begun("GET", "/v1/experiments").body["experiments"] == []


def test_pause_resume_and_stop(service: Service) -> None:
    begin(service, "x", options={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    for verb, phase in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
        assert send(service, f"/experiments/x/{verb}").status == 303
        assert service("GET", "/v1/experiments/x/status").body["phase"] == phase
        assert f'<span class="state {phase}">' in shown(service, "x")
    assert send(service, "/experiments/x/resume").status == 409
    assert send(service, "/experiments/x/other").status == 404
    assert "<button" not in shown(service, "x")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {},
    ],
)
def test_forms_of_other_sites_are_refused(service: Service, headers: dict[str, str]) -> None:
    begin(service, "x", options={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    for path in ("/experiments/x/stop", "/experiments"):
        body = urlencode({"name": "y", "options": "a\nb"}).encode()
        answer = service("POST", path, body, headers={**FORM, **headers})
        assert answer.status == 403
    assert service("GET", "/v1/experiments/x/status").body["phase"] == "running"
    assert len(service("GET", "/v1/experiments").body["experiments"]) == 1


def test_sign_in_and_what_each_role_may_do(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url, serving=False) as store:
        tokens = {role: create_token(store, role, role) for role in ROLES}
    with running(url, token_refresh=0.0) as service:
        asked = service("GET", "/experiments/x", headers={"Accept": "text/html"})
        assert asked.status == 401
        assert 'name="back" value="/experiments/x"' in text_of(asked)
        assert send(service, "/sign-in", token="sl_wrong").status == 401
        admin = {"Authorization": f"Bearer {tokens['admin']}"}
        cheap = {"policy": "IDS", "reward": "numbers", "std": "0.1"}  # to compile
        made = send(service, "/experiments", admin, name="x", options="a\nb", **cheap)
        assert made.status == 303
        for role in ROLES:
            cookie = signed_in(service, tokens[role])
            text = text_of(service("GET", "/experiments/x", headers={"Cookie": cookie}))
            allowed = role in ("experimenter", "admin")
            assert ("Stop permanently" in text) == allowed
            assert "Sign out" in text
            done = send(service, "/experiments/x/pause", {"Cookie": cookie})
            assert done.status == (303 if allowed else 403)
            listed = text_of(service("GET", "/", headers={"Cookie": cookie}))
            assert ("Create experiment" in listed) == allowed
        out = send(service, "/sign-out", {"Cookie": cookie})
        assert 'sightline_token=""' in out.headers["set-cookie"]
        for name, asset in ASSETS.items():
            assert service("GET", f"/pages/{name}").body == asset.content


def signed_in(service: Service, token: str) -> str:
    """Sign in, check the cookie, and return it."""
    answer = send(service, "/sign-in", token=token, back="/experiments/x")
    assert (answer.status, answer.headers["location"]) == (303, "/experiments/x")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    host = {"Host": "sightline.example", "Origin": "https://sightline.example"}
    assert "Secure" in send(service, "/sign-in", host, token=token).headers["set-cookie"]
    away = send(service, "/sign-in", token=token, back="//evil.example")
    assert away.headers["location"] == "/"
    return cookie.split(";")[0]
