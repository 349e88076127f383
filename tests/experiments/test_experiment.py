"""The specification: a value with names, that files can hold."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sightline as sl
from tests.contracts.test_policies import CONFIGURATIONS
from tests.experiments.helpers import EOO, SPHERE, small
from tests.own_policies import EpsilonGreedy

BOX = sl.problems.Polytope.box([-2.0, -2.0], [2.0, 2.0])
EXPERIMENTS = [
    small(),
    small(checkpoints=[1, 7, 200], seed=10**30),
    small(horizon=10**1000, policies=[sl.IDS()]),
    small(horizon=10**300 + 7, policies=[sl.IDS()], checkpoints=[5, 10**200, 10**300 + 6]),
    small(policies={"a b": sl.IDS(parameter_set=BOX, confidence=sl.LogLog(0.5)), "ü": sl.LinUCB()}),
    small(problems=[sl.LinearBandit([[1.0, 0.1], [0.5, 1e-9]], [1 / 3, 2.0], name="own")]),
    small(problems=[sl.LinearBandit([[0.5], [0.2]], [1.0], noise=sl.problems.BernoulliNoise())]),
    small(problems=[sl.problems.unit_sphere(k=np.int64(5), seed=np.int64(3))]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_it_comes_back_from_a_file_as_it_was(experiment: sl.Experiment, tmp_path: Path) -> None:
    experiment.save(tmp_path / "experiment.toml")
    again = sl.Experiment.load(tmp_path / "experiment.toml")
    assert again == experiment
    assert hash(again) == hash(experiment)
    assert again.digest == experiment.digest
    assert again.rounds == experiment.rounds
    assert pickle.loads(pickle.dumps(experiment)) == experiment


@given(
    name=st.text(min_size=1).filter(lambda text: text.isprintable() and bool(text.strip())),
    horizon=st.integers(1, 10**1000),
    norm_bound=st.just(0.0) | st.floats(1e-70, 1e70),
)
def test_names_and_numbers_survive_the_file(name: str, horizon: int, norm_bound: float) -> None:
    policy = sl.IDS(confidence=sl.LogDet(norm_bound=norm_bound))
    experiment = small(policies={name: policy}, horizon=horizon)
    assert sl.Experiment.from_toml(experiment.to_toml()) == experiment


def test_every_part_of_the_specification_changes_the_digest() -> None:
    changed = [
        small(),
        small(horizon=201),
        small(replications=7),
        small(seed=2),
        small(checkpoints=[200]),
        small(problems={"eoo": EOO}),
        small(problems={"eoo": SPHERE, "sphere": EOO}),
        small(policies={"IDS": sl.IDS(), "UCB": sl.LinUCB()}),
        small(policies={"IDS": sl.IDS(sampling="exact"), "LinUCB": sl.LinUCB()}),
        small(policies={"IDS": sl.IDS(), "LinUCB": sl.LinUCB(regulariser=2.0)}),
    ]
    assert len({experiment.digest for experiment in changed}) == len(changed)
    assert len(set(changed)) == len(changed)


def test_the_digest_is_the_same_in_another_process() -> None:
    code = "from tests.experiments.helpers import small; print(small().digest, *small().seeds)"
    root = Path(__file__).parents[2]
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert result.stdout.split() == [small().digest, *map(str, small().seeds)]


def test_names_are_for_people() -> None:
    experiment = small(problems=[EOO, SPHERE], policies=[sl.IDS(), sl.IDS(sampling="exact")])
    assert [cell.id for cell in experiment.cells] == [
        "end-of-optimism-0.01-2 / IDS",
        "end-of-optimism-0.01-2 / IDS(sampling=exact)",
        "unit-sphere-6-2-seed3 / IDS",
        "unit-sphere-6-2-seed3 / IDS(sampling=exact)",
    ]
    assert "2 problems x 2 policies x 6 replications to 200 rounds, seed 1" in str(experiment)
    assert "10^1000 rounds" in str(small(horizon=10**1000, policies=[sl.IDS()]))


def test_seeds_do_not_overlap_between_experiments_and_do_not_depend_on_their_number() -> None:
    seeds = small(replications=500).seeds
    assert len({*seeds, *small(replications=500, seed=2).seeds}) == 1000
    assert small(replications=3).seeds == seeds[:3]
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_it_cannot_be_changed() -> None:
    experiment = small()
    with pytest.raises(AttributeError):
        experiment.horizon = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        experiment.policies["IDS"] = sl.LinUCB()  # type: ignore[index]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": []}, "problems must not be empty"),
        ({"policies": {}}, "policies must not be empty"),
        ({"problems": EOO}, "problems must be a mapping or a list"),
        ({"problems": [3]}, "problems must be of class LinearBandit, ContextualBandit, Lin"),
        ({"policies": {"IDS": "IDS"}}, "policies must be of class Policy, got 'IDS'"),
        ({"policies": "IDS"}, "policies must be a mapping or a list"),
        ({"policies": [sl.IDS(), sl.IDS()]}, "two policies have the name 'IDS'"),
        ({"problems": [EOO, EOO]}, "two problems have the name 'end-of-optimism-0.01-2'"),
        ({"policies": {" ": sl.IDS()}}, "names of policies must be printable text, got ' '"),
        ({"policies": {"a\n": sl.IDS()}}, "names of policies must be printable text"),
        ({"policies": {3: sl.IDS()}}, "names of policies must be printable text, got 3"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"horizon": 1e6}, "horizon must be an integer"),
        ({"horizon": 10**20}, "LinUCB.*horizon must be below 2\\*\\*53"),
        ({"horizon": 10**5000, "policies": [sl.IDS()]}, "horizon must be at most 10\\*\\*4000"),
        ({"replications": 0}, "replications must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": "x"}, "seed must be an integer"),
        ({"checkpoints": [300]}, "checkpoints must not exceed the horizon 200, got 300"),
    ],
)
def test_bad_experiments(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


FILE = """
horizon = 100
replications = 2
[problems.eoo]
type = "end_of_optimism"
[policies.IDS]
type = "IDS"
"""


def test_a_file_needs_little() -> None:
    experiment = sl.Experiment.from_toml(FILE)
    assert experiment == sl.Experiment({"eoo": EOO}, {"IDS": sl.IDS()}, 100, 2)
    assert sl.Experiment.from_toml(FILE.replace("100", '"1e2"')) == experiment


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("horizon", "horizonn", "key must be one of .*did you mean 'horizon'"),
        ("horizon = 100\n", "", "horizon is missing"),
        ("100", '"many"', "horizon must be a number of rounds such as 10\\^6, got 'many'"),
        ("100", '"10^9999"', "horizon must be at most 10\\^4000"),
        ("100", "1e6", "horizon must be an integer"),
        ("= 2", '= "two"', "replications must be an integer .*, got 'two'"),
        ("= 2", "= true", "replications must be an integer"),
        ("= 2", "= 2\nseed = 1.5", "seed must be an integer .*, got 1.5"),
        ("= 2", "= 2\ncheckpoints = 5", "checkpoints must be a list, got 5"),
        ("= 2", '= 2\ncheckpoints = ["x"]', "checkpoints must be a number of rounds"),
        ('"end_of_optimism"', '"end_of_optimsm"', "problems.eoo: .*did you mean 'end_of_optimism'"),
        ('"end_of_optimism"', '"end_of_optimism"\nepsiln = 1', "did you mean 'epsilon'"),
        ('"end_of_optimism"', '"end_of_optimism"\nepsilon = "a"', "epsilon must be a number"),
        ('"end_of_optimism"', '"end_of_optimism_family"', "problems.eoo: .* needs a value for d"),
        ('"end_of_optimism"', '"LinearBandit"', "LinearBandit needs a value for actions"),
        ('"IDS"', '"IDSS"', "policies.IDS: type must be one of .*did you mean 'IDS'"),
        ('"IDS"', '"IDS"\nsamplin = "pair"', "policies.IDS: .*did you mean 'sampling'"),
        ('"IDS"', '"IDS"\nsampling = 3', "policies.IDS: sampling must be one of"),
        ('"IDS"', '"LogDet"', "policies must be of class Policy, got LogDet"),
        ('type = "IDS"', "", "policies.IDS: type must be one of .*, got None"),
        ("[policies.IDS]", "[policies]", "policies.type must be a table, got 'IDS'"),
        ("[problems.eoo]", "[[problems]]", "problems must be tables such as"),
        ('"IDS"\n', '"IDS"\n[policies.IDS]\ntype = "LinUCB"\n', "this is not TOML: .*twice"),
        ("=", "", "this is not TOML"),
    ],
)
def test_bad_files(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=f"file.toml: .*{message}"):
        sl.Experiment.load(path)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"file.toml: .*utf-8"):
        sl.Experiment.load(tmp_path / "file.toml")


def test_a_policy_of_ones_own_is_named_with_its_module() -> None:
    text = small(policies=[EpsilonGreedy()]).to_toml()
    assert 'type = "tests.own_policies:EpsilonGreedy"' in text
    with pytest.raises(ValueError, match=r"policies.EpsilonGreedy: type .* pass classes=\[Epsilon"):
        sl.Experiment.from_toml(text)


@dataclass(frozen=True)
class Doubled(sl.extend.ConfidenceRule):
    """A rule of a user, with a rule of the library inside and a tuple."""

    inner: sl.extend.ConfidenceRule
    factors: tuple[float, ...] = (2.0,)

    def build(self, d: int, noise_std: float, regulariser: float) -> Any:
        return self.inner.build(d, noise_std, regulariser)


def test_classes_of_ones_own_are_read_back_if_they_are_given(tmp_path: Path) -> None:
    own = sl.IDS(confidence=Doubled(sl.LogDet(delta=0.05), (1.0, 3.0)))
    experiment = small(policies={"a": EpsilonGreedy(epsilon=0.25), "b": own, "c": sl.LinUCB()})
    experiment.save(tmp_path / "file.toml")
    again = sl.Experiment.load(tmp_path / "file.toml", [Doubled, EpsilonGreedy])
    assert again == experiment
    assert again.digest == experiment.digest
    moved = experiment.to_toml().replace("tests.own_policies:", "__main__:")
    assert sl.Experiment.from_toml(moved, [EpsilonGreedy, Doubled]) == experiment


def test_a_file_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dangerous.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    text = small(policies=[EpsilonGreedy()]).to_toml().replace("tests.own_policies", "dangerous")
    with pytest.raises(ValueError, match="files import no code"):
        sl.Experiment.from_toml(text)
    assert sl.Experiment.from_toml(text, [EpsilonGreedy]).policies


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([EpsilonGreedy()], r"classes must be a list of dataclasses, got EpsilonGreedy\(epsilon"),
        ([int], "classes must be a list of dataclasses, got <class 'int'>"),
        (EpsilonGreedy, "classes must be a list of dataclasses, got <class"),
        ([Doubled, dataclass(type("Doubled", (), {}))], "different names, got two Doubled"),
        ([Doubled], "is not part of the library"),
    ],
)
def test_bad_classes(classes: Any, message: str) -> None:
    text = small(policies=[EpsilonGreedy()]).to_toml()
    with pytest.raises(ValueError, match=message):
        sl.Experiment.from_toml(text, classes)


def test_what_a_closure_does_cannot_be_described() -> None:
    noise = sl.problems.Sampler(lambda mean, rng: mean, 1.0)
    experiment = small(problems=[sl.LinearBandit([[1.0]], [1.0], noise=noise)])
    with pytest.raises(ValueError, match="cannot be described: define the function at the top"):
        experiment.to_toml()


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
def test_every_policy_of_the_library_survives_the_file(policy: sl.extend.Policy) -> None:
    experiment = small(policies=[policy])
    assert sl.Experiment.from_toml(experiment.to_toml()) == experiment
