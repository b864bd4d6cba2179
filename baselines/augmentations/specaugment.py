"""SpecAugment: masks over time and frequency of a spectrogram, and time warping.

Park, Chan, Zhang, Chiu, Zoph, Cubuk and Le, Interspeech 2019 (arXiv:1904.08779), section 2: a point of the middle line
is moved along time by up to `time_warp` steps, and both sides are stretched to meet it; then bands of up to
`frequency_width` channels and stretches of up to `time_width` steps (and at most a share `time_share` of all) are set
to the spectrogram's mean, which is 0 in the paper's normalised ones.
"""

from typing import Any

import torch
from torch import Tensor

from ._draws import Draws

READS = "spectrograms"
SETTINGS: dict[str, Any] = {
    "time_warp": 80,
    "frequency_bands": 2,
    "frequency_width": 27,
    "time_bands": 2,
    "time_width": 100,
    "time_share": 1.0,
}
"""The paper's policy LD for LibriSpeech, of spectrograms of 80 channels and some 1,000 steps: W, m_F, F, m_T, T, p."""


def warp_time(x: Tensor, draws: Draws, most: int) -> Tensor:
    """Warp x (B, time, frequency): move one point in time by less than `most` steps either way, linear in between."""
    length = x.shape[1]
    most = min(most, (length - 1) // 2)
    if most < 1:
        return x
    centre = (most + draws.below("place", length - 2 * most)).double()
    to = centre + draws.below("distance", 2 * most - 1).double() - (most - 1)
    t = torch.arange(length, device=x.device, dtype=torch.float64)
    end = float(length - 1)
    before = t * (centre / to.clamp(min=1))[:, None]
    after = centre[:, None] + (t - to[:, None]) * ((end - centre) / (end - to).clamp(min=1))[:, None]
    at = torch.where(t <= to[:, None], before, after).clamp(0, end)
    low = at.floor()
    share = (at - low)[..., None].to(x.dtype)
    high = (low + 1).clamp(max=end)
    first, second = (x.gather(1, index.long()[..., None].expand(x.shape)) for index in (low, high))
    return first * (1 - share) + second * share


def draw_bands(draws: Draws, name: str, count: int, widest: int | Tensor, size: int) -> Tensor:
    """Which of `size` places are in one of `count` bands of a width from 0 to `widest`, (B, size)."""
    places = torch.arange(size, device=draws.keys.device)
    mask = torch.zeros(len(draws), size, dtype=torch.bool, device=draws.keys.device)
    widest = torch.as_tensor(widest, device=draws.keys.device).clamp(max=size)
    for turn in range(count):
        width = draws.below(f"{name} width {turn}", widest + 1)
        start = draws.below(f"{name} start {turn}", size - width + 1)
        mask |= (places >= start[:, None]) & (places < (start + width)[:, None])
    return mask


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment spectrograms (B, time, frequency)."""
    x = warp_time(x, draws, draws.setting("time_warp"))
    longest = torch.minimum(
        (draws.setting("time_share").double() * x.shape[1]).long(), torch.tensor(draws.setting("time_width"))
    )
    time = draw_bands(draws, "time", draws.setting("time_bands"), longest, x.shape[1])
    frequency = draw_bands(
        draws, "frequency", draws.setting("frequency_bands"), draws.setting("frequency_width"), x.shape[2]
    )
    # Row by row in float64, so that the mean does not depend on how many rows there are.
    mean = x.double().mean(dim=2).mean(dim=1).to(x.dtype)
    return torch.where(time[:, :, None] | frequency[:, None, :], mean.view(-1, 1, 1), x)
