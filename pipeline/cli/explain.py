"""`precheck explain`: what a code means."""

import click


@click.command()
@click.argument("code", required=False)
def explain(*, code: str | None) -> None:
    """Explain what CODE of the column check_code means, what it does not mean, and what to do.

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
