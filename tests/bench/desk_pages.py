"""What people wait for at the desk: its start, a long history, ten checks at once, a large file."""

import csv
import os
import re
import shutil
import time
from statistics import median

from children import payments, real_mix, sandbox
from served_desk import served_desk
from table import Figure, spread

START_GOAL_S = 1.0
RUN_COUNT = 1_000
PAGES = 10
PAGE_GOAL_MS = 20
HISTORY_GOAL_MB = 150
CHECKS_AT_ONCE = 10
ROWS_EACH = 1_000
WAIT_GOAL_S = 1.0
LARGE_ROWS, LARGE_QUESTIONS = 100_000, 20_000
PAGE_GOAL_KB = 100
PAINT_GOAL_S = 1.0
TIMES = 10
LOOK_EVERY_S = 0.05
_SHOWN = re.compile('"shown" value="(?P<shown>[^"]*)"')
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
POLICY = '\n[profiles.production.policy]\nclose_match = "review"\n'


def figures(folder, options):
    folder = folder / "at-the-desk"
    folder.mkdir()
    yield _start(folder, options.rounds)
    with sandbox(folder / "sandbox") as server:
        server.set(rate_per_s=5000, in_flight_max=64)
        with server.configuration.open("a") as configuration:
            configuration.write(POLICY)
        home, said = folder / "home", ("--config", server.configuration)
        with served_desk(home, *said) as desk:
            yield from _checks_at_once(desk, folder)
        yield from _history(home, said)
        shutil.rmtree(home)
        large = _large(folder)
        with served_desk(home, *said) as desk:
            at = desk.upload(large, "production")
            desk.start(at, "production")
            desk.wait(at)
        with served_desk(home, *said) as desk:
            yield from _large_file(desk, home, at)


def _start(folder, rounds):
    waits = []
    for number in range(rounds):
        started = time.monotonic()
        with served_desk(folder / f"empty{number}") as desk:
            desk.get("/")
            waits.append(time.monotonic() - started)
    return Figure(
        "the desk: from its start to its first page",
        spread(waits, "s", decimals=2),
        f"under {START_GOAL_S:g} s",
        median(waits) < START_GOAL_S,
    )


def _checks_at_once(desk, folder):
    """Ten people start a check each, and look at pages until all have ended."""
    ids = []
    for number in range(CHECKS_AT_ONCE):
        kind = payments(folder / f"kind{number}.csv", ROWS_EACH)
        ids.append(desk.upload(real_mix(kind, folder / f"payroll{number}.csv"), "production"))
    for at in ids:
        desk.start(at, "production")
    waits, still = [], list(ids)
    while still:
        for path in ("/", *(f"/files/{at}/progress" for at in still)):
            asked = time.monotonic()
            desk.get(path)
            waits.append(time.monotonic() - asked)
        still = [at for at in still if desk.is_checking(at)]
        time.sleep(LOOK_EVERY_S)
    yield Figure(
        f"the desk: the longest wait for a page, {CHECKS_AT_ONCE} checks of {ROWS_EACH:,} rows at work",
        f"{max(waits):.2f} s of {len(waits):,} pages (median {1000 * median(waits):.0f} ms)",
        f"at most {WAIT_GOAL_S:g} s",
        max(waits) <= WAIT_GOAL_S,
    )


def _history(home, said):
    """A home with many runs: copies of those that it has, under ids of their own."""
    runs = home / "runs"
    first = sorted(runs.iterdir())
    for number in range(len(first), RUN_COUNT):
        run = first[number % len(first)]
        shutil.copytree(run, runs / f"{run.name[:14]}{number:010x}", copy_function=os.link)
    with served_desk(home, *said) as desk:
        opened_ms, _ = desk.each_ms(lambda number: desk.get(f"/?page={number + 1}"), PAGES)
        desk.get("/")
        page_ms, _ = desk.each_ms(lambda _: desk.get("/"), PAGES)
        listed_mb = desk.resident_mb()
        before = desk.cpu_s()
        desk.post("/search", text="00012345")
        search_s, searched_mb = desk.cpu_s() - before, desk.resident_mb()
    yield Figure(
        f"the desk: the list of files, {RUN_COUNT:,} runs in its home, CPU a page",
        f"{page_ms:.0f} ms",
        f"at most {PAGE_GOAL_MS} ms",
        page_ms <= PAGE_GOAL_MS,
    )
    yield Figure("... when a page of it is opened for the first time", f"{opened_ms:.0f} ms", "")
    yield Figure(
        "... memory of the desk after all of its pages, and after a search over all",
        f"{listed_mb:.0f} MB, {searched_mb:.0f} MB",
        f"under {HISTORY_GOAL_MB} MB",
        max(listed_mb, searched_mb) < HISTORY_GOAL_MB,
    )
    yield Figure(f"... CPU of that search, {RUN_COUNT * ROWS_EACH:,} rows", f"{search_s:.1f} s", "")


def _large(folder):
    """A file in which every question is asked by five rows, as a payroll is over months."""
    mixed = real_mix(payments(folder / "questions.csv", LARGE_QUESTIONS), folder / "mixed.csv")
    path = folder / "payroll.csv"
    with mixed.open(newline="") as source, path.open("w", newline="") as target:
        reader = csv.DictReader(source)
        rows = list(reader)
        writer = csv.DictWriter(target, reader.fieldnames)
        writer.writeheader()
        for number in range(LARGE_ROWS):
            row = rows[number % len(rows)]
            writer.writerow(row | {"payment_id": f"P{number}", "amount": f"{1 + number * 7919 % 5000}.25"})
    return path


def _large_file(desk, home, at):
    review = f"/files/{at}/review"
    before = desk.cpu_s()
    page = desk.get(review).text
    opened_s = desk.cpu_s() - before
    rows = [int(word.split('"', 1)[0]) for word in page.split('id="row-')[1:]]
    yield Figure(f"the desk: review of {LARGE_ROWS:,} rows, opened: CPU", f"{opened_s:.2f} s", "")
    decided, shown = {"decision": "hold", "reason": "asked"}, [_SHOWN.search(page)["shown"]]

    def decide(number):
        """A decision states what its page showed; the answer says what it shows now."""
        answer = desk.post(f"/files/{at}/rows/{rows[number]}", part="row", shown=shown[0], **decided)
        shown[0] = _SHOWN.search(answer.text)["shown"]
        return answer

    for what, ask in (
        ("... a page of it", lambda number: desk.get(f"{review}?page={number + 1}")),
        ("... a search in it", lambda number: desk.post(review, text=f"P{47_110 + number}")),
        ("... a decision on a row", decide),
        ("... the release page", lambda _: desk.get(f"/files/{at}/release")),
    ):
        ask(TIMES)
        each_ms, largest = desk.each_ms(ask, TIMES)
        yield Figure(
            f"{what}: CPU, and its size",
            f"{each_ms:.0f} ms, {largest / 1000:.0f} KB",
            f"at most {PAGE_GOAL_MS} ms, under {PAGE_GOAL_KB} KB",
            each_ms <= PAGE_GOAL_MS and largest < PAGE_GOAL_KB * 1000,
        )
    yield Figure("... memory of the desk", f"{desk.resident_mb():.0f} MB", "")
    yield from _first_paint(desk, home, review)


def _first_paint(desk, home, review):
    """What a person sees of it and when, in a browser; left out where there is none."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(desk.new_link(home))
        page.wait_for_url(f"{desk.origin}/")
        paints_s = []
        for _ in range(TIMES):
            page.goto(desk.origin + review)
            paints_s.append(page.wait_for_function(FIRST_PAINT).json_value() / 1000)
        browser.close()
    yield Figure(
        "... its first paint in a browser",
        spread(paints_s, "s", decimals=2),
        f"under {PAINT_GOAL_S:g} s",
        max(paints_s) < PAINT_GOAL_S,
    )
