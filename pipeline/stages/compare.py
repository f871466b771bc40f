"""compare: Payees and earlier runs' payees -> Changes. Find payees whose account differs from last time.

Earlier runs keep only hashes, keyed by their own folder, so the payees are hashed again for each run. The
latest run that knows a payee, or an account, decides about it (rules/known_payees.py).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import polars as pl

from pipeline import frames
from pipeline.rules.findings import finding_columns, row_finding_columns
from pipeline.rules.payees import KEYED, Hashed, keyed, keyed_ids, masked_account, masked_name
from pipeline.rules.policy import RELEASABLE
from pipeline.wording import Sentence
from schemas.changes import BankComparison
from schemas.outcomes import WarningCode

OF_BANK = pl.col("code") == WarningCode.BANK_DIFFERS
SHOWN_MAX = 3  # maximum number of accounts or names of a payee that are shown next to each other


Names = Callable[[pl.Series], pl.Series | None]  # returns the names in these rows of a file, in this order


class EarlierPayees(NamedTuple):
    """The payees of an earlier run."""

    folder: str
    known: pl.DataFrame  # `PayeeKeys` of payments that make their account known
    unsure: pl.DataFrame  # `PayeeKeys` of all other payments
    hashed: Hashed  # keyed hashes of its folder
    names: Names  # reads the names in some rows; returns None if they were deleted


class ContradictedKeys(NamedTuple):
    """`PayeeKeys` of an earlier run that payments contradict; `row` is the new payment's."""

    known: pl.DataFrame
    unsure: pl.DataFrame


class PayeeDifferences(NamedTuple):
    """Changes since earlier runs."""

    changes: frames.Changes  # `Changes`, by row and code
    contradicted: list[ContradictedKeys]  # one per earlier run


def compare(payees: frames.Payees, names: Names, earlier: Sequence[EarlierPayees]) -> PayeeDifferences:
    """Find what has changed since earlier runs, given latest first; names are shown masked.

    Payees are matched by ID if both files have one, else by name. A payee's account, or an account's name,
    has changed if the earlier run paid it only to, or under, others. Payees and accounts that no run knows
    are looked up among unconfirmed ones. A payee is new if neither it nor its account is known or changed.
    """
    assert payees.schema == frames.PAYEES
    if not earlier:
        return PayeeDifferences(frames.Changes(pl.DataFrame(schema=frames.CHANGES)), [])
    everything = _Unmatched(payees["row"], payees["row"])
    known, of_known, left = _compared_with(payees, names, [(run, run.known) for run in earlier], everything)
    unsure, of_unsure, _ = _compared_with(payees, names, [(run, run.unsure) for run in earlier], left)
    changes = pl.concat([known, unsure])
    new = payees.filter(
        frames.is_row_in(left.payees) & frames.is_row_in(left.accounts) & ~frames.is_row_in(changes["row"])
    )
    told_new = _changes(new.select("row", now=masked_account()), WarningCode.PAYEE_NEW)
    contradicted = [ContradictedKeys(*both) for both in zip(of_known, of_unsure, strict=True)]
    return PayeeDifferences(frames.Changes(pl.concat([changes, told_new]).sort("row", "code")), contradicted)


class _Unmatched(NamedTuple):
    """The rows whose payee or account no run has had so far."""

    payees: pl.Series
    accounts: pl.Series


def _compared_with(
    payees: pl.DataFrame, names: Names, runs: Iterable[tuple[EarlierPayees, pl.DataFrame]], left: _Unmatched
) -> tuple[pl.DataFrame, list[pl.DataFrame], _Unmatched]:
    """Return the changes, the `PayeeKeys` of each run that are contradicted, and the rows that no run has."""
    changes, contradicted, runs = [], [], list(runs)
    known_by_id = _known_by_id(payees.filter(frames.is_row_in(left.payees)), runs)
    for (run, keys), by_id_elsewhere in zip(runs, known_by_id, strict=True):
        assert keys.schema == frames.PAYEE_KEYS
        some = payees.filter(frames.is_row_in(left.payees) | frames.is_row_in(left.accounts))
        # Most payments are unchanged and skipped.
        ours = keyed(some, run.hashed).join(keys, on=KEYED, how="anti", nulls_equal=True)
        payee = _paid_elsewhere(ours.filter(frames.is_row_in(left.payees)), run.folder, keys, by_id_elsewhere)
        account = _held_by_others(ours.filter(frames.is_row_in(left.accounts)), run, keys, names)
        changes += [payee.changes, account.changes]
        both = pl.concat([payee.contradicted, account.contradicted])
        contradicted.append(both.unique(maintain_order=True))
        left = _Unmatched(payee.left, account.left)
    return pl.concat(changes), contradicted, left


def _known_by_id(payees: pl.DataFrame, runs: Sequence[tuple[EarlierPayees, pl.DataFrame]]) -> list[pl.Series]:
    """Return, for each run, the rows whose payee an older run knows by ID."""
    with_id = payees.filter(pl.col("payee_id").is_not_null())
    older, found = with_id["row"].clear(), []
    for run, keys in reversed(runs):
        found.append(older)
        if len(found) < len(runs):
            ids = with_id.select("row", payee_id=keyed_ids(with_id, run.hashed))
            older = pl.concat([older, ids.filter(_has_one_of(keys["payee_id"]))["row"]]).unique()
    return found[::-1]


class _Match(NamedTuple):
    changes: pl.DataFrame
    contradicted: pl.DataFrame  # `PayeeKeys`
    left: pl.Series  # rows whose payee or account this run lacks


def _paid_elsewhere(
    ours: pl.DataFrame, folder: str, keys: pl.DataFrame, by_id_elsewhere: pl.Series
) -> _Match:
    """Find an earlier run's payees who are now paid only to other accounts; older runs' IDs come first."""
    keys = keys.filter(_has_one_of(ours["payee_id"]) | _has_one_of(ours["name"]))
    known = _by_payee(keys)
    is_known_by_id = _has_one_of(keys["payee_id"])
    # A different ID means a different payee of the same name.
    by_name = pl.when(pl.col("payee_id").is_not_null()).then(_BY_NAME_ALONE).otherwise(_BY_NAME)
    payee = pl.when(is_known_by_id).then(_BY_ID).otherwise(by_name)
    is_left = ~is_known_by_id & frames.is_row_in(by_id_elsewhere)
    others, ours = ours.filter(is_left), ours.filter(~is_left).with_columns(payee=payee)
    changed = ours.join(known, on="payee", how="semi").join(known, on=["payee", "account"], how="anti")
    before = known.join(changed, on="payee", how="semi")
    then = before.group_by("payee").agg(then=_listed("account_shown"))
    shown = changed.join(then, on="payee", how="left").select("row", "then", now="account_shown")
    left = pl.concat([others["row"], ours.join(known, on="payee", how="anti")["row"]])
    return _Match(_changes(shown, WarningCode.ACCOUNT_CHANGED, folder), _contradicted(changed, known), left)


def _contradicted(changed: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return `PayeeKeys` that payments contradict; a payee known only by name is now known by its ID.

    Otherwise a row with this name but no ID could make the new account known. The name stays known next to
    the ID. `changed` has the payments' identification as `payee`; `before` is from `_by_payee`.
    """
    payments = changed.select("row", "payee", id_now="payee_id")
    contradicted = payments.join(before.drop("row"), on="payee")
    is_name_alone = pl.col("payee_id").is_null()
    adopted = contradicted.filter(is_name_alone).drop_nulls("id_now").with_columns(payee_id="id_now")
    beside = before.filter(is_name_alone).select(frames.PAYEE_KEYS.keys() - {"row"}).unique()
    by_name = contradicted.select("row", "name", "account").join(beside, on=["name", "account"])
    keys = list(frames.PAYEE_KEYS)
    return pl.concat([contradicted.select(keys), adopted.select(keys), by_name.select(keys)])


_BY_ID = pl.format("id {}", "payee_id")
_BY_NAME = pl.format("name {}", "name")
_BY_NAME_ALONE = pl.format("name alone {}", "name")


def _by_payee(keys: pl.DataFrame) -> pl.DataFrame:
    """Return the accounts of each payee, by each of its identifications."""
    without_id = keys.filter(pl.col("payee_id").is_null()).with_columns(payee=_BY_NAME_ALONE)
    known = [keys.with_columns(payee=_BY_ID), keys.with_columns(payee=_BY_NAME), without_id]
    return pl.concat(known).drop_nulls("payee")


def _held_by_others(ours: pl.DataFrame, run: EarlierPayees, keys: pl.DataFrame, names: Names) -> _Match:
    """Find payments to accounts that an earlier run paid only under other names."""
    held = keys.drop_nulls("name")
    named = ours.drop_nulls("name").join(held, on="account", how="semi")
    changed = named.join(held, on=["account", "name"], how="anti")
    before = held.join(changed, on="account", how="semi")
    masked = before.select("account", name=_masked(run.names, before["row"]))
    then = masked.group_by("account").agg(then=_listed("name"))
    shown = changed.with_columns(now=_masked(names, changed["row"]))
    # If only masked letters differ, the two would look the same.
    otherwise = pl.format("{} (spelt otherwise)", "then")
    shown = shown.join(then, on="account", how="left").with_columns(
        then=pl.when(pl.col("then") == pl.col("now")).then(otherwise).otherwise("then")
    )
    changes = _changes(shown.select("row", "then", "now"), WarningCode.NAME_CHANGED, run.folder)
    contradicted = changed.select("row", "account").join(before.drop("row"), on="account")
    left = ours.join(keys, on="account", how="anti")["row"]
    return _Match(changes, contradicted.select(list(frames.PAYEE_KEYS)), left)


def _masked(names: Names, rows: pl.Series) -> pl.Series:
    """Return the masked names in some rows, or nulls if they were deleted."""
    found = None if rows.is_empty() else names(rows)
    if found is None:
        return pl.repeat(None, rows.len(), dtype=pl.String, eager=True)
    return found.map_elements(masked_name, pl.String)


def _listed(column: str) -> pl.Expr:
    """Collect the distinct values of a group; null if there are none."""
    each = pl.col(column).drop_nulls().unique().sort()
    more_count = each.len().cast(pl.Int64) - SHOWN_MAX
    more = pl.when(more_count > 0).then(pl.format(" and {} more", more_count)).otherwise(pl.lit(""))
    return pl.when(each.len() > 0).then(pl.concat_str(each.head(SHOWN_MAX).str.join(", "), more))


def _changes(shown: pl.DataFrame, code: WarningCode, folder: str | None = None) -> pl.DataFrame:
    """Return `Changes` with this code; missing columns are null."""
    shown = shown.with_columns(code=pl.lit(code.value), earlier=pl.lit(folder, pl.String))
    absent = [pl.lit(None).alias(column) for column in frames.CHANGES if column not in shown.columns]
    return frames.cast_to(shown.with_columns(absent), frames.CHANGES)


def _has_one_of(keys: pl.Series) -> pl.Expr:
    """True if a row has one of these keys; nulls never match."""
    return pl.col(keys.name).is_in(keys.drop_nulls().implode()).fill_null(value=False)


def compare_with_bank(
    outcomes: frames.Outcomes, reported: frames.Outcomes
) -> tuple[frames.Changes, BankComparison]:
    """Find where the payer's bank and a check disagree: another outcome, or another name.

    `reported` holds the outcomes from the bank's reports alone. A payment with another account or two results
    in the reports always differs. Payments with only one answer are counted, not listed.
    """
    ours, theirs = (
        frame.select(
            "row",
            outcome=pl.col("check_outcome").cast(pl.String),
            name="check_matched_name",
            code="check_code",
            earlier="check_id",
        )
        for frame in (outcomes, reported)
    )
    both = ours.drop("earlier").join(theirs, on="row", suffix="_now", maintain_order="left")
    is_checked, is_answer = (pl.col(column).is_in(RELEASABLE) for column in ("outcome", "outcome_now"))
    is_reported = is_answer | (pl.col("code_now") == frames.OwnCode.REPORT_DIFFERS)
    is_outcome = pl.col("outcome") != pl.col("outcome_now")
    is_name = (_alike("name") != _alike("name_now")).fill_null(value=False)
    differs = both.filter(is_checked & is_reported & (is_outcome | is_name))
    named = (
        pl.Series(column, map(masked_name, differs[column].fill_null("")), dtype=pl.String).replace("", None)
        for column in ("name", "name_now")
    )
    shown = differs.with_columns(named).select(
        "row", "earlier", then=_with_name("outcome", "name"), now=_with_name("outcome_now", "name_now")
    )
    agreed_count = both.filter(is_checked & is_reported).height - differs.height
    comparison = BankComparison(
        agreed_count=agreed_count,
        differing_count=differs.height,
        only_bank_count=both.filter(~is_checked & is_reported).height,
        only_check_count=both.filter(is_checked & ~is_reported).height,
    )
    changes = shown.with_columns(code=pl.lit(WarningCode.BANK_DIFFERS.value))
    return frames.Changes(frames.cast_to(changes, frames.CHANGES)), comparison


def added_comparisons(parts: Iterable[BankComparison | None]) -> BankComparison | None:
    """Add up what the parts of a data set have; None if no part was compared."""
    counts = Counter[str]()
    for part in parts:
        counts.update({} if part is None else part.model_dump())
    return BankComparison(**counts) if counts else None


def and_differences(earlier: frames.Changes | None, differences: frames.Changes) -> frames.Changes:
    """Add where the bank's reports disagree to the changes, replacing an earlier comparison with the bank."""
    others = differences.clear() if earlier is None else earlier.filter(~OF_BANK)
    return frames.Changes(pl.concat([others, differences]).sort("row", "code"))


def _with_name(outcome: str, name: str) -> pl.Expr:
    return pl.concat_str(outcome, pl.format(": {}", name), ignore_nulls=True)


def _alike(name: str) -> pl.Expr:
    return pl.col(name).str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def warnings_of(changes: frames.Changes, *, with_names: bool = False) -> frames.Warnings:
    """Return `Warnings` of `Changes` in order, with masked names or only the last digits of accounts."""
    assert changes.schema == frames.CHANGES
    kept = {"then": pl.col("then").fill_null(str(Sentence("rule.no_longer_kept")))}
    earlier, report = pl.col("earlier"), pl.col("earlier").fill_null("-")
    then, now = pl.col("then"), pl.col("now")
    sides = {"earlier": earlier, "then": then, "now": now}
    texts = {
        WarningCode.ACCOUNT_CHANGED: row_finding_columns("rule.account_changed", in_english=kept, **sides),
        WarningCode.NAME_CHANGED: row_finding_columns("rule.name_changed_from", in_english=kept, **sides)
        if with_names
        else row_finding_columns("rule.name_changed", earlier=earlier),
        WarningCode.BANK_DIFFERS: row_finding_columns(
            "rule.bank_differs_from", report=report, then=then, now=now
        )
        if with_names
        else row_finding_columns("rule.bank_differs", report=report),
        WarningCode.PAYEE_NEW: finding_columns(Sentence("rule.payee_new")),
    }
    is_account = pl.col("code") == WarningCode.ACCOUNT_CHANGED
    warnings = changes.select(
        "row",
        "code",
        field=pl.when(is_account).then(pl.lit("account_number")).otherwise(pl.lit("name")),
        **{
            text: pl.coalesce(
                pl.when(pl.col("code") == code).then(columns[text]) for code, columns in texts.items()
            )
            for text in ("message", "sentence")
        },
    )
    return frames.Warnings(frames.cast_to(warnings, frames.WARNINGS))
