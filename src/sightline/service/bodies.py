"""What requests carry, as the OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WrapValidator,
    field_validator,
    model_validator,
)

from sightline.validation import LARGEST

__all__ = [
    "Addition",
    "NewToken",
    "Outcome",
    "Question",
    "Reward",
    "Specification",
    "Stop",
    "Stream",
    "place_of",
]

T = TypeVar("T")

#: Names whose values are checked at a time.
_CHUNK = 1000
#: With two levels each there are more combinations than any number of options that is allowed.
_MOST_FACTORS = 60


def _by_chunks(value: Any, check: Callable[[Any], Any]) -> Any:
    """Check a mapping up to the first mistakes: a list of all of them may take seconds."""
    if not isinstance(value, dict) or len(value) <= _CHUNK:
        return check(value)
    items, found = list(value.items()), {}
    for start in range(0, len(items), _CHUNK):
        found.update(check(dict(items[start : start + _CHUNK])))
    return found


# lists and mappings of any length, of which only the first mistakes are found
Many = Annotated[list[T], Field(fail_fast=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
#: What a column of the database can hold, and a person can tell apart.
Unit = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Features = Annotated[Many[float], Field(min_length=1, max_length=1000)]
Level = str | int | float | bool
Named = Annotated[dict[Name, T], WrapValidator(_by_chunks)]
# told apart beforehand, so that a refusal is about what was meant
OptionSet = Annotated[
    Annotated[Named[Features], Tag("<features>")]
    | Annotated[Many[Name], Field(min_length=1, max_length=10_000), Tag("<names>")],
    Discriminator(lambda value: "<names>" if isinstance(value, list) else "<features>"),
]


def place_of(error: Mapping[str, Any]) -> str:
    """Say where in a body a mistake is, without the tags above, which were not sent."""
    return ".".join(str(part) for part in error["loc"] if part not in ("<features>", "<names>"))


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_names(cls, value: Any) -> Any:
        """Refuse many names at once, of which most are unknown."""
        if isinstance(value, dict) and len(value) > 2 * len(cls.model_fields):
            raise ValueError(f"there may be {len(cls.model_fields)} names, got {len(value)}")
        return value


class Reward(_Body):
    """What rewards are: normal, within bounds, 0 or 1, or counts."""

    kind: Literal["gaussian", "bounded", "bernoulli", "poisson"]
    std: float | None = Field(
        None, gt=0, le=LARGEST, description="Of Gaussian rewards; none if it is to be learned."
    )
    link: Literal["logistic", "identity"] | None = Field(
        None, description="Of Bernoulli rewards: logistic by default."
    )
    low: float | None = Field(None, description="Least reward, of bounded ones.")
    high: float | None = Field(None, description="Largest reward, of bounded ones.")


class Stop(_Body):
    """When an experiment is settled, and what happens then."""

    delta: float = Field(
        0.05, gt=0, lt=1, description="Probability with which it may ever be settled wrongly."
    )
    action: Literal["notify", "commit"] = Field(
        "notify", description="Say so, or play the winner from then on."
    )


class Stream(_Body):
    """Options that are new in every round: they come with the question."""

    features: Many[Name] = Field(
        min_length=1, max_length=1000, description="Name of every feature."
    )
    most: int = Field(ge=1, le=10_000, description="Largest number of options in one question.")


class Specification(_Body):
    """An experiment: its options, and how to choose among them."""

    options: OptionSet | None = Field(
        None, description="Features of every option, or names of options that are independent."
    )
    factors: Named[Many[Level]] | None = Field(
        None, description="Levels of every factor: all their combinations are the options."
    )
    interactions: Literal["none", "pairs"] | Many[Many[Name]] = Field(
        "none", description="Which factors interact."
    )
    forbidden: Many[Named[Level]] = Field([], description="Combinations to leave out.")
    contexts: Named[OptionSet] | None = Field(
        None, description="Options of every context, as of options."
    )
    duel: OptionSet | None = Field(None, description="Options that are compared two at a time.")
    stream: Stream | None = Field(
        None, description="Features of options that are new in every round."
    )
    noise_std: float | Many[float] | None = Field(
        None,
        description="Sub-Gaussian parameter of the rewards, of all or of each option; learned by "
        "default.",
    )
    reward: Reward | None = Field(None, description="In place of noise_std: what rewards are.")
    policy: str | dict[str, Any] | None = Field(
        None, description='Name of a policy, or {"type": name, ...}; Stakes by default.'
    )
    seed: int | None = Field(None, ge=0, description="By default a random one.")
    reward_deadline: float | str | None = Field(
        None, description='Seconds, 1e10 at most, or a text such as "2 hours" or "500 rounds".'
    )
    on_timeout: Literal["ignore"] | float = Field(
        "ignore", description="What is learned when no reward came in time."
    )
    early_rewards: bool = Field(
        False,
        description="Learn from rewards when they are told, not when their deadline has passed.  "
        "Right only if whether and when a reward is told does not depend on the reward.",
    )
    floor: float = Field(0.0, ge=0, le=1, description="Least probability of every option.")
    control: Name | Named[Level] | None = Field(
        None,
        description="Option that all others are compared to, by name or by its levels; with "
        "contexts, a name that each of them has.",
    )
    stop: Stop | None = Field(None, description="By default it is never settled at a fixed level.")
    description: str = Field("", max_length=2000, description="For people.")

    @field_validator("factors", mode="before")
    @classmethod
    def _few_factors(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _MOST_FACTORS:
            raise ValueError(f"there may be {_MOST_FACTORS} factors at most, got {len(value)}")
        return value


class Question(_Body):
    """Ask which option to choose now."""

    unit: Unit | None = Field(
        None, description="Who it is for; the same unit always gets the same decision."
    )
    count: int | None = Field(None, ge=1, description="How many decisions to make at once.")
    available: Many[str | int] | None = Field(
        None, description="Options that may be chosen this time; by default all."
    )
    context: str | int | None = Field(None, description="The present context.")
    actions: Many[Features] | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        description="Features of every option, where they are new in every round.",
    )
    activate: bool = Field(
        True,
        description="Whether the decision is used at once.  If not, and it is never activated, "
        "nothing is learned from it.",
    )


class Outcome(_Body):
    """What a decision has led to."""

    reward: float | str | Many[float] = Field(
        description="A number; in a duel the name of the winner as well."
    )


class NewToken(_Body):
    """A token to be made."""

    name: str = Field(description="Letters, digits, '.', '_' and '-', 100 at most.")
    role: Literal["reader", "client", "experimenter", "admin"]


class Addition(_Body):
    """An option that joins a running experiment."""

    name: Name
    features: Features | None = Field(None, description="Not with levels.")
    levels: Named[Level] | None = Field(None, description="In a factorial design.")
    noise_std: float | None = Field(None, description="Where every option has its own.")
