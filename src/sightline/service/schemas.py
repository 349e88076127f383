"""Request bodies, as the OpenAPI document describes them."""

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

T = TypeVar("T")

#: Names of experiments, which are part of addresses, and of tokens.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_CHUNK = 1000  # entries of a mapping that are validated together
#: With two levels each, more factors have more combinations than any allowed number of options.
_MAX_FACTORS = 60


def _in_chunks(value: Any, check: Callable[[Any], Any]) -> Any:
    """Validate a mapping up to the first chunk with errors: listing all of them takes seconds."""
    if not isinstance(value, dict) or len(value) <= _CHUNK:
        return check(value)
    items, found = list(value.items()), {}
    for start in range(0, len(items), _CHUNK):
        found.update(check(dict(items[start : start + _CHUNK])))
    return found


# lists and mappings of any length; validation stops at the first errors
Many = Annotated[list[T], Field(fail_fast=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
# control characters do not fit a column of the database, and people cannot tell them apart
Unit = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Features = Annotated[Many[float], Field(min_length=1, max_length=1000)]
Level = str | int | float | bool
Named = Annotated[dict[Name, T], WrapValidator(_in_chunks)]
# a discriminator, so that errors refer to the alternative that the client meant
OptionSet = Annotated[
    Annotated[Named[Features], Tag("<features>")]
    | Annotated[Many[Name], Field(min_length=1, max_length=10_000), Tag("<names>")],
    Discriminator(lambda value: "<names>" if isinstance(value, list) else "<features>"),
]

Attributes = Named[Level]
AttributeSets = Annotated[
    Annotated[Attributes, Tag("<one>")] | Annotated[Many[Attributes], Tag("<each>")],
    Discriminator(lambda value: "<each>" if isinstance(value, list) else "<one>"),
]
_TAGS = ("<features>", "<names>", "<one>", "<each>")


def location_of(error: Mapping[str, Any]) -> str:
    """Return where in a body an error is, without the tags of the discriminator."""
    return ".".join(str(part) for part in error["loc"] if part not in _TAGS)


class _Body(BaseModel):
    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, frozen=True, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """Refuse a body with many unknown fields at once, instead of one by one."""
        if isinstance(value, dict) and len(value) > 2 * len(cls.model_fields):
            raise ValueError(f"there may be {len(cls.model_fields)} names, got {len(value)}")
        return value


class RewardKind(_Body):
    """Kind of the rewards: Gaussian, bounded, 0 or 1, or counts."""

    kind: Literal["gaussian", "bounded", "bernoulli", "poisson"]
    std: float | None = Field(None, gt=0, le=LARGEST)
    """Standard deviation of Gaussian rewards; learned by default."""
    link: Literal["logistic", "identity"] | None = None
    """Link function of Bernoulli rewards; logistic by default."""
    low: float | None = None
    """Smallest bounded reward."""
    high: float | None = None
    """Largest bounded reward."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Smallest and largest reward of bounded rewards, else None."""
        if self.kind != "bounded":
            return None
        if self.low is None or self.high is None or not self.low < self.high:
            raise ValueError(
                f"a bounded reward needs low below high, got {self.low} and {self.high}"
            )
        return self.low, self.high


class StopRule(_Body):
    """When an experiment is settled, and what happens then."""

    delta: float = Field(0.05, gt=0, lt=1)
    """Probability of ever settling on a wrong option."""
    action: Literal["notify", "commit"] = "notify"
    """Report it, or choose the best option from then on."""


class StreamOptions(_Body):
    """Options that are new in every round: each request for a decision carries them."""

    features: Many[Name] = Field(min_length=1, max_length=1000)
    """Name of every feature."""
    max_arms: int = Field(ge=1, le=10_000)
    """Largest number of options in one request."""


class Specification(_Body):
    """An experiment: its options, and how to choose among them."""

    options: OptionSet | None = None
    """Features of every option, or names of independent options."""
    factors: Named[Many[Level]] | None = None
    """Levels of every factor; all their combinations are the options."""
    interactions: Literal["none", "pairs"] | Many[Many[Name]] = "none"
    """Which factors interact."""
    forbidden: Many[Named[Level]] = []
    """Combinations to leave out."""
    contexts: Named[OptionSet] | None = None
    """Options of every context, in the form of options."""
    duel: OptionSet | None = None
    """Options that are compared two at a time."""
    stream: StreamOptions | None = None
    """Features of options that are new in every round."""
    noise_std: float | Many[float] | None = None
    """Sub-Gaussian parameter of the rewards, of all options or of each; learned by default."""
    reward: RewardKind | None = None
    """Kind of the rewards, in place of noise_std."""
    policy: str | dict[str, Any] | None = None
    """Name of a policy, or {"type": name, ...}; Stakes by default."""
    seed: int | None = Field(None, ge=0)
    """Random by default."""
    reward_deadline: float | str | None = None
    """Seconds, 1e10 at most, or a text such as "2 hours" or "500 rounds"."""
    on_timeout: Literal["ignore"] | float = "ignore"
    """Reward that is learned when none arrives before the deadline."""
    early_rewards: bool = False
    """Learn from rewards when they arrive, not at their deadline.  Valid only if whether and when a
    reward arrives does not depend on the reward."""
    min_probability: float = Field(0.0, ge=0, le=1)
    """Smallest probability of every option."""
    control: Name | Named[Level] | None = None
    """Option that all others are compared to, by name or by its levels; with contexts, a name that
    each of them has."""
    stop: StopRule | None = None
    """Rule by which the experiment is settled; none by default."""
    description: str = Field("", max_length=2000)
    """Text for people."""

    @field_validator("factors", mode="before")
    @classmethod
    def _few_factors(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _MAX_FACTORS:
            raise ValueError(f"there may be {_MAX_FACTORS} factors at most, got {len(value)}")
        return value


class DecisionRequest(_Body):
    """Request for one decision or several."""

    unit: Unit | None = None
    """Unit of the experiment; the same unit always gets the same decision."""
    count: int | None = Field(None, ge=1)
    """Number of decisions."""
    available: Many[str | int] | None = None
    """Options that may be chosen this time; all by default."""
    context: str | int | None = None
    """Present context."""
    options: Many[Features] | None = Field(None, min_length=1, max_length=10_000)
    """Features of every option, if options are new in every round."""
    attributes: AttributeSets | None = None
    """What to record beside the decision, by name, such as the country of the visitor: 20 at most,
    of 1000 bytes as JSON; one object for all decisions, or a list of one for each.  Exported, and
    never used to decide."""
    activate: bool = True
    """Whether the decision is used at once.  If not, and it is never activated, nothing is learned
    from it."""


class RewardReport(_Body):
    """Outcome of a decision."""

    reward: float | str | Many[float]
    """A number; in a duel also the name of the winner."""


class NewToken(_Body):
    """A token to create."""

    name: str
    """Letters, digits, '.', '_' and '-', 100 at most."""
    role: Literal["reader", "client", "experimenter", "admin"]


class NewOption(_Body):
    """An option to add to a running experiment."""

    name: Name
    features: Features | None = None
    """Features, unless levels are given."""
    levels: Named[Level] | None = None
    """Levels, in a factorial design."""
    noise_std: float | None = None
    """Noise level, if every option has a separate one."""
