"""validate: Payments -> Accepted + Rejects + Warnings. Find all that needs no call.

Every broken rule of a row is reported; a row that breaks none goes to the API that can check it.
"""

import operator
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Literal, NamedTuple

import polars as pl

from pipeline import frames
from pipeline.apis import IDENTIFICATION, Route
from pipeline.apis.registry import DECLARED
from pipeline.rules import responder_bics as agents
from pipeline.rules.cleaning import cleaned, normalized
from pipeline.rules.findings import finding_columns
from pipeline.rules.modulus import MODULUS, Modulus, old_failures, states
from pipeline.rules.payee_names import NOT_LATIN
from pipeline.rules.rules import DEFECTS, HAS_IDENTIFICATION, PLAIN, RULES, RULES_BY_SUSPECTS, Rule
from pipeline.rules.unasked import OF_THE_ACCOUNT, OUT_OF_ALPHABET, OUT_OF_REACH, ROW_BLANK
from pipeline.rules.warnings import value_warnings, warnings_about
from schemas.cop import AccountType
from schemas.outcomes import VOP, ApiName
from schemas.row_positions import RowPositions


class Routes(NamedTuple):
    """The routes of a profile."""

    apis: Collection[ApiName]  # APIs in the profile
    gb_iban_to: Literal["cop", "vop"] = "cop"  # who checks a GB IBAN; CoP by the UK account in it
    default_account_type: AccountType = AccountType.PERSONAL
    ask_by: Literal["name", "identification"] = "name"  # what is sent for payments with both
    send_remittance: bool = False  # true if VoP Standard requests carry the payment reference
    bic_table: Mapping[str, str] = {}  # the user's: start of an IBAN without check digits -> BIC11
    modulus: Modulus | None = None  # modulus tables for UK accounts; None if the user gave none
    vop_countries: tuple[str, ...] | None = None  # countries whose IBANs go to VoP; None: any
    vop_names: Literal["any", "latin"] = "any"  # names that go to VoP: any, or only those in Latin letters


class ValidationResult(NamedTuple):
    """The result for all payments: each is either accepted or has a reject."""

    accepted: frames.Accepted
    rejects: frames.Rejects
    warnings: frames.Warnings
    assumed_type_count: int  # number of accepted payments that need an account type but have no readable one


def validate(
    payments: frames.Payments, routes: Routes, positions: RowPositions | None = None
) -> ValidationResult:
    """Sort payments into accepted and rejected ones; `Rejects` are by row, then in the order of rules."""
    assert payments.schema == frames.PAYMENTS
    assert payments["defect"].drop_nulls().is_in(DEFECTS).all()
    slices = payments.iter_slices(_ROWS_AT_ONCE) if payments.height else [payments]
    fit, unfit, odd, assumed = zip(*(_sorted_out(some, routes) for some in slices), strict=True)
    accepted, rejects = frames.Accepted(frames.slim(*fit)), frames.Rejects(pl.concat(unfit))
    assert accepted.height + rejects["row"].n_unique() == payments.height

    def references_of(rows: pl.Series) -> pl.Series:
        return payments["reference"].gather(payments["row"].search_sorted(rows))

    warnings = [warnings_about(accepted, references_of, positions), *odd]
    if routes.modulus is not None and routes.modulus.is_old:
        warnings.append(old_failures(accepted, routes.modulus.tables))
    return ValidationResult(accepted, rejects, frames.Warnings(pl.concat(warnings)), sum(assumed))


_ROWS_AT_ONCE = 262_144  # each rule is about one row: its working columns are needed only for a slice of rows


def _sorted_out(payments: pl.DataFrame, routes: Routes) -> ValidationResult:
    """Return the results for some payments; each row is judged by itself."""
    clean = _route(cleaned(payments), routes)
    clean = clean.with_columns(_modulus(clean, routes.modulus))
    rejects = _broken_rules(clean)
    is_fit = ~pl.col("row").is_in(rejects["row"].unique().implode())
    return ValidationResult(
        frames.Accepted(frames.slim(_accepted(clean.lazy().filter(is_fit), routes))),
        frames.Rejects(rejects),
        frames.Warnings(value_warnings(clean, is_fit)),
        clean.filter(is_fit, "takes_account_type", pl.col("account_type").is_null()).height,
    )


# Routing: the API that can check a payment, and the reason.

_HAS_IBAN = pl.col("iban").is_not_null()
_REASON = frames.ACCEPTED["route_reason"]
_SOURCE = frames.ACCEPTED["bic_source"]


def _route(clean: pl.DataFrame, routes: Routes) -> pl.DataFrame:
    """Add the API, the reason, and fields that only some APIs need; `to` is null if no API can check it."""
    # CoP checks names only; a GB IBAN with only an identification goes to VoP.
    gb_iban_to_cop = pl.col("iban").str.starts_with("GB") & pl.col("name").is_not_null()
    gb_iban, iban, sort_code = (
        pl.lit(reason, _REASON)
        for reason in (frames.RouteReason.GB_IBAN, frames.RouteReason.IBAN, frames.RouteReason.SORT_CODE)
    )
    by_account = pl.when(_HAS_IBAN).then(iban).otherwise(sort_code)
    is_to_cop = gb_iban_to_cop & pl.lit(routes.gb_iban_to == "cop")
    routed = clean.with_columns(route_reason=pl.when(is_to_cop).then(gb_iban).otherwise(by_account))
    ways = (pl.when(_fits(reason, way)).then(pl.lit(api, frames.API)) for api, reason, way in _ways(routes))
    routed = routed.with_columns(to=pl.coalesce(*ways, pl.lit(None, frames.API)))
    routed = routed.with_columns(
        by_identification=_takes("lei", routes)
        & HAS_IDENTIFICATION
        & (pl.col("name").is_null() | pl.lit(routes.ask_by == "identification")),
        takes_account_type=_takes("account_type", routes),
        needs_responder_bic=_takes("responder_bic", routes),
        remittance=pl.lit(None, pl.String),
        responder_bic=pl.lit(None, pl.String),
        bic_source=pl.lit(None, _SOURCE),
    )
    routed = routed.with_columns(_unasked(routes))
    if routes.send_remittance:
        reference = pl.when(_takes("remittance", routes)).then(normalized(routed["reference"]))
        routed = routed.with_columns(remittance=reference)
    return _add_responders(routed, routes.bic_table) if routed["needs_responder_bic"].any() else routed


def _ways(routes: Routes) -> list[tuple[ApiName, frames.RouteReason, Route]]:
    """Return a profile's routes; APIs that take some payments of a kind come before those that take all."""
    declared = (DECLARED[name] for name in DECLARED if name in routes.apis)
    ways = [(api.name, reason, way) for api in declared for reason, way in api.routes.items()]
    return sorted(ways, key=lambda known: known[2].only is None)


def _fits(reason: frames.RouteReason, way: Route) -> pl.Expr:
    is_of_kind = pl.col("route_reason") == reason
    return is_of_kind if way.only is None else is_of_kind & way.only


def _takes(field: str, routes: Routes) -> pl.Expr:
    """True if a payment goes to an API whose questions have this field."""
    return _goes_to(name for name in routes.apis if field in DECLARED[name].takes)


def _goes_to(apis: Iterable[ApiName]) -> pl.Expr:
    goes = (pl.col("to") == api for api in apis)
    return reduce(operator.or_, goes, pl.lit(value=False)).fill_null(value=False)


def _unasked(routes: Routes) -> pl.Expr:
    """Return why the profile excludes a payment from checking; null if it does not."""
    reasons = []
    to_vop = _goes_to(VOP)
    if routes.vop_countries is not None:
        is_near = pl.col("iban").str.slice(0, 2).is_in(routes.vop_countries)
        reasons.append(pl.when(to_vop & ~is_near).then(pl.lit(OUT_OF_REACH)))
    if routes.vop_names == "latin":
        is_carried = ~pl.col("name").str.contains(NOT_LATIN) | pl.col("by_identification")
        reasons.append(pl.when(to_vop & ~is_carried).then(pl.lit(OUT_OF_ALPHABET)))
    return pl.coalesce(*reasons, pl.lit(None, pl.String)).alias("unasked")


def _add_responders(routed: pl.DataFrame, bic_table: Mapping[str, str]) -> pl.DataFrame:
    is_asked = pl.col("iban_fault").is_null() & pl.col("needs_responder_bic")
    ibans = routed.select(pl.when(is_asked).then("iban")).to_series()
    sources = {
        frames.BicSource.FILE: routed["bic"],
        frames.BicSource.TABLE: agents.directory_bics(ibans, bic_table),
        frames.BicSource.REGISTRY: agents.registry_bics(ibans),
    }
    return routed.with_columns(
        responder_bic=pl.coalesce(sources.values()),
        bic_source=pl.coalesce(
            pl.when(bics.is_not_null()).then(pl.lit(source, _SOURCE)) for source, bics in sources.items()
        ),
    )


def _modulus(routed: pl.DataFrame, modulus: Modulus | None) -> pl.Series:
    """Return the modulus check of each UK account that an API can check, if it may reject the row."""
    if modulus is None or modulus.is_old:
        return pl.repeat(None, routed.height, dtype=MODULUS, eager=True).alias("modulus")
    is_whole = PLAIN["sort_code"] & PLAIN["account_number"]
    by_sort_code = pl.when(~_HAS_IBAN & is_whole).then(pl.concat_str("sort_code", "account_number"))
    by_iban = pl.when(_HAS_IBAN & pl.col("iban_fault").is_null()).then(pl.col("iban").str.slice(8, 14))
    account = pl.when(frames.IS_UK & pl.col("to").is_not_null()).then(pl.coalesce(by_sort_code, by_iban))
    return states(routed.select(account=account).to_series(), modulus.tables)


def _broken_rules(routed: pl.DataFrame) -> pl.DataFrame:
    """Apply every rule to the rows that can break it."""
    found = [pl.DataFrame(schema={**frames.REJECTS, "position": pl.UInt32})]
    suspects = routed.select(
        suspect.alias(str(number)) for number, (suspect, _) in enumerate(RULES_BY_SUSPECTS)
    )
    for is_suspect, (_, positions) in zip(suspects, RULES_BY_SUSPECTS, strict=True):
        if is_suspect.any():
            broken = [_is_broken(RULES[position]).alias(str(position)) for position in positions]
            # Lazy, so that only columns that these rules use are taken from the suspects.
            rows = routed.lazy().filter(is_suspect).select("row", *broken).collect()
            found += [
                _findings(rows["row"].filter(rows[str(position)]), position)
                for position in positions
                if rows[str(position)].any()
            ]
    return pl.concat(found).sort("row", "position").drop("position")


_ACCOUNT_FIELDS = ("iban", "sort_code", "account_number")


def _is_broken(rule: Rule) -> pl.Expr:
    """True if a row breaks a rule; a blank row breaks only one, an account's defect replaces its rules."""
    applies = (pl.col("defect").ne_missing(ROW_BLANK)) | (rule.code == ROW_BLANK)
    if rule.field in _ACCOUNT_FIELDS:
        applies &= ~pl.col("defect").is_in(OF_THE_ACCOUNT).fill_null(value=False)
    return rule.broken.fill_null(value=True) & applies


def _findings(rows: pl.Series, position: int) -> pl.DataFrame:
    rule = RULES[position]
    return rows.to_frame().with_columns(
        field=pl.lit(rule.field),
        code=pl.lit(rule.code),
        **finding_columns(rule.sentence),
        position=pl.lit(position, pl.UInt32),
    )


def _accepted(fit: pl.LazyFrame, routes: Routes) -> pl.DataFrame:
    """Build the questions; fields that the API does not see must not make two questions differ."""
    values: Mapping[str, pl.Expr] = {
        "name": pl.when(~pl.col("by_identification")).then("name"),
        "account_type": pl.col("account_type")
        .cast(frames.QUESTION["account_type"])
        .fill_null(routes.default_account_type),
        **{field: pl.when("by_identification").then(field) for field in IDENTIFICATION},
    }
    accounts = (
        pl.when((pl.col("to") == api) & _fits(reason, way)).then(way.account)
        for api, reason, way in _ways(routes)
    )
    accepted = fit.select(
        "row",
        api=pl.col("to"),
        account=pl.coalesce(*accounts, pl.lit(None, pl.String)),
        **{
            field: pl.when(_takes(field, routes)).then(values.get(field, pl.col(field)))
            for field in frames.QUESTION
            if field not in {"api", "account"}
        },
        route_reason="route_reason",
        bic_source=pl.when("needs_responder_bic").then("bic_source"),
        amount="money",
        currency="currency",
    ).collect()
    assert accepted.schema == frames.ACCEPTED
    return accepted
