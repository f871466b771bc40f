"""The verdict as a document: text, JSON or JUnit XML, by the suffix of its file."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from pipeline.files.private import write_private
from pipeline.sandbox.journal import Journal
from pipeline.sandbox.scenarios import Scenario
from pipeline.sandbox.verdict.rules import Duty, Judgement, RuleStatus, judge, tls_facts
from pipeline.wording import Sentence


@dataclass(frozen=True, slots=True)
class ConductVerdict:
    """The judgement on every rule, with the scenario."""

    judgements: Sequence[tuple[Duty, Judgement]]
    facts: dict[str, list[str]]
    call_count: int
    connection_count: int
    walked: Scenario | None = None

    @property
    def scenario(self) -> str | None:
        """The name of the scenario."""
        return None if self.walked is None else self.walked.name

    @property
    def counts(self) -> Counter[RuleStatus]:
        """How many rules were kept, broken and never met."""
        return Counter(judgement.status for _, judgement in self.judgements)

    @property
    def missed(self) -> list[str]:
        """Rules of the scenario that were never met, so that it is incomplete."""
        return [
            rule.name
            for rule, judgement in self.judgements
            if self.walked and rule.name in self.walked.expected and judgement.status is RuleStatus.NEVER_MET
        ]

    @property
    def is_passed(self) -> bool:
        """True if no rule is broken and the scenario is complete."""
        return not self.counts[RuleStatus.BROKEN] and not self.missed

    def headline(self) -> Sentence:
        """The verdict in one line."""
        key = "sandbox.verdict_in_scenario" if self.scenario else "sandbox.verdict"
        return Sentence(
            "sandbox.verdict_scenario_unfinished" if self.missed else key,
            result=Sentence("sandbox.passed" if self.is_passed else "sandbox.failed"),
            scenario=self.scenario or "",
            kept=str(self.counts[RuleStatus.KEPT]),
            broken=str(self.counts[RuleStatus.BROKEN]),
            never_met=str(self.counts[RuleStatus.NEVER_MET]),
            rules=", ".join(self.missed),
        )


def verdict_on(journal: Journal, walked: Scenario | None = None) -> ConductVerdict:
    """Judge a journal by every rule."""
    return ConductVerdict(judge(journal), tls_facts(journal), len(journal.calls), len(journal.visits), walked)


def write_verdict(path: Path, verdict: ConductVerdict) -> None:
    """Write the verdict, mode 0600: `.json` as JSON, `.xml` as JUnit XML, anything else as text."""
    form = {".json": as_json, ".xml": as_junit}.get(path.suffix.lower(), as_text)
    write_private(path, form(verdict).encode())


def as_text(verdict: ConductVerdict) -> str:
    """Format as text for people: broken rules first, with the calls that broke them."""
    return "\n".join(_text_lines(verdict)) + "\n"


def as_json(verdict: ConductVerdict) -> str:
    """Format as JSON."""
    document = {
        "passed": verdict.is_passed,
        "scenario": verdict.scenario,
        "calls": verdict.call_count,
        "connections": verdict.connection_count,
        "counts": {status.value: verdict.counts[status] for status in RuleStatus},
        "missed": verdict.missed,
        "rules": [
            {
                "name": rule.name,
                "what": rule.what,
                "source": rule.source,
                "standing": judgement.status.value,
                "met": judgement.met_count,
                "broken": judgement.breach_count,
                "breaches": judgement.breaches,
            }
            for rule, judgement in verdict.judgements
        ],
        "tls": verdict.facts,
    }
    return json.dumps(document, indent=2) + "\n"


def as_junit(verdict: ConductVerdict) -> str:
    """Format as JUnit XML: each rule is a test; one never met is skipped or, if expected, failed."""
    counts, missed = verdict.counts, verdict.missed
    suite = ET.Element(
        "testsuite",
        name=f"precheck sandbox{f' {verdict.scenario}' if verdict.scenario else ''}",
        tests=str(len(verdict.judgements)),
        failures=str(counts[RuleStatus.BROKEN] + len(missed)),
        errors="0",
        skipped=str(counts[RuleStatus.NEVER_MET] - len(missed)),
    )
    for rule, judgement in verdict.judgements:
        case = ET.SubElement(suite, "testcase", classname="precheck.sandbox", name=rule.name)
        if judgement.status is RuleStatus.BROKEN:
            message = f"{rule.what} ({rule.source}): broken {judgement.breach_count} times"
            ET.SubElement(case, "failure", message=message).text = "\n".join(judgement.breaches)
        elif rule.name in missed:
            ET.SubElement(case, "failure", message=f"{rule.what}: never met, though the scenario has it")
        elif judgement.status is RuleStatus.NEVER_MET:
            ET.SubElement(case, "skipped", message="never met")
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _text_lines(verdict: ConductVerdict) -> Iterator[str]:
    yield f"The client has {verdict.headline()}."
    yield f"It made {verdict.call_count} calls on {verdict.connection_count} connections."
    for status in (RuleStatus.BROKEN, RuleStatus.KEPT, RuleStatus.NEVER_MET):
        yield ""
        yield status.upper()
        for rule, judgement in verdict.judgements:
            if judgement.status is status:
                yield from _rule_lines(rule, judgement)
    yield ""
    yield "TLS"
    for name, words in verdict.facts.items():
        yield f"{name}: {', '.join(words) or 'none'}"


def _rule_lines(rule: Duty, judgement: Judgement) -> Iterator[str]:
    met = f", met {judgement.met_count} times" if judgement.met_count else ""
    broken = f", broken {judgement.breach_count} times" if judgement.breach_count else ""
    yield f"{rule.name}: {rule.what} ({rule.source}){met}{broken}"
    yield from (f"    {breach}" for breach in judgement.breaches)
    if judgement.breach_count > len(judgement.breaches):
        yield f"    and {judgement.breach_count - len(judgement.breaches)} more"
