#!/usr/bin/env python3
"""Write the generated parts of the documentation, or check that they are up to date.

    python docs/generate.py            write them
    python docs/generate.py --check    exit 1 and say which page is stale, or which link or name leads nowhere

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; the prose around it is
written by hand. What is generated comes from the code that does the work, so that it cannot differ. So does
the picture of the house, which `house.py` draws.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from inspect import cleandoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
import house
import references
from pydantic import BaseModel

from pipeline.apis import Api, Basis, cop, own_codes, vop
from pipeline.apis.registry import APIS
from pipeline.cli.main import main as command
from pipeline.config import Profile
from pipeline.formats import ANY_FORMAT
from pipeline.formats.layouts.model import BankLayout, PaymentLine, Shape, SummaryLine
from pipeline.jobs.formats import known_formats
from pipeline.reports.explanations import STEPS, CodesSection, Explanation, explanations
from pipeline.sandbox.certificates import BAD_CLIENTS
from pipeline.sandbox.examples import COLUMNS, account_rows
from pipeline.sandbox.scenarios import SCENARIOS
from pipeline.sandbox.verdict.rules import RULES
from schemas.outcomes import OutcomeColumns
from schemas.payments import Payment

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
HELP_WIDTH = 100
"""Of the text of a default or a range; given, so that COLUMNS does not matter."""

_PART = re.compile(
    r"(?<=<!-- generated: )(?P<name>[a-z-]+)(?P<opened> -->\n).*?(?P<closed><!-- end -->)", re.DOTALL
)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+)$", re.MULTILINE)

MEANINGS: Mapping[str, str] = {
    "default_account_type": "The account type of UK rows that do not say one.",
    "gb_iban_to": "Who checks a GB IBAN: `cop`, by the sort code and account number in it, or `vop`.",
    "ask_by": "What to ask by where a row with an IBAN has both a name and an identification.",
    "vop_countries": 'The countries whose IBANs VoP is asked about, such as `["DE", "FR"]`; others are '
    "`not_possible` (`OUT_OF_REACH`) without a call.",
    "vop_names": "`latin` leaves names in other letters unasked: `not_possible` (`OUT_OF_ALPHABET`).",
    "ledger": "The ledger that many machines share, `postgresql://USER@HOST:PORT/DATABASE`; without it each "
    "run has its own in its folder. See [a ledger for many machines](#a-ledger-for-many-machines).",
    "ledger_key_env": "The environment variable with the key that encrypts returned names in `ledger.db`.",
    "ledger_key_file": "The file with that key; mode 0600. Without either, the names are not encrypted.",
    "sign_with": "The private key, PEM, mode 0600, that signs the manifest of each run: see "
    "[signed evidence](operations.md#signed-evidence).",
    "sign_with_password_env": "The environment variable that holds the password of that key.",
    "sign_with_password_file": "The file that holds the password of that key; mode 0600.",
    "compare_with": "Warn of payees who are new or have another account than in the run before: "
    "see [what changed](operations.md#what-changed-since-last-time).",
    "modulus_weights": "The weights of the UK modulus check, `valacdos.txt`: see "
    "[the UK modulus check](payment-files.md#the-uk-modulus-check).",
    "modulus_substitutions": "Its sort code substitutions, `scsubtab.txt`.",
    "modulus_weights_date": "The day from which both tables hold, such as `2026-01-31`; they do not say it.",
    "policy": "What `precheck split` does with a row: see [what may be paid](#what-may-be-paid).",
    "cop": "The section of the CoP Gateway.",
    "vop": "The section of the VoP Gateway or of VoP Standard.",
    "api": "Which API this section is for.",
    "server": "Which kind of server this is; it is written into every row. `test` carries a daily cap of 50.",
    "base_url": "The address of the server, with any path before that of the API. https only.",
    "ca_file": "The only certificate authorities to trust for this section, PEM.",
    "rate_per_s": "Requests in any second, at most, from 0.1 to 5000.",
    "in_flight_max": "Requests at the same time, at most; also the number of connections.",
    "daily_cap": "Requests a day, at most, repeats included, of all your processes together.",
    "cap_window": "What a day is: see [the daily cap](#the-daily-cap).",
    "attempts_max": "Requests for one question in one run, at most.",
    "probe_wait_s": "How long a server, or a bank behind it, that only fails is left alone before one "
    "request tries it again; doubled each time.",
    "price_per_call": 'What your provider charges for a call, such as `"0.15 GBP"`, for the plan of a file. '
    "See [what calls cost](#what-calls-cost).",
    "response_margin_s": "Added to the responder's wait, 7 s CoP and 5 s VoP: how long a request may take.",
    "token_url": "The token endpoint of the identity provider. https only.",
    "token_method": "`GET` with a form in the body, as the API documents it, or `POST`.",
    "client_id": "Your client at the identity provider.",
    "client_secret_env": "The environment variable that holds the client secret.",
    "client_secret_file": "The file that holds the client secret; mode 0600.",
    "scope": "The scope to ask for, such as `SCOPE_ID/.default`.",
    "client_certificate": "Your QWAC and its chain, PEM.",
    "client_key": "Its private key, PEM; mode 0600.",
    "client_key_password_env": "The environment variable that holds the password of the key.",
    "client_key_password_file": "The file that holds the password of the key; mode 0600.",
    "requesting_bic": "The BIC of your own payment service provider, eleven characters.",
    "bic_table": "Your own directory of banks: see [which bank answers](#which-bank-answers).",
    "send_remittance": "Whether requests carry the `reference` of the payment.",
}
"""What each key of the configuration means."""

OF_LAYOUTS: Mapping[str, str] = {
    "title": "In words, for people; its name where it is empty.",
    "separator": "Between the cells of a line; cells that hold it stand in double quotes.",
    "widths": "Of the cells of a line, in characters, instead of a separator.",
    "payments": "The kinds of lines that are payments: `[[layouts.NAME.payments]]`.",
    "header": "The first line of the file: `[layouts.NAME.header]`.",
    "batch": "The line before the payments of each batch: `[layouts.NAME.batch]`.",
    "trailer": "The last line of the file: `[layouts.NAME.trailer]`.",
    "others": "Kinds of lines that are no payments, told and never checked: `[[layouts.NAME.others]]`.",
    "amount_in": "The unit of amounts: `main` of pounds, `minor` of pence.",
    "name_length_max": "How many characters the bank takes of a name.",
    "name_characters": "`bacs`: capitals, digits and `. & / -` alone, in names that `fix` writes.",
    "unknown_total": "A total whose rule is not known, in words: the file is read, and never changed.",
    "tags": 'What stands in a cell of every such line: `{ 1 = "P" }`, or `{ 1 = ["P", "Q"] }` for either.',
    "shapes": f"What other cells look like: {', '.join(f'`{shape.value}`' for shape in Shape)}.",
    "columns": "Field -> its cell, from 1: the fields of a payment, and `uk_account` for a sort code and an "
    "account number in one cell.",
    "currency": "Of the amount, where no column says it.",
    "code": "The cell with the transaction code.",
    "booked_by": "The cells by which payments make up a batch, such as the day and the payer's account.",
    "cells_min": "How many cells it has at least; those that the other keys name, where it is not said.",
    "cells_max": "How many cells it has at most; any number, where it is not said.",
    "count": "The cell with the number of payments.",
    "sum": "The cell with the sum of their amounts, in the unit of the amounts.",
    "label": "The cell by which a batch is known.",
    "is_optional": "Whether the line may be missing.",
    "what": "What it is, in words, singular.",
}
"""What each key of a layout means."""


def commands() -> str:
    """Every command with its options, defaults and ranges."""
    return "\n".join(_describe(name, found) for name, found in documented_commands().items())


def documented_commands() -> dict[str, click.Command]:
    """The commands that a user is to know, by name; of a group, each of its own."""
    shown = {name: found for name, found in command.commands.items() if not found.hidden}
    return {
        f"{name} {part}".rstrip(): single
        for name, found in shown.items()
        for part, single in (found.commands.items() if isinstance(found, click.Group) else [("", found)])
    }


def _describe(name: str, found: click.Command) -> str:
    root = click.Context(
        command,
        info_name="precheck",
        terminal_width=HELP_WIDTH,
        show_default=True,
        **command.context_settings,
    )
    context = click.Context(found, info_name=name, parent=root)
    usage = " ".join(["precheck", name, *found.collect_usage_pieces(context)])
    helps = [
        option.get_help_record(context)
        for option in found.get_params(context)
        if isinstance(option, click.Option)
    ]
    options = [(f"`{_cell(syntax)}`", _cell(meaning)) for syntax, meaning in filter(None, helps)]
    parts = (
        f"## {name}",
        f"```text\n{usage}\n```",
        _prose(found.help or ""),
        _table(("option", "meaning"), options),
        _prose(found.epilog or ""),
    )
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _prose(help_text: str) -> str:
    """A docstring as Markdown; a paragraph that click does not wrap keeps its lines."""
    paragraphs = re.split(r"\n{2,}", cleandoc(help_text))
    return "\n\n".join(
        f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```"
        if paragraph.startswith("\b")
        else paragraph
        for paragraph in paragraphs
    )


def _documents(model: type[BaseModel]) -> str:
    """The columns of a file, as its model describes them."""
    rows = [(f"`{name}`", _cell(field.description or "")) for name, field in model.model_fields.items()]
    return _table(("column", "meaning"), rows)


def _codes(api: Api, basis: Basis) -> str:
    """What each code of an API means, for checks by name or by identification."""
    return _table(
        ("check_code", "check_outcome", "check_action", "check_reason"),
        [
            (_code(code), f"`{meaning.outcome}`", f"`{meaning.action}`", _cell(meaning.reason))
            for (asked_by, code), meaning in api.meanings.items()
            if asked_by is basis
        ],
    )


def own_codes_table() -> str:
    """The codes of rows that have no answer: ours, and the server's errors."""
    return _table(
        ("check_outcome", "check_code", "check_reason"),
        [
            (f"`{meaning.outcome}`", _code(code), _cell(meaning.reason))
            for (_, code), meaning in own_codes.MEANINGS.items()
        ],
    )


def actions() -> str:
    """What a person does next."""
    return _table(
        ("check_action", "what a person does next"),
        [(f"`{action}`", _cell(step)) for action, step in STEPS.items()],
    )


def codes() -> str:
    """Every code with all that it says, under the heading of where it comes from."""
    found = explanations().values()
    return "\n".join(
        f"## {section}\n\n"
        + "\n".join(_explanation(explanation) for explanation in found if explanation.section is section)
        for section in CodesSection
    )


def _explanation(explanation: Explanation) -> str:
    paragraphs = [f"### {explanation.code}"]
    for case in explanation.cases:
        words = [f"`{word}`" for word in (case.outcome, case.action) if word]
        paragraphs += [
            f"From {case.where}{': ' if words else ''}{', '.join(words)}.",
            "\n".join(
                (
                    f"- **It says:** {case.says}",
                    f"- **It does not say** {case.not_said}",
                    f"- **What to do:** {case.to_do}",
                )
            ),
        ]
    return "\n\n".join(paragraphs) + "\n"


def _code(code: str) -> str:
    """A code that leads to all that is to be said about it."""
    return f"[`{code}`](codes.md#{code.lower()})"


def _keys_of_layouts(model: type[BaseModel]) -> str:
    """The keys of a section of a layout."""
    return _key_table(model, OF_LAYOUTS)


def _keys(model: type[BaseModel]) -> str:
    """The keys of a section of the configuration."""
    sections = (Profile, *(api.section for api in APIS.values()))
    fields = {key: field for section in sections for key, field in section.model_fields.items()}
    described = {key for key, field in fields.items() if field.description is not None}
    missing = (fields.keys() ^ MEANINGS.keys()) - described
    if missing:
        sys.exit(
            f"docs/generate.py, MEANINGS: {', '.join(sorted(missing))} missing, or no key; correct the table"
        )
    return _key_table(model, MEANINGS)


def _key_table(model: type[BaseModel], meanings: Mapping[str, str]) -> str:
    rows = []
    for key, field in model.model_fields.items():
        default = "required" if field.is_required() else _value(field.get_default(call_default_factory=True))
        meaning = meanings.get(key) or field.description or ""
        rows.append((f"`{key}`", _cell(_kind(field.annotation)), default, _cell(meaning)))
    return _table(("key", "type", "default", "meaning"), rows)


def _kind(annotation: Any) -> str:  # noqa: ANN401 (an annotation may be anything)
    """A type as the reader of a TOML file thinks of it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin is Literal:
        return " or ".join(f"`{repr(value)[1:-1]}`" for value in get_args(annotation))
    if origin in {Union, UnionType}:
        kinds = (_kind(kind) for kind in get_args(annotation) if kind is not NoneType)
        return " or ".join(dict.fromkeys(kinds))
    if origin in {dict, list, tuple} or issubclass(annotation, BaseModel):
        return "list" if origin in {list, tuple} else "table"
    if hasattr(annotation, "__members__"):
        return " or ".join(f"`{member.value}`" for member in annotation)
    kinds = {
        bool: "true or false",
        int: "whole number",
        float: "number",
        str: "text",
        Path: "path",
        date: "date",
    }
    return kinds[annotation]


def _value(default: object) -> str:
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "empty" if default in ({}, (), "") else f"`{default}`"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def dummy_accounts() -> str:
    """What the sandbox answers for its dummy accounts."""
    rows = [
        (api, f"`{account}`", account_type, asked, f"`{code}`", matched_name)
        for api, account, account_type, asked, code, matched_name in account_rows()
    ]
    return _table(COLUMNS, rows)


def bad_clients() -> str:
    """The client certificates of the sandbox that VoP Standard refuses."""
    rows = [(f"`client_{name}.pem`", what) for name, what in BAD_CLIENTS.items()]
    return _table(("file", "the certificate"), rows)


def scenarios() -> str:
    """What is to be done in each scenario, and the rules that are met there."""
    rows = [
        (f"`{scenario.name}`", _cell(scenario.what), ", ".join(f"`{name}`" for name in scenario.expected))
        for scenario in SCENARIOS
    ]
    return _table(("scenario", "what to do with the client", "rules that it then has met"), rows)


def rules() -> str:
    """The rules of the verdict."""
    rows = [(f"`{rule.name}`", _cell(rule.what), _cell(rule.source)) for rule in RULES]
    return _table(("rule", "a right client", "where it is written"), rows)


def formats() -> str:
    """Every format that is built in, as `precheck formats` lists it."""
    rows = [
        (f"`{each.name}`", each.title, each.known_by, each.written_as or f"nothing: {each.why_not}")
        for each in known_formats(ANY_FORMAT).formats
    ]
    return _table(("`--input-format`", "format", "known by", "fix and split write"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "columns": partial(_documents, OutcomeColumns),
    "cop-codes": partial(_codes, cop.API, Basis.NAME),
    "vop-name-codes": partial(_codes, vop.GATEWAY, Basis.NAME),
    "vop-identification-codes": partial(_codes, vop.GATEWAY, Basis.IDENTIFICATION),
    "own-codes": own_codes_table,
    "actions": actions,
    "codes": codes,
    "formats": formats,
    "payment-fields": partial(_documents, Payment),
    "profile-keys": partial(_keys, Profile),
    "layout-keys": partial(_keys_of_layouts, BankLayout),
    "layout-payment-keys": partial(_keys_of_layouts, PaymentLine),
    "layout-summary-keys": partial(_keys_of_layouts, SummaryLine),
    "gateway-keys": partial(_keys, cop.Cop),
    "standard-keys": partial(_keys, vop.VopStandard),
    "sandbox-accounts": dummy_accounts,
    "sandbox-bad-clients": bad_clients,
    "sandbox-scenarios": scenarios,
    "sandbox-rules": rules,
}


def renewed(page: str) -> str:
    """A page with its generated parts as they should be.

    Raises:
        KeyError: the page asks for a part that nobody generates.
    """
    return _PART.sub(
        lambda found: f"{found['name']}{found['opened']}\n{PARTS[found['name']]()}\n{found['closed']}", page
    )


def pages() -> list[Path]:
    """The pages that readers find, in order."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def broken_links(page: Path) -> Iterator[str]:
    """A sentence for each relative link of a page that leads to no file or no heading."""
    where = page.relative_to(ROOT)
    for found in _LINK.finditer(_FENCED.sub("", page.read_text("utf-8"))):
        path, _, anchor = found["target"].partition("#")
        if ":" in path:
            continue  # somebody else's address
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{where}: the link {found['target']} leads to no file; correct it"
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            yield f"{where}: the link {found['target']} leads to no heading; correct it"


def anchors(page: str) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    titles = (found["title"] for found in _HEADING.finditer(_FENCED.sub("", page)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if something is stale or broken.")
def generate(*, check: bool) -> None:
    """Write the generated parts of the documentation, or check them, the links and the names of modules."""
    findings = []
    for page in pages():
        text = page.read_text("utf-8")
        if (new := renewed(text)) != text:
            if check:
                findings.append(f"{page.relative_to(ROOT)}: stale; run `python docs/generate.py`")
            else:
                page.write_text(new, "utf-8")
                click.echo(f"{page.relative_to(ROOT)} written")
        findings.extend([*broken_links(page), *references.broken_references(page, text)])
    findings.extend(references.broken_references_in_code())
    if (drawn := house.picture()) != house.PICTURE.read_text("utf-8"):
        if check:
            findings.append(f"{house.PICTURE.relative_to(ROOT)}: stale; run `python docs/generate.py`")
        else:
            house.PICTURE.write_text(drawn, "utf-8")
            click.echo(f"{house.PICTURE.relative_to(ROOT)} written")
    for finding in findings:
        click.echo(finding, err=True)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    generate()
