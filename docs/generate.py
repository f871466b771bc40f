#!/usr/bin/env python3
"""Write the generated parts of the documentation, or check that they are up to date.

    python docs/generate.py            write them
    python docs/generate.py --check    exit 1 and say which page is stale, or which link or name leads nowhere

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->`; the prose around it is written by
hand. Generated parts come from the code that does the work, so they cannot differ from it. `house.py` draws
the picture of the packages from the code, too.
"""

import json
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
import examples
import house
import references
import sentences
from pydantic import BaseModel

from pipeline.apis import Api, Basis, cop, own_codes, vop
from pipeline.apis.registry import APIS
from pipeline.cli.main import main as command
from pipeline.config import Profile
from pipeline.config.file import NotifySection
from pipeline.config.inputs import InputSection
from pipeline.executors.live_metrics import LiveMetrics
from pipeline.formats.layouts.model import BankLayout, PaymentLine, Shape, SummaryLine
from pipeline.formats.registry import ANY_FORMAT
from pipeline.frames import Check
from pipeline.jobs.columns import known_formats
from pipeline.reports.explanations import STEPS, CodesSection, explanations, whole
from pipeline.sandbox.accounts import COLUMNS, account_rows
from pipeline.sandbox.certificates import BAD_CLIENTS
from pipeline.sandbox.faults.catalogue import SECTIONS as FAULT_SECTIONS
from pipeline.sandbox.scenarios import SCENARIOS
from pipeline.sandbox.verdict.rules import RULES
from schemas.outcomes import OutcomeColumns
from schemas.payments import Payment

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
HELP_WIDTH = 100
"""Width of the text of a default or a range; fixed, so that COLUMNS does not matter."""

_PART = re.compile(
    r"(?<=<!-- generated: )(?P<name>[a-z-]+)(?P<opened> -->\n).*?(?P<closed><!-- end -->)", re.DOTALL
)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+)$", re.MULTILINE)

MEANINGS: Mapping[str, str] = {
    "default_account_type": "Account type of UK rows without one.",
    "default_country": "Country of accounts that are not IBANs, such as `GB`.",
    "bank_rules": "`off`: no warnings about what [banks refuse](beside-your-bank.md#what-banks-refuse).",
    "gb_iban_to": "The API for GB IBANs: `cop`, by the account in it, or `vop`.",
    "ask_by": "What to check if an IBAN has a name and an identification.",
    "vop_countries": 'The countries whose IBANs VoP checks, such as `["DE", "FR"]`; others are '
    "`not_possible` (`OUT_OF_REACH`) without a call.",
    "vop_names": "`latin`: names in other letters are not checked: `not_possible` (`OUT_OF_ALPHABET`).",
    "ledger": "Shared ledger, `postgresql://USER@HOST:PORT/DATABASE`; without it, each folder has its "
    "own. See [many machines](many-machines.md).",
    "ledger_key_env": "Environment variable with the key that encrypts returned names in the ledger.",
    "ledger_key_file": "File with that key; mode 0600. Without a key, names are not encrypted.",
    "sign_with": "Private key (PEM, mode 0600) that signs each run's manifest: see [signed "
    "evidence](evidence.md#signed-evidence).",
    "sign_with_password_env": "Environment variable with the password of that key.",
    "sign_with_password_file": "File with the password of that key; mode 0600.",
    "compare_with": "Earlier run to compare payees with: see [what "
    "changed](review.md#what-changed-since-last-time).",
    "modulus_weights": "`valacdos.txt`, for [the UK modulus check](payment-files.md#the-uk-modulus-check).",
    "modulus_substitutions": "`scsubtab.txt`, its sort code substitutions.",
    "modulus_weights_date": "The date from which both tables apply, such as `2026-01-31`.",
    "policy": "What `precheck split` does with a row: see [what may be paid](#what-may-be-paid).",
    "cop": "Section of the CoP Gateway.",
    "vop": "Section of the VoP Gateway or of VoP Standard.",
    "api": "The API of this section.",
    "server": "Kind of server, written into every row. `test` has a daily cap of 50.",
    "base_url": "Address of the server, with any path before that of the API. https only.",
    "ca_file": "The only certificate authorities to trust for this section, PEM.",
    "proxy": "`environment`: obey `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.",
    "proxy_url": "Proxy, `http://HOST:PORT` or `https://HOST:PORT`: see [a proxy](#a-proxy).",
    "proxy_credentials_env": "Environment variable with the proxy's `USER:PASSWORD`.",
    "proxy_credentials_file": "File with the proxy's `USER:PASSWORD`.",
    "proxy_ca_file": "Certificate authorities of an https proxy.",
    "rate_per_s": "Maximum requests in any second, from 0.1 to 5000.",
    "in_flight_max": "Maximum requests in flight; also the number of connections.",
    "daily_cap": "Maximum requests a day, including retries, for all your processes together.",
    "cap_window": "What counts as a day: see [the daily cap](#the-daily-cap).",
    "attempts_max": "Maximum requests for one question in one run.",
    "probe_wait_s": "Wait before a probe of a server or bank that only fails; doubled each time.",
    "price_per_call": 'Price of a call, such as `"0.15 GBP"`: see [what calls cost](#what-calls-cost).',
    "response_margin_s": "Time allowed beyond the responder's wait of 7 s (CoP) or 5 s (VoP).",
    "token_url": "Token endpoint of the identity provider. https only.",
    "token_method": "`GET` with a form in the body, as the API documents it, or `POST`.",
    "client_id": "Your client at the identity provider.",
    "client_secret_env": "Environment variable with the client secret.",
    "client_secret_file": "File with the client secret; mode 0600.",
    "scope": "Scope to request, such as `SCOPE_ID/.default`.",
    "client_certificate": "Your QWAC and its chain, PEM.",
    "client_key": "File with the certificate's private key, PEM; mode 0600.",
    "client_key_env": "Environment variable with that key.",
    "client_key_password_env": "Environment variable with the password of the key.",
    "client_key_password_file": "File with the password of the key; mode 0600.",
    "requesting_bic": "BIC of your own payment service provider, eleven characters.",
    "bic_table": "Your own directory of banks: see [which bank answers](#which-bank-answers).",
    "send_remittance": "Whether requests carry the `reference` of the payment.",
}
"""What each key of the configuration means."""

OF_LAYOUTS: Mapping[str, str] = {
    "title": "Name for people; the layout's name if empty.",
    "separator": "Character between cells; cells that contain it are in double quotes.",
    "widths": "Widths of the cells in characters, instead of a separator.",
    "payments": "Kinds of payment lines: `[[layouts.NAME.payments]]`.",
    "header": "First line of the file: `[layouts.NAME.header]`.",
    "batch": "Line before the payments of each batch: `[layouts.NAME.batch]`.",
    "trailer": "Last line of the file: `[layouts.NAME.trailer]`.",
    "others": "Other lines, reported and never checked: `[[layouts.NAME.others]]`.",
    "amount_in": "Unit of amounts: `main` (pounds) or `minor` (pence).",
    "name_length_max": "Maximum length of a name.",
    "name_characters": "`bacs`: only capitals, digits and `. & / -` in names that `fix` writes.",
    "unknown_total": "Description of a total without a known rule: the file is read but never changed.",
    "tags": 'Fixed cells: `{ 1 = "P" }`, or `{ 1 = ["P", "Q"] }` for either.',
    "shapes": f"Form of other cells: {', '.join(f'`{shape.value}`' for shape in Shape)}.",
    "columns": "Field -> cell, from 1: the fields of a payment, and `uk_account` for sort code and "
    "account number in one cell.",
    "currency": "Currency of the amounts if no column has it.",
    "code": "Cell of the transaction code.",
    "booked_by": "Cells that define a batch, such as the day and the payer's account.",
    "cells_min": "Minimum number of cells; by default the highest cell that the other keys name.",
    "cells_max": "Maximum number of cells; by default unlimited.",
    "count": "Cell with the number of payments.",
    "sum": "Cell with the sum of their amounts, in the unit of the amounts.",
    "label": "Cell that identifies a batch.",
    "is_optional": "Whether the line may be missing.",
    "what": "Description of such a line, singular.",
}
"""What each key of a layout means."""


def commands() -> str:
    """Every command with its options, defaults and ranges."""
    return "\n".join(_describe(name, found) for name, found in documented_commands().items())


def documented_commands() -> dict[str, click.Command]:
    """The public commands by name; a group is replaced by its commands."""
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
            (f"`{code}`", f"`{meaning.outcome}`", f"`{meaning.action}`", _cell(str(meaning.reason)))
            for (asked_by, code), meaning in api.meanings.items()
            if asked_by is basis
        ],
    )


def own_codes_table() -> str:
    """The codes of rows that have no answer: ours, and the server's errors."""
    return _table(
        ("check_outcome", "check_code", "check_reason"),
        [
            (f"`{meaning.outcome}`", f"`{code}`", _cell(str(meaning.reason)))
            for (_, code), meaning in own_codes.MEANINGS.items()
        ],
    )


def actions() -> str:
    """What a person does next."""
    return _table(
        ("check_action", "what a person does next"),
        [(f"`{action}`", _cell(str(step))) for action, step in STEPS.items()],
    )


def _explained(section: CodesSection) -> str:
    """The codes of a section, with what they mean and what to do."""
    return _table(
        ("check_code" if section is CodesSection.RULES else "warning", "what it says", "what to do"),
        [
            (f"`{found.code}`", _cell(whole(str(case.says))), _cell(str(case.to_do)))
            for found in explanations().values()
            if found.section is section
            for case in found.cases
        ],
    )


def _keys_of_layouts(model: type[BaseModel]) -> str:
    """The keys of a section of a layout."""
    return _key_table(model, OF_LAYOUTS)


def _keys(model: type[BaseModel], keys: Iterable[str] | None = None) -> str:
    """The keys of a section of the configuration, or some of them."""
    sections = (Profile, *(api.section for api in APIS.values()))
    fields = {key: field for section in sections for key, field in section.model_fields.items()}
    described = {key for key, field in fields.items() if field.description is not None}
    missing = (fields.keys() ^ MEANINGS.keys()) - described
    if missing:
        sys.exit(
            f"docs/generate.py, MEANINGS: {', '.join(sorted(missing))} missing, or no key; correct the table"
        )
    return _key_table(model, MEANINGS, keys)


SERVER_KEYS = [key for key in cop.Cop.model_fields if key in vop.VopStandard.model_fields and key != "api"]
"""The keys that every server section has."""


def _other_keys(model: type[BaseModel]) -> list[str]:
    return [key for key in model.model_fields if key not in SERVER_KEYS]


def _key_table(model: type[BaseModel], meanings: Mapping[str, str], keys: Iterable[str] | None = None) -> str:
    rows = []
    for key in model.model_fields if keys is None else keys:
        field = model.model_fields[key]
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
        return " or ".join(
            f"`{repr(getattr(value, 'value', value))[1:-1]}`" for value in get_args(annotation)
        )
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


def faults() -> str:
    """Every fault, by section."""
    return "\n".join(
        f"### {title}\n\n"
        + _table(
            ("fault", "the server", "a correct client"),
            [(f"`{fault.name}`", _cell(str(fault.what)), _cell(str(fault.client))) for fault in section],
        )
        for title, section in FAULT_SECTIONS
    )


def bad_clients() -> str:
    """The client certificates of the sandbox that VoP Standard refuses."""
    rows = [(f"`client_{name}.pem`", what) for name, what in BAD_CLIENTS.items()]
    return _table(("file", "the certificate"), rows)


def scenarios() -> str:
    """Instructions for each scenario, and the rules that it tests."""
    rows = [
        (f"`{scenario.name}`", _cell(scenario.what), ", ".join(f"`{name}`" for name in scenario.expected))
        for scenario in SCENARIOS
    ]
    return _table(("scenario", "what to do with the client", "rules that it tests"), rows)


def rules() -> str:
    """The rules of the verdict."""
    rows = [(f"`{rule.name}`", _cell(rule.what), _cell(rule.source)) for rule in RULES]
    return _table(("rule", "a correct client", "source"), rows)


def nightly_script() -> str:
    """The script that operators copy."""
    return f"```sh\n{(DOCS / 'deployment' / 'nightly.sh').read_text('utf-8')}```\n"


def live_metrics() -> str:
    """The metrics that a process serves while it works."""
    metrics = sorted(LiveMetrics({}).registry.collect(), key=lambda metric: metric.name)
    endings = {"counter": "_total", "histogram": "_bucket", "gauge": ""}
    rows = [(f"`{metric.name}{endings[metric.type]}`", metric.documentation) for metric in metrics]
    return _table(("metric", "meaning"), rows)


def formats() -> str:
    """Every format that is built in, as `precheck formats` lists it."""
    rows = [
        (f"`{each.name}`", each.title, each.known_by, each.written_as or f"nothing: {each.why_not}")
        for each in known_formats(ANY_FORMAT).formats
    ]
    return _table(("`--input-format`", "format", "known by", "fix and split write"), rows)


_PAYMENT = {
    "account": "GB00EXMP00112200012345",
    "name": "the name",
    "account_type": "Business",
    "secondary_reference": "the secondary reference",
    "lei": "00000000000000000000",
    "organisation_bic": "ORGAGB2LXXX",
    "organisation_id": "the identification",
    "organisation_id_scheme": "TXID",
    "organisation_id_issuer": "the issuer",
    "responder_bic": "RESPDEFFXXX",
    "remittance": "the reference",
}
"""A payment with every field."""
_OUR_BIC = "OURSGB2LXXX"
_ELSE = {_OUR_BIC: "`requesting_bic` of the profile", "SortCodeAccountNumber": "always the same"}


def sent_bodies() -> dict[str, dict[str, set[str]]]:
    """API -> position in the body of a request -> source of the value there."""
    found: dict[str, dict[str, set[str]]] = {}
    for name, declared in APIS.items():
        payment = {field: value for field, value in _PAYMENT.items() if field in declared.takes | {"account"}}
        if declared.takes_uk:
            payment["account"] = "00112200012345"
        said = {value: f"`{field}`" for field, value in payment.items()} | _ELSE
        api = vop.standard(_OUR_BIC) if declared.form == "standard" else declared.api(declared.section)  # type: ignore[arg-type]
        for basis in declared.asked:
            has_name = {"name": payment["name"] if basis is Basis.NAME else None}
            check = Check(1, name, **dict.fromkeys(_PAYMENT) | payment | has_name)  # type: ignore[arg-type]
            request = api.request(check, "id", "time")
            for path, value in _leaves(json.loads(request.read())):
                found.setdefault(name.value, {}).setdefault(path, set()).add(said[value])
    return found


def _leaves(document: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (JSON)
    """Every value of a document that is neither an object nor an array, with its position."""
    if isinstance(document, dict):
        for name, inner in document.items():
            yield from _leaves(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(document, list):
        for inner in document:
            yield from _leaves(inner, f"{path}[]")
    else:
        yield path, document


def sent() -> str:
    """Everything in the body of a request, by API."""
    rows = [
        (f"`{api}`", f"`{path}`", ", ".join(sorted(values)))
        for api, paths in sent_bodies().items()
        for path, values in paths.items()
    ]
    return _table(("API", "field", "from"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "sent": sent,
    "sentences": sentences.tables,
    "commands": commands,
    "columns": partial(_documents, OutcomeColumns),
    "cop-codes": partial(_codes, cop.API, Basis.NAME),
    "vop-name-codes": partial(_codes, vop.GATEWAY, Basis.NAME),
    "vop-identification-codes": partial(_codes, vop.GATEWAY, Basis.IDENTIFICATION),
    "own-codes": own_codes_table,
    "actions": actions,
    "cap-used-up": examples.cap_used_up,
    "explained-code": examples.explained_code,
    "ledger-status": examples.ledger_status,
    "local-rules": partial(_explained, CodesSection.RULES),
    "warnings": partial(_explained, CodesSection.WARNINGS),
    "formats": formats,
    "live-metrics": live_metrics,
    "nightly-script": nightly_script,
    "payment-fields": partial(_documents, Payment),
    "profile-keys": partial(_keys, Profile),
    "notify-keys": partial(_key_table, NotifySection, {}),
    "input-keys": partial(_key_table, InputSection, {}),
    "layout-keys": partial(_keys_of_layouts, BankLayout),
    "layout-payment-keys": partial(_keys_of_layouts, PaymentLine),
    "layout-summary-keys": partial(_keys_of_layouts, SummaryLine),
    "server-keys": partial(_keys, cop.Cop, SERVER_KEYS),
    "gateway-keys": partial(_keys, cop.Cop, _other_keys(cop.Cop)),
    "standard-keys": partial(_keys, vop.VopStandard, _other_keys(vop.VopStandard)),
    "sandbox-accounts": dummy_accounts,
    "sandbox-faults": faults,
    "sandbox-bad-clients": bad_clients,
    "sandbox-scenarios": scenarios,
    "sandbox-rules": rules,
}


def renewed(page: str) -> str:
    """A page with its generated parts as they should be.

    Raises:
        KeyError: the page names an unknown part.
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
            continue  # an external address
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
        findings.extend([*broken_links(page), *references.broken_references(page, _PART.sub("", text))])
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
