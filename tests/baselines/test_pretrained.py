"""Pretrained networks: a replica trains the same alone or among many, and what is frozen, probed, adapted or
interpolated is what the papers say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny_hf
import tiny_vision
import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.layers.lora import Lora, merge_lora
from farshift.baselines.recipe import find_recipe, make_fine_tuned
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.adapters._transformers import silence_transformers
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError
from torch import Tensor

from .toys import words

pytest.importorskip("transformers")

STEPS, ROWS, CLASSES = 4, 24, 3
KINDS = ("resnet", "convnext", "vit", "dinov2", "clip")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("weights")
    result = {kind: str(tiny_vision.saved(home / kind, kind)) for kind in KINDS}
    return result | {"bert": str(tiny_hf.classifier(home / "bert"))}


def pictures() -> tuple[Data, Sizes]:
    generator = torch.Generator().manual_seed(0)
    shape = (8, 8, 3)
    x = torch.rand(ROWS, 8 * 8 * 3, generator=generator)
    label = torch.arange(ROWS) % CLASSES
    inputs = torch.zeros(ROWS, 0, dtype=torch.int64), x
    group = torch.arange(ROWS) // CLASSES % 2
    data = Data(inputs, label[None], torch.ones(ROWS, dtype=torch.int64), torch.ones(1, ROWS), group)
    return data, Sizes(CLASSES, numbers=8 * 8 * 3, shape=shape)


def settled(algorithm: str, weights: str, **own: Any) -> dict[str, Any]:
    from farshift.baselines.recipe import resolve_settings

    built = make_fine_tuned(find_recipe(algorithm), weights, side=8)
    return resolve_settings(built, "b", {"batch_size": 4, "lr": 1e-2, **own})


def trained(names: list[str], algorithm: str, weights: str, steps: int = STEPS, **own: Any) -> Training:
    data, sizes = pictures()
    name = find_recipe(algorithm).algorithm or ""
    settings = [settled(algorithm, weights, **own) for _ in names]
    stack = ReplicaStack("pretrained", name, settings, names, sizes, "classification", data, steps)
    training = Training(stack, data, steps)
    training.run()
    return training


def parts(training: Training, place: int = 0) -> dict[str, Tensor]:
    return {name: value[place].detach() for name, value in training.stack.network.state_dict().items()}


def start(weights: str) -> dict[str, Tensor]:
    """The weights as they were saved, of a network before its first step."""
    data, sizes = pictures()
    stack = ReplicaStack("pretrained", "erm", [settled("erm", weights)], ["r"], sizes, "classification", data, 1)
    return {name: value[0].detach() for name, value in stack.network.state_dict().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fresh_network_gives_the_models_own_features(kind: str, folders: dict[str, str]) -> None:
    data, sizes = pictures()
    settings = [settled("erm", folders[kind])] * 2
    stack = ReplicaStack("pretrained", "erm", settings, ["a", "b"], sizes, "classification", data, 1)
    stack.ready()
    features = stack.features(*data.inputs)
    mean, deviation = (torch.tensor(tiny_vision.MOMENTS[name]).view(3, 1, 1) for name in ("image_mean", "image_std"))
    images = (data.inputs[1].view(-1, 8, 8, 3).permute(0, 3, 1, 2) - mean) / deviation
    with silence_transformers(), torch.no_grad():
        network = tiny_vision.network(kind)
        network = network.vision_model if kind == "clip" else network
        expected = network.eval()(pixel_values=images).pooler_output.flatten(1)
    for item in features:
        torch.testing.assert_close(item, expected, atol=1e-5, rtol=1e-4)
    assert not stack.answer(*data.inputs).any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_alone_is_the_replica_among_three(kind: str, folders: dict[str, str]) -> None:
    together = trained(["a", "b", "c"], "erm", folders[kind], dropout=0.2)
    alone = trained(["b"], "erm", folders[kind], dropout=0.2)
    assert abs(together.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6
    for name, value in parts(alone).items():
        if "k_proj.bias" not in name:  # attention does not depend on it: AdamW follows the signs of rounding
            torch.testing.assert_close(parts(together, 1)[name], value, atol=1e-6, rtol=0)
    assert any(not torch.equal(value, start(folders[kind])[name]) for name, value in parts(alone).items())


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("resnet", "sam"), ("resnet", "fishr"), ("resnet", "rsc"), ("vit", "pego")]
)
def test_algorithms_train_it_alone_as_among_others(kind: str, algorithm: str, folders: dict[str, str]) -> None:
    together, alone = (trained(names, algorithm, folders[kind]) for names in (["a", "b"], ["b"]))
    assert not together.outcome.failed
    assert abs(together.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6


@pytest.mark.parametrize("frozen", [True, False])
def test_batch_normalisation_is_frozen_where_it_is_asked_to_be(frozen: bool, folders: dict[str, str]) -> None:
    before, after = start(folders["resnet"]), parts(trained(["a"], "erm", folders["resnet"], frozen_norm=frozen))
    moments = [name for name in before if "running_" in name]
    assert moments
    assert all(torch.equal(before[name], after[name]) for name in moments) == frozen


def moved(kind: str, folders: dict[str, str], **own: Any) -> set[str]:
    before, after = start(folders[kind]), parts(trained(["a"], "erm", folders[kind], **own))
    return {name for name in after if name not in before or not torch.equal(before[name], after[name])}


HEAD = {"head.weight", "head.bias"}


def test_a_linear_probe_moves_the_head_alone(folders: dict[str, str]) -> None:
    assert moved("vit", folders, freeze="body") == HEAD


def test_lp_ft_probes_first_and_then_moves_all(folders: dict[str, str]) -> None:
    assert moved("vit", folders, probe_steps=STEPS) == HEAD
    assert moved("vit", folders, probe_steps=STEPS - 1) > HEAD
    probed = parts(trained(["a"], "erm", folders["vit"], probe_steps=STEPS))
    plain = parts(trained(["a"], "erm", folders["vit"], freeze="body"))
    assert all(torch.equal(probed[name], plain[name]) for name in HEAD)


def test_layers_move_at_their_share_of_the_rate(folders: dict[str, str]) -> None:
    """By plain descent: after one step each weight has gone its share of what it goes without decay."""
    own = {"optimiser": "sgd", "momentum": 0.0, "freeze": "none"}
    before = start(folders["vit"])
    full, slow = (parts(trained(["a"], "erm", folders["vit"], steps=2, layer_decay=d, **own)) for d in (1.0, 0.5))
    assert torch.equal(full["head.weight"].sign(), slow["head.weight"].sign())
    item = trained(["a"], "erm", folders["vit"], steps=1, layer_decay=0.5, **own)
    depths = dict(
        zip((name for name, _ in item.stack.network.named_parameters()), item.stack.network.depths(), strict=True)
    )
    assert depths["body.model.embeddings.cls_token"] == 0
    assert depths["body.model.layers.0.mlp.fc1.weight"] == 1
    assert depths["body.model.layers.1.mlp.fc1.weight"] == 2
    assert depths["body.model.layernorm.weight"] == 3
    assert depths["head.weight"] == 4
    shares = {name: p.rate_share.item() for name, p in item.stack.network.named_parameters()}
    assert shares["body.model.embeddings.cls_token"] == 0.5**4
    assert shares["head.weight"] == 1
    name = "body.model.layers.1.mlp.fc1.weight"
    assert (slow[name] - before[name]).norm() < (full[name] - before[name]).norm()


def test_lora_moves_low_rank_updates_and_the_head_and_can_be_merged(folders: dict[str, str]) -> None:
    training = trained(["a", "b"], "erm", folders["vit"], lora_rank=2, lora_alpha=4.0)
    network = training.stack.network
    before, after = start(folders["vit"]), parts(training)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == HEAD
    adapted = [name for name, module in network.named_modules() if isinstance(module, Lora)]
    assert len(adapted) == 4
    assert all(name.endswith(("q_proj", "v_proj")) for name in adapted)
    data = training.data
    answers = training.stack.answer(*data.inputs)
    merge_lora(network)
    assert not any(isinstance(module, Lora) for module in network.modules())
    torch.testing.assert_close(training.stack.answer(*data.inputs), answers, atol=1e-5, rtol=1e-4)
    with pytest.raises(ModelError, match="no attention for LoRA"):
        trained(["a"], "erm", folders["resnet"], lora_rank=2)


def test_wise_ft_lies_between_the_pretrained_and_the_last_weights(folders: dict[str, str]) -> None:
    before, last = start(folders["vit"]), parts(trained(["a"], "wise-ft", folders["vit"], alpha=1.0))
    result = parts(trained(["a"], "wise-ft", folders["vit"], alpha=0.3))
    for name, value in result.items():
        torch.testing.assert_close(value, before[name].lerp(last[name], 0.3) if name != "decay" else value)


def test_wise_ft_keeps_the_probed_head_as_its_start(folders: dict[str, str]) -> None:
    probed = parts(trained(["a"], "erm", folders["vit"], steps=2, freeze="body"))
    result = parts(trained(["a"], "wise-ft", folders["vit"], alpha=0.0, probe_steps=2))
    for name, value in probed.items():
        torch.testing.assert_close(result[name], value)


def test_lines_scales_the_change_by_block(folders: dict[str, str]) -> None:
    before, last = start(folders["vit"]), parts(trained(["a"], "wise-ft", folders["vit"], alpha=1.0))
    result = parts(trained(["a"], "lines", folders["vit"], alpha=0.2, beta=0.8))
    shares = {"embeddings.cls_token": 0, "layers.0.mlp.fc1.weight": 1, "layers.1.mlp.fc1.weight": 2}
    for name, depth in shares.items():
        name = f"body.model.{name}"
        torch.testing.assert_close(result[name], before[name].lerp(last[name], 0.2 + 0.8 * depth / 4))
    torch.testing.assert_close(result["head.weight"], last["head.weight"])


def test_a_text_model_reads_its_own_tokens(folders: dict[str, str]) -> None:
    task = Task("classification", ("command",), "turn", classes=2)
    rows = {"command": words(["walk left", "run", "look right twice", "jump"] * 3), "turn": np.arange(12) % 2}
    settings = settled("erm", folders["bert"], inputs="tokens", pooling="mean")
    coding = choose_encoding(task, rows, settings)
    data = Data.of(coding.encode(rows), torch.ones(12))

    def run(names: list[str]) -> Training:
        stack = ReplicaStack(
            "pretrained", "erm", [settings] * len(names), names, coding.sizes, "classification", data, 3
        )
        training = Training(stack, data, 3)
        training.run()
        return training

    together, alone = run(["a", "b"]), run(["b"])
    assert abs(together.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6
    item, two = (coding.inputs({"command": words(texts)}) for texts in (["run"], ["run", "look right twice"]))
    torch.testing.assert_close(alone.stack.answer(*item)[0, 0], alone.stack.answer(*two)[0, 0], atol=1e-5, rtol=1e-4)


COMMANDS = ["walk left", "run", "look right twice and jump", "jump", "walk " * 20] * 4


def text_rows(weights: str, **own: Any) -> tuple[Any, Data, dict[str, Any]]:
    """Commands by a model's own tokenizer, and the settings of their fine-tuning."""
    task = Task("classification", ("command",), "turn", classes=2)
    rows = {"command": words(COMMANDS), "turn": np.arange(20) % 2}
    settings = settled("erm", weights, inputs="tokens", **own)
    coding = choose_encoding(task, rows, settings)
    return coding, Data.of(coding.encode(rows), torch.ones(20)), settings


@pytest.mark.parametrize("times", [1, 2])
def test_cached_tokens_are_those_that_transformers_gives(cache: Any, times: int, folders: dict[str, str]) -> None:
    from transformers import AutoTokenizer

    for _ in range(times):
        coding, data, _ = text_rows(folders["bert"])
    with silence_transformers():
        own = AutoTokenizer.from_pretrained(folders["bert"])
        expected = own(COMMANDS, truncation=True, max_length=16)["input_ids"]
    assert [[item - 1 for item in row.tolist() if item] for row in data.inputs[0].to_tensor()] == expected
    assert data.lengths.tolist() == [len(ids) for ids in expected]
    requested = coding.inputs({"command": words(COMMANDS)})[0]
    assert torch.equal(requested, data.inputs[0].to_tensor())
    assert coding.tokenizer.startswith("tokenizers ")


def text_losses(data: Data, coding: Any, settings: dict[str, Any], steps: int = 4) -> list[float]:
    stack = ReplicaStack("pretrained", "erm", [settings], ["r"], coding.sizes, "classification", data, steps)
    training, result = Training(stack, data, steps), []
    for _ in range(steps):
        training.step()
        result.append(float(training.losses[0]))
    return result


@pytest.mark.parametrize("more", [0, 9])
def test_ragged_rows_have_the_losses_of_rows_filled_up(more: int, folders: dict[str, str]) -> None:
    coding, data, settings = text_rows(folders["bert"], pooling="mean", batch_size=4)
    filled = torch.nn.functional.pad(data.inputs[0].to_tensor(), (0, more))
    wider = replace(data, inputs=(filled, data.inputs[1]))
    assert not isinstance(data.inputs[0], torch.Tensor)
    if more:
        assert filled.shape[1] > 16  # more than the model has positions: what is all padding is never read
    assert text_losses(data, coding, settings) == text_losses(wider, coding, settings)


def test_texts_are_asked_by_length_and_answered_in_their_order(
    folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from farshift.baselines.networks import pretrained
    from farshift.baselines.training import predict

    coding, data, settings = text_rows(folders["bert"], batch_size=4)
    stack = ReplicaStack("pretrained", "erm", [settings], ["r"], coding.sizes, "classification", data, 4)
    Training(stack, data, 4).run()
    requested = {"command": words(COMMANDS)}
    expected = stack.answer(*coding.inputs(requested))[0].softmax(-1).numpy()
    for tokens in (pretrained.TOKENS_AT_ONCE, 48, 1):
        monkeypatch.setattr(pretrained, "TOKENS_AT_ONCE", tokens)
        (result,) = predict.predict_batch(coding, stack, requested)
        np.testing.assert_allclose(result.scores, expected, atol=1e-6)


def test_pooled_batches_hold_texts_of_like_length(folders: dict[str, str]) -> None:
    from farshift.baselines.training.sampler import Sampler

    coding, data, settings = text_rows(folders["bert"], batch_size=4, pool=5)
    stack = ReplicaStack("pretrained", "erm", [settings], ["r"], coding.sizes, "classification", data, 5)
    sampler = Sampler(data, stack.keys, stack.hyperparameters, False)
    batches = [sampler.batch(step) for step in range(5)]
    lengths = [data.lengths[batch.rows[0]] for batch in batches]
    assert sorted(int(item) for batch in batches for item in batch.rows[0]) == list(range(20))
    by_length = sorted(item.tolist() for item in lengths)
    assert [length for item in by_length for length in item] == sorted(data.lengths.tolist())
    # The same batches drawn by hand, with all their padding, give the same losses.
    full = text_losses(data, coding, settings, 5)
    wider = replace(data, inputs=(torch.nn.functional.pad(data.inputs[0].to_tensor(), (0, 3)), data.inputs[1]))
    assert full == text_losses(wider, coding, settings, 5)


def test_what_cannot_be_is_refused(folders: dict[str, str]) -> None:
    for own, message in (
        ({"pooling": "top"}, "setting pooling = 'top'"),
        ({"freeze": "head"}, "setting freeze = 'head'"),
    ):
        with pytest.raises(ModelError, match=message):
            trained(["a"], "erm", folders["vit"], **own)
    with pytest.raises(ModelError, match="reads? text: set inputs = 'tokens'"):
        trained(["a"], "erm", folders["bert"])
    with pytest.raises(ModelError, match="is an estimator and has no network to fine-tune"):
        make_fine_tuned(find_recipe("knn"), folders["vit"])
