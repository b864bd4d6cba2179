"""Progressive self-knowledge distillation (Kim et al., ICCV 2021): its loss, of targets that are mixed as `main.py`
does."""

import torch.nn.functional as F
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "lgcnsai/PS-KD-Pytorch"
COMMIT = "9aa0828d099f2faed16bbac258e4153902a55021"

ALPHA = 0.7


def distilled() -> Numbers:
    with on_cpu():
        from loss.pskd_loss import Custom_CrossEntropy_PSKD

        criterion = Custom_CrossEntropy_PSKD()
        past = [F.one_hot(toy.labels(), toy.CLASSES).double()]

        def loss(logits: Tensor, label: Tensor, step: int) -> Tensor:
            share = ALPHA * step / toy.STEPS
            target = (1 - share) * F.one_hot(label, toy.CLASSES) + share * past[-1]
            past.append(logits.detach().softmax(1))
            result: Tensor = criterion(logits, target)
            return result

        return with_loss(loss)


MADE = {
    "ps_kd": Made(
        distilled,
        "loss/pskd_loss.py: Custom_CrossEntropy_PSKD",
        {"alpha": ALPHA},
        remark="the past's share rises by steps from 0, there by epochs from that of the first",
    )
}
