"""The OpenAPI document is correct, and no request gets a 500."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.service.store import Store
from sightline.service.tokens import create_token
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running

schemathesis = pytest.importorskip("schemathesis")

PAGE = "/v1/experiments/page"
EXAMPLES = 10  # of every address


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("schema")
    with running(f"sqlite:///{folder}/x.db") as found:
        assert found("PUT", PAGE, SPECIFICATION).status == 201
        yield found


def test_no_request_is_answered_with_500(service: Service) -> None:
    """Requests that fit the document, half of them to an experiment and a decision that exist."""
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 18
    for operation in operations:
        if not operation.path.endswith("/stop") and operation.path != "/v1/tokens":
            attempt(service, operation, {})
    assert {200, 404, 422} <= STATUSES


def test_no_request_about_tokens_is_answered_with_500(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url, serving=False) as store:
        headers = {"Authorization": f"Bearer {create_token(store, 'ops', 'admin')}"}
    with running(url) as service:
        schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json", headers=headers)
        operations = [found.ok() for found in schema.get_all_operations()]
        about = [one for one in operations if one.path.startswith("/v1/tokens")]
        assert len(about) == 3
        for operation in about:
            attempt(service, operation, headers)


STATUSES: set[int] = set()


def attempt(service: Service, operation: Any, headers: dict[str, str]) -> None:
    """Send some requests to an address."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), known=st.booleans())
    def once(case: Any, known: bool) -> None:
        if known and "experiment" in case.path_parameters and case.method != "PUT":
            case.path_parameters["experiment"] = "page"
        if known and "decision" in case.path_parameters:
            made = service("POST", f"{PAGE}/decisions", {})
            if made.status == 200:
                case.path_parameters["decision"] = made.body["id"]
        if isinstance(case.body, dict) and case.method == "PUT" and "reward" not in case.body:
            case.body["policy"] = "IDS"  # whose kernels are there
        response = case.call(headers=headers)
        STATUSES.add(response.status_code)
        assert response.status_code < 500, (case.as_curl_command(), response.text)
        if response.status_code >= 400:
            assert response.headers["content-type"] == ["application/problem+json"]

    once()


BODIES: tuple[bytes, ...] = (
    b"",
    b"null",
    b"[]",
    b"{",
    b'{"reward": NaN}',
    b'{"reward": Infinity}',
    b'{"reward": 1e999}',
    b'{"reward": 1e300}',
    b'{"reward": true}',
    b'{"reward": "\\ud800"}',
    b'{"reward": []}',
    b'{"unit": "\\u0000"}',
    b'{"unit": "\\ud800"}',
    b'{"unit": ""}',
    b'{"count": 1e10}',
    b'{"count": -1}',
    b'{"context": "\\ud800"}',
    b'{"available": []}',
    b'{"available": ["\\ud800"]}',
    b'{"available": [true]}',
    b'{"available": [99999999999999999999]}',
    b'{"name": "\\ud800", "features": [1, 2]}',
    b'{"name": "x", "features": [1e308, 1e308]}',
    b'{"name": "x", "levels": {"a": 1}}',
    b'{"options": {"a": [1e308], "b": [1]}}',
    b'{"options": {"\\ud800": [1], "b": [1]}}',
    b'{"options": {"a": [1], "b": [2]}, "seed": ' + b"9" * 4000 + b"}",
    b'{"options": {"a": [1], "b": [2]}, "policy": {"type": ["x"]}}',
    b'{"options": {"a": [1], "b": [2]}, "policy": {"type": "IDS", "confidence": 3}}',
    b'{"options": {"a": [1], "b": [2]}, "policy": {"type": "IDS", "information": {}}}',
    b'{"options": {"a": [1], "b": [2]}, "reward": {"kind": "bounded", "low": 2, "high": 1}}',
    b'{"options": {"a": [1], "b": [2]}, "description": "\\ud800"}',
    b'{"factors": {"a": []}}',
    b'{"factors": {"a": ["x", "y"]}, "forbidden": [{"a": "x"}, {"a": "y"}]}',
    b'{"contexts": {}}',
    b'{"options": {"a": [1], "b": [2]}, "control": {"a": {}}}',
    b'{"options": {"a": [1], "b": [2]}, "control": "\\ud800"}',
    b'{"options": {"a": [1], "b": [2]}, "stop": {"delta": 1e-400}}',
    b'{"options": {"a": [1], "b": [2]}, "stop": 5}',
    b'{"stream": {"features": ["\\ud800"], "max_arms": 1}}',
    b'{"stream": {"features": ["x"], "max_arms": 99999999999}}',
    b'{"options": [[1e308, 1e308]]}',
    b'{"options": [[], []]}',
    b'{"duel": {"a": [1]}}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    bytes(range(256)),
)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:50]))
def test_hostile_bodies_are_refused(service: Service, body: bytes) -> None:
    made = service("POST", f"{PAGE}/decisions", {}).body["id"]
    for method, path in (
        ("PUT", "/v1/experiments/hostile"),
        ("POST", f"{PAGE}/decisions"),
        ("POST", f"{PAGE}/options"),
        ("PUT", f"/v1/decisions/{made}/reward"),
        ("PUT", f"/v1/decisions/{made}/reward?amend=1"),
    ):
        answer = service(method, path, body, headers={"Content-Type": "application/json"})
        assert answer.status < 500, (path, answer)
        if answer.status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"


def test_hostile_addresses_and_headers(service: Service) -> None:
    for path in ("/v1/experiments/%00", "/v1/experiments/..%2f", "/v1/experiments/" + "x" * 5000):
        assert service("GET", path).status in (404, 422)
    for path in (f"{PAGE}/options/%ff:retire", f"{PAGE}/options/%00:retire"):
        assert service("POST", path).status == 404
    for key in ("", "x" * 300, "é"):
        assert service("POST", f"{PAGE}/decisions", {}, key).status == 422
    for query in ("after=x", "after=-1", "limit=0", "after=" + "9" * 40):
        assert service("GET", f"{PAGE}/events?{query}").status == 422
    assert service("GET", f"{PAGE}/effects?delta=nan").status == 422
    assert service("DELETE", PAGE).status == 405


def test_refusals_say_nothing_of_the_inside(service: Service, tmp_path: Path) -> None:
    for answer in (service("GET", "/nothing"), service("PUT", PAGE, {}), service("GET", "/v1/x")):
        assert "Traceback" not in str(answer.body)
        assert str(Path(__file__).parents[2]) not in str(answer.body)
