"""SWAD's released code: its `LossValley` over made-up validation losses."""

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from torch import nn

from ..make import Made
from ..problems.values import losses
from ..reference import Numbers

REPOSITORY = "khanrc/swad"
COMMIT = "252190eb881169e736beccf51af5caaa5c5cf666"


def valleys(settings: Mapping[str, Any]) -> Numbers:
    """Its mean counts the segment that it is begun with, which the released one overwrites with the next."""
    from domainbed.lib import swa_utils
    from domainbed.swad import LossValley

    full = settings["converge"] == settings["tolerance"]
    result: dict[str, list[float]] = {name: [] for name in ("start", "level", "end", *["means"] * full)}
    begin = swa_utils.AveragedModel.__init__

    def counted(self: Any, model: Any, **more: Any) -> None:
        begin(self, model, **more)
        if isinstance(model, swa_utils.AveragedModel):
            self.n_averaged += 1
            self.end_step = model.end_step

    with patch.object(nn.Module, "cuda", lambda self: self), patch.object(swa_utils.AveragedModel, "__init__", counted):
        for row in losses().tolist():
            valley = LossValley(None, settings["converge"], settings["tolerance"], settings["ratio"])
            for number, loss in enumerate(row, 1):
                point = nn.Linear(1, 1, bias=False).double()
                nn.init.constant_(point.weight, number)
                segment = swa_utils.AveragedModel(point)
                segment.start_step = segment.end_step = number
                valley.update_and_evaluate(segment, 0.0, loss, None)
            final = valley.get_final_model()
            result["start"].append(float(valley.converge_step))
            result["level"].append(float(valley.threshold))
            result["end"].append(float(final.end_step))
            if full:
                result["means"].append(next(final.parameters()).item())
    return result


def made(remark: str, **settings: Any) -> Made:
    return Made(lambda: valleys(settings), "domainbed/swad.py: LossValley", settings, "valleys", remark=remark)


MADE = {
    "swad": made("its mean counts the first segment, which it loses as released", converge=3, tolerance=3, ratio=0.05),
    "swad.long": made(
        "where it begins and ends; its mean also goes back before the start", converge=3, tolerance=6, ratio=0.1
    ),
}
