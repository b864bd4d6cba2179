"""SCAN's grammar (Lake and Baroni 2018, arXiv 1711.00350): all 20,910 commands with their actions.

    C -> S | S and S | S after S          "a and b" does a, then b; "a after b" does b, then a
    S -> V | V twice | V thrice
    V -> U | U d | U opposite d | U around d | turn d | turn opposite d | turn around d
    U -> walk | look | run | jump          d -> left | right

"U d" turns, then acts; "opposite" turns twice, then acts; "around" turns and acts four times; "turn" only turns.
"""

from __future__ import annotations

import pyarrow as pa

VERBS = ("walk", "look", "run", "jump")
_DIRECTIONS = ("left", "right")
_TIMES = {"": 1, " twice": 2, " thrice": 3}


def _expand_verbs() -> dict[str, list[str]]:
    verbs = {act: [f"I_{act.upper()}"] for act in VERBS}
    for direction in _DIRECTIONS:
        turn = f"I_TURN_{direction.upper()}"
        for word in (*VERBS, "turn"):
            act = [] if word == "turn" else [f"I_{word.upper()}"]
            verbs[f"{word} {direction}"] = [turn, *act]
            verbs[f"{word} opposite {direction}"] = [turn, turn, *act]
            verbs[f"{word} around {direction}"] = [turn, *act] * 4
    return verbs


def list_commands() -> dict[str, str]:
    """Return every command of the grammar and its actions, as text."""
    phrases = {
        verb + suffix: acts * times for verb, acts in _expand_verbs().items() for suffix, times in _TIMES.items()
    }
    actions = {phrase: " ".join(acts) for phrase, acts in phrases.items()}
    for first, acts in phrases.items():
        for second, others in phrases.items():
            actions[f"{first} and {second}"] = " ".join(acts + others)
            actions[f"{first} after {second}"] = " ".join(others + acts)
    return actions


def rows(*, clone: bool = False) -> pa.Table:
    """Columns `command` and `actions`, 20,910 rows.

    With `clone` also the same commands in a clone of English, which has the same grammar and meanings and no word in
    common, so it is exactly as hard; a model does worse in it only because it has seen less of it (Schäfer et al. 2024,
    arXiv 2404.07982). Then further columns are `language` (`original` or `clone`) and `meaning`: the command in the
    original words.
    """
    meanings = list_commands()
    commands, actions = list(meanings), list(meanings.values())
    if not clone:
        return pa.table({"command": commands, "actions": actions})
    cloned = [" ".join(f"{word}'" for word in command.split()) for command in commands]
    languages = [language for language in ("original", "clone") for _ in commands]
    return pa.table(
        {"command": commands + cloned, "actions": actions * 2, "language": languages, "meaning": commands * 2}
    )
