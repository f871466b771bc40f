"""The asking of a data set: by this process, or together with all that share its ledger."""

from typing import NamedTuple

from pipeline.config import Profile
from pipeline.config.profiles import Chosen, ledger_url
from pipeline.executors.datasets.asking import SetAsked, SetQuestions, ask_buckets
from pipeline.executors.datasets.shared_asking import ask_buckets_with_others
from pipeline.executors.datasets.tasks import SetTask
from pipeline.jobs.data_set_outcomes import Answered, look_at_answers
from pipeline.jobs.data_set_plan import PlannedSet
from pipeline.jobs.prepare import VERSION
from pipeline.jobs.sharing import SharedParts, finish_shared, joined_parts
from pipeline.runs.request import DataSetJob, Surface
from pipeline.runs.shared_folder import forget_store_record
from pipeline.stores.sqlite.ledger import SqliteLedger


class AskingOfSet(NamedTuple):
    """What is asked about a data set, and of whom."""

    chosen: Chosen
    profile: Profile
    """The chosen one, with its servers running."""
    planned: PlannedSet
    shared: SetTask


def ask_data_set(
    job: DataSetJob, asking: AskingOfSet, ledger: SqliteLedger, surface: Surface
) -> tuple[SetAsked, Answered]:
    """Ask what is left to ask of a data set.

    Returns:
        What came of it, and what is known of its answers as a whole.

    Raises:
        PrecheckError: as `ask_buckets`, `ask_buckets_with_others` and `joined_parts`.
    """
    check, (chosen, profile, planned, shared) = job.check, asking
    questions = SetQuestions(shared.files, [bucket.question_counts for bucket in planned.buckets])
    if ledger_url(chosen) is None:
        if check.fresh:
            forget_store_record(check.out)
        asked = ask_buckets(check, questions, profile, ledger, surface, is_ours=chosen.config is None)
        return asked, look_at_answers(shared, planned, asked)
    parts = SharedParts(questions.checks, shared.bucket_count, list(questions.by_api))
    identity = ledger.run._replace(tool_version=VERSION)
    with joined_parts(check, chosen, identity, profile, parts, surface) as joined:
        asked = ask_buckets_with_others(check, questions, joined, surface, asks=job.asks)
        answered = look_at_answers(shared, planned, asked)
        if answered.left.open_count == 0:
            finish_shared(check, joined)
    return asked, answered
