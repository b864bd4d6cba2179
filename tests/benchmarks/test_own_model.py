"""The name of a model on the command line: the user's own code, or what an adapter makes a model of."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.harness.factory import find_model, load_schemes, read_options
from farshift.core.errors import BadDefinition, UnknownName

PARROT = """
class Parrot:
    def __init__(self, words):
        self.words, self.name, self.code = words, words, "code of " + words
    def __call__(self, seed, task, device, prompt):
        return self
    def predict(self, batch):
        return [self.words] * len(batch["x"])
SCHEME = "parrot"
def from_spec(rest, options):
    return Parrot(rest + options.get("end", ""))
"""


@pytest.fixture
def parrot(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks" / "adapters"
    folder.mkdir(parents=True)
    (folder / "parrot.py").write_text(PARROT)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    return folder


def test_an_adapter_of_ones_own_is_one_file_with_a_scheme(parrot):
    factory, code = find_model("parrot:hello:you", {"end": "!"})
    assert code == "code of hello:you!"
    assert factory(0, None, "cpu", None).predict({"x": np.zeros(2)}) == ["hello:you!"] * 2
    assert list(load_schemes()) == sorted(load_schemes())
    assert {"cmd", "openai", "parrot"} <= set(load_schemes())


def test_two_adapters_of_one_scheme_are_refused(parrot):
    (parrot / "jay.py").write_text(PARROT)
    with pytest.raises(BadDefinition, match=r"the scheme 'parrot' is used by .*\.py"):
        load_schemes()


def test_ones_own_code_is_a_file_or_a_module_and_its_digest(tmp_path, monkeypatch):
    path = tmp_path / "shelf_of_models.py"
    path.write_text("class Model: pass")
    monkeypatch.chdir(tmp_path)
    expected = sha256(path.read_bytes()).hexdigest()
    for name in (f"{path}:Model", "shelf_of_models.py:Model", "shelf_of_models:Model"):
        result, code = find_model(name)
        assert (result.__name__, code) == ("Model", expected)
    with pytest.raises(UnknownName, match="no attribute of shelf_of_models named 'Modl': did you mean Model"):
        find_model("shelf_of_models:Modl")


def test_options_are_not_for_ones_own_code(tmp_path):
    with pytest.raises(FarshiftError, match=r"model 'm.py:make' has no options, but depth, width is given"):
        find_model("m.py:make", {"width": "3", "depth": "2"})


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("model.py", r"write it as file.py:factory, package.module:attribute, or clip:\.\., cmd:\.\., "),
        ("", "write it as file.py:factory"),
        (":make", "write it as file.py:factory"),
        ("model.py:", "write it as file.py:factory"),
        ("opnai:gpt@http://host/v1", "no kind of model named 'opnai': did you mean openai"),
        ("opnai:gpt", "no module or kind of model named 'opnai': did you mean openai"),
        ("missing.py:make", "model file missing.py does not exist"),
    ],
)
def test_a_name_that_stands_for_nothing_is_one_clear_line(name, complaint):
    with pytest.raises(FarshiftError, match=complaint) as caught:
        find_model(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import no_such_thing", "importing .*m.py raised ModuleNotFoundError: No module named 'no_such_thing'"),
        ("raise SystemExit(3)", "importing .*m.py raised SystemExit: 3"),
        ("1 / 0", "importing .*m.py raised ZeroDivisionError: division by zero"),
    ],
)
def test_code_that_cannot_be_imported_is_named(tmp_path, text, complaint):
    (tmp_path / "m.py").write_text(text)
    with pytest.raises(FarshiftError, match=complaint):
        find_model(f"{tmp_path / 'm.py'}:make")


def test_options_are_read_to_the_first_equals_sign():
    assert read_options(["system=a=b", "api=chat", "empty="]) == {"system": "a=b", "api": "chat", "empty": ""}
    assert read_options([]) == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        *((text, "option 2 of 2 is not key=value") for text in ("sk-secret", "=sk-secret", "sk-secret=x")),
        ("api=sk-secret", "the option api is given twice"),
    ],
)
def test_what_is_no_option_is_refused_without_being_repeated(text, complaint):
    with pytest.raises(FarshiftError, match=f"^{complaint}$"):
        read_options(["api=chat", text])


@pytest.mark.parametrize("changed", ["helper_of_two.py", "parts_of_two/limits.py"])
def test_the_code_of_a_model_covers_the_modules_beside_it_that_it_imports(tmp_path, farshift, changed):
    for name, text in {
        "main_of_two.py": "import numpy as np\ndef predict(batch):\n    import helper_of_two as h\n    return h.add(batch)",
        "helper_of_two.py": "from parts_of_two.adding import add",
        "parts_of_two/adding.py": "from .limits import MOST\ndef add(batch):\n    return (batch['a'] + batch['b']) % MOST",
        "parts_of_two/limits.py": "MOST = 97",
        "parts_of_two/unused.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def run() -> str:
        given = ("--on", "modadd97/xi35", "--seeds", "1", "--budget", "quick", "--out", tmp_path / "r")
        return farshift("evaluate", f"{tmp_path / 'main_of_two.py'}:predict", *given).stderr

    run()
    (tmp_path / "parts_of_two/unused.py").write_text("ignored = 1")
    assert "already has this run, finished" in run()
    (tmp_path / changed).write_text((tmp_path / changed).read_text() + "\nchanged = 1")
    assert "has a finished run of another request (other model code)" in " ".join(run().split())
