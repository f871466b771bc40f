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
-- A process that asks questions, or asked them earlier.
CREATE TABLE precheck.holder(
  holder uuid PRIMARY KEY, host text NOT NULL, pid integer NOT NULL, tool_version text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(), left_at timestamptz);
CREATE TABLE precheck.round(
  run bigint NOT NULL REFERENCES precheck.run, round integer NOT NULL,
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz, PRIMARY KEY (run, round));
-- Questions that are leased to one process. `members` are their positions in a part of the run.
CREATE TABLE precheck.chunk(
  run bigint NOT NULL, chunk integer NOT NULL, round integer NOT NULL, api text NOT NULL,
  part integer NOT NULL, members integer[] NOT NULL, fence bigint NOT NULL DEFAULT 0,
  holder uuid REFERENCES precheck.holder, lease_until timestamptz, done_at timestamptz,
  PRIMARY KEY (run, chunk), FOREIGN KEY (run, round) REFERENCES precheck.round,
  CHECK ((holder IS NULL) = (lease_until IS NULL))) WITH (fillfactor = 50);
CREATE INDEX chunk_undone ON precheck.chunk(run, api, chunk) WHERE done_at IS NULL;
CREATE FUNCTION precheck.only_grows() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN RAISE '% of the ledger only grows, and by no more than a day at once', TG_TABLE_NAME; END $$;
-- `fence` is a time in microseconds.
CREATE TRIGGER only_grows BEFORE UPDATE ON precheck.chunk FOR EACH ROW
  WHEN (NEW.fence < OLD.fence OR NEW.lease_until > clock_timestamp() + interval '1 day'
    OR NEW.fence > greatest(OLD.fence + 1, extract(epoch FROM clock_timestamp() + interval '1 day') * 1000000)
    OR OLD.done_at IS NOT NULL AND NEW.done_at IS DISTINCT FROM OLD.done_at)
  EXECUTE FUNCTION precheck.only_grows();
CREATE TRIGGER only_grows BEFORE UPDATE ON precheck.run FOR EACH ROW
  WHEN (OLD.finished_at IS NOT NULL AND NEW.finished_at IS DISTINCT FROM OLD.finished_at)
  EXECUTE FUNCTION precheck.only_grows();
CREATE TRIGGER only_grows BEFORE UPDATE ON precheck.round FOR EACH ROW
  WHEN (OLD.ended_at IS NOT NULL AND NEW.ended_at IS DISTINCT FROM OLD.ended_at)
  EXECUTE FUNCTION precheck.only_grows();
CREATE TRIGGER only_grows BEFORE UPDATE ON precheck.holder FOR EACH ROW
  WHEN (greatest(NEW.seen_at, NEW.left_at) > clock_timestamp() + interval '1 day')
  EXECUTE FUNCTION precheck.only_grows();
-- The statement that writes an answer or a failure also checks that its intent exists: a foreign key would cost
-- the server a third more.
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
  PRIMARY KEY (question, run),  -- a later run looks for answers of all runs
  CHECK (is_named OR matched_name IS NULL));
CREATE TABLE precheck.reuse(
  run bigint NOT NULL REFERENCES precheck.run, question bytea NOT NULL, code text NOT NULL,
  request_id text NOT NULL, time text NOT NULL, source_sha256 text NOT NULL, reused_at text NOT NULL,
  seal bytea NOT NULL, PRIMARY KEY (run, question));
CREATE TABLE precheck.purge(
  purge bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run bigint NOT NULL REFERENCES precheck.run,
  time text NOT NULL, answers_before text NOT NULL, name_count bigint NOT NULL);

CREATE FUNCTION precheck.never_changes() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN RAISE 'a line of the ledger never changes, and never leaves'; END $$;
-- Only text that a server returned can be erased from a line: a name, or the detail of a problem.
CREATE FUNCTION precheck.answer_never_changes() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE kept precheck.answer := OLD;
BEGIN
  IF NEW.matched_name IS NULL THEN kept.matched_name := NULL; END IF;
  IF NEW.detail IS NULL THEN kept.detail := NULL; END IF;
  IF NEW IS DISTINCT FROM kept THEN RAISE 'an answer never changes'; END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION precheck.failure_never_changes() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp AS $$
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
-- A server account, and the share of each process in its rate and requests in flight. Times are seconds by
-- `latest`, which never decreases.
CREATE TABLE precheck.account(
  scope text NOT NULL, api text NOT NULL, division jsonb NOT NULL,
  latest float8 NOT NULL DEFAULT 0, PRIMARY KEY (scope, api)) WITH (fillfactor = 50);
-- The daily cap of a server account. `used` counts the units of its window, after the second `counted_from`.
CREATE TABLE precheck.daily_cap(
  scope text PRIMARY KEY, cap integer NOT NULL, kind text NOT NULL CHECK (kind IN ('utc_day', 'rolling_24h')),
  used integer NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND cap),
  counted_from bigint NOT NULL DEFAULT 0, closed_until bigint NOT NULL DEFAULT 0,
  latest float8 NOT NULL DEFAULT 0, ahead float8 NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE precheck.units(
  scope text NOT NULL REFERENCES precheck.daily_cap, second bigint NOT NULL,
  count integer NOT NULL CHECK (count >= 0),
  PRIMARY KEY (scope, second));
CREATE FUNCTION precheck.clock_s() RETURNS float8 LANGUAGE sql SET search_path = pg_catalog, pg_temp AS
  'SELECT extract(epoch FROM clock_timestamp())::float8';
-- The times of an account are those of the database's clock.
CREATE FUNCTION precheck.time_goes_on() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.latest := greatest(NEW.latest, OLD.latest, precheck.clock_s());
  RETURN NEW;
END $$;
CREATE TRIGGER time_goes_on BEFORE UPDATE ON precheck.account
  FOR EACH ROW EXECUTE FUNCTION precheck.time_goes_on();
-- `latest` may be corrected after a clock ran ahead, but never to a time before the database's clock.
CREATE TRIGGER only_grows BEFORE UPDATE ON precheck.daily_cap FOR EACH ROW
  WHEN (NEW.latest < OLD.latest AND NEW.latest < precheck.clock_s() - 1)
  EXECUTE FUNCTION precheck.only_grows();

-- Only these functions of the owner take units and erase names. The role of the runs may call them, but not
-- change these tables. daily_caps.py explains how units are counted.

-- When the day began by the database's clock and by the server's, which is ahead: the earlier and the later time.
CREATE FUNCTION precheck.days_since(latest float8, ahead float8, OUT first float8, OUT last float8)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(start), max(start) FROM (VALUES (0), (ahead)) AS clocks(s),
    LATERAL (SELECT floor((latest + s) / 86400) * 86400 - s AS start) AS days $$;
-- The current state of a cap, locked until the end of the transaction.
CREATE FUNCTION precheck.cap_now(account text, most integer, period text) RETURNS precheck.daily_cap
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  cap_ precheck.daily_cap; opens bigint; edge CONSTANT integer := 30;
BEGIN
  SELECT * INTO cap_ FROM precheck.daily_cap WHERE scope = account FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO precheck.daily_cap(scope, cap, kind) VALUES (account, most, period) ON CONFLICT DO NOTHING;
    SELECT * INTO STRICT cap_ FROM precheck.daily_cap WHERE scope = account FOR UPDATE;
  END IF;
  cap_.latest := greatest(cap_.latest, precheck.clock_s());
  opens := floor(CASE period WHEN 'utc_day' THEN (precheck.days_since(cap_.latest, cap_.ahead)).first
    ELSE cap_.latest - 86400 END) - edge;
  IF cap_.kind <> period OR opens < cap_.counted_from THEN
    SELECT coalesce(sum(count), 0) INTO cap_.used FROM precheck.units WHERE scope = account AND second > opens;
  ELSIF opens > cap_.counted_from THEN
    SELECT cap_.used - coalesce(sum(count), 0) INTO cap_.used FROM precheck.units
    WHERE scope = account AND second > cap_.counted_from AND second <= opens;
  END IF;
  cap_.kind := period;
  cap_.counted_from := opens;
  cap_.cap := greatest(cap_.cap, cap_.used);
  UPDATE precheck.daily_cap SET (cap, kind, used, counted_from, latest)
    = (cap_.cap, cap_.kind, cap_.used, cap_.counted_from, cap_.latest) WHERE scope = account;
  RETURN cap_;
END $$;
-- Take up to `wish` units and return how many were taken. The stored cap is that of the last process that took
-- units: a smaller one does not make earlier units invalid.
CREATE FUNCTION precheck.cap_take(account text, most integer, period text, wish integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  cap_ precheck.daily_cap := precheck.cap_now(account, most, period);
  taken CONSTANT integer := greatest(least(wish, most - cap_.used), 0);
BEGIN
  IF taken = 0 OR cap_.latest < cap_.closed_until THEN RETURN 0; END IF;
  INSERT INTO precheck.units AS one(scope, second, count) VALUES (account, ceil(cap_.latest), taken)
    ON CONFLICT (scope, second) DO UPDATE SET count = one.count + excluded.count;
  UPDATE precheck.daily_cap SET used = used + taken, cap = most WHERE scope = account;
  RETURN taken;
END $$;
-- When the next window opens that overlaps neither this one nor the server's.
CREATE FUNCTION precheck.cap_opens(cap_ precheck.daily_cap) RETURNS float8
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT 86400 + CASE cap_.kind WHEN 'utc_day' THEN (precheck.days_since(cap_.latest, cap_.ahead)).last
    ELSE cap_.latest END $$;
-- The server says that nothing is left: close the cap until the next window.
CREATE FUNCTION precheck.cap_close(account text, most integer, period text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  cap_ precheck.daily_cap := precheck.cap_now(account, most, period);
BEGIN
  UPDATE precheck.daily_cap SET closed_until = greatest(closed_until, ceil(precheck.cap_opens(cap_)))
  WHERE scope = account;
END $$;
-- Count units in the server's day, too. After the database's clock ran ahead, `latest` is set back, but never to
-- before that clock, and no cap stays closed for longer than a day.
CREATE FUNCTION precheck.cap_go_by(account text, most integer, period text, server_now float8) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  cap_ precheck.daily_cap := precheck.cap_now(account, most, period);
  now_s CONSTANT float8 := greatest(precheck.clock_s(), least(cap_.latest, server_now));
  edge CONSTANT integer := 30;
BEGIN
  IF abs(server_now) > 1e12 THEN RAISE 'no time of a server'; END IF;
  IF cap_.latest > now_s + edge THEN
    INSERT INTO precheck.units AS one(scope, second, count)
      SELECT account, ceil(now_s), sum(count) FROM precheck.units
      WHERE scope = account AND second > now_s + 86400 HAVING count(*) > 0
      ON CONFLICT (scope, second) DO UPDATE SET count = one.count + excluded.count;
    UPDATE precheck.units SET count = 0 WHERE scope = account AND second > now_s + 86400;
    UPDATE precheck.daily_cap SET closed_until = 0 WHERE scope = account AND closed_until > now_s + 86400;
  END IF;
  UPDATE precheck.daily_cap SET ahead = server_now - now_s, latest = least(latest, now_s) WHERE scope = account;
  PERFORM precheck.cap_now(account, most, period);
END $$;
-- Erase the names and details that servers returned for a run before a time, record it, and return the number of
-- names.
CREATE FUNCTION precheck.erase_names(run_id uuid, before text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  erased bigint;
BEGIN
  -- By way of the intents: they alone lie in the order of runs.
  UPDATE precheck.answer SET matched_name = NULL FROM precheck.run JOIN precheck.intent USING (run)
  WHERE run.id = run_id AND (answer.run, answer.question, answer.attempt)
   = (intent.run, intent.question, intent.attempt) AND matched_name IS NOT NULL AND answer.time < before;
  GET DIAGNOSTICS erased = ROW_COUNT;
  UPDATE precheck.answer SET detail = NULL FROM precheck.run JOIN precheck.intent USING (run)
  WHERE run.id = run_id AND (answer.run, answer.question, answer.attempt)
   = (intent.run, intent.question, intent.attempt) AND detail IS NOT NULL AND answer.time < before;
  UPDATE precheck.failure SET detail = NULL FROM precheck.run
  WHERE run.id = run_id AND failure.run = run.run AND detail IS NOT NULL AND time < before;
  INSERT INTO precheck.purge(run, time, answers_before, name_count)
  SELECT run, to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), before, erased
  FROM precheck.run WHERE id = run_id;
  RETURN erased;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA precheck FROM PUBLIC;
