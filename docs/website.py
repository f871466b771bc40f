#!/usr/bin/env python3
"""Build the documentation as a site in `.cache/site`, and fail if a link or a resource is wrong.

    python docs/website.py

The pages are the files of the repository, through links to them. `mkdocs.yml` has the settings; mkdocs calls
`on_page_markdown` for each page.
"""

import logging
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / ".cache" / "site-pages"
SITE = ROOT / ".cache" / "site"
LINKED = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "Dockerfile"),
    *("docs", "sample_data"),
)
"""The pages, and what they link to."""

_CODE_IN_TABLE = re.compile(r"`[^`\n]*`")
_LIST_AFTER_TEXT = re.compile(r"^(?P<text>(?![-*] |\d+\. |\||#|\s|$).+)\n(?=(?:[-*]|\d+\.) )", re.MULTILINE)
_FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """A page in the Markdown of mkdocs: no escaped bar in code, and an empty line before a list."""
    parts = _FENCED.split(markdown)
    parts[::2] = [_LIST_AFTER_TEXT.sub(r"\g<text>\n\n", _unescaped(part)) for part in parts[::2]]
    return "".join(parts)


def _unescaped(text: str) -> str:
    return _CODE_IN_TABLE.sub(lambda code: code[0].replace("\\|", "|"), text)


class _Resources(HTMLParser):
    """What a browser loads for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is loaded, and not what is only linked to."""
        given = dict(attrs)
        is_loaded = tag == "link" and given.get("rel") != "canonical"
        self.found += [
            given[key] or "" for key in ("src", "href") if key in given and (key == "src" or is_loaded)
        ]


def foreign_resources(site: Path) -> Iterator[str]:
    """A sentence for each script, style, font or picture that a page would load from another host."""
    for page in sorted(site.rglob("*.html")):
        resources = _Resources()
        resources.feed(page.read_text("utf-8"))
        yield from (
            f"{page.relative_to(site)}: loads {url}; host it here"
            for url in resources.found
            if re.match(r"(?:\w+:)?//", url)
        )
    for style in sorted(site.rglob("*.css")):
        for url in re.findall(
            r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')]+)""", style.read_text("utf-8")
        ):
            yield f"{style.relative_to(site)}: loads {url}; host it here"


def build() -> int:
    """Build the site; the exit status.

    Raises:
        Abort: a link leads nowhere, or a page is not in the navigation; mkdocs has said so.
    """
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    logging.basicConfig(format="%(message)s")
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for name in LINKED:
        (PAGES / name).symlink_to(ROOT / name)
    build_site(load_config(str(ROOT / "docs" / "mkdocs.yml"), strict=True))
    findings = [*foreign_resources(SITE)]
    for finding in findings:
        print(finding, file=sys.stderr)  # noqa: T201 (a command says what it found)
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(build())
