"""The documentation says what the program does: commands, exit statuses, files, configuration."""

import doctest
import importlib
import itertools
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from tables import for_each

from pipeline.cli.main import main as command
from pipeline.config import file as settings
from pipeline.errors import PrecheckError
from pipeline.reports.explanations import explanations
from pipeline.stages.ask import DRAIN_MAX_S
from pipeline.stages.ask.admission import ALIKE_MAX, TURNED_AWAY_IN_A_ROW_MAX
from pipeline.stages.ask.clock_skew import SKEW_MAX_S
from pipeline.stages.ask.concurrency import GROWTH
from pipeline.stages.ask.gate import PAUSE_MAX_S, PAUSES_MAX, RETRIES_FREE
from pipeline.stages.ask.judge import (
    BREACHES_MIN,
    BREACHES_SHARE,
    BREACHES_WINDOW,
    REFUSALS_IN_A_ROW_LATER_MAX,
    REFUSALS_IN_A_ROW_MAX,
)
from pipeline.stages.ask.remaining import RUNS_MAX
from pipeline.transport.breaker import OUTAGES_MAX, RESPONDER, SERVER

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = re.compile(r"<!-- (?:generated: )?[a-z-]+ -->\n.*?<!-- end -->", re.DOTALL)
HABITS = re.compile(
    r"\b(?:told|whoever|nobody|of which|by which|anew|so many|is to be|what it has)\b", re.IGNORECASE
)
"""Words by which a translated sentence is known."""
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def check(root, **environment):
    return subprocess.run(
        [sys.executable, str(root / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture
def copy(tmp_path):
    """The documentation and what it links to, to be spoiled."""
    root = tmp_path / "copy"
    shutil.copytree(DOCS, root / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "sample_data", root / "sample_data")
    for page in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "Dockerfile", ROOT / "pyproject.toml"):
        shutil.copy(page, root)
    (root / "pipeline").symlink_to(ROOT / "pipeline")  # of which the picture of the house is drawn
    return root


def blocks(page, language):
    return [
        found["text"] for found in FENCED.finditer(page.read_text("utf-8")) if found["language"] == language
    ]


def tutorial_commands():
    lines = "".join(blocks(DOCS / "tutorial.md", "console")).splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def exit_codes():
    """Every exit status that the program has."""
    found, kinds = {0, 1, 129, 130, 143, 152}, [PrecheckError]
    while kinds:
        kind = kinds.pop()
        kinds.extend(kind.__subclasses__())
        found.add(vars(kind).get("exit_code", 0))
    return found


def exit_codes_in_table(page):
    section = page.read_text("utf-8").partition("## Exit status\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([0-9, ]+) \|", section, re.MULTILINE)
    return {int(code) for cell in cells for code in cell.split(",")}


@pytest.mark.nightly
def test_generated_parts_are_up_to_date_whatever_the_width_of_the_terminal_and_links_lead_somewhere():
    result = check(ROOT, COLUMNS="30")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.nightly
def test_a_stale_page_and_links_and_names_that_lead_nowhere_are_reported(copy):
    for name, old, new in (
        ("cli.md", "--fail-on", "--fall-on"),
        ("outcomes.md", "`AC01`", "`AC02`"),
    ):
        page = copy / "docs" / name
        page.write_text(page.read_text("utf-8").replace(old, new), "utf-8")
    with (copy / "README.md").open("a", encoding="utf-8") as readme:
        readme.write("[gone](docs/gone.md) and [nowhere](docs/cli.md#nowhere)\n")
        readme.write("`rules/gone.py` and `rules.gone`\n")
    result = check(copy)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "README.md: the link docs/gone.md leads to no file; correct it",
        "README.md: the link docs/cli.md#nowhere leads to no heading; correct it",
        "README.md: rules/gone.py does not exist; name the module that it has become",
        "README.md: rules.gone does not exist; name what it has become",
        "docs/cli.md: stale; run `python docs/generate.py`",
        "docs/outcomes.md: stale; run `python docs/generate.py`",
    ]


def test_every_command_is_documented_and_hidden_ones_are_not():
    page = (DOCS / "cli.md").read_text("utf-8")
    commands = {
        f"{name} {part}".strip(): single
        for name, found in command.commands.items()
        for part, single in (found.commands.items() if isinstance(found, click.Group) else [("", found)])
    }
    assert set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == {
        name for name, found in commands.items() if not found.hidden
    }
    for name, found in commands.items():
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        for option in found.params:
            if isinstance(option, click.Option):
                assert (option.opts[0] in section) is not option.hidden, f"{name} {option.opts[0]}"


def test_every_code_is_in_a_table_of_the_page_on_outcomes():
    page = (DOCS / "outcomes.md").read_text("utf-8")
    listed = re.findall(r"^\|(?: `[a-z_]+` \|)? `([A-Z0-9_]+)` \|", page, re.MULTILINE)
    assert {*listed, "HTTP_STATUS"} == {*explanations()}  # any status without a line of its own


def test_examples_in_docstrings_print_what_they_say():
    files = [path for part in ("pipeline", "schemas") for path in (ROOT / part).rglob("*.py")]
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in files
        if ">>> " in path.read_text("utf-8")
    ]
    ran = {module: doctest.testmod(importlib.import_module(module)) for module in modules}
    assert sum(result.attempted for result in ran.values()) > 100
    assert not [module for module, result in ran.items() if result.failed]


def test_readme_names_both_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def test_the_first_screen_has_the_installation_the_first_command_and_the_picture():
    screen = "\n".join((ROOT / "README.md").read_text("utf-8").splitlines()[:20])
    for shown in ("uv tool install .", "precheck run sample_data/", "(docs/images/report.png)"):
        assert shown in screen, shown


def test_every_exit_status_is_explained_and_no_other():
    assert exit_codes_in_table(DOCS / "operations.md") == exit_codes()


def test_tutorial_commands_exist_and_name_files_that_exist():
    found = tutorial_commands()
    assert any(line.startswith("precheck run ") for line in found)
    for line in found:
        words = [*shlex.shlex(line, posix=True, punctuation_chars=True)]
        for word in words:
            if word.startswith("sample_data/"):
                assert (ROOT / word).is_file(), line
        if words[0] == "precheck":
            options = {name for option in command.commands[words[1]].params for name in option.opts}
            said = {word for word in words if word.startswith("--")}
            assert said <= options, line


def commands_of(page):
    """Every `precheck` command in the code of a page, as words."""
    code = "".join(text for language in ("sh", "console") for text in blocks(page, language))
    for line in code.replace("\\\n", " ").splitlines():
        typed = re.match(r"(?:\$ )?(precheck (?!run \"\$file).*)", line)
        if typed:
            yield list(itertools.takewhile(lambda word: word not in {";", "|", ">"}, words_of(typed[1])))[1:]


def words_of(line):
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|>")
    lexer.whitespace_split = True
    return lexer


def understood(group, words):
    """Parse the words of a command, and run nothing."""
    name, *rest = words
    found = group.commands[name]
    return understood(found, rest) if isinstance(found, click.Group) else found.make_context(name, rest)


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS.glob("*.md")], ids=lambda page: page.name)
def test_every_command_on_a_page_is_understood(page):
    for words in commands_of(page):
        understood(command, words)


def test_a_command_that_there_is_not_would_be_noticed():
    with pytest.raises(click.UsageError):
        understood(command, ["run", "payroll.csv", "--no-such-option"])


def test_figures_of_the_page_on_server_failures_are_those_of_the_code():
    page = " ".join((DOCS / "server-failures.md").read_text("utf-8").split())
    waits_s = [
        min(SERVER.probe_wait_s * 2**probe, SERVER.probe_wait_max_s) for probe in range(SERVER.probes_max)
    ]
    words, share = {3: "three", 5: "five"}, {0.75: "three quarters"}[BREACHES_SHARE]
    for figure in (
        f"at least {BREACHES_MIN} of its latest {BREACHES_WINDOW} replies, and {share} of them",
        f"If {words[ALIKE_MAX]} questions in a row, or all there are",
        f"{TURNED_AWAY_IN_A_ROW_MAX} refusals in a row are needed",
        f"alike after {TURNED_AWAY_IN_A_ROW_MAX}",
        f"After {words[RUNS_MAX]} such runs",
        f"grows by one in {1 / GROWTH:g} answers",
        f"After {words[PAUSES_MAX]} pauses without another reply",
        f"`Retry-After` of more than {PAUSE_MAX_S:.0f} s",
        f"at most {RETRIES_FREE} requests, plus one for each",
        f"{REFUSALS_IN_A_ROW_MAX + 1} questions in a row if it has never answered",
        f"otherwise {REFUSALS_IN_A_ROW_LATER_MAX + 1}",
        f"comes and goes more than {OUTAGES_MAX} times in a run",
        f"differs by more than {SKEW_MAX_S:.0f} s",
        f"After {SERVER.failures_max} failures in a row",
        f"After {SERVER.probes_max} such failures, {sum(waits_s) / 60:g} minutes",
        f"After {RESPONDER.failures_max} replies of 502 or 504 in a row",
        f"After {RESPONDER.probes_max} failed probes",
    ):
        assert figure in page
    assert f"waits up to {DRAIN_MAX_S:.0f} s for requests in flight" in " ".join(
        (DOCS / "operations.md").read_text("utf-8").split()
    )


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "configuration.md"], ids=lambda page: page.name)
def test_every_configuration_shown_can_be_read(page, tmp_path):
    found = blocks(page, "toml")
    assert found
    for text in found:
        path = tmp_path / "precheck.toml"
        path.write_text(text, "utf-8")
        configuration = settings.read(path)
        assert configuration.profiles or configuration.layouts or configuration.inputs


def test_pages_name_no_folder_of_the_machine_they_were_written_on():
    for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "sample_data").glob("*.md")):
        text = page.read_text("utf-8")
        assert str(ROOT) not in text, page.name
        assert "/tmp/" not in text, page.name
        assert "/home/" not in text, page.name


def every_page():
    return [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]


def section_of(page, anchor):
    """The heading with an anchor, and all below it up to the next heading of its level or above."""
    lines, found, level = page.read_text("utf-8").splitlines(), [], None
    is_code = False
    for line in lines:
        is_code ^= line.startswith("```")
        heading = None if is_code else re.match(r"(#+) +(.+)", line)
        if heading and level is not None and len(heading[1]) <= level:
            break
        if heading and re.sub(r"[^\w\- ]", "", heading[2].lower()).strip().replace(" ", "-") == anchor:
            level = len(heading[1])
        if level is not None:
            found.append(line)
    return "\n".join(found)


def questions():
    """The questions of the README, and the page and the anchor of each answer."""
    index = section_of(ROOT / "README.md", "questions")
    return re.findall(r"^- \[(.+\?)\]\(([^)#]*)#([\w-]+)\)$", index, re.MULTILINE)


def test_twelve_questions_are_asked_on_the_first_screens_of_the_readme():
    assert len(questions()) == 12
    first_screens = (ROOT / "README.md").read_text("utf-8").splitlines()[:60]
    assert "## Questions" in first_screens


@pytest.mark.parametrize(("question", "page", "anchor"), questions())
def test_a_question_is_answered_within_300_words(question, page, anchor):
    answer = section_of(ROOT / (page or "README.md"), anchor)
    assert 30 < len(answer.split()) <= 300, question


def test_each_requirement_of_the_page_on_security_names_a_test_that_is_there_or_says_that_there_is_none():
    page = (DOCS / "security.md").read_text("utf-8")
    faults = (DOCS / "proof" / "faults.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+\.\d.*?) \| (.*?) \| (.*?) ?\|$", page, re.MULTILINE)
    assert len(rows) > 30
    for requirement, how, tests in rows:
        for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests):
            assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8"), name
        for row in re.findall(r"\b[A-I]\d+\b", re.sub("`.*?`", "", tests)):
            assert f"\n| {row} |" in faults, row
        assert tests or "not met" in how or "test: none" in how, requirement


def test_pages_have_at_most_45_000_words_that_were_written_by_hand():
    assert sum(len(GENERATED.sub("", page.read_text("utf-8")).split()) for page in every_page()) <= 45_000


@pytest.mark.parametrize(
    ("pages", "words_max"),
    [
        ("operations.md", 1500),
        ("evidence.md", 1500),
        ("server-failures.md", 1500),
        ("reliability.md", 1500),
        ("sandbox.md", 2000),
        ("many-machines.md data-sets.md", 2200),
        ("review.md desk.md", 2500),
        ("tutorial.md", 1800),
        ("../CHANGELOG.md", 600),
    ],
)
def test_a_page_stays_short(pages, words_max):
    texts = [GENERATED.sub("", (DOCS / page).read_text("utf-8")) for page in pages.split()]
    assert sum(len(text.split()) for text in texts) <= words_max


@pytest.mark.parametrize(("page", "words_max"), [("configuration.md", 2500), ("payment-files.md", 3000)])
def test_a_page_with_tables_of_the_code_stays_short(page, words_max):
    assert len((DOCS / page).read_text("utf-8").split()) <= words_max


PROMISES = {
    "An answered check is never asked again": "README reliability operations evidence",
    "An answered check is never asked again, and no provider limit is exceeded": "README reliability",
    "Limits hold for all runs of one user on one machine, or of all hosts": "README reliability CHANGELOG",
    "`match` appears only if a responder said so, in a well-formed answer to this very request.": (
        "README reliability"
    ),
    "Every row of the input has exactly one outcome.": "README reliability outcomes",
    "a correct outcome file": "reliability operations CHANGELOG",
    "run with real answers or decisions": "reliability operations",
    "moved aside to `FOLDER.TIME`": "reliability operations",
    "Ctrl-C, SIGTERM, SIGHUP": "reliability operations",
    "A single odd timestamp changes nothing": "reliability server-failures",
    "requests count on both days": "reliability server-failures",
    "more than 12 hours away": "reliability server-failures",
    "in another form": "reliability server-failures",
    "with another request's id": "reliability server-failures",
}
"""A promise -> the pages that make it."""


@for_each(("promise", "page"), [(said, page) for said, pages in PROMISES.items() for page in pages.split()])
def test_a_promise_has_the_same_words_on_every_page(promise, page):
    [path] = {path for path in every_page() if path.stem == page and path.parent in {ROOT, DOCS}}
    text = " ".join(path.read_text("utf-8").replace("**", "").split())
    assert promise.lower() in text.lower()


def test_pages_are_not_written_in_translated_english():
    habits = [word for page in every_page() for word in HABITS.findall(page.read_text("utf-8"))]
    assert len(habits) <= 40, habits


@pytest.mark.parametrize(
    "page", [*DOCS.glob("*.md"), *DOCS.glob("dev/*.md"), *DOCS.glob("proof/*.md")], ids=lambda page: page.name
)
def test_a_page_opens_with_what_it_is_for_and_a_command(page):
    opening = page.read_text("utf-8").partition("\n## ")[0]
    assert "This page " in opening
    assert re.search(r"precheck [a-zC]|make [a-z]|payee_precheck", opening)


def test_every_page_has_a_place_in_the_site():
    listed = yaml.safe_load((DOCS / "mkdocs.yml").read_text("utf-8"))["nav"]
    named = re.findall(r"[\w/.-]+\.md", str(listed))
    pages = {page.relative_to(ROOT).as_posix() for page in every_page()}
    assert set(named) == {page for page in pages if not page.startswith("docs/adr/0")}


def test_the_site_would_not_be_built_with_a_script_from_another_host(tmp_path):
    website = runpy.run_path(str(DOCS / "website.py"))
    (tmp_path / "index.html").write_text(
        '<link rel="canonical" href="https://here/"><link rel="stylesheet" href="css/theme.css">'
        '<script src="https://cdn.example/x.js"></script><a href="https://elsewhere/">there</a>'
    )
    (tmp_path / "theme.css").write_text("@font-face { src: url(//fonts.example/lato.woff) }")
    assert [*website["foreign_resources"](tmp_path)] == [
        "index.html: loads https://cdn.example/x.js; host it here",
        "theme.css: loads //fonts.example/lato.woff; host it here",
    ]


def test_pages_are_given_to_the_site_as_it_reads_them():
    written = runpy.run_path(str(DOCS / "website.py"))["on_page_markdown"]
    assert written("| `a\\|b` | c\\|d |\n") == "| `a|b` | c\\|d |\n"
    assert written("Text:\n- one\n- two\n") == "Text:\n\n- one\n- two\n"
    assert written("```sh\ntext\n- one\n```") == "```sh\ntext\n- one\n```"
