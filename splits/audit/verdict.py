"""The verdict: whether a split holds the shift that it names, by its measured numbers.

Each kind of shift is one function from the definition and the audit to (holds, why).
"""

from __future__ import annotations

from typing import Any

from ...core.listings.plural import counted
from ..manifest import Declared, SplitDefinition
from ..measures.divergence import COMPOUNDS
from .parted import RANDOM

Audit = dict[str, Any]
Finding = tuple[bool, str]

_MOST = 0.5
_TIMES_CHANCE = 2
_DIVERGENCE, _VARIATION, _WEAK = 0.1, 0.1, 0.05


def verdict(definition: SplitDefinition, found: Audit) -> Finding:
    """Whether the split holds its shift, and one line with the numbers that say so. What a definition declares must be
    what is measured, whatever the kind."""
    for flaw in (_duplicates(definition, found), _tokens(definition, found), _examples(found)):
        if flaw:
            return False, flaw
    return _KINDS[definition.kind](definition, found)


def _duplicates(definition: SplitDefinition, found: Audit) -> str:
    """Inputs in common with training, or declared to be in common, that are not as declared."""
    declared, across = definition.declared.duplicates, found["duplicate_inputs"]["across"]
    for pair in sorted({*declared, *(pair for pair in across if pair.startswith("train/"))}):
        count, expected = across.get(pair, 0), declared.get(pair, 0)
        if count != expected:
            said = f"declared are {expected}" if expected else "none are declared"
            return f"{count} inputs stand in both parts of {pair}, {said}"
    return ""


def undeclared(definition: SplitDefinition, found: Audit) -> dict[str, dict[str, int]]:
    """What was measured of flaws that a definition does not declare: `duplicates`, the different inputs that parts have
    in common with training; and `unseen_tokens` of a compositional test."""
    declared = definition.declared
    return {name: counts for name, counts in _flaws(definition, found).items() if not getattr(declared, name)}


def find_remedy(definition: SplitDefinition, found: Audit) -> tuple[dict[str, Any], str]:
    """The table `declared` by which a refused split is taken where its flaws are meant, empty where no declaration
    changes the verdict; and what is against the split even then."""
    flaws: dict[str, Any] = {"duplicates": {}, "unseen_tokens": {}} | _flaws(definition, found)
    for pair in definition.declared.duplicates:
        if count := found["duplicate_inputs"]["across"].get(pair, 0):
            flaws["duplicates"][pair] = count
    for part in definition.declared.unseen_tokens:
        if count := unseen(definition, found, part):
            flaws["unseen_tokens"][part] = count
    now = definition.declared.one_distribution
    counted_only = Declared(**flaws, one_distribution=now)
    grouped = definition.kind == "domain" and "train" in found.get("groups", {}).get("rows", {})
    alike = [Declared(**flaws, one_distribution=True)] if grouped and not now else []
    for declared in (counted_only, *alike):
        if declared != definition.declared and _verdict_with(declared, definition, found)[0]:
            return _as_table(declared), ""
    left = _verdict_with(counted_only, definition, found)[1]
    return ({}, "") if counted_only == definition.declared else (_as_table(counted_only), left)


def _verdict_with(declared: Declared, definition: SplitDefinition, found: Audit) -> Finding:
    return verdict(definition.model_copy(update={"declared": declared}), found)


def _as_table(declared: Declared) -> dict[str, Any]:
    return declared.model_dump(exclude_defaults=True)


def _flaws(definition: SplitDefinition, found: Audit) -> dict[str, dict[str, int]]:
    flaws: dict[str, dict[str, int]] = {}
    across: dict[str, int] = found["duplicate_inputs"]["across"]
    if shared := {pair: count for pair, count in sorted(across.items()) if count and pair.startswith("train/")}:
        flaws["duplicates"] = shared
    if definition.kind == "compositional" and (count := unseen(definition, found, "ood_test")):
        flaws["unseen_tokens"] = {"ood_test": count}
    return flaws


def _tokens(definition: SplitDefinition, found: Audit) -> str:
    for part, expected in sorted(definition.declared.unseen_tokens.items()):
        if expected and (count := unseen(definition, found, part)) != expected:
            return f"{count} tokens of {part} stand nowhere in training, declared are {expected}"
    return ""


def _examples(found: Audit) -> str:
    for part, counts in sorted(found.get("shared_examples", {}).items()):
        if counts["half"]:
            return (
                f"{counted(counts['half'], 'row')} of {part} with half of the examples or more in one row of training"
            )
    return ""


def unseen(definition: SplitDefinition, found: Audit, part: str) -> int:
    """Tokens of the text inputs, and values of the factors, that training never shows."""
    tokens = [
        parts[part]["unseen_tokens"]
        for field, parts in found.get("texts", {}).items()
        if part in parts and field != definition.label
    ]
    values = found.get("factors", {}).get(part, {}).get("unseen_values", {}).values()
    return int(sum(tokens) + sum(values))


def _beyond(_: SplitDefinition, found: Audit) -> Finding:
    severity = found.get("severity", {})
    if not {"train", "ood_test"} <= severity.keys():
        return False, "no severity in train and ood_test"
    easy, hard = severity["train"]["max"], severity["ood_test"]["min"]
    return easy < hard, f"training reaches severity {easy}, ood_test begins at {hard}"


def _compositional(definition: SplitDefinition, found: Audit) -> Finding:
    if not {"train", "ood_test"} <= found["rows"].keys():
        return False, "no rows in train and ood_test"
    count, declared = unseen(definition, found, "ood_test"), definition.declared.unseen_tokens.get("ood_test", 0)
    atoms = f"{count} unseen tokens" + (" (as declared)" if count and count == declared else "")
    forms = [*_novel_words(found), *_novel_factors(found), *_novel_groups(found), *_novel_severity(definition, found)]
    met = [text for holds, text in forms if holds]
    if met:
        return count == declared, f"{atoms}; {'; '.join(met)}"
    return False, f"{atoms}; no form of novelty: {'; '.join(text for _, text in forms) or 'nothing to measure'}"


def _novel_words(found: Audit) -> list[Finding]:
    """The first form that each text meets, or all that it misses: new pairs or triples in most rows, and in more than
    twice as many as in a random split (in prose most rows hold some); or pairs or triples whose distribution diverges
    as no random split's does."""
    forms: list[Finding] = []
    for field, parts in found.get("texts", {}).items():
        if "ood_test" in parts:
            these = _runs(field, parts["ood_test"], parts[RANDOM])
            forms += next(([form] for form in these if form[0]), these)
    return forms


def _runs(field: str, test: Audit, chance: Audit) -> list[Finding]:
    new, apart = [], []
    for run in ("pair", "triple"):
        share, expected = (side[f"rows_with_unseen_{run}"] for side in (test, chance))
        text = f"{share:.0%} of ood_test rows hold an unseen {run} of words in {field} ({expected:.0%} by chance)"
        new.append((share > _MOST and share > _TIMES_CHANCE * expected, text))
        if all(f"{run}s" in side["divergence"] for side in (test, chance)):
            far, near = (side["divergence"][f"{run}s"][str(COMPOUNDS)] for side in (test, chance))
            text = f"{run}s of words in {field} diverge by {far:.3f} ({near:.3f} by chance)"
            apart.append((far - near >= _DIVERGENCE, text))
    return new + apart


def _novel_factors(found: Audit) -> list[Finding]:
    if "ood_test" not in found.get("factors", {}):
        return []
    share = found["factors"]["ood_test"]["rows_with_unseen_combination"]
    return [(share > _MOST, f"{share:.0%} of ood_test rows combine factors as no training row does")]


def _novel_groups(found: Audit) -> list[Finding]:
    if "groups" not in found:
        return []
    shared, count = found["groups"]["shared_with_train"]["ood_test"], found["groups"]["count"]["ood_test"]
    return [(shared == 0, f"{shared} of {count} groups of ood_test are in training")]


def _novel_severity(definition: SplitDefinition, found: Audit) -> list[Finding]:
    return [_beyond(definition, found)] if "severity" in found else []


def _corrupted(_: SplitDefinition, found: Audit) -> Finding:
    noise = found.get("noise", {})
    train = noise.get("train", {"overridden": 0, "wrong": 0})
    touched = sorted(name for name, item in noise.items() if name != "train" and item["wrong"])
    redrawn = f" ({train['overridden']} were redrawn)" if train["overridden"] != train["wrong"] else ""
    tests = f"and so are labels of {', '.join(touched)}" if touched else "test labels are not"
    why = f"{train['wrong']} of {found['rows'].get('train', 0)} training labels are wrong{redrawn}, {tests}"
    return train["wrong"] > 0 and not touched, why


def _domain(definition: SplitDefinition, found: Audit) -> Finding:
    groups = found.get("groups", {})
    if "ood_test" not in groups.get("shared_with_train", {}):
        return False, "no groups in train and ood_test"
    if definition.declared.one_distribution:
        return _uneven(groups["rows"]["train"])
    if groups["shared_with_train"]["ood_test"] == 0:
        shift = "domains are disjoint"
    else:
        variations = {"domains": groups["total_variation_from_train"]}
        if "with_label_total_variation_from_train" in groups:
            variations["domains with labels"] = groups["with_label_total_variation_from_train"]
        what, item = max(variations.items(), key=lambda pair: pair[1]["ood_test"] - pair[1][RANDOM])
        far, near = item["ood_test"], item[RANDOM]
        shift = f"the proportions of {what} differ by {far:.2f} (total variation; {near:.2f} by chance)"
        if far - near < _VARIATION or far < _TIMES_CHANCE * near:
            return False, f"domains are shared, and {shift}"
    return True, f"{shift}; {_strength(found['probe'])}" if "probe" in found else shift


def _uneven(trained: dict[str, int]) -> Finding:
    """Where parts are of one distribution, training must show some group much more than another."""
    most, least = max(trained.values()), min(trained.values())
    told = f"one distribution, as declared: the largest group of training has {most} rows, the smallest {least}"
    return most >= _TIMES_CHANCE * least, told


def _strength(probe: dict[str, float]) -> str:
    tells = f"tells the domains apart with AUROC {probe['domain_auroc']:.2f}"
    if "id_accuracy" not in probe:
        return f"a linear probe {tells}"
    drop = probe["id_accuracy"] - probe["ood_accuracy"]
    strength = "weak" if drop < _WEAK else "strong"
    moves = f"{'loses' if drop >= 0 else 'gains'} {100 * abs(drop):.1f} points"
    return f"the shift is {strength}: a linear probe {moves}, and {tells}"


_KINDS = {
    "length": _beyond,
    "easy-to-hard": _beyond,
    "compositional": _compositional,
    "corrupted-label": _corrupted,
    "domain": _domain,
}

_BY_SEVERITY = "choose `parameters` by which every row of ood_test is beyond all of training"

_REMEDIES = {
    "length": _BY_SEVERITY,
    "easy-to-hard": _BY_SEVERITY,
    "compositional": "choose `parameters` that hold combinations out; `factors` names fields that are combined",
    "corrupted-label": "choose `parameters` by which labels of train are wrong, and no others",
    "domain": "hold whole domains out by `parameters`, or, where training and test were drawn alike, say "
    "declared = { one_distribution = true }",
}


def advise(definition: SplitDefinition, found: Audit) -> str:
    """What to change where a split does not hold the shift of its kind; "" where its audit refuses it for a flaw."""
    holds, why = _KINDS[definition.kind](definition, found)
    return _REMEDIES[definition.kind] if not holds and why == found["why"] else ""
