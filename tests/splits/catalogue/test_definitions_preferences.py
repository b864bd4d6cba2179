"""Preferences in their real layout, made small."""

from __future__ import annotations

import json

from twins import gz, laid, pulled, twin

TALK = "\n\nHuman: {n}?\n\nAssistant: {reply}"
FILES = {"helpful-base/train": 12, "helpful-base/test": 4, "helpful-rejection-sampled/test": 4} | {
    "helpful-online/test": 4,
    "harmless-base/test": 4,
}


def dialogues(rows):
    lines = (
        json.dumps({"chosen": TALK.format(n=n, reply=f"good {n}"), "rejected": TALK.format(n=n, reply=f"bad {n}")})
        for n in range(rows)
    )
    return gz("\n".join(lines).encode())


def test_helpful_pairs_train_and_harmless_or_later_ones_test(place, tmp_path):
    data = laid(tmp_path / "data", {f"{name}.jsonl.gz": dialogues(rows) for name, rows in FILES.items()})
    _, harmless = pulled(twin("hh_rlhf/harmless", place), data)
    assert harmless == {"train": 12, "id_test": 4, "ood_val": 4, "ood_test": 4}
    _, online = pulled(twin("hh_rlhf/online", place), data)
    assert online == {"train": 12, "id_test": 4, "ood_val": 4, "ood_test": 4}
