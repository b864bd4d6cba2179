"""Preferences in their real layout, made small."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.preferences import read, split_dialogues
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


def test_the_label_names_the_chosen_reply_whose_place_is_drawn(tmp_path):
    folder = laid(tmp_path, {"a.jsonl.gz": dialogues(400)})
    (table,) = read({"a.jsonl.gz": folder / "a.jsonl.gz"}, constants={"a.jsonl.gz": {"origin": "here"}}, seed="s")
    for row in table.to_pylist():
        replies = row["first"], row["second"]
        assert replies[row["chosen"]] == f"good {row['number']}"
        assert replies[1 - row["chosen"]] == f"bad {row['number']}"
        assert row["prompt"] == f"Human: {row['number']}?"
        assert row["origin"] == "here"
    assert 160 < Counter(table["chosen"].to_pylist())[1] < 240


def test_a_reply_may_have_other_ends_of_lines_within(tmp_path):
    pair = {side: TALK.format(n=1, reply=f"{side}\u2028\x85more") for side in ("chosen", "rejected")}
    folder = laid(tmp_path, {"a.jsonl.gz": gz(json.dumps(pair, ensure_ascii=False).encode() + b"\n")})
    (table,) = read({"a.jsonl.gz": folder / "a.jsonl.gz"}, constants={"a.jsonl.gz": {}}, seed="s")
    (row,) = table.to_pylist()
    assert {row["first"], row["second"]} == {"chosen\u2028\x85more", "rejected\u2028\x85more"}


def test_the_prompt_ends_before_the_last_turn_that_begins_alike():
    common = "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: "
    assert split_dialogues(common + "dear", common + "deer", "x") == (
        "Human: a\n\nAssistant: b\n\nHuman: c",
        "dear",
        "deer",
    )
    assert split_dialogues(common, common + "d", "x")[1:] == ("", "d")
    with pytest.raises(BadData, match="x: the dialogues have no turn"):
        split_dialogues("\n\nHuman: a\n\nAssistant: b", "\n\nHuman: c\n\nAssistant: b", "x")


def test_a_line_that_is_no_pair_is_named(tmp_path):
    folder = laid(tmp_path, {"a.jsonl.gz": gz(b'{"chosen": "a"}\n')})
    with pytest.raises(BadData, match=r"a\.jsonl\.gz: line 1: chosen and rejected"):
        list(read({"a.jsonl.gz": folder / "a.jsonl.gz"}, constants={"a.jsonl.gz": {}}, seed="s"))


def test_helpful_pairs_train_and_harmless_or_later_ones_test(place, tmp_path):
    data = laid(tmp_path / "data", {f"{name}.jsonl.gz": dialogues(rows) for name, rows in FILES.items()})
    _, harmless = pulled(twin("hh_rlhf/harmless", place), data)
    assert harmless == {"train": 12, "id_test": 4, "ood_val": 4, "ood_test": 4}
    _, online = pulled(twin("hh_rlhf/online", place), data)
    assert online == {"train": 12, "id_test": 4, "ood_val": 4, "ood_test": 4}
