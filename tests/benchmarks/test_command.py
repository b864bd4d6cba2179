"""A command as a model: any program that reads and writes a JSON object a line, and never one left running."""

from __future__ import annotations

import base64
import gc
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from encoded_files import column, picture
from farshift import Answers, Failed, FarshiftError
from farshift.benchmarks.adapters import command
from farshift.benchmarks.adapters.command import from_spec
from farshift.benchmarks.answers import ABSTAINED, ANSWERED, FAILED
from farshift.benchmarks.definition import PromptPin
from farshift.benchmarks.harness.factory import find_model
from farshift.benchmarks.model import Task
from farshift.benchmarks.parsing import BatchLocation, read_answer
from farshift.benchmarks.prompting.prompt import Prompt
from farshift.core.errors import ModelError, UnknownName

SUM = Task("classification", ("a", "b"), "sum", classes=5)
TEXT = Task("sequence", ("text",), "answer")
NUMBER = Task("regression", ("a", "b"), "sum")

ADDER = """
import json, sys
about = json.loads(sys.stdin.readline())
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps({"id": row["id"], "prediction": (row["inputs"]["a"] + row["inputs"]["b"] + about["seed"]) % 5}))
"""

READ = """
import json, os, sys, time
about = json.loads(sys.stdin.readline())
def rows(count):
    return [json.loads(sys.stdin.readline()) for _ in range(count)]
def say(**message):
    print(json.dumps(message))
"""


@pytest.fixture
def program(tmp_path):
    """The factory of a command that runs a Python program."""

    def write(text, **options):
        path = tmp_path / "my_model.py"
        path.write_text(text)
        # Without site-packages: a program of nobody's environment, and quick to start.
        return from_spec(f"{shlex.quote(sys.executable)} -S {shlex.quote(str(path))}", options)

    return write


@pytest.fixture
def model(program):
    """A model of such a command; ended with the test."""
    built = []

    def make(text, task=SUM, prompt=None, seed=0, **options):
        built.append(program(text, **options)(seed, task, "cpu", prompt))
        return built[-1]

    yield make
    for item in built:
        item.close()


def pairs(*values):
    return {"a": np.array([a for a, _ in values]), "b": np.array([b for _, b in values])}


def running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_row_is_answered_by_one_process_over_all_batches(model):
    adder = model(ADDER, seed=2)
    rows = [(a, b) for a in range(30) for b in range(20)]
    expected = [(a + b + 2) % 5 for a, b in rows]
    assert adder.predict(pairs(*rows[:400])) + adder.predict(pairs(*rows[400:])) == expected


def test_the_first_line_says_what_it_is_about_and_each_row_what_it_holds(model):
    echo = model(
        READ + "row, = rows(1)\nsay(id=row['id'], prediction=json.dumps([about, row]))",
        Task("sequence", ("text", "pixels"), "answer"),
        seed=7,
    )
    batch = {"text": np.array(["Grüße\n"], object), "pixels": np.arange(6, dtype=np.uint8).reshape(1, 2, 3)}
    [output] = echo.predict(batch)
    about, row = json.loads(output)
    assert about["seed"] == 7
    assert about["device"] == "cpu"
    assert {"type": "sequence", "inputs": ["text", "pixels"], "label": "answer"}.items() <= about["task"].items()
    assert row == {"id": "0", "inputs": {"text": "Grüße\n", "pixels": [[0, 1, 2], [3, 4, 5]]}}


def asking(query: str) -> Prompt:
    pin = {"example": "", "query": query, "extraction": {"name": "whole", "version": 1}}
    return Prompt(PromptPin.model_validate(pin), TEXT, ())


def test_a_row_carries_the_prompt_where_the_benchmark_has_one(model):
    echo = model(READ + "for row in rows(2): say(id=row['id'], prediction=row['prompt'])", TEXT, asking("Q: {text}"))
    assert echo.predict({"text": np.array(["x", "y"], object)}) == ["Q: x", "Q: y"]


def test_files_are_in_base64_among_the_inputs_and_in_the_prompt(model):
    echo = model(
        READ + "row, = rows(1)\nsay(id=row['id'], prediction=json.dumps([row['inputs']['text'], *row['prompt']]))",
        TEXT,
        asking("{text} Which way?"),
    )
    [output] = echo.predict({"text": column(picture())})
    file = {"media_type": "image/jpeg", "base64": base64.b64encode(picture()).decode()}
    assert json.loads(output) == [file, file, " Which way?"]


def test_answers_may_come_in_any_order(model):
    backwards = model(READ + "for row in rows(4)[::-1]: say(id=row['id'], prediction=row['inputs']['a'])")
    assert backwards.predict(pairs((0, 0), (1, 0), (2, 0), (3, 0))) == [0, 1, 2, 3]


def test_a_row_may_be_left_open_or_lost(model):
    some = model(
        READ + "a, b, c = rows(3)\nsay(id=a['id'], abstained=True)\nsay(id=b['id'], failed='no idea')\n"
        "say(id=c['id'], prediction=4)"
    )
    assert some.predict(pairs((0, 0), (1, 0), (2, 0))) == [None, Failed("no idea"), 4]


def test_scores_are_probabilities_of_the_classes(model):
    sure = model(
        READ + "a, b, c = rows(3)\nsay(id=b['id'], abstained=True)\nsay(id=c['id'], failed='no')\n"
        "say(id=a['id'], prediction=2, scores=[0, 0, 0.5, 0.25, 0.25])"
    )
    result = sure.predict(pairs((0, 0), (1, 0), (2, 0)))
    assert isinstance(result, Answers)
    assert result.status.tolist() == [ANSWERED, ABSTAINED, FAILED]
    assert result.prediction[0] == 2
    assert result.scores[0].tolist() == [0, 0, 0.5, 0.25, 0.25]
    read = read_answer(result, BatchLocation("id_test", 0, np.arange(3, dtype=np.uint64)), SUM)
    assert read.status.tolist() == result.status.tolist(), "the harness takes them"


def test_numbers_are_taken_where_numbers_are_asked_for(model):
    half = model(READ + "for row in rows(2): say(id=row['id'], prediction=row['inputs']['a'] / 2 or 0)", NUMBER)
    assert half.predict(pairs((1, 0), (0, 0))) == [0.5, 0]


ONE = READ + "row, = rows(1)\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sys.exit('no weights\\nat all')", r"exited with code 1: no weights \| at all \(after 0 of 1 answers"),
        ("os._exit(3)", "exited with code 3 and wrote nothing to stderr"),
        ("os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ("raise ValueError('out of luck')", "exited with code 1: .*ValueError: out of luck"),
        ("os.close(1); time.sleep(60)", "closed its output"),
        ("print('Loading weights')", r"that is not a JSON object: 'Loading weights' \(messages belong on stderr"),
        ("print('[1]')", "not a JSON object: '\\[1\\]'"),
        ("sys.stdout.buffer.write(b'\\xff\\n')", "not a JSON object"),
        ("print('[' * 100000)", "not a JSON object"),
        ("say(id='1', prediction=1)", "answered id '1', which is not outstanding"),
        ("say(id=0, prediction=1)", "answered id 0, which is not outstanding"),
        ("say(prediction=1)", "answered id None"),
        *(
            (f"say(id='0'{rest})", 'give one of a "prediction" with or without 5 probabilities as "scores", "ab')
            for rest in (
                "",
                ", prediction=1, failed='no'",
                ", abstained=False",
                ", failed=True",
                ", prediction=True",
                ", prediction=None",
                ", prediction=1, scores=[1]",
            )
        ),
    ],
)
def test_a_wrong_answer_is_named_in_one_line(model, monkeypatch, text, complaint):
    if complaint == "closed its output":
        monkeypatch.setattr(command, "GRACE", 0.2)
    with pytest.raises(ModelError, match=f"^cmd:my_model.py .*{complaint}") as caught:
        model(ONE + text).predict(pairs((0, 0)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "task", "complaint"),
    [
        ("say(id='0', prediction='1')", SUM, "predict returned dtype <U1, expected whole numbers"),
        ("say(id='0', prediction=1.0)", SUM, "predict returned dtype float64, expected whole numbers"),
        ("say(id='0', prediction=float('nan'))", NUMBER, "not a JSON object|NaN or infinity"),
        ('print(\'{"id": "0", "prediction": 1e999}\')', NUMBER, "not a JSON object|NaN or infinity"),
        ("say(id='0', prediction=1, scores=[1, 0, 0, 0, None])", SUM, "scores that are not probabilities"),
        ("say(id='0', prediction=1, scores=[1])", NUMBER, 'give one of a "prediction", "abstained": true'),
    ],
)
def test_a_prediction_of_the_wrong_kind_is_refused_as_any_model_s(model, text, task, complaint):
    with pytest.raises(ModelError, match=complaint):
        answer = model(ONE + text, task).predict(pairs((0, 0)))
        read_answer(answer, BatchLocation("id_test", 0, np.arange(1, dtype=np.uint64)), task)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("for _ in range(2): say(id='0', prediction=1)", "answered id '0', which is not outstanding: repeat each id"),
        ("say(id='0', prediction=1, scores=[0, 1, 0, 0, 0])\nsay(id='1', prediction=1)", "gave scores for some"),
    ],
)
def test_answers_of_two_rows_that_do_not_fit_together_are_named(model, text, complaint):
    with pytest.raises(ModelError, match=complaint):
        model(READ + "rows(2)\n" + text).predict(pairs((0, 0), (1, 0)))


def test_a_command_that_falls_silent_is_given_up(model, monkeypatch):
    monkeypatch.setattr(command, "GRACE", 0.2)
    silent = model(READ + "row, _ = rows(2)\nsay(id=row['id'], prediction=1)\ntime.sleep(60)", timeout="4")
    with pytest.raises(ModelError, match=r"wrote nothing for 4 s after 1 of 2 answers .*option timeout"):
        silent.predict(pairs((0, 0), (1, 0)))


def test_slow_answers_are_no_silence(model):
    slow = model(READ + "for row in rows(5): time.sleep(1); say(id=row['id'], prediction=1)", timeout="4.5")
    assert slow.predict(pairs(*[(0, 0)] * 5)) == [1] * 5


def test_a_command_that_reads_nothing_while_it_writes_a_lot_blocks_nobody(model):
    rows = 3000
    text = READ + f"for number in range({rows}): say(id=str(number), prediction='x' * 500)\nfor line in sys.stdin: pass"
    batch = {"text": np.array(["y" * 500] * rows, object)}
    assert model(text, TEXT).predict(batch) == ["x" * 500] * rows


def test_a_command_that_cannot_be_started_is_named(tmp_path):
    (tmp_path / "model.py").write_text(ADDER)  # and not made executable
    for words in ("no-such-program-here --flag", str(tmp_path / "model.py")):
        program = words.split()[0]
        with pytest.raises(ModelError, match=f"^cmd: {program} cannot be started: .*: check its name and PATH$"):
            from_spec(words, {})(0, SUM, "cpu", None).predict(pairs((0, 0)))


PID = READ + "row, = rows(1)\nsay(id=row['id'], prediction=os.getpid())\n"
HOLDS_ON = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + PID + "time.sleep(60)"
WITH_A_CHILD = (
    READ
    + "import subprocess\nother = subprocess.Popen(['sleep', '60'])\n"
    + "row, = rows(1)\nsay(id=row['id'], prediction=other.pid)\nsys.stdin.read()"
)


@pytest.mark.parametrize(
    "text", [PID + "sys.stdin.read()", HOLDS_ON, WITH_A_CHILD], ids=["fair", "holds on", "with a child"]
)
@pytest.mark.parametrize("end", ["close", "garbage"])
def test_no_process_is_left_behind(program, monkeypatch, text, end):
    monkeypatch.setattr(command, "GRACE", 0.2)
    requested = program(text)(0, SUM, "cpu", None)
    [process] = requested.predict(pairs((0, 0)))
    assert running(process)
    if end == "close":
        requested.close()
    else:
        del requested
        gc.collect()
    deadline = time.monotonic() + 60
    while running(process) and time.monotonic() < deadline:
        time.sleep(0.02)  # a grandchild is reaped by the system, in its own time
    assert not running(process)


def test_a_command_ends_with_the_program_that_asked_it(program, tmp_path):
    factory = program(PID + "sys.stdin.read()")
    text = (
        "import numpy as np\nfrom farshift.benchmarks.adapters.command import from_spec\n"
        "from farshift.benchmarks.model import Task\n"
        f"model = from_spec({shlex.join(factory.words)!r}, {{}})(0, Task('regression', ('a',), 'b'), 'cpu', None)\n"
        "print(model.predict({'a': np.zeros(1)})[0])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert not running(int(done.stdout))


def test_an_interrupt_ends_the_command(model, monkeypatch):
    monkeypatch.setattr(command, "GRACE", 0.2)
    slow = model(PID + "time.sleep(60)")
    [process] = slow.predict(pairs((0, 0)))
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        slow.predict(pairs((0, 0)))
    timer.join()
    assert time.monotonic() - begun < 50, "it does not wait for the answer"
    assert not running(process)


def test_after_an_error_the_command_starts_anew(model):
    once = model(ONE + "sys.exit('no') if row['inputs']['a'] else say(id=row['id'], prediction=3)")
    with pytest.raises(ModelError):
        once.predict(pairs((1, 0)))
    assert once.predict(pairs((0, 0))) == [3]


def test_words_are_split_as_a_shell_splits_them_and_run_without_one(tmp_path):
    path = tmp_path / "my model.py"
    path.write_text(ONE + "say(id=row['id'], prediction=' '.join(sys.argv[1:]))")
    requested = from_spec(f"{sys.executable} '{path}' \"$HOME\" a\\ b ; x", {})(0, TEXT, "cpu", None)
    assert requested.predict({"text": np.array(["y"], object)}) == ["$HOME a b ; x"]


def test_the_code_is_that_of_the_words_and_of_the_files_among_them(program):
    first = program(ADDER)
    assert first.name == "my_model.py"
    assert first.code == program(ADDER).code == program(ADDER, timeout="5").code
    assert first.code != program(ADDER + "\n").code
    assert first.code != from_spec(shlex.join(first.words) + " --flag", {}).code
    assert find_model(f"cmd:{shlex.join(first.words)}")[1] == program(ADDER + "\n").code
    assert from_spec(f"{sys.executable} -c '{'pass;' * 200}'", {}).name == Path(sys.executable).name


@pytest.mark.parametrize(
    ("rest", "options", "complaint"),
    [
        ("", {}, "needs a command, such as cmd:python my_model.py"),
        ("python 'x", {}, "No closing quotation"),
        ("python x", {"timeout": "0"}, "option timeout of cmd: Input should be greater than 0"),
    ],
)
def test_a_command_that_is_none_is_refused(rest, options, complaint):
    with pytest.raises(FarshiftError, match=complaint):
        from_spec(rest, options)
    with pytest.raises(UnknownName, match="no option of cmd: named 'time'"):
        from_spec("python x", {"time": "1"})
