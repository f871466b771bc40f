-- The tables of a ledger in PostgreSQL; schema.py says who may do what with them.
CREATE TABLE precheck.store(
  one integer PRIMARY KEY DEFAULT 1 CHECK (one = 1), version integer NOT NULL,
  salt bytea NOT NULL, hidden_key bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE precheck.run(
  run bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL UNIQUE,
  input_sha256 text NOT NULL, profile_sha256 text NOT NULL, environment text NOT NULL,
  tool_version text NOT NULL, plan_hash bytea NOT NULL, question_count integer NOT NULL, seal bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(), finished_at timestamptz);
CREATE UNIQUE INDEX run_unfinished ON precheck.run(input_sha256, profile_sha256, environment)
  WHERE finished_at IS NULL;
-- A process that asks, or did.
CREATE TABLE precheck.holder(
  holder uuid PRIMARY KEY, host text NOT NULL, pid integer NOT NULL, tool_version text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(), left_at timestamptz);
CREATE TABLE precheck.round(
  run bigint NOT NULL REFERENCES precheck.run, round integer NOT NULL,
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz, PRIMARY KEY (run, round));
-- What one process asks at a time. Its members are places among the questions of a part of the run.
CREATE TABLE precheck.chunk(
  run bigint NOT NULL, chunk integer NOT NULL, round integer NOT NULL, api text NOT NULL,
  part integer NOT NULL, members integer[] NOT NULL, fence bigint NOT NULL DEFAULT 0,
  holder uuid REFERENCES precheck.holder, lease_until timestamptz, done_at timestamptz,
  PRIMARY KEY (run, chunk), FOREIGN KEY (run, round) REFERENCES precheck.round,
  CHECK ((holder IS NULL) = (lease_until IS NULL))) WITH (fillfactor = 50);
CREATE INDEX chunk_undone ON precheck.chunk(run, api, chunk) WHERE done_at IS NULL;
CREATE FUNCTION precheck.fences_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'a fence only grows'; END $$;
CREATE TRIGGER fences_only_grow BEFORE UPDATE ON precheck.chunk FOR EACH ROW
  WHEN (NEW.fence < OLD.fence) EXECUTE FUNCTION precheck.fences_only_grow();
-- The statement that writes an answer or a failure sees to it that there is its intent: a foreign key would
-- cost the server a third more.
CREATE TABLE precheck.intent(
  id bigint GENERATED ALWAYS AS IDENTITY, run bigint NOT NULL, question bytea NOT NULL,
  attempt integer NOT NULL CHECK (attempt > 0), request_id text NOT NULL, time text NOT NULL,
  seal bytea NOT NULL, PRIMARY KEY (run, question, attempt));
CREATE TABLE precheck.failure(
  run bigint NOT NULL, question bytea NOT NULL, attempt integer NOT NULL, round integer NOT NULL,
  code text NOT NULL, time text NOT NULL, detail bytea, seal bytea NOT NULL,
  PRIMARY KEY (run, question, attempt));
CREATE TABLE precheck.answer(
  run bigint NOT NULL, question bytea NOT NULL, attempt integer NOT NULL,
  state text NOT NULL CHECK (state IN ('answered', 'refused')), code text NOT NULL, time text NOT NULL,
  is_named boolean NOT NULL, matched_name bytea, detail bytea, seal bytea NOT NULL,
  PRIMARY KEY (question, run),  -- a later run looks for the answers of any
  CHECK (is_named OR matched_name IS NULL));
CREATE TABLE precheck.reuse(
  run bigint NOT NULL REFERENCES precheck.run, question bytea NOT NULL, code text NOT NULL,
  request_id text NOT NULL, time text NOT NULL, source_sha256 text NOT NULL, reused_at text NOT NULL,
  seal bytea NOT NULL, PRIMARY KEY (run, question));
CREATE TABLE precheck.purge(
  purge bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run bigint NOT NULL REFERENCES precheck.run,
  time text NOT NULL, answers_before text NOT NULL, name_count bigint NOT NULL);

CREATE FUNCTION precheck.never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'a line of the ledger never changes, and never leaves'; END $$;
-- All that can leave a line is what a server returned: a name, the detail of a problem.
CREATE FUNCTION precheck.answer_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE kept precheck.answer := OLD;
BEGIN
  IF NEW.matched_name IS NULL THEN kept.matched_name := NULL; END IF;
  IF NEW.detail IS NULL THEN kept.detail := NULL; END IF;
  IF NEW IS DISTINCT FROM kept THEN RAISE 'an answer never changes'; END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION precheck.failure_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE kept precheck.failure := OLD;
BEGIN
  IF NEW.detail IS NULL THEN kept.detail := NULL; END IF;
  IF NEW IS DISTINCT FROM kept THEN RAISE 'a failure never changes'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER never_changes BEFORE UPDATE ON precheck.answer
  FOR EACH ROW EXECUTE FUNCTION precheck.answer_never_changes();
CREATE TRIGGER never_changes BEFORE UPDATE ON precheck.failure
  FOR EACH ROW EXECUTE FUNCTION precheck.failure_never_changes();
CREATE TRIGGER never_changes BEFORE UPDATE ON precheck.intent
  FOR EACH ROW EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_changes BEFORE UPDATE ON precheck.reuse
  FOR EACH ROW EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_leaves BEFORE DELETE ON precheck.intent
  FOR EACH ROW EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON precheck.intent
  FOR EACH STATEMENT EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_leaves BEFORE DELETE ON precheck.failure
  FOR EACH ROW EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON precheck.failure
  FOR EACH STATEMENT EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_leaves BEFORE DELETE ON precheck.answer
  FOR EACH ROW EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON precheck.answer
  FOR EACH STATEMENT EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_leaves BEFORE DELETE ON precheck.reuse
  FOR EACH ROW EXECUTE FUNCTION precheck.never_changes();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON precheck.reuse
  FOR EACH STATEMENT EXECUTE FUNCTION precheck.never_changes();
-- A server account, and what each process has of its rate and places. Times are seconds by `latest`, which
-- never goes back.
CREATE TABLE precheck.account(
  scope text NOT NULL, api text NOT NULL, division jsonb NOT NULL,
  latest float8 NOT NULL DEFAULT 0, PRIMARY KEY (scope, api)) WITH (fillfactor = 50);
-- The daily cap of a server account: the units of its window, those after the second `counted_from`.
CREATE TABLE precheck.daily_cap(
  scope text PRIMARY KEY, cap integer NOT NULL, kind text NOT NULL CHECK (kind IN ('utc_day', 'rolling_24h')),
  used integer NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND cap),
  counted_from bigint NOT NULL DEFAULT 0, closed_until bigint NOT NULL DEFAULT 0,
  latest float8 NOT NULL DEFAULT 0, ahead float8 NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE precheck.units(
  scope text NOT NULL REFERENCES precheck.daily_cap, second bigint NOT NULL,
  count integer NOT NULL CHECK (count >= 0),
  PRIMARY KEY (scope, second));
CREATE FUNCTION precheck.time_never_goes_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'the time of an account never goes back'; END $$;
CREATE TRIGGER time_never_goes_back BEFORE UPDATE ON precheck.account FOR EACH ROW
  WHEN (NEW.latest < OLD.latest) EXECUTE FUNCTION precheck.time_never_goes_back();
-- After a clock that ran ahead, a server's replies agree on an earlier time; never on one before this clock.
CREATE TRIGGER time_never_goes_back BEFORE UPDATE ON precheck.daily_cap FOR EACH ROW
  WHEN (NEW.latest < OLD.latest AND NEW.latest < extract(epoch FROM clock_timestamp())::float8 - 1)
  EXECUTE FUNCTION precheck.time_never_goes_back();
