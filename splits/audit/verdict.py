"""The verdict: whether a split has the shift that it names, according to its audit.

Each kind of shift has one function from the definition and the audit to (holds, why).
"""

from __future__ import annotations

from typing import Any

from ...core.text import format_count
from ..manifest import KnownDefects, SplitDefinition
from ..measures.divergence import COMPOUNDS
from .parted import RANDOM

Audit = dict[str, Any]
Finding = tuple[bool, str]

_MOST = 0.5
_TIMES_CHANCE = 2
_DIVERGENCE, _VARIATION, _WEAK = 0.1, 0.1, 0.05


def judge_split(definition: SplitDefinition, audit: Audit) -> Finding:
    """Return whether the split has its shift, and one line with the numbers that show it. Declared defects must equal
    the measured ones, for every kind."""
    flaw = check_duplicates(definition, audit) or _check_tokens(definition, audit) or _check_examples(audit)
    return (False, flaw) if flaw else _KINDS[definition.kind](definition, audit)


def check_duplicates(definition: SplitDefinition, audit: Audit) -> str:
    """Return how the inputs shared with training differ from the declared ones, of all parts; "" if they do not."""
    declared, across = definition.declared.duplicates, audit["duplicate_inputs"]["across"]
    differences = []
    for pair in sorted({*declared, *(pair for pair in across if pair.startswith("train/"))}):
        count, expected = across.get(pair, 0), declared.get(pair, 0)
        if count != expected:
            declaration = f"declared are {expected:,}" if expected else "none are declared"
            differences.append(f"{format_count(count, 'input')} in both parts of {pair} ({declaration})")
    return "; ".join(differences)


def find_undeclared(definition: SplitDefinition, audit: Audit) -> dict[str, dict[str, int]]:
    """Return the measured defects that a definition does not declare: `duplicates`, the number of distinct inputs that
    parts share with training, and `unseen_tokens` of a compositional test."""
    flaws = _find_flaws(definition, audit, KnownDefects())
    return {name: counts for name, counts in flaws.items() if counts and not getattr(definition.declared, name)}


def find_remedy(definition: SplitDefinition, audit: Audit) -> tuple[dict[str, Any], str]:
    """Return the table `declared` that makes a refused split pass if its defects are intended (empty if no declaration
    changes the verdict), and the reason why the split fails even then."""
    counted_only = definition.declared.model_copy(update=_find_flaws(definition, audit, definition.declared))
    grouped = definition.kind == "domain" and "train" in audit.get("groups", {}).get("rows", {})
    alike = [counted_only.model_copy(update={"one_distribution": True})] if grouped else []
    for declared in (counted_only, *alike):
        if declared != definition.declared and _judge_with(declared, definition, audit)[0]:
            return _to_table(declared), ""
    remaining_flaw = _judge_with(counted_only, definition, audit)[1]
    return ({}, "") if counted_only == definition.declared else (_to_table(counted_only), remaining_flaw)


def _judge_with(declared: KnownDefects, definition: SplitDefinition, audit: Audit) -> Finding:
    return judge_split(definition.model_copy(update={"declared": declared}), audit)


def _to_table(declared: KnownDefects) -> dict[str, Any]:
    return declared.model_dump(exclude_defaults=True)


def _find_flaws(definition: SplitDefinition, audit: Audit, declared: KnownDefects) -> dict[str, dict[str, int]]:
    """Count the inputs that pairs of parts share, and the unseen tokens of parts: those that are never intended, and
    those that are declared."""
    across: dict[str, int] = audit["duplicate_inputs"]["across"]
    pairs = {pair: count for pair, count in sorted(across.items()) if pair.startswith("train/")}
    pairs |= {pair: across.get(pair, 0) for pair in declared.duplicates}
    parts = [*declared.unseen_tokens, *(["ood_test"] if definition.kind == "compositional" else [])]
    unseen = {part: count_unseen(definition, audit, part) for part in parts}
    return {
        name: {key: count for key, count in counts.items() if count}
        for name, counts in (("duplicates", pairs), ("unseen_tokens", unseen))
    }


def _check_tokens(definition: SplitDefinition, audit: Audit) -> str:
    for part, expected in sorted(definition.declared.unseen_tokens.items()):
        if expected and (count := count_unseen(definition, audit, part)) != expected:
            return f"{count} tokens of {part} do not occur in training, but {expected} are declared"
    return ""


def _check_examples(audit: Audit) -> str:
    for part, counts in sorted(audit.get("shared_examples", {}).items()):
        if counts["half"]:
            return (
                f"{format_count(counts['half'], 'row')} of {part} with half of the examples or more in one row of "
                "training"
            )
    return ""


def count_unseen(definition: SplitDefinition, audit: Audit, part: str) -> int:
    """Count tokens of the text inputs and values of the factors that never occur in training."""
    tokens = [
        parts[part]["unseen_tokens"]
        for field, parts in audit.get("texts", {}).items()
        if part in parts and field != definition.label
    ]
    values = audit.get("factors", {}).get(part, {}).get("unseen_values", {}).values()
    return int(sum(tokens) + sum(values))


def _judge_severity(_: SplitDefinition, audit: Audit) -> Finding:
    severity = audit.get("severity", {})
    if not {"train", "ood_test"} <= severity.keys():
        return False, "no severity in train and ood_test"
    easy, hard = severity["train"]["max"], severity["ood_test"]["min"]
    return easy < hard, f"training reaches severity {easy}, ood_test begins at {hard}"


def _judge_compositional(definition: SplitDefinition, audit: Audit) -> Finding:
    if not {"train", "ood_test"} <= audit["rows"].keys():
        return False, "no rows in train and ood_test"
    count, declared = count_unseen(definition, audit, "ood_test"), definition.declared.unseen_tokens.get("ood_test", 0)
    atoms = f"{count} unseen tokens" + (" (as declared)" if count and count == declared else "")
    forms = [
        *_find_novel_words(audit),
        *_find_novel_factors(audit),
        *_find_novel_groups(audit),
        *_find_novel_severity(definition, audit),
    ]
    met = [text for holds, text in forms if holds]
    if met:
        return count == declared, f"{atoms}; {'; '.join(met)}"
    return False, f"{atoms}; no form of novelty: {'; '.join(text for _, text in forms) or 'nothing to measure'}"


def _find_novel_words(audit: Audit) -> list[Finding]:
    """Return the first form of novelty that each text shows, or all that it lacks: new bigrams or trigrams in most
    rows, and in more than twice as many as in a random split (in prose most rows have some); or bigrams or trigrams
    whose distribution diverges more than in any random split."""
    forms: list[Finding] = []
    for field, parts in audit.get("texts", {}).items():
        if "ood_test" in parts:
            these = _find_novel_runs(field, parts["ood_test"], parts[RANDOM])
            forms += next(([form] for form in these if form[0]), these)
    return forms


def _find_novel_runs(field: str, test: Audit, chance: Audit) -> list[Finding]:
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


def _find_novel_factors(audit: Audit) -> list[Finding]:
    if "ood_test" not in audit.get("factors", {}):
        return []
    share = audit["factors"]["ood_test"]["rows_with_unseen_combination"]
    return [(share > _MOST, f"{share:.0%} of ood_test rows combine factors as no training row does")]


def _find_novel_groups(audit: Audit) -> list[Finding]:
    if "groups" not in audit:
        return []
    shared, count = audit["groups"]["shared_with_train"]["ood_test"], audit["groups"]["count"]["ood_test"]
    return [(shared == 0, f"{shared} of {count} groups of ood_test are in training")]


def _find_novel_severity(definition: SplitDefinition, audit: Audit) -> list[Finding]:
    return [_judge_severity(definition, audit)] if "severity" in audit else []


def _judge_corrupted_labels(_: SplitDefinition, audit: Audit) -> Finding:
    noise = audit.get("noise", {})
    train = noise.get("train", {"overridden": 0, "wrong": 0})
    touched = sorted(name for name, item in noise.items() if name != "train" and item["wrong"])
    redrawn = f" ({train['overridden']} were redrawn)" if train["overridden"] != train["wrong"] else ""
    tests = f"and so are labels of {', '.join(touched)}" if touched else "test labels are not"
    why = f"{train['wrong']} of {audit['rows'].get('train', 0)} training labels are wrong{redrawn}, {tests}"
    return train["wrong"] > 0 and not touched, why


def _judge_domain(definition: SplitDefinition, audit: Audit) -> Finding:
    groups = audit.get("groups", {})
    if "ood_test" not in groups.get("shared_with_train", {}):
        return False, _NO_GROUPS
    if definition.declared.one_distribution:
        return _judge_uneven_groups(groups["rows"]["train"])
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
    return True, f"{shift}; {_format_strength(audit['probe'])}" if "probe" in audit else shift


def _judge_uneven_groups(trained: dict[str, int]) -> Finding:
    """If train and test have one distribution, training must have far more rows of one group than of another."""
    most, least = max(trained.values()), min(trained.values())
    reason = f"one distribution, as declared: the largest group of training has {most} rows, the smallest {least}"
    return most >= _TIMES_CHANCE * least, reason


def _format_strength(probe: dict[str, float]) -> str:
    tells = f"tells the domains apart with AUROC {probe['domain_auroc']:.2f}"
    if "id_accuracy" not in probe:
        return f"a linear probe {tells}"
    drop = probe["id_accuracy"] - probe["ood_accuracy"]
    strength = "weak" if drop < _WEAK else "strong"
    moves = f"{'loses' if drop >= 0 else 'gains'} {100 * abs(drop):.1f} points"
    return f"the shift is {strength}: a linear probe {moves}, and {tells}"


_KINDS = {
    "length": _judge_severity,
    "easy-to-hard": _judge_severity,
    "compositional": _judge_compositional,
    "corrupted-label": _judge_corrupted_labels,
    "domain": _judge_domain,
}

_NO_GROUPS = "no groups in train and ood_test"
_BY_SEVERITY = "choose `parameters` so that every severity in ood_test is above all in train"

_REMEDIES = {
    "length": _BY_SEVERITY,
    "easy-to-hard": _BY_SEVERITY,
    "compositional": "choose `parameters` that hold out combinations; `factors` names the fields that are combined",
    "corrupted-label": "choose `parameters` that corrupt labels of train, and no others",
    "domain": "choose `parameters` that hold out whole domains; or, if training and test have one distribution, set "
    "declared = { one_distribution = true }",
}


def suggest_change(definition: SplitDefinition, audit: Audit) -> str:
    """Suggest a change to a split that lacks the shift of its kind; "" if its audit refuses it for a defect."""
    holds, why = _KINDS[definition.kind](definition, audit)
    if holds or why != audit["why"]:
        return ""
    if why == _NO_GROUPS:
        return (
            "choose a rule that gives each row its domain (published/parts: its parameter `group`), or another `kind`"
        )
    return _REMEDIES[definition.kind]
