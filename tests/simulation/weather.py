"""What can go wrong in one history: a random subset of all faults, each with parameters of its own.

Every seed switches on some faults and leaves out the others, so that rare meetings of two faults occur, too,
and no third one drowns them. Faults of the world (outages, latency, lost replies) end when it heals; those of
a row last for ever.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random

BEGINNING = datetime(2030, 1, 1, 9, tzinfo=UTC)
TURNS = (
    datetime(2030, 1, 1, 23, 59, 50, tzinfo=UTC),
    datetime(2030, 3, 31, 0, 59, 50, tzinfo=UTC),
    datetime(2030, 10, 27, 0, 59, 50, tzinfo=UTC),
)
"""Ten seconds before midnight, before summer time begins, and before it ends."""
ROWS_OF_THEIR_OWN_MAX = 6
LEASES_END_S = 20.0
"""After so long nobody has a part of anything who no longer uses it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the history."""

    from_s: float
    to_s: float

    def covers(self, now_s: float) -> bool:
        """Whether it is now."""
        return self.from_s <= now_s < self.to_s


@dataclass(slots=True)
class Weather:
    """The faults of one history. A share is of all requests."""

    heals_at_s: float = 0.0
    begins_at: datetime = BEGINNING
    latency_s: float = 0.05
    slow_share: float = 0.0
    slow_s: float = 3.0
    error_share: float = 0.0
    error_status: int = 500
    lost_share: float = 0.0
    """Processed, and then the connection breaks."""
    silent_share: float = 0.0
    """No reply at all."""
    crossed_share: float = 0.0
    """The answer of another request."""
    broken_share: float = 0.0
    """A reply that breaks the contract."""
    foreign_share: float = 0.0
    """A refusal that is not the API's, or not of this request."""
    foreign_kind: str = "page"
    stamp_kind: str | None = None
    """What the time stamps of answers are: some odd, or all wrong by the same; None without any."""
    refused_connection_share: float = 0.0
    unasked_share: float = 0.0
    """Of the connections that are kept: on how many something is said before the next request."""
    away: list[Span] = field(default_factory=list)
    """When no connection to the server can be made, also before anything is asked."""
    half_dead_share: float = 0.0
    """Of the connections that are kept: what is sent on them goes nowhere."""
    outages: list[Span] = field(default_factory=list)
    outage_kind: str = "503"
    server_rate: int | None = None
    """What the server lets through in a second of its own, where that is less than agreed."""
    retry_after: str | None = None
    silent_banks: dict[str, Span] = field(default_factory=dict)
    refused_rows: frozenset[int] = frozenset()
    disliked_rows: frozenset[int] = frozenset()
    disliked_status: int = 403
    broken_rows: frozenset[int] = frozenset()
    failing_rows: frozenset[int] = frozenset()
    token_life_s: int = 3600
    token_outages: list[Span] = field(default_factory=list)
    revocations: list[float] = field(default_factory=list)
    cap: int | None = None
    commit_s: float = 0.001
    slow_commit_share: float = 0.0
    store_stalls: list[Span] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)
    clock_jumps: list[tuple[float, float]] = field(default_factory=list)
    limit: int | None = None
    other_limits: tuple[int, int] | None = None
    """What a person sets the rate and the places to after the first run."""
    process_count: int = 1
    starts_s: tuple[float, ...] = ()
    """How long after the first process each of the others starts."""
    busy: list[Span] = field(default_factory=list)
    """When the server says 429 to everything."""
    other_file: bool = False
    """After the first run another file lies where the first one was."""
    purge_older_than_s: float | None = None
    """Names of older answers are purged, once."""
    lost_reply_share: float = 0.0
    """Of the replies of a store that processes share: it did what it was asked."""
    failovers: list[float] = field(default_factory=list)
    """When it fails over to one that lacks the last second."""
    terminations: list[tuple[float, bool]] = field(default_factory=list)
    """When a process is asked to stop, and whether it is asked twice."""
    is_purged_late: bool = False
    """Once the last run has ended, and not after the first."""
    vop: "Weather | None" = None
    """That of the VoP gateway, where the file has questions for it, too."""
    vop_limits: tuple[int, int] = (20, 16)
    """Its rate, and how many requests may be in flight to it."""
    names: tuple[str, ...] = ()
    """Of the faults that are on."""

    @property
    def hopeless_rows(self) -> frozenset[int]:
        """The rows that never get an answer, however healthy the world is."""
        return self.disliked_rows | self.broken_rows | self.failing_rows

    @property
    def quiet_from_s(self) -> float:
        """When the world has healed, and what befell processes and stores is over, down to the leases."""
        stops = [start + for_s for start, for_s in self.stops]
        over = [
            *self.kills,
            *(moment for moment, _ in self.terminations),
            *stops,
            *(stall.to_s for stall in self.store_stalls),
        ]
        return max([self.heals_at_s, *(end_s + LEASES_END_S for end_s in over)])

    def is_well(self, now_s: float) -> bool:
        """Whether the world has healed."""
        return now_s >= self.heals_at_s


def weather_of(seed: int, question_count: int, left_out: frozenset[str] = frozenset()) -> Weather:
    """Draw the faults of a history; where some are left out, the others are drawn as they were."""
    chance = Random(seed)
    weather = Weather(heals_at_s=chance.choice([20.0, 120.0, 900.0]))
    weather.latency_s = chance.choice([0.01, 0.05, 0.3])
    share = chance.choice([0.1, 0.3, 0.6])
    on = [name for name in FAULTS if chance.random() < share]
    kept = [name for name in on if name not in left_out]
    for name in on:
        drawn = weather if name in kept else Weather()
        FAULTS[name](drawn, chance, question_count)
    later = Random(f"{seed} later")
    kept += [name for name in LATER_FAULTS if later.random() < share and name not in left_out]
    for name, draw in LATER_FAULTS.items():
        draw(weather if name in kept else Weather(), later, question_count)
    for name, draw in LATEST_FAULTS.items():
        own = Random(f"{seed} {name}")
        if own.random() < share and name not in left_out:
            kept.append(name)
            draw(weather, own, question_count)
    weather.names = tuple(kept)
    if weather.vop is not None:
        _draw_vop(weather, Random(f"{seed} of VoP"), question_count, left_out)
    return weather


def _draw_vop(weather: Weather, chance: Random, question_count: int, left_out: frozenset[str]) -> None:
    """Its gateway has faults of its own; rows, processes and stores are as they are."""
    calm, share = Weather(), chance.choice([0.0, 0.1, 0.4])
    vop = weather.vop = replace(weather, **{name: getattr(calm, name) for name in _OF_A_SERVER})
    vop.latency_s = chance.choice([0.01, 0.05, 0.3])
    weather.vop_limits = chance.choice([5, 20, 50, 200]), chance.choice([1, 4, 16])
    own = [name for name in FAULTS_OF_A_SERVER if chance.random() < share]
    for name in own:
        draw = FAULTS.get(name) or LATER_FAULTS[name]
        draw(vop if f"VoP: {name}" not in left_out else Weather(), chance, question_count)
    own_names = tuple(f"VoP: {name}" for name in own if f"VoP: {name}" not in left_out)
    vop.names = (
        *(name for name in weather.names if name not in FAULTS_OF_A_SERVER),
        *(name.removeprefix("VoP: ") for name in own_names),
    )
    weather.names += own_names


def _some_share(chance: Random) -> float:
    return chance.choice([0.01, 0.05, 0.3, 1.0])


def _rows(chance: Random, question_count: int) -> frozenset[int]:
    few = chance.randint(1, ROWS_OF_THEIR_OWN_MAX)
    first = chance.random() < 0.5
    return frozenset(range(1, few + 1) if first else chance.sample(range(1, question_count + 1), few))


def _span(weather: Weather, chance: Random) -> Span:
    start = chance.uniform(0, weather.heals_at_s or 20)
    return Span(start, start + chance.choice([0.5, 5, 60, 600]))


def _slow(weather: Weather, chance: Random, _count: int) -> None:
    weather.slow_share, weather.slow_s = _some_share(chance), chance.choice([1.5, 4.0, 12.0])


def _errors(weather: Weather, chance: Random, _count: int) -> None:
    weather.error_share, weather.error_status = _some_share(chance), chance.choice([500, 502, 503, 504, 408])


def _lost(weather: Weather, chance: Random, _count: int) -> None:
    weather.lost_share = _some_share(chance)


def _silent(weather: Weather, chance: Random, _count: int) -> None:
    weather.silent_share = _some_share(chance)


def _crossed(weather: Weather, chance: Random, _count: int) -> None:
    weather.crossed_share = _some_share(chance)


def _broken(weather: Weather, chance: Random, _count: int) -> None:
    weather.broken_share = _some_share(chance)


def _connections(weather: Weather, chance: Random, _count: int) -> None:
    weather.refused_connection_share = _some_share(chance)


def _outages(weather: Weather, chance: Random, _count: int) -> None:
    weather.outages = [_span(weather, chance) for _ in range(chance.randint(1, 4))]
    weather.outage_kind = chance.choice(["503", "500", "connect", "silent", "403", "401"])


def _hurried(weather: Weather, chance: Random, _count: int) -> None:
    weather.server_rate = chance.choice([1, 5, 20])
    weather.retry_after = chance.choice([None, "date", "0", "1", "7", "90", "nonsense"])


def _banks(weather: Weather, chance: Random, _count: int) -> None:
    weather.silent_banks = {f"{bank:06d}": _span(weather, chance) for bank in chance.sample(range(5), 2)}


def _refused(weather: Weather, chance: Random, count: int) -> None:
    weather.refused_rows = _rows(chance, count)


def _disliked(weather: Weather, chance: Random, count: int) -> None:
    weather.disliked_rows = _rows(chance, count)
    weather.disliked_status = chance.choice([403, 404, 302])


def _broken_rows(weather: Weather, chance: Random, count: int) -> None:
    weather.broken_rows = _rows(chance, count)


def _failing_rows(weather: Weather, chance: Random, count: int) -> None:
    weather.failing_rows = _rows(chance, count)


def _tokens(weather: Weather, chance: Random, _count: int) -> None:
    weather.token_life_s = chance.choice([0, 5, 30])


def _token_outages(weather: Weather, chance: Random, _count: int) -> None:
    weather.token_outages = [_span(weather, chance)]


def _revoked(weather: Weather, chance: Random, _count: int) -> None:
    weather.revocations = sorted(chance.uniform(0, weather.heals_at_s) for _ in range(3))


def _capped(weather: Weather, chance: Random, count: int) -> None:
    weather.cap = chance.choice([max(count // 20, 1), count // 4, count // 2, count + 10])


def _commits(weather: Weather, chance: Random, _count: int) -> None:
    weather.commit_s = chance.choice([0.0, 0.02, 0.4])
    weather.slow_commit_share = chance.choice([0.0, 0.01])


def _kills(weather: Weather, chance: Random, _count: int) -> None:
    weather.kills = sorted(chance.uniform(0, chance.choice([3, 30])) for _ in range(chance.randint(1, 5)))


def _stops(weather: Weather, chance: Random, _count: int) -> None:
    weather.stops = sorted(
        (chance.uniform(0, 20), chance.choice([0.2, 2.0, 9.0, 70.0])) for _ in range(chance.randint(1, 4))
    )


def _clocks(weather: Weather, chance: Random, _count: int) -> None:
    weather.clock_jumps = sorted(
        (chance.uniform(0, 20), chance.choice([-86_400.0, -3_600.0, -1.0, 1.0, 3_600.0, 86_400.0]))
        for _ in range(chance.randint(1, 3))
    )


def _limited(weather: Weather, chance: Random, count: int) -> None:
    weather.limit = chance.choice([1, count // 3])


def _processes(weather: Weather, chance: Random, _count: int) -> None:
    weather.process_count = chance.choice([2, 3])


def _half_dead(weather: Weather, chance: Random, _count: int) -> None:
    weather.half_dead_share = chance.choice([0.01, 0.05, 0.3])


def _stalls(weather: Weather, chance: Random, _count: int) -> None:
    starts = [chance.uniform(0, 20) for _ in range(chance.randint(1, 3))]
    weather.store_stalls = [Span(start, start + chance.choice([0.5, 3.0, 8.0, 30.0])) for start in starts]


def _turns(weather: Weather, chance: Random, _count: int) -> None:
    weather.begins_at = chance.choice(TURNS)


def _other_limits(weather: Weather, chance: Random, _count: int) -> None:
    weather.other_limits = chance.choice([5, 20, 50, 200]), chance.choice([1, 4, 16, 64])


def _late(weather: Weather, chance: Random, _count: int) -> None:
    weather.starts_s = tuple(chance.uniform(0, chance.choice([1.0, 5.0])) for _ in range(2))


def _early_outage(weather: Weather, chance: Random, _count: int) -> None:
    start = chance.uniform(0, 3)
    weather.outages = [*weather.outages, Span(start, start + chance.choice([5, 60]))]


def _busy(weather: Weather, chance: Random, _count: int) -> None:
    weather.busy = [_span(weather, chance) for _ in range(chance.randint(1, 2))]
    weather.busy += [Span(out.to_s, out.to_s + chance.choice([5, 60, 600])) for out in weather.outages]


FAULTS = {
    "slow replies": _slow,
    "errors": _errors,
    "lost replies": _lost,
    "silence": _silent,
    "crossed answers": _crossed,
    "broken contract": _broken,
    "refused connections": _connections,
    "outages": _outages,
    "429": _hurried,
    "silent banks": _banks,
    "rows refused": _refused,
    "rows turned away": _disliked,
    "rows broken": _broken_rows,
    "rows failing": _failing_rows,
    "short tokens": _tokens,
    "token endpoint out": _token_outages,
    "tokens revoked": _revoked,
    "daily cap": _capped,
    "slow commits": _commits,
    "kill -9": _kills,
    "SIGSTOP": _stops,
    "clock jumps": _clocks,
    "--limit": _limited,
    "several processes": _processes,
    "half-dead connections": _half_dead,
    "store stalls": _stalls,
    "midnight or summer time": _turns,
    "changed limits": _other_limits,
}
"""Name -> draws its parameters."""


def _other_file(weather: Weather, _chance: Random, _count: int) -> None:
    weather.other_file = True


LATER_FAULTS = {
    "late starts": _late,
    "early outage": _early_outage,
    "busy server": _busy,
    "another file": _other_file,
}
"""As `FAULTS`, by a chance of their own: with another one here, the seeds keep the faults that they had."""


def _vop(weather: Weather, _chance: Random, _count: int) -> None:
    weather.vop = weather  # until its own is drawn, once all else is


def _purge(weather: Weather, chance: Random, _count: int) -> None:
    weather.purge_older_than_s = chance.choice([0.0, 1.0, 10.0, 600.0])
    weather.is_purged_late = chance.random() < 0.5


def _lost_commits(weather: Weather, chance: Random, _count: int) -> None:
    weather.lost_reply_share = chance.choice([0.01, 0.1, 0.4])


def _failovers(weather: Weather, chance: Random, _count: int) -> None:
    moments = sorted(chance.uniform(1, chance.choice([5, 20])) for _ in range(chance.randint(1, 2)))
    away = [Span(moment, moment + chance.choice([0.3, 2.0, 8.0])) for moment in moments]
    if weather.process_count > 1:
        weather.failovers, weather.store_stalls = moments, [*weather.store_stalls, *away]


def _terminations(weather: Weather, chance: Random, _count: int) -> None:
    weather.terminations = sorted(
        (chance.uniform(0, chance.choice([0.3, 3, 30])), chance.random() < 0.3)
        for _ in range(chance.randint(1, 3))
    )


def _foreign(weather: Weather, chance: Random, _count: int) -> None:
    weather.foreign_share = _some_share(chance)
    weather.foreign_kind = chance.choice(["page", "unasked", "of another request"])


def _stamps(weather: Weather, chance: Random, _count: int) -> None:
    kind = chance.choice(["some odd", "18 hours ago", "next summer"])
    if not weather.clock_jumps:  # with one of ours, true stamps are odd
        weather.stamp_kind = kind


def _unasked(weather: Weather, chance: Random, _count: int) -> None:
    weather.unasked_share = _some_share(chance)


def _away(weather: Weather, chance: Random, _count: int) -> None:
    start = chance.choice([0.0, chance.uniform(0, 20)])
    weather.away = [Span(start, start + chance.choice([5, 60, 600]))]


LATEST_FAULTS = {
    "VoP beside CoP": _vop,
    "purge": _purge,
    "replies of the store lost": _lost_commits,
    "failover": _failovers,
    "SIGTERM": _terminations,
    "foreign refusals": _foreign,
    "time stamps": _stamps,
    "bytes that nobody asked for": _unasked,
    "out of reach": _away,
}
"""As `FAULTS`, each by a chance of its own: another one here changes no draw of those before it."""
FAULTS_OF_A_SERVER = (
    "slow replies",
    "errors",
    "lost replies",
    "silence",
    "crossed answers",
    "broken contract",
    "refused connections",
    "outages",
    "429",
    "silent banks",
    "short tokens",
    "token endpoint out",
    "tokens revoked",
    "half-dead connections",
    "busy server",
)
"""Those that are of one server alone."""
_OF_A_SERVER = (
    "slow_share",
    "error_share",
    "lost_share",
    "silent_share",
    "crossed_share",
    "broken_share",
    "refused_connection_share",
    "half_dead_share",
    "away",
    "outages",
    "outage_kind",
    "server_rate",
    "retry_after",
    "silent_banks",
    "token_life_s",
    "token_outages",
    "revocations",
    "cap",
    "busy",
    "other_limits",
)
