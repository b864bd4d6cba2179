"""Changes that a run makes to a shipped recipe."""

from __future__ import annotations

from dataclasses import dataclass

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.model_inputs.load import load_model_inputs
from ...core.errors import FarshiftError
from ..recipe import Recipe, make_fine_tuned, replace_augmentation, replace_encoder, replace_network
from .published import apply_published
from .resources import prepare_data


@dataclass(frozen=True)
class RecipeOverrides:
    """Changes that a run makes to a shipped recipe; none if all fields are empty.

    network: a file of networks/ that replaces the recipe's network. encoder: a frozen pretrained model whose features
    replace texts, images or audio: see `encoding/checkpoint.py`. fine_tune: a pretrained model
    that replaces the recipe's network and is trained further. augment: how training rows are augmented,
    `NAME[+NAME..][,setting=value..]`. published: the source of published settings (`domainbed`, `wilds`). stream: where
    rows are read from, instead of the benchmark's data in the cache; `{part}` is replaced by a part's name."""

    network: str = ""
    encoder: str = ""
    fine_tune: str = ""
    augment: str = ""
    published: str = ""
    stream: str = ""

    def of(self, recipe: Recipe, benchmark: Benchmark) -> Recipe:
        """Apply the changes to a recipe. Opens no data, except to count the training rows for published epochs.

        A fine-tuned network reads images at the size of the pretrained model, audio through its processor, or its
        tokens."""
        begun = self._begun(recipe)
        if self.published:
            if self.encoder:
                raise FarshiftError("--published trains networks on rows: give --fine-tune instead of --encoder")
            begun = apply_published(begun, self.published, benchmark.name, lambda: _count_training_rows(benchmark))
            if self.network and begun.network != self.network:
                raise FarshiftError(f"--published {self.published} trains {begun.network} here: leave --network out")
        if self.augment and self.encoder:
            raise FarshiftError(
                "--encoder reads every row only once: use --augment with networks that read the rows themselves"
            )
        return replace_augmentation(begun, self.augment) if self.augment else begun

    def _begun(self, recipe: Recipe) -> Recipe:
        if self.network:
            if self.fine_tune:
                raise FarshiftError("--fine-tune has a network of its own: leave --network out")
            recipe = replace_network(recipe, self.network)
        if not self.fine_tune:
            return replace_encoder(recipe, self.encoder or None)
        if self.encoder:
            raise FarshiftError("--encoder keeps a pretrained model frozen, --fine-tune trains it: give one of them")
        from ..encoding.checkpoint import find_checkpoint
        from ..encoding.frozen_readers import read_image_side, reads_audio

        checkpoint = find_checkpoint(self.fine_tune)
        side = read_image_side(checkpoint)
        if side is not None:
            return make_fine_tuned(recipe, self.fine_tune, side=side)
        return make_fine_tuned(recipe, self.fine_tune, inputs="sounds" if reads_audio(checkpoint) else "tokens")


NOTHING = RecipeOverrides()


def _count_training_rows(benchmark: Benchmark) -> int:
    """The number of training rows."""
    prepare_data(benchmark)
    return load_model_inputs(benchmark).count_rows("train")
