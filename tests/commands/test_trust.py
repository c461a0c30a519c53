"""Does a folder that somebody sent run code? What a record names is imported only after --trust, whoever asks."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relab import cli
from relab.config import layers, registry
from relab.config.layers import Layer
from relab.config.yaml_io import read_yaml, write_yaml
from relab.lab.experiment import cells
from small_runs import Interrupt, run

CANARY = """
from pathlib import Path
import dataclasses
from relab.config.envs import CartPole as Params
from relab.train.envs.cartpole import CartPole

Path({mark!r}).write_text("imported")

@dataclasses.dataclass(frozen=True)
class Own(Params):
    name: str = "{module}:Env"

class Env(CartPole):
    Params = Own
"""
COMMANDS = (
    "resume runs/sent --quiet", "eval runs/sent --checkpoint latest --episodes 2",
    "video runs/sent --checkpoint latest",
    "probe runs/sent fixed_point", "train --parent runs/sent --print-config", "train seed=9 --parent runs/sent --quiet",
    "train runs/sent/config.yaml --print-config", "train runs/sent/next_config.yaml --quiet",
    "queue add train --parent runs/sent",
)  # fmt: skip
READ = ("examine runs", "report runs", "compare runs", "diff runs/sent runs/sent", "next runs/sent --write", "runs",
        "note runs/sent --into LOG.md", "convert runs --to csv --out converted", "gate lint runs/sent", "doctor",
        "probe runs/sent")  # fmt: skip
NAMED = {"env": "{module}:Env", "algo": "{module}:Env", "gym": "gym:{module}:Sent-v0"}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "sent"
    run(folder, Interrupt(2), total_steps="512", eval__every="256", eval__episodes="2")
    return folder


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the working folder that leaves a mark when it is imported; a new name each time."""
    name = f"sent_{abs(hash(request.node.nodeid)):x}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / f"{name}.py").write_text(CANARY.format(mark=str(tmp_path / "mark"), module=name))
    yield name
    sys.modules.pop(name, None)


def send(sent: Path, key: str, module: str) -> None:
    """The run in runs/sent, with a config that names the module."""
    shutil.copytree(sent, "runs/sent")
    values = read_yaml("runs/sent/config.yaml")
    group = "algo" if key == "algo" else "env"
    values[group]["name"] = NAMED[key].format(module=module)
    if key == "gym":
        values["env"] = {"name": values["env"]["name"]}
    write_yaml("runs/sent/config.yaml", values)
    proposal = {"parent": "sent", "diff": {"seed": {"from": values["seed"], "to": 17}}}
    write_yaml("runs/sent/next_config.yaml", proposal)


@pytest.mark.parametrize("key", NAMED)
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.replace(" ", "-"))
def test_code_that_a_record_names_is_not_imported(
    line: str, key: str, sent: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(sent, key, module)
    before = {str(path): path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}
    code, said = cli.main(line.split()), capsys.readouterr().err
    assert not Path("mark").exists()
    assert module not in sys.modules
    assert {str(path): path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()} == before
    if not line.startswith("probe"):  # PPO has none
        assert code == 64
        assert repr(module) in said
        assert said.strip().endswith(f"relab {line} --trust")


@pytest.mark.parametrize("key", NAMED)
@pytest.mark.some(2)
def test_reading_imports_nothing(key: str, sent: Path, module: str) -> None:
    send(sent, key, module)
    for line in READ:
        cli.main(line.split())
        assert not Path("mark").exists(), line


@pytest.mark.parametrize("line", [line for line in COMMANDS if not line.startswith("probe")])
@pytest.mark.some(2)
def test_the_command_it_tells_works(line: str, sent: Path, module: str) -> None:
    send(sent, "env", module)
    assert cli.main([*line.split(), "--trust"]) == 0
    assert Path("mark").exists()


def test_a_run_with_code_of_ones_own_goes_on_with_trust(sent: Path, module: str) -> None:
    send(sent, "env", module)
    assert cli.main(shlex.split("resume runs/sent --quiet")) == 64
    assert cli.main(shlex.split("resume runs/sent --quiet --trust")) == 0


def test_what_one_types_oneself_is_ones_word(sent: Path, module: str) -> None:
    send(sent, "env", module)
    assert cli.main(["train", "ppo", f"env={module}:Env", "--print-config"]) == 0
    assert cli.main(["train", "--parent", "runs/sent", f"env={module}:Env", "--print-config"]) == 0
    write_yaml("mine.yaml", {"env": f"{module}:Env"})
    assert cli.main(["train", "mine.yaml", "--print-config"]) == 0


def test_a_proposal_brings_no_code_either(sent: Path, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(sent, "runs/sent")
    change = {"env.name": {"from": "cartpole-v1", "to": f"{module}:Env"}}
    write_yaml("next_config.yaml", {"parent": "sent", "diff": change})
    assert cli.main(["train", "next_config.yaml", "--quiet"]) == 64
    assert "--trust" in capsys.readouterr().err
    assert not Path("mark").exists()


def test_a_record_opens_no_file(tmp_path: Path) -> None:
    """`schedule=plan.yaml` is for people; a record holds the plan itself."""
    write_yaml(tmp_path / "plan.yaml", {"total": 3})
    values = {"env": "cartpole", "schedule": str(tmp_path / "plan.yaml")}
    assert layers.resolve([Layer("typed", values)]).config.schedule == {"total": 3}
    with pytest.raises(layers.ConfigError, match="schedule"):
        layers.resolve([Layer("record", values, trusted=False)])


def test_an_experiment_trusts_what_its_question_names(sent: Path, module: str) -> None:
    send(sent, "env", module)
    shutil.copytree("runs/sent", "experiments/q/runs/a-s0")
    Path("experiments/q/variants").mkdir()
    cell = cells.Cell("a", 0, Path("experiments/q/runs/a-s0"))
    write_yaml("experiments/q/variants/a.yaml", read_yaml("runs/sent/config.yaml"))
    assert cells.command(cell, Path("experiments/q"), "?")[-1] == "--trust"
    write_yaml("experiments/q/variants/a.yaml", read_yaml(sent / "config.yaml"))
    assert cells.command(cell, Path("experiments/q"), "?")[-1] == "--quiet"


@pytest.mark.parametrize("name", ["cartpole-v1", "gym:Acrobot-v1", "gym:ALE/Pong-v5", "my_plugin"])
def test_registered_names_are_no_code(name: str) -> None:
    assert not registry.named_code("env", name)


def test_readers_look_up_no_gym_module() -> None:
    assert registry.is_ours("gym:Acrobot-v1", "ppo")
    assert not registry.is_ours("gym:sent:Acrobot-v1", "ppo")


@pytest.mark.parametrize("line", ["examine runs/sent", "next runs/sent", "report runs/sent --out page.html"])
def test_printed_commands_have_the_word_that_they_need(
    line: str, sent: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send(sent, "env", module)
    assert cli.main(shlex.split(line)) == 0
    said = capsys.readouterr().out + "".join(path.read_text() for path in Path().glob("page.html"))
    said = said.replace("runs/sent", "sent")
    assert "relab resume sent --trust" in said
    assert not Path("mark").exists()
