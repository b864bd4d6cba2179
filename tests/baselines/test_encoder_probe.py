"""The shift that linear models see in an encoder's features."""

import pytest
from farshift.baselines.encoding.encoder_probe import probe_split
from farshift.core.errors import FarshiftError
from farshift.splits.catalogue import find_manifest

PIXELS = """
from torch import nn

class OneChannel(nn.Module):
    def forward(self, pictures):
        return pictures[:, 0].flatten(1)

def build():
    return OneChannel(), "resize 8x8, normalise 0.5 / 0.5"
"""


def test_an_encoder_that_returns_the_pixels_measures_the_published_shift(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(PIXELS)
    monkeypatch.chdir(tmp_path)
    published = find_manifest("optdigits/writers").audit()["probe"]
    assert probe_split("optdigits/writers", "own.py:build") == pytest.approx(published, abs=0.002)


def test_a_split_without_a_shifted_part_is_refused(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(PIXELS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FarshiftError, match="no rows in train or in ood_test"):
        probe_split("modadd97/xi35", "own.py:build")
