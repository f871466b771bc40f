"""`precheck fix` and `precheck split`: from the answers to a file that can be paid."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

# Whether a path can be used is found out, and told, where it is used.
_PATH = click.Path(path_type=Path, readable=False)
_KINDS = ("close_match", "account_type")

_decisions = click.option(
    "--decisions",
    type=_PATH,
    metavar="FILE",
    help="The workbook of this run, report.xlsx, with what people wrote into Decision and Reason.",
)
_by = click.option("--by", metavar="NAME", help="Who decides, for the record; default: the login name.")
_allow_simulated = click.option(
    "--allow-simulated",
    is_flag=True,
    help="Write payment files from a sandbox's answers; their names say .simulated.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")


class Kinds(click.ParamType[tuple[str, ...]]):
    """Kinds of corrections, written as close_match,account_type."""

    name = "kinds"

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read them."""
        words = value if isinstance(value, tuple) else tuple(word.strip() for word in value.split(","))
        if wrong := [word for word in words if word not in _KINDS]:
            self.fail(f"{wrong[0]!r} is not one of {', '.join(_KINDS)}", param, ctx)
        return tuple(dict.fromkeys(words))


def _options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command()
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option(
    "--accept",
    type=Kinds(),
    default=(),
    metavar="KINDS",
    help="Take over all corrections of these kinds: close_match (the bank's name), account_type (the other "
    "type), or both with a comma between.",
)
@click.option("--reason", metavar="TEXT", help="Why --accept; it is recorded.")
@_options(_decisions, _by, _allow_simulated, _as_json)
def fix(  # noqa: PLR0913 (one argument per option)
    *,
    folder: Path,
    accept: tuple[str, ...],
    reason: str | None,
    decisions: Path | None,
    by: str | None,
    allow_simulated: bool,
    as_json: bool,
) -> None:
    """List what is to be corrected in the payments of DIR, the folder of a run.

    corrections.csv is always written. With --accept or --decisions the payment file is written too, in its
    own format and columns, with the accepted corrections and nothing else changed. A row is corrected whole
    or not at all. Who decided, when and why is kept in approvals.json. Nothing is asked: check the corrected
    file with `precheck run`.
    """
    from pipeline.reports.reviews import print_fix
    from pipeline.review import FixJob, fix_folder
    from schemas.review import Acceptance

    if accept and decisions is not None:
        raise UsageError("--accept and --decisions: say one of them; a workbook decides row by row")
    if accept and not (reason or "").strip():
        raise UsageError("--accept: no --reason; say why, as it is recorded")
    if reason is not None and not accept:
        raise UsageError("--reason: goes with --accept; a workbook has a reason beside each decision")
    done = fix_folder(
        FixJob(
            folder=folder,
            accept=tuple(map(Acceptance, accept)),
            reason=None if reason is None else reason.strip(),
            decisions=decisions,
            by=by,
            allow_simulated=allow_simulated,
        )
    )
    if as_json:
        click.echo(done.model_dump_json())
    print_fix(done, _console())


@click.command()
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option("--config", type=_PATH, metavar="FILE", help="The configuration file that has the policy.")
@_options(_decisions, _by)
@click.option("--hold-undecided", is_flag=True, help="Hold rows without an answer, instead of refusing.")
@_options(_allow_simulated, _as_json)
def split(  # noqa: PLR0913 (one argument per option)
    *,
    folder: Path,
    config: Path | None,
    decisions: Path | None,
    by: str | None,
    hold_undecided: bool,
    allow_simulated: bool,
    as_json: bool,
) -> None:
    """Split the payments of DIR, the folder of a run, into those that may be paid and those that are held.

    The policy of the run's profile says which is which; without one, matches are released and all else is
    held. Both files have the format and columns of the payment file, and their totals add up to its.
    hold_reasons.csv says of each held row why it is held and what to do.
    """
    from pipeline.reports.reviews import print_split
    from pipeline.review import SplitJob, split_folder

    done = split_folder(
        SplitJob(
            folder=folder,
            config=config,
            decisions=decisions,
            by=by,
            hold_undecided=hold_undecided,
            allow_simulated=allow_simulated,
        )
    )
    if as_json:
        click.echo(done.model_dump_json())
    print_split(done, _console())


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)
