"""What an algorithm cannot do, it refuses in words that say what to change, before anything is trained."""

from collections.abc import Callable
from typing import Any

import pytest
from farshift.baselines.encoding.encoding import Sizes
from farshift.core.errors import BadDefinition, ModelError, UnknownName

from .small_sequences import training as read_texts
from .small_stacks import CLASSES, begun, rows, wide_rows

Own = dict[str, Any]

OUT_OF_RANGE: list[tuple[str, Own, str]] = [
    ("focal", {"gamma": -1.0}, "gamma = -1 of focal"),
    ("ldam", {"effective": 1.0}, "effective = 1 of ldam: use a number at least 0 and below 1"),
    ("cvar_dro", {"alpha": 0.0}, "alpha = 0 of cvar_dro"),
    ("eqrm", {"quantile": 1.0}, "quantile = 1 of eqrm: use a number above 0 and below 1"),
    ("fishr", {"ema": 1.0}, "ema = 1 of fishr: use a number at least 0 and below 1"),
    ("mixup", {"alpha": 0.0}, "alpha = 0 of mixup: use a number above 0"),
    ("domain_mixup", {"alpha": -1.0}, "alpha = -1 of domain_mixup: use a number above 0"),
    ("gce", {"q": 0.0}, "setting.* q = .*use "),
    ("gce", {"q": 1.5}, "setting.* q = .*use "),
    ("lff", {"q": 0.0}, "setting q = 0 of lff: use a number above 0"),
    ("bi_tempered", {"t1": 1.2}, "setting.* t1 = .*use "),
    ("bi_tempered", {"t2": 0.8}, "setting.* t2 = .*use "),
    ("bootstrapping", {"belief": "firm"}, "setting.* belief = .*use "),
    ("forward_correction", {"percentile": 0.0}, "setting.* percentile = .*use "),
    ("forward_correction", {"percentile": 60.0}, "with 3 classes, one has about 33 % of the rows.*use 83.33 or more"),
    ("backward_correction", {"percentile": 60.0}, "with 3 classes, one has about 33 % of the rows.*use 83.33 or more"),
    ("confident_learning", {"folds": 1}, "setting folds = 1 of confident_learning: use a number at least 2"),
    ("dividemix", {"warm_percent": 100}, "warm_percent = 100 of dividemix: use a number at least 0 and below 100"),
    ("irm", {"batch_size": 1}, "batch_size = 1: a batch of one row has no halves"),
    ("mldg", {"meta_test": 3}, "meta_test = 3: with 3 training environments, use 1 to 2"),
    ("swad", {"tolerance": 2}, "setting tolerance = 2: use 3 or more"),
    ("divdis", {"head": 2}, "divdis: setting head = 2 of 2 heads: use 2 or more, the first is 0"),
    ("d_bat", {"members": 11}, "d_bat: setting members = 11: use 1 to 10, the steps"),
    ("lottery_ticket", {"mask": "largest"}, "setting mask"),
    ("lottery_ticket", {"pruned": 1.0}, "setting pruned"),
    ("lame", {"affinity": "cosine"}, "affinity = 'cosine' of lame: use rbf, knn or linear"),
    ("lame", {"neighbours": 0}, "neighbours = 0 of lame"),
    ("batch_norm_adaptation", {"prior": -1.0}, "prior = -1 of batch_norm_adaptation"),
    ("curriculum", {}, "use self-taught"),
    ("curriculum", {"difficulty": "self-taught", "teacher_percent": 0}, "leave the teacher no step"),
    ("task_stream", {"batch_size": 0}, "task_stream chooses the rows of batches"),
    ("task_stream", {"rehearsed": 1.0}, "rehearsed = 1 of task_stream: use a number at least 0 and below 1"),
    ("adaptive_sampling", {"collect": "all"}, "use adaptive, equal or proportional"),
    ("adaptive_sampling", {"rounds": 2}, "use 3 or more, at most the 10 steps"),
    ("adaptive_sampling", {"budget": 1.5}, "use at most 1, enough for a row of each group a round"),
    ("weak_to_strong", {"batch_size": 0}, "batch_size = 0 of weak_to_strong: use a number above 0"),
    ("weak_to_strong", {"teacher_weights": "./somewhere"}, "add --fine-tune"),
    ("weak_to_strong", {"teacher_rows_percent": 0}, "both need at least one"),
    ("weak_to_strong", {"teacher_rows_percent": 100}, "both need at least one"),
    ("and_mask", {"sharpness": 0.05}, "and_mask computes gradients of its own"),
    ("sand_mask", {"sharpness": 0.05}, "sand_mask computes gradients of its own"),
    *(
        (name, {"sharpness": 0.05}, "setting sharpness: this algorithm stores values for each row")
        for name in ("elr", "ps_kd", "sop", "lff")
    ),
]
OTHER_NETWORKS: list[tuple[str, str, str]] = [
    *(
        (name, "mlp", f"{name} .*this network has none: use resnet")
        for name in ("tent", "batch_norm_adaptation", "eata", "sar")
    ),
    ("cotta", "mlp", "it is for images of one or three channels"),
    ("memo", "mlp", "it is for images of one or three channels"),
    ("edge_shape", "mlp", "edge_shape needs images"),
    ("endef", "mlp", "endef needs entities"),
    ("ipr_pruning", "mlp", "ipr_pruning needs a network with .*: use quadratic_mlp"),
    ("itta", "linear", "itta aligns gradients of the feature extractor, and this network has none"),
    ("pego", "linear", "linear layers below the head"),
]
ON_TEXTS: list[tuple[str, str, Own, str]] = [
    ("curriculum", "transformer", {"batch_size": 0}, "set batch_size above 0"),
    ("curriculum", "transformer", {"order": "odd"}, "use easy, hard or random"),
    ("curriculum", "transformer", {"difficulty": "colour"}, "use length or self-taught"),
    ("progressive", "transformer", {}, "use the network deep_thinking"),
    ("re_ranking", "deep_thinking", {}, "such as lstm or transformer"),
    ("re_ranking", "lstm", {"judge_percent": 100}, "judge_percent = 100 of re_ranking: use a number below 100"),
]


def check_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        make()


@pytest.mark.parametrize(("name", "own", "words"), OUT_OF_RANGE)
def test_a_setting_out_of_its_range_is_refused_by_name(name: str, own: Own, words: str) -> None:
    check_refused(lambda: begun(name, {}, common={"batch_size": 4} | own, data=wide_rows()), words)


@pytest.mark.parametrize(("name", "network", "words"), OTHER_NETWORKS)
def test_a_network_that_an_algorithm_cannot_use_is_refused(name: str, network: str, words: str) -> None:
    check_refused(lambda: begun(name, {}, network=network, common={"batch_size": 4}, data=wide_rows()), words)


@pytest.mark.parametrize(("name", "network", "own", "words"), ON_TEXTS)
def test_what_does_not_suit_texts_is_refused(name: str, network: str, own: Own, words: str) -> None:
    check_refused(lambda: read_texts(network, name, [own]), words)


def test_entities_that_are_no_inputs_are_refused() -> None:
    mixed = Sizes(CLASSES, categories=(4, 3), numbers=2)
    words = r"setting entities = \[2\]: the task's categorical inputs are 0 to 1"
    check_refused(lambda: begun("endef", {"entities": [2]}, sizes=mixed, data=rows(sizes=mixed)), words)


OWN_LOSS = """
from farshift.baselines.algorithms import EmpiricalRisk
SETTINGS = {{}}
class Algorithm(EmpiricalRisk):
    def {0}: return {1}.mean()
"""


@pytest.mark.parametrize("name", ["swa", "wise_ft", "jtt", "useful", "forward_correction", "confident_learning"])
def test_a_training_of_one_step_cannot_be_parted(name: str) -> None:
    check_refused(lambda: begun(name, {}, steps=1), "has 1 step: give 2 or more|more steps|2 steps or more")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("SETTINGS = {}\n", BadDefinition, r"bare\.py has no class Algorithm$"),
        (
            "from farshift.baselines.algorithms import EmpiricalRisk\n\nSETTINGS = {'beta': 1.0}\n\n\n"
            "class Algorithm(EmpiricalRisk):\n"
            "    def __init__(self, hyperparameters, about):\n"
            "        super().__init__(hyperparameters, about)\n"
            "        hyperparameters['betta']\n",
            UnknownName,
            "no setting named 'betta': did you mean beta",
        ),
        ("SETTINGS = {}\n\nclas Algorithm:\n", BadDefinition, r"bare\.py, line 3: invalid syntax$"),
        (
            OWN_LOSS.format("errors(self, logits, target, clock)", "logits"),
            ModelError,
            r"errors of shape \(\): give one of",
        ),
        (
            OWN_LOSS.format("loss(self, network, *_)", "next(network.parameters())"),
            ModelError,
            r"a loss of shape \(\): ",
        ),
    ],
)
def test_a_flaw_in_an_algorithm_of_ones_own_is_named(text, error, words, tmp_path, monkeypatch):
    (tmp_path / "baselines" / "algorithms").mkdir(parents=True)
    (tmp_path / "baselines" / "algorithms" / "bare.py").write_text(text)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    with pytest.raises(error, match=words):
        begun("bare", {}).step()
