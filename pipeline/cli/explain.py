"""`precheck explain`: explain a code."""

from collections.abc import Iterable

import click

from pipeline.cli.helps import Command, completed


def _codes() -> Iterable[str]:
    from pipeline.reports.explanations import explanations

    return explanations()


@click.command(cls=Command)
@click.argument("code", required=False, shell_complete=completed(_codes))
@click.option("--all", "in_full", is_flag=True, help="List all codes with their meanings.")
def explain(*, code: str | None, in_full: bool) -> None:
    """Explain what a code means, what it does not mean, and what to do.

    CODE is a value of the column check_code. Without CODE, list all codes. Nothing is sent.
    """
    from pipeline.reports.explanations import explain as explanation_of
    from pipeline.reports.explanations import explanations, print_codes, print_explanation
    from pipeline.reports.terminal import answers

    if code is None:
        print_codes(explanations().values(), answers(), in_full=in_full)
    else:
        print_explanation(explanation_of(code), answers())
