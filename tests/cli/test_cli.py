"""The command line: its contract, its speed, its errors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from farshift.cli import build_command
from support import one_line_error

MODEL = """
import numpy as np

class Adder:
    def __init__(self, seed):
        self.seed = seed

    def predict(self, batch):
        return (batch["a"] + batch["b"] + (batch["a"] % 9 == self.seed)) % 97

def wrong_count(seed):
    class Short:
        def predict(self, batch):
            return np.zeros(3, int)
    return Short()
"""

ALLOWED = {"farshift"}
"""What `import farshift` may load besides the standard library."""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "my_model.py"
    path.write_text(MODEL)
    return path


def test_importing_the_package_loads_nothing_but_itself():
    code = "import sys; before = set(sys.modules); import farshift; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    roots = {name.split(".")[0] for name in done.stdout.split()}
    assert roots - set(sys.stdlib_module_names) <= ALLOWED


HEAVY = {"torch", "sklearn", "transformers", "openai", "matplotlib", "datasets"}
HEAVY |= {"pyarrow", "numpy", "huggingface_hub", "pydantic", "scipy", "jinja2"}


def loaded_by(code: str, *arguments: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after running some code."""
    report = "\nimport sys; print('LOADED', *{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code + report, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_help_loads_nothing_heavy():
    loaded = loaded_by("import farshift.cli as cli\ntry: cli.main()\nexcept SystemExit: pass", "--help")
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_the_leaderboard_never_imports_torch():
    loaded = loaded_by(
        "import pkgutil, importlib, farshift.leaderboard as room\n"
        "for item in pkgutil.walk_packages(room.__path__, 'farshift.leaderboard.'): importlib.import_module(item.name)"
    )
    assert "pydantic" in loaded
    assert "torch" not in loaded


CONTRACT = """
    quickstart, run, evaluate, score, compare, plot, status, pack, submit, team, doctor, baselines list,
    splits list, splits show, splits pull, splits verify, splits audit, splits diff, splits build,
    benchmarks list, benchmarks show, benchmarks export, benchmarks import,
    board init, board site, board verify, board export, board rescore, board withdraw, board build, board standings,
    board probe, board work, board token create, board token list, board token revoke,
    board sealed create, board sealed draw, board sealed answer, board sealed submit, board sealed close,
    board sealed list
"""
"""Commands that scripts rely on."""


def test_every_command_of_the_contract_is_there_and_speaks_json():
    root = build_command()
    for words in CONTRACT.split(","):
        node = root
        for word in words.split():
            assert word in node.commands, f"there is no {words}"
            node = node.commands[word]
        assert "--json" in {name for parameter in node.params for name in parameter.opts}, words


def test_splits_list_has_the_fields_that_scripts_rely_on(command_json):
    result = command_json("splits", "list")
    assert len(result) >= 5
    for item in result:
        assert {"name", "version", "kind", "source", "state", "parts", "identity"} <= item.keys()
        assert item["state"] in ("frozen", "definition")
        assert all(isinstance(rows, int) for rows in item["parts"].values())
    import farshift as fs

    assert fs.splits().to_dicts() == result


def test_baselines_list_has_the_fields_that_scripts_rely_on(command_json):
    result = command_json("baselines", "list")
    assert all({"name", "kind", "citation"} <= item.keys() and item["citation"] for item in result)
    roles = [(on, role) for item in result for on, role in item["roles"].items()]
    assert len(roles) == len(set(roles)), "one plain baseline and one that helps at most on a benchmark"
    helped, plain = ({on for on, role in roles if role == expected} for expected in ("helps", "plain"))
    assert len(helped) == 7
    assert helped < plain


def test_the_four_jobs(command, command_json, model, tmp_path):
    """Download a split, evaluate a model, submit to a board, compare."""
    pulled = command_json("splits", "pull", "modadd97/xi35")
    assert pulled[0]["parts"] == {"train": 4704, "id_test": 4705}
    own = command_json("evaluate", f"{model}:Adder", "--on", "modadd97/xi35", "--seeds", 2, "--out", tmp_path / "mine")
    assert 0.8 < own["score"]["ood"]["value"] < 0.95
    other = command_json(
        "run", "logistic-regression", "--on", "modadd97/xi35", "--seeds", 2, "--out", tmp_path / "theirs"
    )
    assert other["score"]["seeds"] == [0, 1]
    result = command_json("compare", tmp_path / "mine", tmp_path / "theirs")
    assert result["difference"]["ood"]["distinguishable"]
    scores = command_json("score", tmp_path / "mine", tmp_path / "theirs")
    assert [item["model"] for item in scores] == ["Adder", "logistic-regression"]
    assert scores[0] == own["score"]
    command_json("pack", tmp_path / "mine", tmp_path / "theirs", "--out", tmp_path / "s.zip", "--team", "me")
    command_json("board", "init", tmp_path / "board", "--name", "Mine")
    assert command_json("submit", tmp_path / "s.zip", "--to", tmp_path / "board")["new"]
    assert not command_json("submit", tmp_path / "s.zip", "--to", tmp_path / "board")["new"]
    assert command_json("board", "verify", tmp_path / "board")["verified"]
    page = command_json("board", "site", tmp_path / "board")["page"]
    assert "Adder" in Path(page).read_text()
    score = next((tmp_path / "board" / "scores").rglob("*.json"))
    score.write_bytes(score.read_bytes().replace(b"0.", b"1.", 1))
    done = command("board", "verify", tmp_path / "board", "--json")
    assert done.returncode == 1
    assert not json.loads(done.stdout)["verified"]


def test_verify_reports_each_manifest_in_the_order_asked(command_json):
    result = command_json("splits", "verify", "scan/length", "modadd97/xi35", "scan/addprim_jump")
    assert [(item["name"], item["state"]) for item in result] == [
        ("scan/length@1", "verified"),
        ("modadd97/xi35@1", "verified"),
        ("scan/addprim_jump@1", "verified"),
    ]


def test_a_split_built_from_a_file_and_compared_with_another(command, command_json, tmp_path, monkeypatch):
    for version, limit in ((1, 20), (2, 24)):
        (tmp_path / "split.toml").write_text(
            f'name = "scan/mine"\nversion = {version}\nkind = "length"\ntitle = "Mine"\nlabel = "actions"\n'
            f'rule = "length/threshold"\nsource = {{ name = "scan" }}\n'
            f'parameters = {{ field = "actions", at_most = {limit} }}\nseverity = {{ name = "length" }}\n'
        )
        command_json("splits", "build", tmp_path / "split.toml", "--out", tmp_path / "home" / "splits" / "manifests")
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "home"))
    result = command_json("splits", "diff", "scan/mine@1", "scan/mine@2")
    moved = result["moved"]["ood_test -> train"]["rows"]
    assert result["said"]["parameters"] == [{"field": "actions", "at_most": 20}, {"field": "actions", "at_most": 24}]
    parts = [command_json("splits", "show", f"scan/mine@{v}")["parts"]["train"]["rows"] for v in (1, 2)]
    assert moved == parts[1] - parts[0] > 0
    assert command_json("splits", "audit", "scan/mine@2")["agrees_with_published"]
    assert command_json("splits", "verify", "scan/mine")[0]["state"] == "verified"
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "absent"))
    done = command("splits", "list", "--json")
    assert "is not a folder" in one_line_error(done)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["splits", "show", "scan/lenght"], "did you mean scan/length?"),
        (["splits", "show", "scan/length@7"], "has no version '7': there is scan/length@1"),
        (["splits", "pull"], "name one or more splits, or give --all"),
        (["splits", "pull", "scan/length", "--mirror", "/nowhere"], "/nowhere is not a folder"),
        (["run", "lsmt", "--on", "scan/length", "--out", "{tmp}/r"], "did you mean lstm"),
        (["run", "lstm", "--on", "scan/lengt", "--out", "{tmp}/r"], "did you mean scan/length?"),
        (["run", "lstm", "--on", "scan/length", "--engine", "cloud", "--out", "{tmp}/r"], "no engine named 'cloud'"),
        (["run", "lstm", "--on", "scan/length", "--device", "gpu9", "--out", "{tmp}/r"], "device 'gpu9'"),
        (["run", "lstm", "--on", "scan/length", "--seeds", "0", "--out", "{tmp}/r"], "--seeds"),
        (["run", "lstm", "--on", "scan/length"], "name a folder to write (--out DIR)"),
        (["evaluate", "absent.py:f", "--on", "scan/length", "--out", "{tmp}/r"], "absent.py does not exist"),
        (["evaluate", "nonsense", "--on", "scan/length", "--out", "{tmp}/r"], "file.py:factory"),
        (["evaluate", "{model}:Addre", "--on", "modadd97/xi35", "--out", "{tmp}/r"], "did you mean Adder"),
        (
            ["evaluate", "{model}:wrong_count", "--on", "modadd97/xi35", "--out", "{tmp}/r"],
            "3 predictions for 512 rows",
        ),
        (["score", "{tmp}/absent"], "is not a run"),
        (["compare", "{tmp}/a", "{tmp}/b"], "is not a run"),
        (["pack", "{tmp}/absent", "--out", "{tmp}/s.zip"], "is not a run"),
        (["submit", "{tmp}/absent.zip", "--to", "{tmp}/board"], "is not a board"),
        (["submit", "{tmp}/absent.zip", "--to", "ftp://example.org/board"], "a board is a folder"),
        (["board", "verify", "{tmp}"], "is not a board"),
        (["board", "init", "{model}"], "is not empty"),
        (["scoer"], "Did you mean 'score'?"),
        (["score", "--jsn"], "No such option"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, model, tmp_path, arguments, complaint):
    done = command(*(argument.format(tmp=tmp_path, model=model) for argument in arguments))
    assert complaint in one_line_error(done)
    assert done.stdout == ""


def test_what_a_model_prints_never_reaches_stdout(farshift, tmp_path):
    (tmp_path / "loud.py").write_text(
        "import os\nprint('imported')\nclass Loud:\n    def fit(self, train, val, budget): print('epoch 1')\n"
        "    def predict(self, batch):\n        os.system('echo from a child')\n        return batch['a']\n"
    )
    command = [
        "evaluate",
        f"{tmp_path / 'loud.py'}:Loud",
        "--on",
        "modadd97/xi35",
        "--seeds",
        1,
        "--out",
        tmp_path / "r",
    ]
    done = farshift(*command, "--json")
    assert json.loads(done.stdout)["score"]["model"] == "Loud"
    assert all(output in done.stderr for output in ("imported", "epoch 1", "from a child"))


def test_repeating_a_finished_command_gives_its_result_again(command, model, tmp_path):
    given = ["evaluate", f"{model}:Adder", "--on", "modadd97/xi35", "--seeds", 2, "--out", tmp_path / "r", "--json"]
    first, second = command(*given), command(*given)
    assert first.returncode == second.returncode == 0
    assert second.stdout == first.stdout
    assert "already has this run, finished" in second.stderr


def test_no_arguments_show_the_help_and_no_empty_error(command):
    done = command("splits")
    assert "Usage" in done.stdout + done.stderr
    assert "error:" not in done.stderr


def test_without_torch_a_baseline_is_refused_in_one_line(farshift, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None")
    done = farshift("run", "lstm", "--on", "scan/length", "--out", tmp_path / "r", PYTHONPATH=str(tmp_path))
    assert "pip install 'farshift[train]'" in one_line_error(done)
    assert not (tmp_path / "r").exists()


def test_debugging_shows_the_traceback(farshift):
    done = farshift("splits", "show", "nope", FARSHIFT_DEBUG="1")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_ctrl_c_is_one_line_and_keeps_what_was_done(tmp_path):
    import signal

    (tmp_path / "slow.py").write_text(
        "import time\nclass Slow:\n    def __init__(self, seed): self.seed = seed\n"
        "    def predict(self, batch):\n"
        "        if self.seed:\n"
        f"            open({str(tmp_path / 'sleeps')!r}, 'w').close()\n"
        "            time.sleep(600)\n        return batch['a']\n"
    )
    command = [
        "evaluate",
        f"{tmp_path / 'slow.py'}:Slow",
        "--on",
        "modadd97/xi35",
        "--seeds",
        "2",
        "--out",
        tmp_path / "r",
    ]
    child = subprocess.Popen(
        [sys.executable, "-c", "from farshift.cli import main; main()", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
    )
    done = tmp_path / "r" / "shards" / "seed-0.json"
    while not (tmp_path / "sleeps").exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    assert "interrupted; finished work is kept" in child.communicate(timeout=120)[1]
    assert child.returncode == 130
    assert done.exists()


def test_the_version_is_printed(command):
    assert command("--version").stdout.strip() == "0.1.0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["baselines", "show", "mlp"],
            "No such command 'show'. Available commands: algorithms, list, networks, record, results",
        ),
        (["benchmarks", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["doctor", "c"], "Got unexpected extra argument(s) (c). Usage: farshift doctor [OPTIONS]"),
        (["plot", "baseline:knn@scan/lengt", "--out", "x.png"], "no benchmark with recorded results named "),
    ],
)
def test_a_wrong_command_says_how_to_go_on(command, given, said):
    refused = command(*given)
    assert one_line_error(refused).startswith(f"farshift: error: {said}")


def test_an_option_of_another_statistic_is_refused_by_name(command):
    refused = command("compare", "a", "b", "--statistic", "variance", "--full")
    assert "--full goes with --statistic difference, not variance" in one_line_error(refused)
    assert "takes three runs (RUN FLOOR CEILING), not 2 runs" in one_line_error(
        command("compare", "a", "b", "--statistic", "recovered")
    )
    assert "did you mean variance?" in one_line_error(command("compare", "a", "--statistic", "varianc"))
