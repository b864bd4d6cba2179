"""No positional encoding: a causal decoder can infer the order from its mask, an encoder cannot.

Haviv et al., Findings of EMNLP 2022 (arXiv:2203.16634); Kazemnejad et al., NeurIPS 2023 (arXiv:2305.19466), where it
is called NoPE.
"""

from . import Position


class Encoding(Position):
    """Nothing is added, turned or biased."""
