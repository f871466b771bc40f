"""A10: SIGTERM and SIGINT at any moment drain, and nothing is asked twice."""

import signal

ROW_COUNT = 120
DRAIN_MAX_S = 8
SHELL_STATUS = {130: signal.SIGINT, -2: signal.SIGINT, 143: signal.SIGTERM, -15: signal.SIGTERM}
"""A process that a signal ends by default, as in its first milliseconds, is 128 + number to a shell."""


def test_signals_at_any_moment_drain_and_repeat_nothing(
    desk, serve, rows_of, stable_rows, wait_until, clock, chance, tmp_path, tell, is_long
):
    signal_max = 240 if is_long else 24
    file = desk.payments(rows_of(ROW_COUNT))
    sent = survived = whole_count = life_count = default_count = repeat_count = 0
    drain_max_s = 0.0
    undisturbed = None
    with serve(tmp_path / "server", "--latency", "0.05") as server:
        words = ("run", file, *desk.using(server.section(rate_per_s=100, in_flight_max=8)), "--quiet")
        while sent < signal_max:
            folder = desk.folder / f"life{life_count}"
            before, failed_before = len(server.calls()), sent - survived
            status, starts = None, 0
            while status != 0:
                starts += 1
                running = desk.start(*words, "--out", folder, XDG_STATE_HOME=f"{folder}-state{starts}")
                due = clock() + chance.uniform(0, 2.5)
                number = chance.choice((signal.SIGTERM, signal.SIGINT))
                if sent == signal_max:
                    due = float("inf")
                wait_until(lambda due=due, running=running: clock() >= due or running.has_ended)
                signalled_at = clock()
                running.process.send_signal(number)  # which does nothing to one that has ended
                finished = running.end()
                status = finished.status
                if status == 0:
                    break
                drain_s = clock() - signalled_at
                sent += 1
                default_count += status < 0
                is_told = status < 0 or len(finished.sentences) == 1 and "Traceback" not in finished.err
                is_right = SHELL_STATUS.get(status) == number and is_told and drain_s <= DRAIN_MAX_S
                survived += is_right
                drain_max_s = max(drain_max_s, drain_s)
                if not is_right:
                    print(number, status, f"{drain_s:.2f} s", finished.err[-300:])  # noqa: T201 (for a failure)
            questions = [call["question"] for call in server.calls(before)]
            repeat_count += len(questions) - len(set(questions))
            rows = stable_rows(folder / "outcomes.csv")
            undisturbed = undisturbed or rows
            is_whole = len(questions) == ROW_COUNT and rows == undisturbed
            whole_count += is_whole
            life_count += 1
            if not is_whole and failed_before == sent - survived:
                survived -= 1
    tell(
        "A10",
        "SIGTERM and SIGINT at any moment",
        tried=sent,
        survived=survived,
        figure=f"drain at most {drain_max_s:.1f} s; repeats {repeat_count}; {whole_count} of {life_count} runs "
        f"as undisturbed; {default_count} signals in the first moments of the interpreter",
        goal=f"130 or 143; drain <= {DRAIN_MAX_S} s; repeats 0; all as undisturbed",
    )


def test_a_second_signal_ends_at_once(desk, serve, rows_of, ledger_image, clock, tmp_path, tell):
    survived, slowest_s = 0, 0.0
    pairs = [(signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM), (signal.SIGINT,) * 2]
    with serve(tmp_path / "server", "--latency", "6") as server:
        for number, (first, second) in enumerate(pairs):
            folder = desk.folder / f"run{number}"
            file = desk.payments(rows_of(4), name=f"{number}.csv")
            words = ("run", file, "--out", folder, *desk.using(server.section()), "--quiet")
            running = desk.start(*words, XDG_STATE_HOME=f"{folder}-state")
            while len(ledger_image(folder, at=tmp_path / "copy").open) < 4:
                assert not running.has_ended
            running.process.send_signal(first)
            drains_until = clock() + 0.5
            while clock() < drains_until and not running.has_ended:
                pass
            has_drained = not running.has_ended
            running.process.send_signal(second)
            signalled_at = clock()
            finished = running.end()
            slowest_s = max(slowest_s, clock() - signalled_at)
            survived += has_drained and finished.status == 128 + first and clock() - signalled_at < 2
    tell(
        "A10",
        "second signal",
        tried=len(pairs),
        survived=survived,
        figure=f"ended within {slowest_s:.2f} s",
        goal="ends at once: < 2 s",
    )
