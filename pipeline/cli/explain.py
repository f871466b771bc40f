"""The command that tells what a code means."""

import click


@click.command()
@click.argument("code", required=False)
def explain(*, code: str | None) -> None:
    """Tell what CODE of the column check_code says, what it does not say, and what to do.

    Without CODE, list all of them. Nothing is sent.
    """
    from pipeline.reports.codes import print_codes, print_explanation
    from pipeline.reports.explanations import explain as explanation_of
    from pipeline.reports.explanations import explanations
    from pipeline.reports.terminal import console

    if code is None:
        print_codes(explanations().values(), console())
    else:
        print_explanation(explanation_of(code), console())
