"""transformers models as models: the answers are those of plain transformers calls, made by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from farshift import Failed, FarshiftError, check_model
from farshift.benchmarks.adapters.hugging_face import from_spec, match_outputs
from farshift.benchmarks.definition import PluginPin, PromptPin
from farshift.benchmarks.model import Task
from farshift.benchmarks.prompting.prompt import Prompt
from farshift.core.errors import MissingExtra, ModelError, UnknownName

pytest.importorskip("torch")
pytest.importorskip("transformers")
import tiny_hf
import torch
import transformers

WAY = Task("classification", ("text",), "way", classes=3, names=("left", "right", "twice"))
PAIR = Task("classification", ("text", "other"), "same", classes=3)
ANSWER = Task("sequence", ("text",), "answer")
TEXTS = np.array(["walk left", "run right twice look", "jump", "walk run walk run left", "?", "left"], object)
BATCH = {"text": TEXTS, "other": TEXTS[::-1].copy()}


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("hf")
    return {
        "named": tiny_hf.classifier(home / "named", labels=["Right", "TWICE", "left"]),
        "plain": tiny_hf.classifier(home / "plain", classes=3),
        "decoder": tiny_hf.decoder(home / "decoder"),
        "unpadded": tiny_hf.decoder(home / "unpadded", pad=False),
        "encoder_decoder": tiny_hf.encoder_decoder(home / "encoder_decoder"),
    }


def model(folder: Path, task: Task, prompt: Prompt | None = None, **options: str):
    return from_spec(str(folder), options)(0, task, "cpu", prompt)


def prompt(task: Task = ANSWER, extraction: str = "whole", query: str = "Q : {text} A :", **pin) -> Prompt:
    pinned = PromptPin(
        example="", query=query, extraction=PluginPin(name=extraction, version=1), **{"max_tokens": 5} | pin
    )
    return Prompt(pinned, task, ())


def logits_by_hand(folder: Path, *columns) -> np.ndarray:
    """One row at a time, without padding."""
    network = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        result = [
            network(**words(*row, truncation=True, max_length=16, return_tensors="pt")).logits[0]
            for row in zip(*columns, strict=True)
        ]
    return torch.stack(result).numpy()


def softmax(logits: np.ndarray) -> np.ndarray:
    mass = np.exp(logits - logits.max(axis=1, keepdims=True))
    return mass / mass.sum(axis=1, keepdims=True)


def continued(folder: Path, kind: str) -> list[str]:
    """Plain greedy generation, one row at a time, without padding."""
    network = getattr(transformers, kind).from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    result = []
    for text in TEXTS:
        ids = words(f"Q : {text} A :", return_tensors="pt")["input_ids"]
        written = network.generate(ids, max_new_tokens=5, do_sample=False, num_beams=1)
        start = 0 if network.config.is_encoder_decoder else ids.shape[1]
        result.append(words.decode(written[0, start:], skip_special_tokens=True))
    return result


@pytest.mark.parametrize("batch_size", ["1", "4", "32"])
def test_probabilities_are_the_softmax_of_the_logits_in_the_order_of_the_task_s_names(weights, batch_size):
    answers = model(weights["named"], WAY, batch_size=batch_size).predict(BATCH)
    by_hand = softmax(logits_by_hand(weights["named"], TEXTS))[:, [2, 0, 1]]
    assert np.allclose(answers.scores, by_hand, atol=1e-5)
    assert answers.prediction.tolist() == by_hand.argmax(axis=1).tolist()
    assert len(set(answers.prediction.tolist())) > 1, "the weights tell texts apart"


def test_two_inputs_are_read_as_a_pair_in_the_task_s_order(weights):
    answers = model(weights["plain"], PAIR).predict(BATCH)
    assert np.allclose(answers.scores, softmax(logits_by_hand(weights["plain"], TEXTS, BATCH["other"])), atol=1e-5)
    assert not np.allclose(answers.scores, softmax(logits_by_hand(weights["plain"], BATCH["other"], TEXTS)), atol=1e-2)


def test_a_text_over_the_context_window_is_truncated(weights):
    long = {"text": np.array(["walk " * 100, "walk " * 14], object)}
    scores = model(weights["plain"], WAY).predict(long).scores
    assert np.allclose(scores[0], scores[1], atol=1e-5)
    short = model(weights["plain"], WAY, max_length="3").predict({"text": np.array(["left walk run", "left"], object)})
    assert np.allclose(short.scores[0], short.scores[1], atol=1e-5)


@pytest.mark.parametrize(
    ("labels", "names", "expected"),
    [
        (["LABEL_0", "LABEL_1", "LABEL_2"], ("left", "right", "twice"), [0, 1, 2]),
        (["0", "1", "2"], ("left", "right", "twice"), [0, 1, 2]),
        (["a", "b", "c"], (), [0, 1, 2]),
        (["Twice ", "LEFT", "right"], ("left", "right", "twice"), [1, 2, 0]),
        (["right", "neither", "left", "twice"], ("left", "right", "twice"), [2, 0, 3]),
    ],
)
def test_labels_are_matched_by_name_where_both_sides_have_names_else_by_position(labels, names, expected):
    task = Task("classification", ("text",), "way", classes=3, names=names)
    assert match_outputs(dict(enumerate(labels)), task, "m") == expected


@pytest.mark.parametrize(
    ("labels", "names", "complaint"),
    [
        (["good", "bad", "left"], WAY.names, "has the labels good, bad, left, and the task the classes left, right"),
        (["left", "Left", "right", "twice"], WAY.names, "has the labels left, left, right, twice"),
        (["LABEL_0", "LABEL_1"], (), "has 2 classes, and the task has 3"),
        (["a", "b", "c", "d"], (), "has 4 classes, and the task has 3"),
    ],
)
def test_labels_that_do_not_fit_the_task_are_refused(labels, names, complaint):
    with pytest.raises(ModelError, match=f"^model hf:m {complaint}"):
        match_outputs(dict(enumerate(labels)), Task("classification", ("text",), "way", classes=3, names=names), "m")


@pytest.mark.parametrize("batch_size", ["1", "4"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("decoder", "GPT2LMHeadModel"),
        ("unpadded", "GPT2LMHeadModel"),
        ("encoder_decoder", "T5ForConditionalGeneration"),
    ],
)
def test_each_prompt_is_continued_greedily_and_the_continuation_is_the_answer(weights, name, kind, batch_size):
    answers = model(weights[name], ANSWER, prompt(), batch_size=batch_size).predict(BATCH)
    expected = continued(weights[name], kind)
    assert [answer if isinstance(answer, str) else "" for answer in answers] == expected
    assert len(set(expected)) > 1, "the weights tell texts apart"


def test_a_stop_string_ends_the_answer_and_the_work(weights):
    free = model(weights["decoder"], ANSWER, prompt(max_tokens=8)).predict(BATCH)
    stop = sorted({answer.split()[3] for answer in free})[0]
    stopped = model(weights["decoder"], ANSWER, prompt(max_tokens=8, stop=[stop]))
    expected = [answer.split(stop)[0].strip() for answer in free]
    assert [answer if isinstance(answer, str) else "" for answer in stopped.predict(BATCH)] == expected
    assert expected != list(free)
    stops_early = next(text for text, answer in zip(TEXTS, free, strict=True) if stop in answer.split()[:4])
    calls = []
    stopped.network.register_forward_hook(lambda *_: calls.append(1))
    stopped.predict({"text": np.array([stops_early], object)})
    assert len(calls) <= 4


def test_settings_of_the_weights_own_do_not_change_how_they_are_decoded(weights, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    for file in weights["decoder"].iterdir():
        (own / file.name).write_bytes(file.read_bytes())
    settings = json.loads((own / "generation_config.json").read_text())
    sampled = {"do_sample": True, "num_beams": 3, "repetition_penalty": 5.0, "min_new_tokens": 5, "temperature": 9.0}
    (own / "generation_config.json").write_text(json.dumps(settings | sampled))
    answers = [model(folder, ANSWER, prompt()).predict(BATCH) for folder in (weights["decoder"], own)]
    assert answers[0] == answers[1]


def test_a_prompt_that_leaves_no_room_fails_alone(weights):
    texts = np.array(
        ["walk", " ".join(["walk"] * 23), " ".join(["walk"] * 24), "run"], object
    )  # 4 tokens more, 5 to come
    answers = model(weights["decoder"], ANSWER, prompt()).predict({"text": texts})
    over = Failed("prompt over the context window")
    assert [answer == over for answer in answers] == [False, False, True, False]
    shorter = model(weights["decoder"], ANSWER, prompt(), max_length="10").predict(BATCH)
    assert [answer == over for answer in shorter] == [4 + len(text.split()) + 5 > 10 for text in TEXTS]


def test_a_continuation_without_an_answer_is_failed(weights):
    task = Task("classification", ("text",), "way", classes=2, names=("north", "south"))
    answers = model(weights["decoder"], task, prompt(task, "class_name")).predict(BATCH)
    assert answers == [Failed("no answer could be read")] * len(TEXTS)


def test_classifiers_and_generators_keep_the_contract_of_a_model(weights):
    check_model(from_spec(str(weights["named"]), {"batch_size": "4"}), WAY, batch=BATCH)
    check_model(from_spec(str(weights["plain"]), {}), PAIR, batch=BATCH)
    for name in ("decoder", "encoder_decoder"):
        check_model(from_spec(str(weights[name]), {"batch_size": "3"}), ANSWER, batch=BATCH, prompt=prompt())


@pytest.mark.parametrize(
    ("name", "task", "complaint"),
    [
        ("decoder", ANSWER, "is a GPT2LMHeadModel: a sequence task needs a prompt, and the benchmark has none"),
        ("decoder", WAY, "is a GPT2LMHeadModel: a classification task needs a prompt"),
        ("plain", Task("regression", ("text",), "value"), "is a BertForSequenceClassification: a regression task"),
        (
            "plain",
            Task("classification", ("a", "b", "c"), "d", classes=3),
            "a pair of texts, and this task has 3 inputs",
        ),
    ],
)
def test_weights_of_another_kind_than_the_task_needs_are_refused(weights, name, task, complaint):
    with pytest.raises(ModelError, match=complaint):
        model(weights[name], task)


def test_inputs_that_are_no_text_and_weights_that_are_not_all_there_are_refused(weights):
    with pytest.raises(ModelError, match="input 'text' is not text"):
        model(weights["plain"], WAY).predict({"text": np.arange(3)})
    with pytest.raises(ModelError, match=r"lacks weights for BertLMHeadModel \(cls.predictions.*\): the model was not"):
        model(weights["plain"], ANSWER, prompt())


def test_all_seeds_share_weights_that_are_read_once(weights):
    built = from_spec(str(weights["plain"]), {})
    item, other = built(0, WAY, "cpu", None), built(1, WAY, "cpu", None)
    assert item is not other
    assert item.network is other.network
    assert item.network.dtype == torch.float32
    assert model(weights["plain"], WAY, dtype="bfloat16").network.dtype == torch.bfloat16


def test_the_code_is_a_digest_of_the_files_and_of_the_options_that_answers_depend_on(weights, tmp_path):
    folder = tiny_hf.classifier(tmp_path / "model")
    codes = [
        from_spec(str(folder), options).code
        for options in ({}, {"batch_size": "2"}, {"dtype": "float16"}, {"max_length": "5"})
    ]
    assert codes[0] == codes[1]
    assert len(set(codes)) == 3
    (folder / "README.md").write_text("changed")
    assert from_spec(str(folder), {}).code == codes[0]
    (folder / "tokenizer_config.json").write_text("{}")
    assert from_spec(str(folder), {}).code not in codes
    assert from_spec(str(folder), {}).name == "model"


def test_a_wrong_folder_or_option_is_one_clear_line(weights, tmp_path):
    with pytest.raises(FarshiftError, match="has no config.json: give a folder written by save_pretrained"):
        from_spec(str(tmp_path), {})
    with pytest.raises(UnknownName, match="no option of hf: named 'trust_remote_code'"):
        from_spec(str(weights["plain"]), {"trust_remote_code": "true"})
    for option in ({"dtype": "int8"}, {"batch_size": "0"}, {"max_length": "long"}):
        with pytest.raises(FarshiftError, match=f"option {next(iter(option))} of hf"):
            from_spec(str(weights["plain"]), option)


def test_pickled_weights_and_code_that_comes_with_weights_are_refused(tmp_path):
    folder = tiny_hf.classifier(tmp_path / "model")
    (folder / "pytorch_model.bin").write_bytes((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors").rename(folder / "elsewhere")
    with pytest.raises(
        FarshiftError, match="has no .safetensors weights, and pickled weights are not read: save it again"
    ):
        from_spec(str(folder), {})
    (folder / "elsewhere").rename(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine"}}
    (folder / "config.json").write_text(json.dumps(config | own))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')")
    with pytest.raises(ModelError, match="^reading .*config.json raised ValueError: ") as raised:
        model(folder, WAY)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "touched").exists()


def test_transformers_is_quiet_and_left_as_it_was(weights, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    model(weights["plain"], WAY).predict(BATCH)
    model(weights["decoder"], ANSWER, prompt()).predict(BATCH)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_without_transformers_the_extra_is_named(weights, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'farshift\[hf\]'"):
        from_spec(str(weights["plain"]), {})


ASK = """
import json, sys
from farshift.benchmarks.adapters.hugging_face import from_spec
for rest in sys.argv[1:]:
    try:
        made = from_spec(rest, {})
        print(json.dumps([str(made.folder), made.name, made.code]))
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]))
assert "transformers" not in sys.modules
"""


def test_a_model_of_the_hub_is_fetched_once_by_the_real_client_and_pinned_to_its_commit(weights, tmp_path):
    """The client reads HF_ENDPOINT when it is imported, so it gets a process of its own."""
    source = tmp_path / "source"
    (source / "onnx").mkdir(parents=True)
    for file in weights["plain"].iterdir():
        (source / file.name).write_bytes(file.read_bytes())
    for unwanted in ("pytorch_model.bin", "modeling.py", "onnx/config.json"):
        (source / unwanted).write_bytes(b"unwanted")

    def ask(url: str, *rest: str, **environment: str) -> list[list[str]]:
        home = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", ASK, *rest],
            capture_output=True,
            text=True,
            env=os.environ | home | environment,
            check=True,
        )
        assert done.stderr == ""
        return [json.loads(line) for line in done.stdout.splitlines()]

    pinned = f"tiny/model@{tiny_hf.COMMIT}"
    with tiny_hf.model_hub(source) as site:
        branch, commit, revision, repository = ask(site.url, "tiny/model", pinned, "tiny/model@v9", "tiny/other")
        requests = [path for path, _ in site.requests]
        assert branch == commit
        folder, name, code = branch
        assert name == "tiny/model"
        assert revision[0] == repository[0] == "Unavailable"
        assert "model hf:tiny/model@v9: RevisionNotFoundError: " in revision[1]
        assert "model hf:tiny/other: RepositoryNotFoundError: " in repository[1]
        assert repository[1].endswith(
            "check the name and the revision; a private or gated model needs a login (hf auth login)"
        )
        assert sum(path.endswith("/model.safetensors") for path in requests) <= 2, "asked about once, fetched once"
        assert not any(path.endswith(("modeling.py", "pytorch_model.bin", "onnx/config.json")) for path in requests)
    assert ask(site.url, pinned, FARSHIFT_OFFLINE="1") == [[folder, name, code]]
    assert Path(folder).name == tiny_hf.COMMIT
    answers = [model(where, WAY).predict(BATCH) for where in (Path(folder), weights["plain"])]
    assert np.array_equal(answers[0].scores, answers[1].scores)


def test_a_folder_that_looks_like_a_hub_name_is_pointed_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    with pytest.raises(FarshiftError, match=r"^model hf:models/mine: .*write hf:./models/mine for the local folder$"):
        from_spec("models/mine", {})
