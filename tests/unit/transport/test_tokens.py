import asyncio
import time

import anyio
import pytest
import stamina
import structlog
from refusals import refused

from pipeline.errors import CredentialsError, IncompleteError, ProtocolError
from pipeline.transport.tokens import Token, Tokens, TokenUnavailable
from pipeline.wording import Sentence
from schemas.token import TokenRequest, TokenResponse

REQUEST = TokenRequest(
    grant_type="client_credentials", client_id="client", client_secret="hush-hush", scope="s/.default"
)
DOWN = TokenUnavailable(Sentence("transport.no_token_now", where="token endpoint login.example", status=503))


class Issuer:
    """A token endpoint and a clock: gives token-1, token-2 and so on, or fails as told."""

    def __init__(self, *, life_s=1000, takes_s=0.0):
        self.now = 0.0
        self.life_s = life_s
        self.takes_s = takes_s
        self.calls = []
        self.failure = None

    async def fetch(self, request):
        assert request is REQUEST
        self.calls.append(self.now)
        await asyncio.sleep(0)
        self.now += self.takes_s
        if self.failure is not None:
            raise self.failure
        document = {"access_token": f"token-{len(self.calls)}"}
        if self.life_s is not None:
            document["expires_in"] = self.life_s
        return TokenResponse.model_validate(document)

    def tokens(self, *, chance=0.0):
        return Tokens(self.fetch, REQUEST, clock=lambda: self.now, chance=lambda: chance, retry_wait_s=0)


def run(function, issuer, **options):
    async def main():
        return await function(issuer, issuer.tokens(**options))

    return anyio.run(main)


async def together(count, function, *arguments):
    return await asyncio.gather(*(function(*arguments) for _ in range(count)))


def test_any_number_of_first_callers_cost_one_fetch():
    async def story(issuer, tokens):
        return set(await together(200, tokens.current))

    issuer = Issuer()
    assert run(story, issuer) == {Token("token-1", 1)}
    assert len(issuer.calls) == 1


@pytest.mark.parametrize(
    ("chance", "still_good_s", "due_s"), [(0.0, 799, 800), (0.5, 849, 851), (0.99, 898, 900)]
)
def test_a_token_is_replaced_at_four_fifths_of_its_life_and_a_little_jitter(chance, still_good_s, due_s):
    async def story(issuer, tokens):
        generations = []
        for issuer.now in (0, still_good_s, due_s):
            generations.append((await tokens.current()).generation)
        return generations

    assert run(story, Issuer(), chance=chance) == [1, 1, 2]


def test_a_life_that_the_server_does_not_tell_is_taken_for_300_seconds():
    async def story(issuer, tokens):
        generations = []
        for issuer.now in (0, 239, 240):
            generations.append((await tokens.current()).generation)
        return generations

    assert run(story, Issuer(life_s=None)) == [1, 1, 2]


@pytest.mark.parametrize("life_s", [0, 1, 5])
def test_a_very_short_life_does_not_make_every_check_fetch_a_token(life_s):
    async def story(issuer, tokens):
        for step in range(1000):
            issuer.now = step / 10
            await tokens.current()

    issuer = Issuer(life_s=life_s)
    run(story, issuer)
    gaps = [later - earlier for earlier, later in zip(issuer.calls, issuer.calls[1:], strict=False)]
    assert min(gaps) >= 5
    assert len(issuer.calls) == 20


def test_life_counts_from_the_request_for_it_and_not_from_the_answer():
    async def story(issuer, tokens):
        await tokens.current()
        issuer.now = 800
        return (await tokens.current()).generation

    assert run(story, Issuer(takes_s=9)) == 2


def test_those_who_come_during_a_refresh_go_on_with_the_living_token():
    async def story(issuer, tokens):
        await tokens.current()
        issuer.now = 900
        return [token.generation for token in await together(5, tokens.current)]

    assert run(story, Issuer()) == [2, 1, 1, 1, 1]


class TestARefusedToken:
    def test_two_hundred_refusals_cost_one_fetch(self):
        async def story(_issuer, tokens):
            rejected = await tokens.current()
            return set(await together(200, tokens.refresh, rejected))

        issuer = Issuer()
        assert run(story, issuer) == {Token("token-2", 2)}
        assert len(issuer.calls) == 2

    def test_a_token_that_was_replaced_meanwhile_costs_no_fetch(self):
        async def story(_issuer, tokens):
            first = await tokens.current()
            await tokens.refresh(first)
            return await tokens.refresh(first)

        issuer = Issuer()
        assert run(story, issuer).generation == 2
        assert len(issuer.calls) == 2

    def test_a_replacement_that_is_refused_at_once_is_a_matter_of_credentials(self):
        async def story(issuer, tokens):
            second = await tokens.refresh(await tokens.current())
            issuer.now += 4.9
            with refused(CredentialsError, "transport.renewed_token_refused"):
                await tokens.refresh(second)

        issuer = Issuer()
        run(story, issuer)
        assert len(issuer.calls) == 2

    def test_a_replacement_that_is_refused_later_is_replaced_again(self):
        async def story(issuer, tokens):
            second = await tokens.refresh(await tokens.current())
            issuer.now += 5
            return await tokens.refresh(second)

        assert run(story, Issuer()).generation == 3

    def test_a_refused_token_is_not_fallen_back_on(self):
        async def story(issuer, tokens):
            rejected = await tokens.current()
            issuer.failure = DOWN
            for _ in range(2):
                with pytest.raises(IncompleteError):
                    await tokens.refresh(rejected)
            with pytest.raises(IncompleteError):
                await tokens.current()

        run(story, Issuer())


class TestAnEndpointInTrouble:
    def test_a_first_token_is_tried_for_three_times_and_then_the_run_can_be_resumed(self):
        async def story(issuer, tokens):
            issuer.failure = DOWN
            with refused(
                IncompleteError, "transport.no_token_now", where="token endpoint login.example", status=503
            ):
                await tokens.current()

        issuer = Issuer()
        run(story, issuer)
        assert len(issuer.calls) == 3

    @pytest.mark.parametrize(
        "failure",
        [
            CredentialsError(Sentence("jobs.part_unusable", problem="no")),
            ProtocolError(Sentence("jobs.part_unusable", problem="html")),
        ],
    )
    def test_what_trying_again_cannot_help_is_tried_once(self, failure):
        async def story(issuer, tokens):
            issuer.failure = failure
            with pytest.raises(type(failure), match=str(failure)):
                await tokens.current()

        issuer = Issuer()
        run(story, issuer)
        assert len(issuer.calls) == 1

    def test_a_failure_is_shared_by_all_who_wait(self):
        async def attempt(tokens):
            with pytest.raises(CredentialsError):
                await tokens.current()

        async def story(issuer, tokens):
            issuer.failure = CredentialsError(Sentence("jobs.part_unusable", problem="no"))
            await together(64, attempt, tokens)

        issuer = Issuer()
        run(story, issuer)
        assert len(issuer.calls) == 1

    def test_a_living_token_outlasts_an_outage_shorter_than_what_is_left_of_it(self):
        async def story(issuer, tokens):
            await tokens.current()
            issuer.failure = DOWN
            for issuer.now in range(800, 1000):
                assert (await tokens.current()).generation == 1
            issuer.failure = None
            issuer.now = 1000
            return (await tokens.current()).value

        issuer = Issuer()
        assert run(story, issuer) == f"token-{len(issuer.calls)}"

    def test_when_the_last_token_dies_the_endpoint_is_asked_in_earnest_before_the_run_ends(self):
        async def story(issuer, tokens):
            await tokens.current()
            issuer.failure = DOWN
            issuer.now = 999
            await tokens.current()
            before = len(issuer.calls)
            issuer.now = 1000
            for _ in range(2):
                with pytest.raises(IncompleteError):
                    await tokens.current()
            return len(issuer.calls) - before

        assert run(story, Issuer()) == 3

    def test_an_outage_of_ten_minutes_costs_at_most_25_calls_and_no_row(self):
        async def story(issuer, tokens):
            await tokens.current()
            issuer.failure = DOWN
            for issuer.now in range(3200, 3800):
                await tokens.current()

        issuer = Issuer(life_s=4000)
        run(story, issuer)
        assert len(issuer.calls) - 1 <= 25
        waits = [later - earlier for earlier, later in zip(issuer.calls[1:], issuer.calls[2:], strict=False)]
        assert waits[:6] == [1, 2, 4, 8, 16, 30]
        assert set(waits[6:]) == {30}


def test_a_cancelled_fetch_leaves_the_next_caller_free_to_fetch():
    async def story(issuer, tokens):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await tokens.current()
        return await tokens.current()

    assert run(story, Issuer()).generation == 1


class TalkativeIssuer(Issuer):
    """One in whose process the libraries log by themselves, whatever this program has set up."""

    async def fetch(self, request):
        structlog.reset_defaults()
        stamina.instrumentation.set_on_retry_hooks(None)
        return await super().fetch(request)


def test_neither_the_token_nor_the_secret_shows_in_a_log_or_a_repr(capfd):
    async def story(issuer, tokens):
        issuer.failure = DOWN
        with pytest.raises(IncompleteError) as caught:
            await tokens.current()
        return f"{caught.value!r} {tokens!r} {Token('sesame', 1)!r}"

    shown = run(story, TalkativeIssuer())
    logged = "".join(capfd.readouterr())
    assert "stamina" in logged, "the retries are logged, so there is something to look at"
    for text in (shown, logged):
        assert "hush-hush" not in text
        assert "sesame" not in text


def test_a_pause_that_the_endpoint_asks_for_is_kept():
    async def story(issuer, tokens):
        issuer.failure = TokenUnavailable(DOWN.reason, pause_s=0.15)
        with pytest.raises(IncompleteError):
            await tokens.current()

    began = time.monotonic()
    run(story, issuer := Issuer())
    assert len(issuer.calls) == 3
    assert time.monotonic() - began >= 0.3


def test_after_a_long_pause_a_later_try_asks_again():
    async def story(issuer, tokens):
        issuer.failure = TokenUnavailable(DOWN.reason, pause_s=600)
        for later_s in (0, 599, 1):
            issuer.now += later_s
            with anyio.fail_after(10), pytest.raises(IncompleteError):
                await tokens.current()
        assert issuer.calls == [0, 600]

    run(story, Issuer())
