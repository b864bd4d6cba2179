"""The network over patches, against its formula."""

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.networks.patch_network import Network
from farshift.baselines.training.losses import squared_error


def test_its_squared_loss_is_that_of_squared_relu_filters_added_up_over_patches():
    torch.manual_seed(0)
    network = Network(Sizes(2, numbers=10, shape=(2, 5)), {"width": 3, "deviation": 1.0})
    x, label = torch.randn(1, 6, 10), torch.tensor([[0, 1, 1, 0, 1, 0]])
    outputs = network(torch.zeros(1, 6, 0, dtype=torch.int64), x)
    w = network.filters.weight[0]
    f = torch.tensor(
        [
            sum(
                (sign * max(0.0, float(w[r] @ patch)) ** 2) / 3
                for r, sign in enumerate([-1] * 3 + [1] * 3)
                for patch in row
            )
            for row in x[0].view(6, 2, 5)
        ]
    )
    assert torch.allclose(outputs[0, :, 1] - outputs[0, :, 0], f, atol=1e-5)
    assert torch.allclose(squared_error(outputs, label)[0], (f - (2.0 * label[0] - 1)) ** 2 / 4, atol=1e-4)
