"""Made-up predictions in the layouts of published benchmarks: drawn from counters, the same everywhere.

The official evaluators were run on these very arrays; what they gave stands in `benchmarks/test_metrics_official.py`.
"""

from __future__ import annotations

import numpy as np
from farshift.core.draws import draw_below, draw_uniform

IDENTITIES = ("male", "female", "lgbtq", "christian", "muslim", "other_religions", "black", "white")
REGIONS = ("Asia", "Europe", "Africa", "Americas", "Oceania", "Other")
TYPES = ("class", "method", "punctuation", "keyword", "builtin", "literal", "other_identifier", "masked")
CORRUPTIONS = (
    *(
        "gaussian_noise",
        "shot_noise",
        "impulse_noise",
        "defocus_blur",
        "glass_blur",
        "motion_blur",
        "zoom_blur",
        "snow",
    ),
    *("frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)


def _count(rows: int) -> np.ndarray:
    return np.arange(rows, dtype=np.uint64)


def guessed(name: str, truth: np.ndarray, classes: int, right: np.ndarray | float) -> np.ndarray:
    """Classes that are the true one with probability `right`, and otherwise drawn."""
    rows = _count(len(truth))
    return np.where(draw_uniform(f"{name}/right", rows) < right, truth, draw_below(f"{name}/guess", rows, classes))


def comments(rows: int = 2000) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Toxicity: truth, predictions, and the share of raters who saw each of eight identities (in quarters)."""
    shares = {name: draw_below(f"comments/{name}", _count(rows), 5) / 4 for name in IDENTITIES}
    truth = (draw_uniform("comments/toxic", _count(rows)) < 0.25).astype(np.int64)
    easy = 0.7 - 0.1 * (shares["muslim"] > 0.4) + 0.1 * (shares["white"] > 0.6) - 0.2 * truth
    return truth, guessed("comments", truth, 2, easy), shares


def places(rows: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Use of land: truth, predictions, and the number of each row's region."""
    region = draw_below("places/region", _count(rows), 6)
    truth = draw_below("places/use", _count(rows), 62)
    return truth, guessed("places", truth, 62, np.array([0.6, 0.7, 0.45, 0.6, 0.55, 0.2])[region]), region


def reviews(rows: int = 3000, users: int = 137) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stars: truth, predictions, and the number of each row's user. The last ten users wrote nothing."""
    user = draw_below("reviews/user", _count(rows), users - 10)
    truth = draw_below("reviews/stars", _count(rows), 5)
    own = draw_uniform("reviews/ease", user.astype(np.uint64))
    return truth, guessed("reviews", truth, 5, 0.4 + 0.5 * own), user


def wealth(rows: int = 900) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wealth: truth, predictions, and 1 for an urban place."""
    urban = draw_below("wealth/urban", _count(rows), 2)
    truth = 2 * draw_uniform("wealth/true", _count(rows)) - 1 + 0.5 * urban
    noise = draw_uniform("wealth/noise", _count(rows)) - 0.5
    return truth, 0.6 * truth + np.where(urban == 1, 1.5, 0.9) * noise, urban


def animals(rows: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """Species, of 30 of which some never occur and are named all the same: truth and predictions."""
    truth = draw_below("animals/true", _count(rows), 24) * draw_below("animals/common", _count(rows), 2)
    return truth, guessed("animals", truth, 30, 0.5)


def assays(rows: int = 400, labels: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Assays of molecules, most of them missing: truth (1, 0, NaN) and logits, in sixteenths, so that some are equal.
    The last label has no row with 1."""
    cells = _count(rows * labels).reshape(rows, labels)
    result = draw_below("assays/true", cells, 10)
    truth = np.where(result < 2, 1.0, np.where(result < 6, 0.0, np.nan))
    truth[:, -1] = np.where(np.isnan(truth[:, -1]), np.nan, 0.0)
    logits = (draw_below("assays/logit", cells, 97) - 48) / 16 + np.where(truth == 1, 1.0, 0.0)
    return truth, logits


def code(rows: int = 40, length: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The next token at each place: true and named tokens, and the number of the type, (rows, length)."""
    cells = _count(rows * length).reshape(rows, length)
    types = draw_below("code/type", cells, len(TYPES))
    truth = draw_below("code/true", cells, 300)
    right = draw_uniform("code/right", cells) < np.array([0.6, 0.4, 0.9, 0.9, 0.7, 0.5, 0.6, 0.0])[types]
    return truth, np.where(right, truth, draw_below("code/guess", cells, 300)), types


def names(marks: str, sentences: int = 300, words: int = 12) -> tuple[list[list[str]], list[list[str]]]:
    """Tags of sentences of up to so many words, true and named, in any order of the `marks` (of three types) and O."""
    tags = ["O", *(f"{mark}-{kind}" for mark in marks for kind in ("PER", "LOC", "ORG"))]
    name = f"names/{marks}"
    cells = _count(sentences * words).reshape(sentences, words)
    # A tag is often that of the word before: entities are long.
    truth = draw_below(f"{name}/true", cells, len(tags))
    for word in range(1, words):
        again = draw_uniform(f"{name}/again", cells[:, word]) < 0.4
        truth[:, word] = np.where(again, truth[:, word - 1], truth[:, word])
    given = np.where(draw_uniform(f"{name}/right", cells) < 0.8, truth, draw_below(f"{name}/guess", cells, len(tags)))
    long = 1 + draw_below(f"{name}/words", _count(sentences), words)
    return tuple(
        [[tags[tag] for tag in row[:end]] for row, end in zip(rows, long, strict=True)] for rows in (truth, given)
    )


def wheat(pictures: int = 60, sessions: int = 7, classes: int = 1) -> tuple[list, list, np.ndarray]:
    """Boxes of wheat heads: of each picture the true ones (k, 5: corners, class), those found (m, 6: corners, score,
    class), and the number of its session. The last session has no picture."""
    true, given = [], []
    for picture in range(pictures):
        name = f"wheat/{picture}"
        count = int(draw_below(name, _count(1), 9)[0])
        x, y = (draw_below(f"{name}/{side}", _count(count), 900) for side in "xy")
        wide, high = (20 + draw_below(f"{name}/{side}", _count(count), 80) for side in ("wide", "high"))
        kind = draw_below(f"{name}/kind", _count(count), classes)
        corners = np.stack([x, y, x + wide, y + high], axis=1).reshape(count, 4)
        true.append(np.concatenate([corners, kind[:, None]], axis=1))
        seen = np.flatnonzero(draw_uniform(f"{name}/seen", _count(count)) < 0.8)
        moved = corners[seen] + draw_below(f"{name}/moved", _count(4 * len(seen)), 9).reshape(-1, 4)
        false = draw_below(f"{name}/false", _count(1), 4)[0] * 37 + np.arange(
            4 * draw_below(f"{name}/more", _count(1), 3)[0]
        )
        extra = np.stack([false, false, false + 60, false + 60], axis=1).reshape(-1, 4) % 1000
        extra = np.sort(extra.reshape(-1, 2, 2), axis=1).reshape(-1, 4)
        result = np.concatenate([moved, extra]).astype(np.float64)
        score = draw_uniform(f"{name}/score", _count(len(result))) ** np.where(
            np.arange(len(result)) < len(seen), 0.3, 1.0
        )
        kinds = np.concatenate([kind[seen], draw_below(f"{name}/kinds", _count(len(extra)), classes)])
        given.append(np.concatenate([result, score[:, None], kinds[:, None]], axis=1))
    return true, given, draw_below("wheat/session", _count(pictures), sessions - 1)


def corrupted(rows: int = 6000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Classes of corrupted pictures: truth, predictions, the numbers of corruption and severity (1 to 5); as many rows
    of each."""
    corruption, severity = np.arange(rows) % 15, np.arange(rows) // 15 % 5 + 1
    truth = draw_below("corrupted/true", _count(rows), 10)
    return truth, guessed("corrupted", truth, 10, 0.9 - 0.03 * corruption - 0.05 * severity), corruption, severity
