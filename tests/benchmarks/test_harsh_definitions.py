"""Definitions that would score nothing, or lose rows without a word, are refused."""

from __future__ import annotations

import farshift as fs
import models
import pytest
from farshift.benchmarks.listing import describe_benchmark
from farshift.core.errors import BadDefinition
from own import changed

ON = "modadd97/xi35"


def holdout(part: str, to: str, share: float) -> dict:
    return {"part": part, "to": to, "share": share}


def test_a_share_that_rounds_to_no_row_is_refused_before_anything_is_trained():
    tiny = changed(ON, {"holdouts": [holdout("train", "id_val", 1e-6)]})
    with pytest.raises(BadDefinition, match="the part id_val has no rows"):
        fs.evaluate(models.Adder(), on=tiny, seeds=1)


def test_a_share_that_leaves_no_row_is_refused():
    full = changed(ON, {"holdouts": [holdout("train", "id_val", 1 - 1e-9)]})
    with pytest.raises(BadDefinition, match="the part train has no rows"):
        full.check()


def test_two_hold_outs_for_one_part_are_refused_since_the_second_ones_rows_would_be_lost():
    with pytest.raises(ValueError, match="holdouts: only one per new part"):
        changed(ON, {"holdouts": [holdout("train", "id_val", 0.1), holdout("id_test", "id_val", 0.1)]})


def test_a_hold_out_for_a_part_that_the_split_has_is_refused_since_the_published_rows_would_be_lost():
    shadowing = changed(ON, {"holdouts": [holdout("train", "id_test", 0.1)]})
    with pytest.raises(BadDefinition, match="holdouts: the split has rows of id_test already"):
        shadowing.check()


@pytest.mark.parametrize("classes", [0, 1, -3])
def test_a_classification_has_two_classes_or_more(classes):
    with pytest.raises(ValueError, match="classes"):
        changed(ON, {"task": {"classes": classes}})


def test_augmentations_of_what_is_no_image_are_refused_before_anything_is_trained():
    crafted = {"selection": ["last", "crafted_shift"], "crafted": {"families": ["blur", "noise"], "folds": 2}}
    with pytest.raises(
        BadDefinition, match="crafted_shift': the input 'a' is not an image, and augmentations require images"
    ):
        fs.evaluate(models.Adder(), on=changed(ON, {"protocol": crafted}), seeds=1)


def test_an_augmentation_that_does_not_exist_is_named_before_anything_is_trained():
    families = ["blurr", "noise"]  # codespell:ignore blurr
    crafted = {"selection": ["last", "crafted_shift"], "crafted": {"families": families, "folds": 2}}
    with pytest.raises(fs.FarshiftError, match="no augmentation named 'blurr': did you mean blur"):
        changed("optdigits/writers", {"protocol": crafted}).check()


def test_a_benchmark_says_how_its_prompt_is_read():
    lines = dict(describe_benchmark(ON)["lines"])
    assert lines["prompt"] == "version 1, 8 examples, parsed by last_number@1"
