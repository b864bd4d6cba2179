"""Pretrained networks of pictures, texts and sounds: a replica trains the same alone or among many, and what is frozen,
probed, adapted or interpolated is what the papers say."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny_vision
import torch
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.layers.lora import Lora
from farshift.baselines.networks import pretrained
from farshift.baselines.recipe import find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.running.published import RecipeOverrides
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trained_group import predict_batch
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.adapters._transformers import silence_transformers
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Budget
from farshift.core.errors import ModelError
from farshift.loaders.cache.entries import list_entries

from .pretrained_stacks import (
    COMMANDS,
    HEAD,
    ONE_WAY,
    PICTURES,
    RATE,
    SOUNDS,
    STEPS,
    TURN,
    encoded,
    end,
    inputs_of,
    moved,
    parts,
    settled,
    sound,
    stack_of,
    start,
    trained,
)
from .toys import Rows, words

pytest.importorskip("transformers")

FAMILIES = ("vit", *ONE_WAY, *SOUNDS)
"""Networks of blocks with attention."""


def features_of(kind: str, folders: dict[str, str], **own: Any) -> tuple[torch.Tensor, ReplicaStack, Data]:
    """What two fresh replicas make of the rows."""
    stack, data = stack_of(kind, folders[kind], ["a", "b"], **own)
    stack.ready()
    return stack.features(*data.inputs), stack, data


def close(result: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", PICTURES)
def test_a_fresh_network_gives_the_models_own_features(kind, folders):
    features, stack, data = features_of(kind, folders)
    mean, deviation = (torch.tensor(tiny_vision.MOMENTS[name]).view(3, 1, 1) for name in ("image_mean", "image_std"))
    images = (data.inputs[1].view(-1, 8, 8, 3).permute(0, 3, 1, 2) - mean) / deviation
    with silence_transformers(), torch.no_grad():
        network = tiny_vision.network(kind)
        network = network.vision_model if kind == "clip" else network
        expected = network.eval()(pixel_values=images).pooler_output.flatten(1)
    for item in features:
        close(item, expected)
    assert not stack.answer(*data.inputs).any()


@pytest.mark.parametrize("kind", ONE_WAY)
def test_a_text_is_the_state_of_its_last_token(kind, folders):
    from transformers import AutoModel, AutoTokenizer

    features, _, _ = features_of(kind, folders)
    with silence_transformers(), torch.no_grad():
        model, own = AutoModel.from_pretrained(folders[kind]).eval(), AutoTokenizer.from_pretrained(folders[kind])
        for result, text in zip(features[0][:4], COMMANDS, strict=False):
            alone = model(**own(text, return_tensors="pt", return_token_type_ids=False)).last_hidden_state[0, -1]
            close(result, alone)
    assert not torch.allclose(features_of(kind, folders, pooling="mean")[0], features, atol=1e-3)


def test_a_text_without_tokens_is_answered(folders):
    stack, _ = stack_of("gpt2", folders["gpt2"], ["a"])
    coding, _ = encoded("gpt2", settled("gpt2", folders["gpt2"]))
    stack.ready()
    assert torch.isfinite(stack.features(*coding.inputs({"x": words(["", "walk"])}))).all()


@pytest.mark.parametrize("kind", SOUNDS)
def test_a_sound_is_the_mean_over_its_frames(kind, folders):
    from transformers import AutoModel

    features, _, data = features_of(kind, folders)
    assert data.inputs[1].shape == (20, 90)
    with silence_transformers(), torch.no_grad():
        model = AutoModel.from_pretrained(folders[kind]).eval()
        for row, x in enumerate(data.inputs[1]):
            length = 60 + 10 * (row % 4)
            more = {"attention_mask": (torch.arange(90) < length).long()[None]} if kind == "layer" else {}
            states = model(x[None], **more).last_hidden_state[0]
            frames = int(model._get_feat_extract_output_lengths(torch.tensor(length)))
            close(features[0][row], states[:frames].mean(dim=0))


def test_sounds_are_read_at_the_models_rate_and_cut_off_after_some_seconds(folders):
    coding, data = encoded("layer", settled("layer", folders["layer"], seconds=0.02))
    assert data.inputs[1].shape == (20, 80)
    twice = coding.inputs({"x": words([sound(0, 2 * RATE)])})[1]
    assert int((twice != 0).sum()) in range(58, 61)
    assert coding.inputs({"x": words([])})[1].shape == (0, 80)
    assert coding.decoder.startswith("SciPy ")
    with pytest.raises(ModelError, match="setting seconds = 0"):
        encoded("layer", settled("layer", folders["layer"], seconds=0.0))


@pytest.mark.parametrize("kind", [*PICTURES, "bert", *ONE_WAY, *SOUNDS])
def test_a_replica_alone_is_the_replica_among_three(kind, folders):
    together, alone, again = (
        trained(kind, folders[kind], names, dropout=0.2) for names in (["a", "b", "c"], ["b"], ["b"])
    )
    assert abs(together.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6
    assert again.outcome.losses == alone.outcome.losses
    before, own, among = start(kind, folders[kind]), parts(alone.stack), parts(together.stack, 1)
    assert any(not torch.equal(own[name], value) for name, value in before.items())
    if kind in PICTURES:
        for name, value in own.items():
            if "k_proj.bias" not in name:  # attention does not depend on it: AdamW follows the signs of rounding
                torch.testing.assert_close(among[name], value, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("kind", "recipe"),
    [
        *(("resnet", recipe) for recipe in ("sam", "fishr", "rsc")),
        *(("vit", "pego"), ("gpt2", "coral"), ("gpt2", "wise-ft"), ("group", "mixup"), ("group", "wise-ft")),
    ],
)
def test_algorithms_train_it_alone_as_among_others(kind, recipe, folders):
    together, alone = (trained(kind, folders[kind], names, recipe) for names in (["a", "b"], ["b"]))
    assert abs(together.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6


@pytest.mark.parametrize("frozen", [True, False])
def test_batch_normalisation_is_frozen_where_it_is_asked_to_be(frozen, folders):
    changed = moved("resnet", folders["resnet"], frozen_norm=frozen)
    assert any("running_" in name for name in changed) != frozen


@pytest.mark.parametrize("kind", FAMILIES)
def test_what_is_frozen_probed_or_adapted_is_what_was_asked(kind, folders):
    assert moved(kind, folders[kind], freeze="body") == HEAD
    assert moved(kind, folders[kind], probe_steps=STEPS) == HEAD
    assert moved(kind, folders[kind], probe_steps=STEPS - 1) > HEAD
    assert moved(kind, folders[kind], lora_rank=2) == HEAD
    above = moved(kind, folders[kind], freeze="stem")
    assert [name for name in above if ".layers." in name or ".h." in name]
    assert not [name for name in above if any(stem in name for stem in ("embed", "wte", "wpe", "feature_"))]


def test_lp_ft_probes_as_a_linear_probe_does(folders):
    probed, plain = (end("vit", folders["vit"], **own) for own in ({"probe_steps": STEPS}, {"freeze": "body"}))
    assert all(torch.equal(probed[name], plain[name]) for name in HEAD)


@pytest.mark.parametrize("kind", FAMILIES)
def test_low_rank_updates_are_added_to_queries_and_values(kind, folders):
    training = trained(kind, folders[kind], ["a", "b"], lora_rank=2, lora_alpha=4.0)
    network, inputs = training.stack.network, training.data.inputs
    layers = {name: item for name, item in network.named_modules() if isinstance(item, Lora)}
    assert {name.rpartition(".")[2] for name in layers} == ({"c_attn"} if kind == "gpt2" else {"q_proj", "v_proj"})
    assert kind != "vit" or len(layers) == 4
    answers = training.stack.answer(*inputs)
    with torch.no_grad():
        for layer in layers.values():
            change = 2.0 * (layer.up @ layer.down)
            layer.weight += change.mT if layer.turned else change
            layer.up.zero_()
    close(training.stack.answer(*inputs), answers)


@pytest.mark.parametrize("kind", FAMILIES)
def test_layers_move_at_their_share_of_the_rate(kind, folders):
    network = trained(kind, folders[kind], ["a"], layer_decay=0.5).stack.network
    depths = dict(zip((name for name, _ in network.named_parameters()), network.depths(), strict=True))
    assert depths["head.weight"] == max(depths.values())
    assert {depth for name, depth in depths.items() if ".layers.1." in name or ".h.1." in name} == {2}
    shares = {name: p.rate_share.item() for name, p in network.named_parameters()}
    assert all(shares[name] == 0.5 ** (depths["head.weight"] - depth) for name, depth in depths.items())
    if kind == "vit":
        at = ("embeddings.cls_token", "layers.0.mlp.fc1.weight", "layers.1.mlp.fc1.weight", "layernorm.weight")
        assert [depths[f"body.model.{name}"] for name in at] == [0, 1, 2, 3]
        own = {"optimiser": "sgd", "momentum": 0.0, "steps": 2}
        full, slow = (end("vit", folders["vit"], layer_decay=decay, **own) for decay in (1.0, 0.5))
        name = "body.model.layers.1.mlp.fc1.weight"
        before = start("vit", folders["vit"])[name]
        assert (slow[name] - before).norm() < (full[name] - before).norm()


def test_wise_ft_lies_between_the_pretrained_and_the_last_weights(folders):
    before = start("vit", folders["vit"])
    last, result = (end("vit", folders["vit"], "wise-ft", alpha=alpha) for alpha in (1.0, 0.3))
    for name, value in result.items():
        torch.testing.assert_close(value, before[name].lerp(last[name], 0.3) if name != "decay" else value)


def test_wise_ft_keeps_the_probed_head_as_its_start(folders):
    probed = end("vit", folders["vit"], steps=2, freeze="body")
    result = end("vit", folders["vit"], "wise-ft", alpha=0.0, probe_steps=2)
    for name, value in probed.items():
        torch.testing.assert_close(result[name], value)


def test_lines_scales_the_change_by_block(folders):
    before, last = start("vit", folders["vit"]), end("vit", folders["vit"], "wise-ft", alpha=1.0)
    result = end("vit", folders["vit"], "lines", alpha=0.2, beta=0.8)
    shares = {"embeddings.cls_token": 0, "layers.0.mlp.fc1.weight": 1, "layers.1.mlp.fc1.weight": 2}
    for name, depth in shares.items():
        name = f"body.model.{name}"
        torch.testing.assert_close(result[name], before[name].lerp(last[name], 0.2 + 0.8 * depth / 4))
    torch.testing.assert_close(result["head.weight"], last["head.weight"])


@pytest.mark.parametrize("times", [1, 2])
def test_cached_tokens_are_those_that_transformers_gives(cache, times, folders):
    from transformers import AutoTokenizer

    for _ in range(times):
        coding, data = encoded("bert", settled("bert", folders["bert"]))
    with silence_transformers():
        own = AutoTokenizer.from_pretrained(folders["bert"])
        expected = own(COMMANDS, truncation=True, max_length=16)["input_ids"]
    assert [[item - 1 for item in row.tolist() if item] for row in data.inputs[0].to_tensor()] == expected
    assert data.lengths.tolist() == [len(ids) for ids in expected]
    assert torch.equal(coding.inputs({"x": words(COMMANDS)})[0], data.inputs[0].to_tensor())
    assert coding.tokenizer.startswith("tokenizers ")


def text_losses(data: Data, coding: Any, settings: dict[str, Any], steps: int = 4) -> list[float]:
    stack = ReplicaStack("pretrained", "erm", [settings], ["r"], coding.sizes, "classification", data, steps)
    training, result = Training(stack, data, steps), []
    for _ in range(steps):
        training.step()
        result.append(float(training.losses[0]))
    return result


@pytest.mark.parametrize("more", [0, 9])
def test_ragged_rows_have_the_losses_of_rows_filled_up(more, folders):
    settings = settled("bert", folders["bert"], pooling="mean")
    coding, data = encoded("bert", settings)
    assert not isinstance(data.inputs[0], torch.Tensor)
    filled = torch.nn.functional.pad(data.inputs[0].to_tensor(), (0, more))
    if more:
        assert filled.shape[1] > 16  # more than the model has positions: what is all padding is never read
    assert text_losses(data, coding, settings) == text_losses(
        replace(data, inputs=(filled, data.inputs[1])), coding, settings
    )


def test_texts_are_asked_by_length_and_answered_in_their_order(folders, monkeypatch):
    stack = trained("bert", folders["bert"], ["r"]).stack
    coding, _ = encoded("bert", settled("bert", folders["bert"]))
    requested = {"x": words(COMMANDS)}
    expected = stack.answer(*coding.inputs(requested))[0].softmax(-1).numpy()
    for tokens in (pretrained.TOKENS_AT_ONCE, 48, 1):
        monkeypatch.setattr(pretrained, "TOKENS_AT_ONCE", tokens)
        (result,) = predict_batch(coding, stack, requested)
        np.testing.assert_allclose(result.scores, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["llama", "group"])
@pytest.mark.usefixtures("cache")
def test_what_they_read_is_found_out_and_stands_among_what_a_seed_spent(kind, folders):
    chosen = RecipeOverrides(fine_tune=folders[kind]).of(find_recipe("erm"), find_benchmark("optdigits/writers"))
    assert chosen.settings["inputs"] == ("tokens" if kind == "llama" else "sounds")
    x = inputs_of(kind)
    model = Baseline(chosen, TURN, 0, "toy/toy", {"batch_size": 4})
    remarks = model.fit(Rows(x=x, turn=np.arange(20) % 2), None, Budget("quick", 2))
    output = remarks["tokenizer"] if kind == "llama" else remarks["decoder"]
    assert output.startswith("tokenizers " if kind == "llama" else "SciPy ")
    assert model.predict({"x": x}).scores.shape == (20, 2)
    assert len(list_entries("tokens")) == (kind == "llama")


@pytest.mark.parametrize(
    ("kind", "own", "words"),
    [
        ("vit", {"pooling": "top"}, "setting pooling = 'top'"),
        ("vit", {"freeze": "head"}, "setting freeze = 'head'"),
        ("resnet", {"lora_rank": 2}, "no attention for LoRA"),
    ],
)
def test_what_cannot_be_is_refused(kind, own, words, folders):
    with pytest.raises(ModelError, match=words):
        trained(kind, folders[kind], ["a"], **own)


def test_inputs_of_another_kind_are_refused(folders):
    for weights, inputs, x, complaint in (
        ("bert", "images", inputs_of("vit"), "reads? text: set inputs = 'tokens'"),
        ("group", "sounds", inputs_of("bert"), "inputs = 'sounds' needs one audio input"),
        ("gpt2", "sounds", inputs_of("group"), "read no audio"),
    ):
        if inputs == "images":
            with pytest.raises(ModelError, match=complaint):
                trained("vit", folders[weights], ["a"])
            continue
        built = make_fine_tuned(find_recipe("erm"), folders[weights], inputs=inputs)
        with pytest.raises(ModelError, match=complaint):
            choose_encoding(TURN, {"x": x, "turn": np.arange(20) % 2}, resolve_settings(built, "b", {}))
    with pytest.raises(ModelError, match="is an estimator and has no network to fine-tune"):
        make_fine_tuned(find_recipe("knn"), folders["vit"])
