"""Advice in the words of the command line: which option or command does it."""

from types import MappingProxyType

from pipeline.errors import Advice, Words

OPTIONS: Words = MappingProxyType(
    {
        Advice.OTHER_FOLDER: "choose another folder with --out",
        Advice.FOLDER_EACH: "check them one at a time, each with an --out of its own",
        Advice.START_OVER: "start over with --fresh",
        Advice.ASK_AGAIN: "start over with --fresh, which asks every question again",
        Advice.REPLACE_RESULTS: "replace it with --fresh",
        Advice.REPLACE_FILE: "--force replaces it",
        Advice.CHOOSE_PROFILE: "pick one of {choices} with --profile",
        Advice.CHOOSE_FORMAT: "choose one of {choices} with --input-format",
        Advice.NAME_FORMAT: "say with --input-format which format it has",
        Advice.NAME_SHEET: "name the one with the payments with --sheet NAME",
        Advice.NAME_NO_SHEET: "leave out --sheet",
        Advice.MAP_NOTHING: "leave out --map",
        Advice.CHOOSE_ENCODING: "choose --encoding from {choices}",
        Advice.READ_AS: "run again with --encoding {choices}",
        Advice.READ_AS_OF_WINDOWS: "run again with --encoding {choices} if the file comes from Windows",
        Advice.READ_AS_IF_CSV: "add --encoding {choices} if it is one",
        Advice.READ_AS_IF_TEXT: "--encoding {choices} if it is text",
        Advice.NAME_LAYOUTS: "name the file that has it with --config",
        Advice.WRITE_CONFIGURATION: "write one with `precheck init`",
        Advice.NAME_CONFIGURATION: "name one with --config",
        Advice.NAME_INPUT: "name the payment file of this run with --input FILE",
        Advice.NAME_DECIDER: "name who decides with --by NAME",
        Advice.ALLOW_MANY_NAMES: "use --allow-many-names REASON, which is recorded",
        Advice.ALLOW_SIMULATED: "add --allow-simulated to try this command",
        Advice.WRITE_WORK: "run `precheck run` with --work again",
        Advice.NAME_WORK: "name the folder that `precheck run --work` writes to",
        Advice.WAIT_LONGER: "wait longer with --wait-max",
        Advice.NAME_LEDGER: "name one in the profile with `ledger`, or leave out --work",
        Advice.CHECK_AS_DATA_SET: "use --work DIR if the files in it are the parts of one data set",
        Advice.READ_FROM: "--map {choices}",
    }
)
"""For every kind of advice."""

assert OPTIONS.keys() == set(Advice), "advice without words of the command line"
