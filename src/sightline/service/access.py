"""What all addresses share: who may use them, what their parts are, and how they answer."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request
from fastapi.responses import JSONResponse

from sightline.service.heart import Heart
from sightline.service.problems import Problem
from sightline.service.tokens import Role

__all__ = [
    "ADMIN",
    "CLIENT",
    "EXPERIMENTER",
    "READER",
    "Decision",
    "Experiment",
    "Json",
    "Key",
    "heart_of",
]

Experiment = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Id of the experiment.")
]
Decision = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$", description="Id of the decision.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="The same request under the same key gets the same answer.",
    ),
]


_written = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # made once


class Json(JSONResponse):
    """JSON without spaces; numbers that it has not are null before they come here."""

    def render(self, content: Any) -> bytes:
        """Write the body."""
        return _written(content).encode()


def heart_of(request: Request) -> Heart:
    """Find the service that a request has come to."""
    heart: Heart = request.app.state.heart
    return heart


def _needs(role: Role) -> Any:
    """Let pass whoever has this role, or a higher one."""

    async def check(request: Request) -> None:
        held = request.scope.get("state", {}).get("role")
        if held is None or held < role:
            raise Problem(
                403, "forbidden", f"this needs a token with the role {role.name.lower()} or higher"
            )

    return Depends(check)


READER, CLIENT = [_needs(Role.READER)], [_needs(Role.CLIENT)]
EXPERIMENTER, ADMIN = [_needs(Role.EXPERIMENTER)], [_needs(Role.ADMIN)]
