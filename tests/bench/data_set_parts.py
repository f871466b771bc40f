"""Every function of a data set, by the pool of this machine, with made-up answers in the network's place."""

from datetime import UTC, date, datetime

from answers import answered

from pipeline.config.profiles import choose, to_plan_with
from pipeline.executors.asking import AskingResult
from pipeline.executors.datasets.engines import engine
from pipeline.frames import CHECKS
from pipeline.jobs.data_set_outcomes import KnownSet, decide_parts, look_at_answers, set_results
from pipeline.jobs.data_set_plan import plan_parts, task_of
from pipeline.jobs.writing import OpenRun
from pipeline.runs.data_set import open_data_set
from pipeline.runs.request import CheckJob, DataSetJob, RunObserver, StopSwitch, Surface
from pipeline.runs.work_folder import read_frame, write_frame
from pipeline.stages.ask.values import AskingTally
from pipeline.stages.validate import Routes
from schemas.outcomes import ApiName


def main(path, folder):
    job = DataSetJob(CheckJob(path, folder), folder / "work")
    folder.mkdir(exist_ok=True)
    data, chosen = open_data_set(path, folder / "work"), choose(None, None)
    there = Routes([ApiName.COP, ApiName.VOP_GATEWAY])
    shared = task_of(job, data, chosen, there, date(2026, 1, 1))
    with engine("pool") as at_work:
        planned = plan_parts(data, shared, at_work, RunObserver())
    for bucket in range(shared.bucket_count):
        answers = answered(read_frame(shared.files.frame("questions", bucket), CHECKS))
        write_frame(answers, shared.files.answers(bucket) / "all.parquet")
    asked = AskingResult({}, AskingTally(), 0, None)
    answers = look_at_answers(shared, planned, asked)
    known = KnownSet(data, shared, planned, answers, None)
    surface = Surface(RunObserver(), lambda: run.started, StopSwitch(), notify=lambda _: None)
    run = OpenRun(
        job.check, chosen, to_plan_with(chosen), None, None, datetime(2026, 1, 1, tzinfo=UTC), "en", asked
    )
    with engine("pool") as at_work:
        decided = decide_parts(run, known, at_work, RunObserver())
    done = set_results(run, answers.left, known, decided, surface)
    assert done.summary.complete
