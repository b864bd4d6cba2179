"""Decoder-only text models and sound models are fine-tuned as the others are."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import tiny_hf
import tiny_vision
import torch
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.layers.lora import Lora, merge_lora
from farshift.baselines.networks import pretrained
from farshift.baselines.recipe import find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.running.published import RecipeOverrides
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.adapters._transformers import silence_transformers
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import ModelError
from farshift.loaders.cache.entries import list_entries
from scipy.io import wavfile
from torch import Tensor

from .toys import Rows, words

pytest.importorskip("transformers")

ROWS, STEPS, RATE = 12, 3, 4000
TEXTS = ["walk left", "run", "look right twice and jump", "jump jump"] * 3
KINDS = ("gpt2", "llama", "group", "layer")
HEAD = {"head.weight", "head.bias"}


def sound(number: int, rate: int = RATE) -> bytes:
    """A tone of 60 to 90 samples at the model's rate."""
    count = 60 + 10 * (number % 4)
    tone = np.sin(np.arange(count * rate // RATE) * (0.2 + 0.05 * number))
    out = io.BytesIO()
    wavfile.write(out, rate, (20_000 * tone).astype(np.int16))
    return out.getvalue()


def column(values: list[Any]) -> np.ndarray:
    result = np.empty(len(values), object)
    result[:] = values
    return result


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("weights")
    result = {kind: str(tiny_hf.one_way(home / kind, kind)) for kind in KINDS[:2]}
    return result | {norm: str(tiny_vision.sounds(home / norm, norm=norm)) for norm in KINDS[2:]}


def given(kind: str, folders: dict[str, str], **own: Any) -> tuple[Any, Data, dict[str, Any]]:
    texts = kind in KINDS[:2]
    x = words(TEXTS) if texts else column([sound(number) for number in range(ROWS)])
    rows = {"x": x, "turn": np.arange(ROWS) % 2}
    built = make_fine_tuned(find_recipe("erm"), folders[kind], inputs="tokens" if texts else "sounds")
    settings = resolve_settings(built, "b", {"batch_size": 4, "lr": 1e-2, **own})
    coding = choose_encoding(Task("classification", ("x",), "turn", classes=2), rows, settings)
    group = torch.arange(ROWS) // 2 % 2
    return coding, Data.of(coding.encode(rows), torch.ones(ROWS), group), settings


def stack_of(kind: str, folders: dict[str, str], names: list[str], **own: Any) -> tuple[ReplicaStack, Data]:
    coding, data, settings = given(kind, folders, **own)
    kinds = "pretrained", own.get("algorithm", "erm")
    stack = ReplicaStack(*kinds, [settings] * len(names), names, coding.sizes, "classification", data, STEPS)
    return stack, data


def trained(kind: str, folders: dict[str, str], names: list[str], **own: Any) -> Training:
    stack, data = stack_of(kind, folders, names, **own)
    training = Training(stack, data, STEPS)
    training.run()
    assert not training.outcome.failed
    return training


def parts(stack: ReplicaStack, place: int = 0) -> dict[str, Tensor]:
    return {name: value[place].detach().clone() for name, value in stack.network.state_dict().items()}


def moved(kind: str, folders: dict[str, str], **own: Any) -> set[str]:
    before, after = parts(stack_of(kind, folders, ["a"])[0]), parts(trained(kind, folders, ["a"], **own).stack)
    return {name for name in after if name in before and not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_text_is_the_state_of_its_last_token(kind: str, folders: dict[str, str]) -> None:
    from transformers import AutoModel, AutoTokenizer

    stack, data = stack_of(kind, folders, ["a"])
    stack.ready()
    result = stack.features(*data.inputs)[0]
    with silence_transformers(), torch.no_grad():
        model, own = AutoModel.from_pretrained(folders[kind]).eval(), AutoTokenizer.from_pretrained(folders[kind])
        for row, text in enumerate(TEXTS):
            alone = model(**own(text, return_tensors="pt", return_token_type_ids=False)).last_hidden_state[0, -1]
            torch.testing.assert_close(result[row], alone, atol=1e-5, rtol=1e-4)
    mean, _ = stack_of(kind, folders, ["a"], pooling="mean")
    mean.ready()
    assert not torch.allclose(mean.features(*data.inputs)[0], result, atol=1e-3)


def test_a_text_without_tokens_is_answered(folders: dict[str, str]) -> None:
    coding, _, _ = given("gpt2", folders)
    stack, _ = stack_of("gpt2", folders, ["a"])
    stack.ready()
    features = stack.features(*coding.inputs({"x": words(["", "walk"])}))
    assert torch.isfinite(features).all()


@pytest.mark.parametrize("kind", KINDS[2:])
def test_a_sound_is_the_mean_over_its_frames(kind: str, folders: dict[str, str]) -> None:
    from transformers import AutoModel

    stack, data = stack_of(kind, folders, ["a"])
    stack.ready()
    result = stack.features(*data.inputs)[0]
    assert data.inputs[1].shape == (ROWS, 90)
    with silence_transformers(), torch.no_grad():
        model = AutoModel.from_pretrained(folders[kind]).eval()
        for row, x in enumerate(data.inputs[1]):
            length = 60 + 10 * (row % 4)
            heard = (torch.arange(90) < length).long()[None]
            more = {"attention_mask": heard} if kind == "layer" else {}
            states = model(x[None], **more).last_hidden_state[0]
            frames = int(model._get_feat_extract_output_lengths(torch.tensor(length)))
            torch.testing.assert_close(result[row], states[:frames].mean(dim=0), atol=1e-5, rtol=1e-4)


def test_sounds_are_read_at_the_models_rate_and_cut_off_after_some_seconds(folders: dict[str, str]) -> None:
    coding, data, _ = given("layer", folders, seconds=0.02)
    assert data.inputs[1].shape == (ROWS, 80)
    twice = coding.inputs({"x": column([sound(0, 2 * RATE)])})[1]
    assert int((twice != 0).sum()) in range(58, 61)
    assert coding.inputs({"x": column([])})[1].shape == (0, 80)
    assert coding.decoder.startswith("SciPy ")
    with pytest.raises(ModelError, match="setting seconds = 0"):
        given("layer", folders, seconds=0.0)


def test_long_sounds_are_answered_some_at_a_time(folders: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    stack, data = stack_of("group", folders, ["a"])
    stack.ready()
    full = stack.features(*data.inputs)
    requested: list[int] = []
    plain = pretrained.Network.encode
    monkeypatch.setattr(pretrained.Network, "encode", lambda self, x: (requested.append(x.shape[1]), plain(self, x))[1])
    monkeypatch.setattr(pretrained, "SAMPLES_AT_ONCE", 5 * 90)
    torch.testing.assert_close(stack.features(*data.inputs), full, atol=1e-6, rtol=0)
    assert requested == [5, 5, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_alone_is_the_replica_among_two(kind: str, folders: dict[str, str]) -> None:
    together, alone = (trained(kind, folders, names, dropout=0.2) for names in (["a", "b"], ["b"]))
    assert abs(together.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6
    again = trained(kind, folders, ["b"], dropout=0.2)
    assert again.outcome.losses == alone.outcome.losses


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_frozen_probed_or_adapted_is_what_was_asked(kind: str, folders: dict[str, str]) -> None:
    assert moved(kind, folders, freeze="body") == HEAD
    assert moved(kind, folders, probe_steps=STEPS) == HEAD
    assert moved(kind, folders, probe_steps=1) > HEAD
    assert moved(kind, folders, lora_rank=2) == HEAD
    above = moved(kind, folders, freeze="stem")
    assert [name for name in above if ".layers." in name or ".h." in name]
    assert not [name for name in above if any(stem in name for stem in ("embed", "wte", "wpe", "feature_"))]


@pytest.mark.parametrize("kind", KINDS)
def test_low_rank_updates_can_be_merged(kind: str, folders: dict[str, str]) -> None:
    training = trained(kind, folders, ["a", "b"], lora_rank=2)
    network = training.stack.network
    adapted = {name.rpartition(".")[2] for name, item in network.named_modules() if isinstance(item, Lora)}
    assert adapted == ({"c_attn"} if kind == "gpt2" else {"q_proj", "v_proj"})
    answers = training.stack.answer(*training.data.inputs)
    merge_lora(network)
    assert not any(isinstance(module, Lora) for module in network.modules())
    torch.testing.assert_close(training.stack.answer(*training.data.inputs), answers, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_counted_from_the_blocks(kind: str, folders: dict[str, str]) -> None:
    training = trained(kind, folders, ["a"], layer_decay=0.5)
    network = training.stack.network
    depths = dict(zip((name for name, _ in network.named_parameters()), network.depths(), strict=True))
    assert depths["head.weight"] == max(depths.values())
    second = [depth for name, depth in depths.items() if ".layers.1." in name or ".h.1." in name]
    assert set(second) == {2}
    shares = {name: p.rate_share.item() for name, p in network.named_parameters()}
    assert all(shares[name] == 0.5 ** (depths["head.weight"] - depth) for name, depth in depths.items())


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("gpt2", "coral"), ("gpt2", "wise_ft"), ("group", "mixup"), ("group", "wise_ft")]
)
def test_algorithms_train_them(kind: str, algorithm: str, folders: dict[str, str]) -> None:
    coding, data, _ = given(kind, folders)
    built = make_fine_tuned(
        find_recipe(algorithm.replace("_", "-")), folders[kind], inputs="tokens" if kind == "gpt2" else "sounds"
    )
    settings = resolve_settings(built, "b", {"batch_size": 4})
    stack = ReplicaStack("pretrained", algorithm, [settings], ["r"], coding.sizes, "classification", data, STEPS)
    training = Training(stack, data, STEPS)
    training.run()
    assert not training.outcome.failed


@pytest.mark.parametrize("kind", ["llama", "group"])
def test_what_they_read_is_found_out_and_stands_among_what_a_seed_spent(
    kind: str, folders: dict[str, str], cache: Any
) -> None:
    chosen = RecipeOverrides(fine_tune=folders[kind]).of(find_recipe("erm"), find_benchmark("optdigits/writers"))
    assert chosen.settings["inputs"] == ("tokens" if kind == "llama" else "sounds")
    x = words(TEXTS) if kind == "llama" else column([sound(number) for number in range(ROWS)])
    model = Baseline(chosen, Task("classification", ("x",), "turn", classes=2), 0, "toy/toy", {"batch_size": 4})
    remarks = model.fit(Rows(x=x, turn=np.arange(ROWS) % 2), None, Budget("quick", 2))
    output = remarks["tokenizer"] if kind == "llama" else remarks["decoder"]
    assert output.startswith("tokenizers " if kind == "llama" else "SciPy ")
    assert model.predict({"x": x}).scores.shape == (ROWS, 2)
    assert len(list_entries("tokens")) == (kind == "llama")


def test_inputs_of_another_kind_are_refused(folders: dict[str, str]) -> None:
    task = Task("classification", ("x",), "turn", classes=2)
    built = make_fine_tuned(find_recipe("erm"), folders["group"], inputs="sounds")
    with pytest.raises(ModelError, match="inputs = 'sounds' needs one audio input"):
        choose_encoding(task, {"x": words(TEXTS), "turn": np.arange(ROWS) % 2}, resolve_settings(built, "b", {}))
    text = make_fine_tuned(find_recipe("erm"), folders["gpt2"], inputs="sounds")
    files = {"x": column([sound(0)]), "turn": np.arange(1)}
    with pytest.raises(ModelError, match="read no audio"):
        choose_encoding(task, files, resolve_settings(text, "b", {}))
