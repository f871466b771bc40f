"""Commands about the folder of a run: show a row, verify, write reports again, purge, fix, split."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli import options as shared
from pipeline.cli.exit_status import notify, reporting_a_lost_signature
from pipeline.cli.helps import Command
from pipeline.cli.language import given_language, in_words, reasons_to_translate
from pipeline.cli.standard_streams import print_answer, print_document, print_findings
from pipeline.errors import PrecheckError, UsageError, most_serious
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.jobs.purge import PurgeJob, PurgeResult
    from schemas.summary import Summary


@click.command(cls=Command)
@click.argument("folder", type=shared.PATH, metavar="DIR")
@shared.option("--row N", type=shared.AT_LEAST_1, required=True, help="Row of the file.")
@shared.option("--json", "as_json", help="Print the history as JSON on standard output.")
def show(*, folder: Path, row: int, as_json: bool) -> None:
    """Show the history of one row: file, question, requests, answer.

    Rows count from 1, without the header line. Account numbers are masked.
    """
    from pipeline.jobs.show import story
    from pipeline.reports.story import print_story

    told = story(folder, row, now=shared.now())
    show = partial(print_story, reasons=reasons_to_translate(folder, [told.outcome.check_reason]))
    print_answer(told, show, as_json=as_json)


@click.command(cls=Command)
@click.argument("folder", type=shared.PATH, metavar="DIR")
@shared.option("--input FILE", "input_file", help="The payment file, to compare every cell with it.")
@shared.option("--config FILE", help="The configuration file, for the key of an encrypted ledger.")
@shared.option(
    "--signed-by PUBLIC_KEY",
    type=shared.PATH,
    help="Require a signature of this Ed25519 public key (PEM). Get the key from the signer, never from DIR.",
)
@shared.option("--json", "as_json", help="Print the findings as JSON on standard output.")
@shared.as_given
def verify(given: shared.Given) -> None:
    """Check that the files of a run are unchanged and consistent.

    Checks every file in the manifest, recounts the outcome file, and compares it with the summary and the
    ledger: each answered row must have the answer for its own payee and account. --input also compares every
    cell with the payment file. --signed-by also requires a signature. Exit status 0: no difference; 65: a
    difference; 74: the ledger is damaged.
    """
    from pipeline.jobs.verify import VerifyJob, verification
    from pipeline.jobs.verify import verify as verify_folder

    findings = verify_folder(given.make(VerifyJob), now=shared.now())
    if given.as_json:
        print_document(verification(findings))
    else:
        print_findings(findings)
    sys.exit(max(finding.exit_code for finding in findings))


@click.command(cls=Command)
@click.argument("folder", type=shared.PATH, metavar="DIR")
@shared.pain002_option
@shared.edited_input_option
@shared.sign_option
@shared.option(
    "--adopt REASON",
    callback=shared.given_reason,
    help="Sign a folder that is not signed, or that was changed by a command without the key, as it is now. "
    "It is verified first; manifest.json records REASON.",
)
@shared.option("--json", "as_json", help="Print the summary as JSON on standard output.")
@shared.as_given
def report(given: shared.Given) -> None:
    """Write the reports of the run in DIR again, and show its summary.

    Nothing is sent. The files in DIR must be as the run left them.
    """
    from pipeline.jobs.report import BankReport
    from pipeline.jobs.report import report as write_reports
    from pipeline.reports.terminal import print_summary
    from schemas.folder import REPORT_XLSX

    folder = given.folder
    if given.input_file is not None and not given.pain002:
        raise UsageError(Sentence("cli.input_without_pain002"))
    for_bank = BankReport(given.input_file) if given.pain002 else None
    with reporting_a_lost_signature(folder):
        summary, kept = write_reports(
            folder,
            given.sign_with,
            adopt=given.adopt,
            for_bank=for_bank,
            language=given_language(click.get_current_context()),
            now=shared.now(),
        )
    if kept is not None:
        notify(Sentence("cli.workbook_kept", workbook=folder / REPORT_XLSX, kept=folder / kept))

    def show(document: "Summary", console: "Console") -> None:
        reasons = reasons_to_translate(folder, [code.reason for code in document.codes])
        print_summary(document, folder, console, already_finished=False, reasons=reasons)

    print_answer(summary, show, as_json=given.as_json)


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=shared.PATH, metavar="DIR...")
@shared.option(
    "--older-than DAYS",
    type=shared.days,
    shown="0d",
    help="Only names from answers older than this, for example 90d, and only in finished runs.",
)
@shared.option(
    "--outcomes",
    "with_files",
    help="Also delete the files that hold the names. With --older-than, only if the run ended "
    "before then or a name was purged. The next run writes outcomes and reports without the "
    "names.",
)
@shared.option(
    "--payments",
    "with_payments",
    help="Like --outcomes, and also delete payees.csv and the files of `precheck split`: no file "
    "with payees remains.",
)
@shared.option("--dry-run", help="Print what would be deleted; delete nothing.")
@shared.option("--reason TEXT", help="Reason, for example the retention policy; recorded in the manifest.")
@shared.by_option
@shared.sign_option
@shared.as_given
def purge(given: shared.Given) -> None:
    """Delete the names that banks returned from the ledger in each DIR.

    Also deletes the details of problems, which may quote a name; no byte of either remains in the ledger. The
    answers remain: no question is asked again. DIR may be a quoted pattern such as 'checked/*.precheck'. With
    --older-than, unfinished runs and folders in use (75) and damaged ones (74) are reported and skipped.

    Other files hold names too: the outcome file, attention.csv, changes.jsonl and reasons.jsonl (masked),
    report.html, report.xlsx, pain002.xml, the copies of a bank's reports, corrections.csv and the corrected
    payment file. --outcomes deletes them, and the parts that a killed run left. summary.json, payees.csv,
    approvals.json and the files of `precheck split` hold no returned names. Copies, such as a workbook
    with decisions, keep theirs.

    For a data set, these are the outcome files of its parts and the work folder; --payments also deletes the
    questions that an unfinished run left for workers.

    manifest.json records what was purged, when, by whom and why, so `precheck verify` does not report it
    missing.
    """
    from pipeline.jobs.purge import PurgeJob, folders_named
    from pipeline.jobs.purge import purge as purge_folder

    job = given.make(PurgeJob)
    statuses = []
    for folder, is_named in folders_named(given.folders).items():
        try:
            with reporting_a_lost_signature(folder):
                purged = purge_folder(folder, job, now=shared.now())
        except PrecheckError as error:
            is_stranger = isinstance(error, UsageError) and not is_named
            notify(*error.messages, status=None if is_stranger else error.exit_code)
            statuses.append(0 if is_stranger else error.exit_code)
            continue
        notify(*_results(folder, job, purged))
        statuses.append(0)
    sys.exit(most_serious(statuses))


def _results(folder: Path, job: "PurgeJob", purged: "PurgeResult") -> Iterator[Sentence]:
    if not purged.was_due:
        yield Sentence("cli.nothing_to_purge", folder=folder, count=job.older_than.days)
        return
    what = [Sentence("cli.returned_names", count=purged.name_count)]
    if purged.detail_count:
        what.append(Sentence("cli.problem_details", count=purged.detail_count))
    yield Sentence("cli.would_be_purged" if job.dry_run else "cli.purged", folder=folder, what=what)
    if purged.deleted:
        key = "cli.would_be_deleted" if job.dry_run else "cli.deleted"
        yield Sentence(key, folder=folder, files=purged.deleted)
    if purged.left:
        yield Sentence("cli.may_hold_names", folder=folder, files=purged.left)


_KINDS = ("close_match", "account_type")


def _kinds(text: str | tuple[str, ...]) -> tuple[str, ...]:
    """Parse kinds of corrections, written as close_match,account_type."""
    words = text if isinstance(text, tuple) else tuple(word.strip() for word in text.split(","))
    if wrong := [word for word in words if word not in _KINDS]:
        message = Sentence("cli.not_one_of_kinds", value=repr(wrong[0]), kinds=list(_KINDS))
        raise click.BadParameter(in_words(message))
    return tuple(dict.fromkeys(words))


@click.command(cls=Command)
@click.argument("folder", type=shared.PATH, metavar="DIR")
@shared.option(
    "--accept KINDS",
    type=_kinds,
    default=(),
    help="Accept all corrections of these kinds, separated by a comma: close_match (the bank's "
    "name), account_type (the other type).",
)
@shared.option("--reason TEXT", help="Reason for --accept; recorded.")
@shared.options(shared.review_options, shared.payment_file_options)
@shared.as_given
def fix(given: shared.Given) -> None:
    """List the corrections of a run, and write a corrected file.

    corrections.csv is always written. With --accept or --decisions, the payment file is also written, in
    its own format, with the accepted corrections and nothing else changed. A row is corrected completely
    or not at all. approvals.json records who decided, when and why. Nothing is sent: check the corrected
    file with `precheck run`.
    """
    from pipeline.jobs.fix import FixJob, fix_folder
    from pipeline.reports.terminal import print_fix
    from schemas.review import Acceptance

    reason = given.reason
    if given.accept and given.decisions is not None:
        raise UsageError(Sentence("cli.accept_excludes_decisions"))
    if given.accept and not (reason or "").strip():
        raise UsageError(Sentence("cli.accept_without_reason"))
    if reason is not None and not given.accept:
        raise UsageError(Sentence("cli.reason_without_accept"))
    job = given.make(FixJob, accept=tuple(map(Acceptance, given.accept)), reason=reason and reason.strip())
    with reporting_a_lost_signature(given.folder):
        done = fix_folder(job, now=shared.now())
    print_answer(done, print_fix, as_json=given.as_json)


@click.command(cls=Command)
@click.argument("folder", type=shared.PATH, metavar="DIR")
@shared.option("--config FILE", help="The configuration file with the policy.")
@shared.options(shared.review_options)
@shared.option("--hold-undecided", help="Hold rows without an answer instead of refusing to split.")
@shared.option(
    "--release-again",
    help="Also release payments that are in an earlier release file of this file or of its corrections.",
)
@shared.options(shared.payment_file_options)
@shared.as_given
def split(given: shared.Given) -> None:
    """Split the payments of DIR into a release file and a hold file.

    The policy of the profile decides; without one, matches are released and all other rows are held. Both
    files have the format and columns of the payment file, and their totals add up to its total.
    hold_reasons.csv says for each held row why it is held and what to do. A payment is held if a
    related file already released it: the original of a corrected or held file, or a file made from this one.
    """
    from pipeline.jobs.split import SplitJob, split_folder
    from pipeline.reports.terminal import print_split

    with reporting_a_lost_signature(given.folder):
        done = split_folder(given.make(SplitJob), now=shared.now())
    print_answer(done, print_split, as_json=given.as_json)
