"""Weight-space interpolation (WiSE-FT): the mean of early and final weights.

theta = (1 - alpha) theta_early + alpha theta_last (Wortsman et al., section 3), and alpha = 0.5 unless
something is known. There the early end is a pretrained zero-shot model. Of the network `pretrained` it is the
pretrained weights, with the head as it is after `probe_steps` (0 without them: interpolation then scales the head). Of
a network that is trained from scratch it is the network after the first `early_percent` of the steps: the two ends lie
in one basin only where training was stable by then, which is why it is not the initial weights.
"""

from typing import Any

from torch import Tensor, nn

from ._weights import WeightInterpolation

KIND = "any"
CITATION = (
    "Wortsman, Ilharco, Kim, Li, Kornblith, Roelofs, Lopes, Hajishirzi, Farhadi, Namkoong and Schmidt, Robust "
    "fine-tuning of zero-shot models, CVPR 2022 (arXiv:2109.01903)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"alpha": 0.5, "early_percent": 25}
"""alpha: the share of the way from the early weights (0) to the last (1). early_percent: of the steps, after which the
weights are the early ones."""
SEARCH: dict[str, Any] = {"alpha": ["uniform", 0.0, 1.0]}


class Algorithm(WeightInterpolation):
    def shares(self, network: nn.Module) -> list[Tensor]:
        return [self.hyperparameters["alpha"]] * len(list(network.parameters()))
