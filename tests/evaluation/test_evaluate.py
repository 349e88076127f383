"""What ``sl.evaluate`` answers, refuses and says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sightline as sl
from sightline.evaluation import read_open_bandit, read_vw
from sightline.evaluation.estimators import TargetPolicy, scores
from sightline.evaluation.intervals import gamma_exponential
from sightline.evaluation.log import read_log
from tests.evaluation.helpers import COLUMNS, MEANS, NAMES, clicks

FRAME = clicks(3000, seed=1)


def evaluate(target: Any, control: Any = None, **settings: Any) -> Any:
    return sl.evaluate(FRAME, target, control, **{"columns": COLUMNS} | settings)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[sl.Session]:
    """A session of IDS, whose other options have probability 0 in most decisions."""
    pages = sl.Session.open(
        tmp_path / "s.db", ["A", "B", "C"], sl.IDS(), rewards=sl.Bernoulli("identity")
    )
    with pages:
        yield pages


def tell(session: sl.Session, count: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        decision = session.ask()
        session.tell(decision, float(rng.random() < MEANS[decision.arm]))


@pytest.mark.parametrize("method", ["dr", "ips", "snips", "aipw", "switch", "shrinkage"])
@pytest.mark.parametrize("interval", ["anytime", "bernstein", "asymptotic", "normal"])
def test_every_interval_contains_the_truth(method: str, interval: str) -> None:
    if interval == "bernstein" and method in ("snips", "aipw"):
        with pytest.raises(ValueError, match="bernstein"):
            evaluate("B", method=method, interval=interval)
        return
    found = evaluate("B", "A", method=method, interval=interval, delta=0.01)
    parts: list[tuple[Any, float]] = [
        (found, MEANS[1]),
        (found.control_value, MEANS[0]),
        (found.difference, MEANS[1] - MEANS[0]),
    ]
    for part, truth in parts:
        assert part.lower <= truth <= part.upper
        assert part.lower <= part.value <= part.upper
    assert found.uplift.lower <= MEANS[1] / MEANS[0] - 1.0 <= found.uplift.upper


def test_the_sentence_has_the_units_people_use() -> None:
    found = evaluate("B", "A")
    text = str(found)
    assert text.startswith(f"B converts {100 * found.value:.3g} %, A ")
    assert f"{100 * found.uplift.value:+.3g} % (95 %: " in text
    assert "valid whenever you look" in text
    assert "one look" in str(evaluate("B", interval="normal"))
    amounts = FRAME.assign(reward=FRAME["reward"] * 7.5)
    found = sl.evaluate(amounts, "B", columns=COLUMNS, reward_range=(0, 10))
    assert str(found).startswith(f"B earns {found.value:.4g} per decision")
    assert found.interval == "betting"
    found = sl.evaluate(amounts, "B", columns=COLUMNS)
    assert found.interval == "asymptotic"
    assert "range of the rewards is not known" in str(found)


def test_values_scale_with_the_rewards() -> None:
    plain = evaluate("B", "A")
    moved = sl.evaluate(
        FRAME.assign(reward=20.0 * FRAME["reward"] + 10.0),
        "B",
        "A",
        columns=COLUMNS,
        reward_range=(10, 30),
    )
    assert moved.control_value is not None
    own = sl.types.Interval(moved.value, moved.lower, moved.upper)
    for one, other in ((own, plain), (moved.control_value, plain.control_value)):
        assert (one.lower, one.upper) == pytest.approx(
            (20.0 * other.lower + 10.0, 20.0 * other.upper + 10.0)
        )
    assert moved.difference is not None
    assert moved.difference.lower == pytest.approx(20.0 * plain.difference.lower)
    assert moved.uplift is not None
    assert moved.uplift.lower <= 20.0 / 16.0 - 1.0 <= moved.uplift.upper
    negative = FRAME.assign(reward=FRAME["reward"] - 0.5)
    found = sl.evaluate(negative, "B", "A", columns=COLUMNS, reward_range=(-0.5, 0.5))
    assert found.uplift is None


def test_groups_mixtures_and_policies() -> None:
    half = evaluate(("A", "B"))
    assert half.value == evaluate({"A": 0.5, "B": 0.5}).value
    assert half.value == evaluate(np.array([0.5, 0.5, 0.0])).value
    n = len(FRAME)
    frame = FRAME.assign(mobile=np.arange(n) % 2 == 0)
    series = pd.Series(np.where(frame["mobile"], "A", "B"))
    found = sl.evaluate(frame, series, columns=COLUMNS)
    table = pd.DataFrame({"A": frame["mobile"] * 1.0, "B": ~frame["mobile"] * 1.0})
    assert found.value == sl.evaluate(frame, table, columns=COLUMNS).value

    def by_device(row: Any) -> str:
        assert {"reward", "action", "probability", "p_A"}.isdisjoint(row)
        return "A" if row["mobile"] else "B"

    assert found.value == sl.evaluate(frame, by_device, columns=COLUMNS).value


def test_lists_and_segments_are_tables() -> None:
    found = evaluate(["A", "B", "best so far"], "C")
    assert isinstance(found, sl.types.Evaluations)
    table = found.frame()
    assert table["target"].tolist() == ["A", "B", "the best so far"]
    assert table["value"][1] == evaluate("B", "C").value == found[1].value
    frame = FRAME.assign(**{"attribute:country": np.where(np.arange(len(FRAME)) % 3, "DE", "FR")})
    parts = sl.evaluate(frame, "B", columns=COLUMNS, by="country")
    assert [one.segment for one in parts] == ["DE", "FR"]
    german = frame[frame["attribute:country"] == "DE"]
    assert parts[0].value == pytest.approx(sl.evaluate(german, "B", columns=COLUMNS).value)
    with pytest.raises(ValueError, match="by must be a column"):
        sl.evaluate(frame, "B", columns=COLUMNS, by="town")


def test_intervals_of_the_best_option_hold_for_all() -> None:
    best = evaluate("best")
    assert best.target == "B"
    assert (best.lower, best.upper) == (
        evaluate("B", delta=0.05 / 3).lower,
        evaluate("B", delta=0.05 / 3).upper,
    )
    assert "3 options" in best.notes[0]
    against = evaluate("best", "A")
    assert against.difference == evaluate("B", "A", delta=0.05 / 2).difference
    with pytest.raises(ValueError, match="control must not be 'best'"):
        evaluate("A", "best")


def test_what_had_probability_0_is_not_estimated(session: sl.Session) -> None:
    tell(session, 400)
    found = sl.evaluate(session, "C")
    assert math.isnan(found.value)
    assert math.isnan(found.lower)
    assert found.support < 1.0
    assert "min_probability" in str(found)
    assert found.model is not None
    assert found.model.lower < MEANS[2] < found.model.upper
    assert "By the linear model, C earns" in str(found)
    # naive inverse propensity scores would be far off
    frame = session.decisions()
    naive = ((frame["option"] == "C") * frame["reward"] / frame["probability"]).mean()
    assert abs(naive - MEANS[2]) > 0.03


def test_no_option_is_the_best_where_none_can_be_estimated() -> None:
    frame = FRAME.copy()
    chosen = frame["action"].to_numpy()[:, None] == list(NAMES)
    frame.loc[:, ["p_A", "p_B", "p_C"]] = chosen * 1.0
    frame["probability"] = 1.0
    found = sl.evaluate(frame, "best", columns=COLUMNS)
    assert math.isnan(found.value)
    assert found.target == "the best option"
    assert "No option can be estimated" in str(found)


def test_decisions_that_remain_are_used_on_request() -> None:
    frame = FRAME.copy()
    rows = frame.index[:1000]
    every = ["p_A", "p_B", "p_C"]
    frame.loc[rows, every] = (frame.loc[rows, "action"].to_numpy()[:, None] == list(NAMES)) * 1.0
    frame.loc[rows, "probability"] = 1.0
    refused = sl.evaluate(frame, "B", columns=COLUMNS)
    assert math.isnan(refused.value)
    found = sl.evaluate(frame, "B", columns=COLUMNS, supported_only=True)
    played = int((frame["action"][:1000] == "B").sum())
    assert found.n == 2000 + played
    assert found.support == pytest.approx((2000 + played) / 3000)
    assert "if mean rewards do not change" in str(found)
    assert found.lower < MEANS[1] < found.upper


def test_probability_1_says_that_others_had_0() -> None:
    """Without a list of probabilities, as in a CSV file."""
    frame = pd.DataFrame({"action": ["A", "B"] * 50, "reward": [0.0, 1.0] * 50, "probability": 1.0})
    found = sl.evaluate(frame, "B")
    assert math.isnan(found.value)
    assert found.support == 0.5


def test_unknown_probabilities_are_named() -> None:
    """As those of Thompson sampling without min_probability."""
    frame = FRAME.copy()
    frame.loc[frame.index[:7], ["probability", "p_A", "p_B", "p_C"]] = np.nan
    found = sl.evaluate(frame, "B", columns=COLUMNS)
    assert math.isnan(found.value)
    assert "in 7 the probability of the chosen option is not known" in str(found)
    assert sl.evaluate(frame, "B", columns=COLUMNS, supported_only=True).n == len(FRAME) - 7


def test_weights_that_do_not_average_1_are_noticed() -> None:
    """Options that were rarely possible, in a log without all probabilities."""
    rng = np.random.default_rng(0)
    n = 2000
    possible = rng.random(n) < 0.3
    is_b = possible & (rng.random(n) < 0.5)
    frame = pd.DataFrame(
        {
            "action": np.where(is_b, "B", "A"),
            "reward": (rng.random(n) < 0.5) * 1.0,
            "probability": np.where(is_b, 0.5, np.where(possible, 0.5, 0.99)),
        }
    )
    found = sl.evaluate(frame, "B")
    assert math.isnan(found.value)
    assert "should average 1" in str(found)
    never = sl.evaluate(frame, "C", options=["A", "B", "C"])
    assert math.isnan(never.value)
    assert "not known" in str(never)


def test_missing_rewards_are_counted_and_doubted() -> None:
    frame = FRAME.copy()
    frame.loc[frame.index[::10], "reward"] = np.nan
    found = sl.evaluate(frame, "B", columns=COLUMNS)
    assert (found.n, found.missing) == (2700, 300)
    assert "300 of 3,000 decisions have no reward" in str(found)
    assert "does depend on the option" not in str(found)
    lost = frame.index[(frame["action"] == "B") & (np.arange(3000) % 2 == 0)]
    frame.loc[lost, "reward"] = np.nan
    assert "it does depend on the option" in str(sl.evaluate(frame, "B", columns=COLUMNS))
    frame["reward"] = np.nan
    assert math.isnan(sl.evaluate(frame, "B", columns=COLUMNS).value)


def test_a_wrong_model_is_noticed(tmp_path: Path) -> None:
    """A large picture helps only beside a short text; main effects cannot say so."""
    pages = sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})
    means: dict[Any, float] = {("large", "short"): 0.95, ("small", "long"): 0.95}
    path = tmp_path / "s.db"
    rng = np.random.default_rng(0)
    with sl.Session.open(
        path, pages, sl.ThompsonSampling(), rewards=sl.Bernoulli("identity"), min_probability=0.25
    ) as session:
        decisions = session.ask(count=3000)
        session.tell_many(
            [
                (one, float(rng.random() < means.get(tuple(one.levels.values()), 0.05)))
                for one in decisions
            ]
        )
        found = sl.evaluate(session, pages.names[0], min_probability=0.25)
    assert found.lower < 0.95 < found.upper
    assert "The model may be wrong" in str(found)


def test_sessions_and_their_exports_agree(session: sl.Session, tmp_path: Path) -> None:
    tell(session, 60)
    target = "best so far"
    whole = sl.evaluate(session, target)
    session.export(tmp_path / "e.parquet")
    session.export(tmp_path / "e.csv")
    for suffix in ("parquet", "csv"):
        found = sl.evaluate(tmp_path / f"e.{suffix}", target, options=["A", "B", "C"])
        assert found.n == whole.n == 60
        # a CSV file has no lists, so that what could have been played differs
        if suffix == "parquet":
            assert found.value == pytest.approx(whole.value, nan_ok=True)


def test_logs_of_vowpal_wabbit(tmp_path: Path) -> None:
    rows = []
    for row in FRAME.head(200).itertuples():
        p = [row.p_A, row.p_B, row.p_C]
        a = NAMES.index(row.action)
        order = [a, *(i for i in range(3) if i != a)]
        rows.append(
            {
                "_label_cost": -row.reward,
                "_label_probability": p[a],
                "_labelIndex": a,
                "a": [i + 1 for i in order],
                "p": [p[i] for i in order],
                "c": {"user": "x"},
            }
        )
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = sl.evaluate(path, 1)
    truth = sl.evaluate(FRAME.head(200), "B", columns=COLUMNS)
    assert (found.value, found.lower) == pytest.approx((truth.value, truth.lower))
    assert read_vw(path)["c"][0] == {"user": "x"}
    path.write_text(json.dumps(rows[0] | {"pdrop": 0.5}))
    with pytest.raises(ValueError, match="pdrop"):
        read_vw(path)
    path.write_text('{"EventId": 1}')
    with pytest.raises(ValueError, match="line 1"):
        read_vw(path)


def test_open_bandit_logs_and_feedback(tmp_path: Path) -> None:
    frame = FRAME.head(500)
    actions = frame["action"].map(NAMES.index)
    feedback = {
        "n_rounds": 500,
        "action": actions.to_numpy(),
        "reward": frame["reward"].to_numpy(),
        "pscore": frame["probability"].to_numpy(),
        "pi_b": frame[["p_A", "p_B", "p_C"]].to_numpy()[:, :, None],
        "position": None,
    }
    truth = sl.evaluate(frame, "B", columns=COLUMNS)
    found = sl.evaluate(feedback, 1)
    assert (found.value, found.upper) == pytest.approx((truth.value, truth.upper))
    path = tmp_path / "all.csv"
    pd.DataFrame(
        {
            "item_id": actions,
            "position": 1,
            "click": frame["reward"].astype(int),
            "propensity_score": frame["probability"],
        }
    ).to_csv(path)
    assert sl.evaluate(path, 1).value == pytest.approx(truth.value)
    assert "context" in read_open_bandit(path)
    with pytest.raises(ValueError, match="action, reward and pscore"):
        sl.evaluate({"action": [0]}, 0)


def test_a_known_minimum_shortens_intervals() -> None:
    plain = FRAME[["action", "reward", "probability"]]
    without = sl.evaluate(plain, "C")
    with_floor = sl.evaluate(plain, "C", min_probability=0.1)
    assert with_floor.value == without.value
    assert with_floor.upper < without.upper
    assert "assumption" in str(without)
    assert "assumption" not in str(with_floor)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "drr"}, "method must be one of"),
        ({"interval": "exact"}, "interval must be one of"),
        ({"delta": 1.0}, "delta must be below 1"),
        ({"delta": 0.0}, "delta must be finite and > 0"),
        ({"reward_range": (0, 0.5)}, "reward_range must contain all rewards"),
        ({"reward_range": (1, 0)}, "two increasing numbers"),
        ({"min_probability": 0.3}, "min_probability must not exceed"),
        ({"columns": {"actoin": "x"}}, "key of columns"),
        ({"columns": {"reward": "x"}}, "columns\\['reward'\\]"),
        ({"method": "aipw", "weights": "two-point"}, "two-point"),
        ({"method": "aipw", "columns": {}}, "needs the probabilities of all options"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate("B", **settings)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("D", "no option has the name 'D'"),
        ({"A": 0.5}, "sum to 1"),
        (np.array([0.5, 0.5]), "must have shape"),
        (np.array([1.5, -0.5, 0.0]), ">= 0"),
        (sl.ThompsonSampling(), "policy that learns"),
        (pd.Series(["A", "B"]), "for each of 3000 decisions"),
        ([], "empty list"),
    ],
)
def test_bad_targets_are_refused(target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(target)


def test_bad_logs_are_refused() -> None:
    with pytest.raises(ValueError, match="target and control must differ"):
        evaluate("A", "A")
    with pytest.raises(ValueError, match="column with the reward"):
        sl.evaluate(FRAME.drop(columns="reward"), "A")
    with pytest.raises(ValueError, match="must be > 0 and at most 1"):
        sl.evaluate(FRAME.assign(probability=0.0), "A")
    with pytest.raises(ValueError, match="that in the list"):
        sl.evaluate(FRAME.assign(probability=0.5), "A", columns=COLUMNS)
    with pytest.raises(ValueError, match="sum to 1"):
        sl.evaluate(FRAME.assign(p_A=0.9), "A", columns=COLUMNS)
    with pytest.raises(ValueError, match="in their order"):
        sl.evaluate(FRAME.assign(sequence=range(len(FRAME), 0, -1)), "A", columns=COLUMNS)
    with pytest.raises(ValueError, match="data must be a session"):
        sl.evaluate([1, 2], "A")


def test_counts_are_not_taken_for_clicks(tmp_path: Path) -> None:
    with sl.Session.open(
        tmp_path / "c.db", ["A", "B"], sl.LinUCB(), rewards=sl.Poisson(), min_probability=0.5
    ) as session:
        session.tell_many([(one, float(i % 2)) for i, one in enumerate(session.ask(count=40))])
        assert sl.evaluate(session, "A").interval == "asymptotic"


def test_targets_that_never_differ_from_the_control_say_so() -> None:
    same = np.tile([0.0, 1.0, 0.0], (len(FRAME), 1))
    found = evaluate(same, "B", method="aipw")
    assert math.isnan(found.value)
    assert "never differ" in str(found)


def test_games_have_no_rewards(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "d.db", sl.duel(["x", "y"])) as session:
        session.tell(session.ask(), 1.0)
        with pytest.raises(ValueError, match="a game shows observations"):
            sl.evaluate(session, "x")


def test_intervals_cover_under_an_adaptive_policy() -> None:
    """Looked at 20 times; a valid interval misses in 5 % of the runs at most."""
    looks = np.geomspace(40, 400, 20).astype(np.int64)
    c, d = np.ones((1, 20)), np.full((1, 20), MEANS[2] - MEANS[1])
    misses = 0
    for seed in range(40):
        log = read_log(clicks(400, seed=100 + seed), COLUMNS)
        sides = [
            scores(log, log.rewards, TargetPolicy("", shared=np.eye(3)[i]), "dr").legs
            for i in (2, 1)
        ]
        assert sides[0] is not None
        low, high = gamma_exponential(sides[0], sides[1], looks, 0.05).excess(c, d)
        misses += bool(((low > 0.0) | (high > 0.0)).any())
    assert misses <= 4
