"""``sightline plan``: simulate an experiment before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import announce_compilation, errors_as_messages, json_text

if TYPE_CHECKING:
    from sightline.report.plan import Plan


def plan(
    problem: Annotated[
        str | None,
        typer.Argument(
            help="Problem whose arms are the options, such as a .json file with actions and "
            "theta; not with --factor."
        ),
    ] = None,
    factor: Annotated[
        list[str] | None, typer.Option(help="Factor and its levels, picture=large,small; repeat.")
    ] = None,
    interaction: Annotated[
        list[str] | None,
        typer.Option(help="Factors that interact, picture:text; or pairs."),
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="Combination to exclude, picture=large,text=long.")
    ] = None,
    mean: Annotated[float, typer.Option(help="Mean reward over all combinations.")] = 0.0,
    effect: Annotated[
        list[str] | None,
        typer.Option(help="Effect of a level, picture=large:0.02; repeat."),
    ] = None,
    noise_std: Annotated[
        float | None, typer.Option(help="Standard deviation of the rewards; 1 by default.")
    ] = None,
    clicks: Annotated[bool, typer.Option("--clicks", help="Rewards are 0 or 1.")] = False,
    rewards: Annotated[
        str | None,
        typer.Option(
            help="Likelihood that the policy uses: clicks with effects on rates (identity) or on "
            "log odds (logistic), or counts with effects on logarithms."
        ),
    ] = None,
    traffic_per_day: Annotated[float, typer.Option(help="Visitors per day.")] = 1000.0,
    policy: Annotated[str, typer.Option(help="Policy, such as thompson-sampling.")] = "stakes",
    horizon: Annotated[
        str | None,
        typer.Option(help="Total visitors, such as 20000 or 10^5; by default those of 30 days."),
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Simulated runs; by default as many as take seconds.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same plan.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers as JSON.")] = False,
) -> None:
    """Simulate an experiment before it begins: evidence and cumulative regret by day and week.

    Example: sightline plan --factor picture=large,small --factor text=short,long --mean 0.075
    --effect picture=large:0.02 --effect text=short:0.01 --clicks --traffic-per-day 2000
    """
    with errors_as_messages(f"cannot read {problem}" if problem is not None else ""):
        from sightline.cli.arguments import parse_policies
        from sightline.report.plan import plan as make_plan
        from sightline.simulation.simulate import parse_rounds

        given: list[object] = [factor, interaction, forbid, effect, mean or None]
        given += [noise_std, clicks or None, rewards]
        if problem is None:
            supposed = _factorial(factor, interaction, forbid, effect, mean)
            supposed |= _rewards(noise_std, clicks, rewards)
        elif any(value is not None for value in given):
            raise ValueError("a problem defines options and rewards; give it or --factor, not both")
        else:
            supposed = _from_problem(problem)
        (chosen,) = parse_policies([policy]).values()
        announce_compilation()
        made = make_plan(
            **supposed,
            traffic_per_day=traffic_per_day,
            policy=chosen,
            horizon=None if horizon is None else parse_rounds("--horizon", horizon),
            replications=replications,
            seed=seed,
        )
        typer.echo(json_text(_values(made)) if as_json else str(made))


def _factorial(
    factor: list[str] | None,
    interaction: list[str] | None,
    forbid: list[str] | None,
    effect: list[str] | None,
    mean: float,
) -> dict[str, Any]:
    """Parse options and effects."""
    from sightline.sessions.designs import GRAND_MEAN, factorial

    factors = dict(_pair("--factor", text) for text in factor or [])
    if not factors:
        raise ValueError("give a problem, or factors: --factor picture=large,small")
    levels = {name: [level.strip() for level in text.split(",")] for name, text in factors.items()}
    terms: Any = [text.split(":") for text in interaction or []]
    options = factorial(
        levels,
        "pairs" if terms == [["pairs"]] else terms,
        [dict(_pair("--forbid", item) for item in text.split(",")) for text in forbid or []],
    )
    effects: dict[str, Any] = {GRAND_MEAN: mean}
    for text in effect or []:
        term, rest = _pair("--effect", text)
        level, sign, value = rest.rpartition(":")
        if not sign:
            raise ValueError(f"--effect is written picture=large:0.02, got {text!r}")
        effects.setdefault(term, {})[level.strip()] = _number("--effect", value)
    return {"options": options, "effects": effects}


def _pair(option: str, text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"{option} must be written name=value, got {text!r}")
    return name.strip(), value.strip()


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} needs a number, got {text!r}") from None


def _rewards(noise_std: float | None, clicks: bool, likelihood: str | None) -> dict[str, Any]:
    from sightline.core import likelihood as families
    from sightline.problems.noise import BernoulliNoise
    from sightline.validation import one_of

    if likelihood is not None:
        if clicks or noise_std is not None:
            raise ValueError("--rewards defines the rewards; leave out --clicks and --noise-std")
        links = {link: families.Bernoulli(link) for link in ("identity", "logistic")}
        known = {**links, "counts": families.Poisson()}
        return {"rewards": known[one_of("--rewards", likelihood, known)]}
    if not clicks:
        return {"noise_std": noise_std}
    if noise_std is None:
        return {"rewards": families.Bernoulli("identity")}  # effects are on rates
    return {"noise": BernoulliNoise(noise_std)}


def _from_problem(text: str) -> dict[str, Any]:
    from sightline.cli.arguments import parse_bandit

    problem = parse_bandit(text)
    rewards = problem.likelihood or problem.unknown_noise
    supposed = {"options": problem.actions, "means": problem.means, "rewards": rewards}
    if problem.likelihood is not None:
        return supposed
    if isinstance(problem.noise_std, float):
        return {**supposed, "noise": problem.noise}
    return {**supposed, "noise_std": problem.noise_std}


def _values(made: Plan) -> dict[str, Any]:
    totals = ("equal_split_visitors", "reward", "reward_error", "equal_split_reward")
    losses = ("best_reward", "least_loss", "least_exploration")
    return {
        **{name: getattr(made, name) for name in ("marks", "in_front", "shortfall")},
        "settled": made.settled,
        "right": made.right,
        "median_visitors": made.visitors_quantile(0.5),
        "late_visitors": made.visitors_quantile(0.9),
        "median_days": made.days_quantile(0.5),
        "late_days": made.days_quantile(0.9),
        **{name: getattr(made, name) for name in (*totals, *losses)},
    }
