"""The help of commands: grouped options, examples, versions."""

from collections.abc import Callable, Iterable, Sequence

import click

from pipeline.cli.language import in_words, translated
from pipeline.wording import Sentence

click.IntRange.name, click.FloatRange.name = click.INT.name, click.FLOAT.name  # refusals say "integer"
GROUPS = {
    "What is checked": (
        *("profile", "rehearse", "config", "map", "input-format", "encoding"),
        *("sheet", "country"),
    ),
    "Where it goes": ("out", "format", "fail-on", "pain002", "fresh"),
    "Asking": (
        *("limit", "order", "retry-unanswered", "allow-many-names", "reuse-from", "reuse-max-age"),
        *("wait-max", "no-ask", "until-idle"),
    ),
    "Evidence": ("compare-with", "sign-with"),
    "Many machines": ("work", "engine", "scheduler"),
}
"""Heading -> options; all others are under "Output"."""
GROUPED_FROM = 12  # a command with at least this many options has them grouped in its help
EXAMPLES = {
    "run": (
        "precheck run payroll.csv --profile production",
        "precheck run *.xml --profile production --out checked --fail-on no_match",
        "gpg -d payroll.csv.gpg | precheck run - --profile production --out checked/payroll",
    ),
    "import": ("precheck import payroll.xml --report verification.xml",),
    "worker": ("precheck worker --profile production --work work --until-idle",),
    "status": ("precheck status --profile production --json",),
    "desk": ("precheck desk --port 8080",),
    "plan": ("precheck plan payroll.csv --profile production",),
    "columns": ("precheck columns payroll.csv --map name=Beneficiary",),
    "formats": ("precheck formats",),
    "quota": ("precheck quota",),
    "ledger init": ("precheck ledger init --profile production",),
    "ledger rekey": ("precheck ledger rekey --profile production --new-key-env NEW_LEDGER_KEY",),
    "ledger close": ("precheck ledger close RUN --profile production",),
    "ledger check": ("precheck ledger check --profile production",),
    "purge": ("precheck purge payroll.precheck --older-than 90d",),
    "report": ("precheck report payroll.precheck",),
    "show": ("precheck show payroll.precheck --row 7",),
    "verify": ("precheck verify payroll.precheck --input payroll.csv",),
    "doctor": ("precheck doctor --profile production",),
    "init": ("precheck init",),
    "schema": ("precheck schema summary",),
    "sandbox": ("precheck sandbox --fault html_400",),
    "explain": ("precheck explain MBAM",),
    "fix": ("precheck fix payroll.precheck --accept close_match",),
    "split": ("precheck split payroll.precheck --decisions report.xlsx",),
}
LIBRARIES = ("polars", "httpx", "aiohttp", "pydantic", "pyarrow")


class _Formatter(click.HelpFormatter):
    """Formats help in the language of the terminal."""

    def write_heading(self, heading: str) -> None:
        super().write_heading(translated(heading))

    def write_text(self, text: str) -> None:
        super().write_text("\n\n".join(map(_translated, text.split("\n\n"))))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        parts = [(key, *text.partition("  [")) for key, text in rows]  # click adds the text in brackets
        spoken = [(key, translated(text) + gap + more) for key, text, gap, more in parts]
        super().write_dl(spoken, col_max, col_spacing)


def _translated(paragraph: str) -> str:
    """Translate a paragraph, keeping its line breaks if click does not wrap it."""
    mark, kept = paragraph[:2], paragraph[2:]
    return mark + translated(kept) if mark == "\b\n" else translated(" ".join(paragraph.split()))


class _Context(click.Context):
    formatter_class = _Formatter


class Group(click.Group):
    """A group that lists its commands with the first paragraph of their help."""

    context_class = _Context

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        found = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(999)) for name, one in found if not one.hidden])


class Command(click.Command):
    """A command whose help groups many options, and ends with examples."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option: record for option in options if (record := option.get_help_record(ctx))}
        if len(records) < GROUPED_FROM or len(set(map(_heading, records))) <= 2:
            super().format_options(ctx, formatter)
            return
        for heading in (*GROUPS, ""):
            if found := [record for param, record in records.items() if _heading(param) == heading]:
                with formatter.section(heading or "Output"):
                    formatter.write_dl(found)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the closing paragraphs."""
        if examples := examples_of(ctx.command_path):
            with formatter.section("Examples" if len(examples) > 1 else "Example"):
                formatter.write("".join(f"  {example}\n" for example in examples))
        super().format_epilog(ctx, formatter)


def examples_of(command_path: str) -> Sequence[str]:
    """Return the examples of a command, named with or without the program's name."""
    return EXAMPLES.get(command_path.removeprefix("precheck "), ())


def _heading(param: click.Parameter) -> str:
    """Return the heading for an option; empty for the last group."""
    names = {name.removeprefix("--") for name in param.opts}
    return next((heading for heading, options in GROUPS.items() if names & set(options)), "")


def completed(words: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """Complete words in the shell: those that start with the typed value."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words() if word.casefold().startswith(incomplete.casefold())]

    return complete


class Word(click.Choice[str]):
    """One of many words; if the user misspells it, the refusal suggests the nearest."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Parse the word."""
        from difflib import get_close_matches

        near = get_close_matches(value, self.choices, n=1)
        if value not in self.choices and near:
            message = Sentence(
                "cli.value_did_you_mean", value=repr(value), number=len(self.choices), near=near[0]
            )
            self.fail(in_words(message), param, ctx)
        return super().convert(value, param, ctx)


def print_versions(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Print the version of this program, and of others that a bug report needs."""
    if asked:
        import platform
        import ssl
        from importlib.metadata import version

        others = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
        click.echo(f"precheck {version('payee-precheck')}")
        click.echo(f"Python {platform.python_version()} on {platform.system()}, {ssl.OPENSSL_VERSION}")
        click.echo(others)
        ctx.exit()
