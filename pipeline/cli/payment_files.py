"""`precheck fix` and `precheck split`: write payment files from the outcomes of a run."""

import click

from pipeline.cli.exit_status import reporting_a_lost_signature
from pipeline.cli.helps import Command
from pipeline.cli.language import in_words
from pipeline.cli.options import PATH, Given, as_given, now, options, payment_file_options, review_options
from pipeline.cli.standard_streams import print_answer
from pipeline.errors import UsageError
from pipeline.wording import Sentence

_KINDS = ("close_match", "account_type")


def _kinds(text: str | tuple[str, ...]) -> tuple[str, ...]:
    """Parse kinds of corrections, written as close_match,account_type."""
    words = text if isinstance(text, tuple) else tuple(word.strip() for word in text.split(","))
    if wrong := [word for word in words if word not in _KINDS]:
        message = Sentence("cli.no_kind", value=repr(wrong[0]), kinds=list(_KINDS))
        raise click.BadParameter(in_words(message))
    return tuple(dict.fromkeys(words))


@click.command(cls=Command)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "--accept",
    type=_kinds,
    default=(),
    metavar="KINDS",
    help="Accept all corrections of these kinds, separated by a comma: close_match (the bank's "
    "name), account_type (the other type).",
)
@click.option("--reason", metavar="TEXT", help="Reason for --accept; recorded.")
@options(review_options, payment_file_options)
@as_given
def fix(given: Given) -> None:
    """List the corrections of a run, and write a corrected file.

    corrections.csv is always written. With --accept or --decisions, the payment file is also written, in
    its own format, with the accepted corrections and nothing else changed. A row is corrected completely
    or not at all. approvals.json records who decided, when and why. Nothing is sent: check the corrected
    file with `precheck run`.
    """
    from pipeline.jobs.fix import FixJob, fix_folder
    from pipeline.reports.reviews import print_fix
    from schemas.review import Acceptance

    reason = given.reason
    if given.accept and given.decisions is not None:
        raise UsageError(Sentence("cli.use_one_them"))
    if given.accept and not (reason or "").strip():
        raise UsageError(Sentence("cli.no_give_one"))
    if reason is not None and not given.accept:
        raise UsageError(Sentence("cli.goes_workbook_reason"))
    job = given.make(FixJob, accept=tuple(map(Acceptance, given.accept)), reason=reason and reason.strip())
    with reporting_a_lost_signature(given.folder):
        done = fix_folder(job, now=now())
    print_answer(done, print_fix, as_json=given.as_json)


@click.command(cls=Command)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--config", type=PATH, metavar="FILE", help="The configuration file with the policy.")
@options(review_options)
@click.option(
    "--hold-undecided", is_flag=True, help="Hold rows without an answer instead of refusing to split."
)
@click.option(
    "--release-again",
    is_flag=True,
    help="Also release payments that are in an earlier release file of this file or of its corrections.",
)
@options(payment_file_options)
@as_given
def split(given: Given) -> None:
    """Split the payments of DIR into a release file and a hold file.

    The policy of the profile decides; without one, matches are released and all other rows are held. Both
    files have the format and columns of the payment file, and their totals add up to its total.
    hold_reasons.csv says for each held row why it is held and what to do. A payment is held if a
    related file already released it: the original of a corrected or held file, or a file made from this one.
    """
    from pipeline.jobs.split import SplitJob, split_folder
    from pipeline.reports.reviews import print_split

    with reporting_a_lost_signature(given.folder):
        done = split_folder(given.make(SplitJob), now=now())
    print_answer(done, print_split, as_json=given.as_json)
