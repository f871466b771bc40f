"""What a file of a payment format says of itself, in words: its version, its totals, whether they agree."""

from collections.abc import Mapping, Sequence

from pipeline.reports.wording import counted
from schemas.summary import StatedControl

CONTROLS_SHOWN_MAX = 5
"""Of the control totals that differ; a file that is cut in one batch differs in two or three."""
_FACTS = {"name_chars_max": "names", "sealed": "signature"}
_WORDS = {
    "name_chars_max": "at most {} characters",
    "sealed": "signed, so that no changed copy can be written",
}
"""Of the facts that are no words by themselves."""


def facts_in_words(facts: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is known of a file as a whole: what it is called, and what it is."""
    return [
        (_FACTS.get(name, name), _WORDS.get(name, "{}").format(fact)) for name, fact in facts.items() if fact
    ]


def controls_in_words(controls: Sequence[StatedControl], count: int) -> str:
    """How many totals a file states of itself, and how many of them its payments do not keep."""
    differing_count = sum(not control.agrees for control in controls)
    if not differing_count:
        agree = "agrees" if count == 1 else "all agree"
        return f"{counted(count, 'control total')}: {agree} with the payments."
    if count == 1:
        return "1 control total: it does not agree with the payments."
    verb = "does" if differing_count == 1 else "do"
    return f"{differing_count:,} of {counted(count, 'control total')} {verb} not agree with the payments."


def differing_told(controls: Sequence[StatedControl]) -> list[str]:
    """A warning for each control total of the file that its payments do not keep, of many for the first."""
    sentences = [control.sentence for control in controls if control.sentence]
    lines = [f"Warning: {sentence}" for sentence in sentences[:CONTROLS_SHOWN_MAX]]
    if more := len(sentences) - len(lines):
        verb = "differs" if more == 1 else "differ"
        lines.append(f"Warning: {counted(more, 'more control total')} of the file {verb}, too.")
    return lines
