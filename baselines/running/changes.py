"""What a run changes of a shipped recipe."""

from __future__ import annotations

from dataclasses import dataclass

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.blind.data import load_model_inputs
from ...core.errors import FarshiftError
from ..recipe import Recipe, make_fine_tuned, replace_augmentation, replace_encoder, replace_network
from .published import apply_published
from .resources import prepare_data


@dataclass(frozen=True)
class RecipeOverrides:
    """What a run changes of a shipped recipe; nothing where all is empty.

    network: a file of networks/, in place of the recipe's own. encoder: weights of transformers, frozen, whose
    features take the place of texts, images or sounds: `org/name[@revision]` or `./folder`. fine_tune: such
    weights, trained further in place of the recipe's own network. augment: how training rows are augmented,
    `NAME[+NAME..][,setting=value..]`. published: whose settings are taken (`domainbed`, `wilds`). stream: where
    rows are read from, in place of the benchmark's data in the cache; `{part}` stands for a part's name."""

    network: str = ""
    encoder: str = ""
    fine_tune: str = ""
    augment: str = ""
    published: str = ""
    stream: str = ""

    def of(self, recipe: Recipe, benchmark: Benchmark) -> Recipe:
        """The recipe on another network; on features of a frozen encoder, or on a pretrained network at the size
        that its pictures have, or its tokens; with published settings; with its rows augmented. Opens no data, but
        for published epochs, which are counted over the rows."""
        begun = self._begun(recipe)
        if self.published:
            if self.encoder:
                raise FarshiftError("--published trains networks on rows: give --fine-tune in the place of --encoder")
            begun = apply_published(begun, self.published, benchmark.name, lambda: _count_training_rows(benchmark))
            if self.network and begun.network != self.network:
                raise FarshiftError(f"--published {self.published} trains {begun.network} here: leave --network out")
        if self.augment and self.encoder:
            raise FarshiftError(
                "--encoder reads every row once: --augment goes with networks that read the rows themselves"
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
            raise FarshiftError("--encoder keeps a pretrained model frozen, --fine-tune trains one: give one of them")
        from ...benchmarks.adapters.hugging_face import from_spec
        from ..encoding.frozen_readers import read_image_side, reads_audio

        folder = from_spec(self.fine_tune, {}).folder
        side = read_image_side(folder)
        if side is not None:
            return make_fine_tuned(recipe, self.fine_tune, side=side)
        return make_fine_tuned(recipe, self.fine_tune, inputs="sounds" if reads_audio(folder) else "tokens")


NOTHING = RecipeOverrides()


def _count_training_rows(benchmark: Benchmark) -> int:
    """How many rows are trained on."""
    prepare_data(benchmark)
    return int(load_model_inputs(benchmark).stored("train").num_rows)
