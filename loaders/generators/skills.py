"""Skills applied one after the other to a sequence of letters, to test new combinations of known skills: the question
of Skill-Mix (Yu et al. 2024, arXiv 2310.17567), with answers that need no judge.

    reverse   reverse the order of the letters        sort     sort the letters alphabetically
    rotate    move the first letter to the end        swap     exchange the first and the last letter
    echo      repeat the last letter                  drop     remove the first letter, unless it is the only one
    next      replace each letter by the next (z: a)  odd      keep the first, third, fifth .. letter
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pyarrow as pa

from ...core.draws import draw_below
from ._rows import count_candidates, make_counters, make_table, take_distinct

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"

SKILLS: dict[str, Callable[[str], str]] = {
    "reverse": lambda text: text[::-1],
    "rotate": lambda text: text[1:] + text[0],
    "sort": lambda text: "".join(sorted(text)),
    "swap": lambda text: text[-1] + text[1:-1] + text[0] if len(text) > 1 else text,
    "echo": lambda text: text + text[-1],
    "drop": lambda text: text[1:] or text,
    "next": lambda text: "".join(_ALPHABET[(_ALPHABET.index(letter) + 1) % 26] for letter in text),
    "odd": lambda text: text[::2],
}


def rows(*, seed: str, shortest: int, longest: int, counts: dict[str, int]) -> pa.Table:
    """`counts["k"]` rows for each sequence of k skills, repetitions allowed, on `shortest` to `longest` letters.

    Columns: `question` ("sort echo : c a b", skills from first to last), `answer` ("a b c c"), `skills` ("sort echo"),
    `size` (k).
    """
    records: list[tuple[str, str, str, int]] = []
    for size, count in sorted((int(size), count) for size, count in counts.items()):
        for names in product(SKILLS, repeat=size):
            skills = " ".join(names)
            stream, drawn = f"{seed}/{skills}", make_counters(count_candidates(count))
            lengths = shortest + draw_below(f"{stream}/length", drawn, longest - shortest + 1)
            letters = draw_below(f"{stream}/letters", make_counters(len(drawn) * longest), 26).reshape(-1, longest)
            texts = (
                "".join(_ALPHABET[i] for i in row[:length])
                for row, length in zip(letters.tolist(), lengths.tolist(), strict=True)
            )
            for text in take_distinct(texts, count, lambda text: text, f"skills: {skills}"):
                answer = text
                for name in names:
                    answer = SKILLS[name](answer)
                records.append((f"{skills} : {' '.join(text)}", " ".join(answer), skills, size))
    return make_table(("question", "answer", "skills", "size"), records)
