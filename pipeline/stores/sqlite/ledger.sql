-- The tables of the ledger of one folder. Each line has the number of outcome files on record before it.
CREATE TABLE run(
    one INTEGER PRIMARY KEY CHECK(one = 1),
    input_sha256 TEXT NOT NULL, profile_sha256 TEXT NOT NULL, environment TEXT NOT NULL,
    tool_version TEXT NOT NULL, created_at TEXT NOT NULL,
    run_key BLOB NOT NULL CHECK(length(run_key) = 32), name_proof BLOB,
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE intent(
    id INTEGER PRIMARY KEY, question BLOB NOT NULL, attempt INTEGER NOT NULL CHECK(attempt > 0),
    request_id TEXT NOT NULL, time TEXT NOT NULL, after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE failure(
    intent INTEGER PRIMARY KEY REFERENCES intent, code TEXT NOT NULL, time TEXT NOT NULL,
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE answer(
    intent INTEGER PRIMARY KEY REFERENCES intent,
    state TEXT NOT NULL CHECK(state IN ('answered', 'refused')), code TEXT NOT NULL,
    request_id TEXT, time TEXT, name_seal BLOB, matched_name ANY, name_salt BLOB,
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE problem(
    intent INTEGER PRIMARY KEY REFERENCES intent, detail ANY NOT NULL,
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE reuse(
    question BLOB PRIMARY KEY, code TEXT NOT NULL, request_id TEXT NOT NULL, time TEXT NOT NULL,
    source_sha256 TEXT NOT NULL, reused_at TEXT NOT NULL,
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE finish(
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, question_count INTEGER NOT NULL,
    unanswered_count INTEGER NOT NULL CHECK(unanswered_count BETWEEN 0 AND question_count),
    outcome_sha256 TEXT NOT NULL, after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE purge(
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, answers_before TEXT NOT NULL,
    name_count INTEGER NOT NULL, after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE allowance(
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, reason TEXT NOT NULL CHECK(reason <> ''),
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TABLE language(
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, code TEXT NOT NULL,
    after_finish INTEGER NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TRIGGER answer_never_changes BEFORE UPDATE ON answer
    WHEN NEW.matched_name IS NOT NULL OR OLD.matched_name IS NULL
    OR (NEW.intent, NEW.state, NEW.code, NEW.seal) <> (OLD.intent, OLD.state, OLD.code, OLD.seal)
    OR NEW.request_id IS NOT OLD.request_id OR NEW.time IS NOT OLD.time OR NEW.name_seal IS NOT OLD.name_seal
    BEGIN SELECT RAISE(ABORT, 'an answer never changes'); END;
CREATE TRIGGER answer_never_leaves BEFORE DELETE ON answer
    BEGIN SELECT RAISE(ABORT, 'an answer never leaves'); END;
CREATE TRIGGER reuse_never_changes BEFORE UPDATE ON reuse
    BEGIN SELECT RAISE(ABORT, 'an answer never changes'); END;
CREATE TRIGGER reuse_never_leaves BEFORE DELETE ON reuse
    BEGIN SELECT RAISE(ABORT, 'an answer never leaves'); END;
