-- The longer statements of a ledger in PostgreSQL, each under its module and its name there; see schema.py.

-- name: administration.who
SELECT current_user::text, current_database()::text, pg_get_userbyid(datdba)::text,
 has_database_privilege(current_database(), 'CREATE'),
 (SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = 'precheck'),
 (SELECT pg_has_role(nspowner, 'USAGE') OR has_schema_privilege(oid, 'USAGE') FROM pg_namespace
  WHERE nspname = 'precheck')
FROM pg_database WHERE datname = current_database()

-- name: administration.run
SELECT run, question_count, finished_at IS NOT NULL,
 (SELECT count(*) FROM precheck.answer WHERE answer.run = run.run)
 + (SELECT count(*) FROM precheck.reuse WHERE reuse.run = run.run)
FROM precheck.run WHERE id = %s FOR UPDATE

-- name: administration.at_work
SELECT pid, host FROM precheck.chunk JOIN precheck.holder USING (holder)
WHERE run = %s AND done_at IS NULL AND lease_until > clock_timestamp() LIMIT 1

-- name: connection.settings
SELECT set_config('idle_in_transaction_session_timeout', '5000', false),
 set_config('lock_timeout', '10000', false),
 CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
 THEN set_config('synchronous_commit', 'on', false) END

-- name: daily_caps.unit
SELECT second FROM (SELECT second, sum(count) OVER (ORDER BY second) AS number
 FROM precheck.units WHERE scope = %s AND second > %s) AS numbered
WHERE number >= %s ORDER BY second LIMIT 1

-- name: lines.latest
SELECT DISTINCT ON (answer.question) run.input_sha256, run.run, run.id, run.tool_version,
 answer.question, answer.attempt, intent.request_id, intent.time, intent.seal,
 answer.state, answer.code, answer.time, answer.is_named, answer.matched_name, answer.seal
FROM unnest(%(questions)b::bytea[]) AS wanted(question)
JOIN precheck.answer USING (question) JOIN precheck.run USING (run)
JOIN precheck.intent USING (run, question, attempt)
WHERE run.run <> %(run)b AND answer.time >= %(after)b AND (run.profile_sha256, run.environment) = (
 SELECT profile_sha256, environment FROM precheck.run WHERE run = %(run)b)
ORDER BY answer.question, answer.time DESC, run.run DESC

-- name: lines.asked
SELECT intent.question, intent.attempt, intent.request_id, intent.time, intent.seal,
 failure.round, failure.code, failure.time, failure.seal,
 answer.attempt, answer.state, answer.code, answer.time, answer.is_named, answer.matched_name, answer.seal
FROM unnest(%b::bytea[]) AS wanted(question)
CROSS JOIN LATERAL (SELECT * FROM precheck.intent AS one WHERE one.run = %b AND one.question = wanted.question
 ORDER BY attempt DESC LIMIT 1) AS intent
LEFT JOIN precheck.failure ON failure.run = intent.run AND failure.question = intent.question
 AND failure.attempt = intent.attempt
LEFT JOIN precheck.answer ON answer.run = intent.run AND answer.question = intent.question

-- name: lines.reused
SELECT question, code, request_id, time, source_sha256, reused_at, seal FROM precheck.reuse
WHERE run = %b AND question = ANY(%b::bytea[])

-- name: lines.fruitless
SELECT question, code, attempt FROM (
 SELECT DISTINCT ON (question, round) question, round, code, attempt FROM precheck.failure JOIN precheck.round
 USING (run, round) WHERE run = %b AND ended_at IS NOT NULL ORDER BY question, round, attempt DESC) AS last
WHERE code = ANY(%b) AND NOT EXISTS (
 SELECT FROM precheck.answer WHERE answer.run = %b AND answer.question = last.question)
ORDER BY question, round

-- name: shared_run.counts
SELECT (SELECT count(*) FROM precheck.intent WHERE run = %(run)b),
 (SELECT count(*) FROM precheck.answer WHERE run = %(run)b),
 (SELECT count(*) FROM precheck.reuse WHERE run = %(run)b)

-- name: administration.server
SELECT current_setting('server_version'), current_setting('fsync') = 'on',
 current_setting('full_page_writes') = 'on',
 (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
 (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names') <> '',
 (SELECT version FROM precheck.store)

-- name: administration.role
SELECT current_user::text,
 EXISTS (SELECT FROM pg_roles WHERE (rolsuper OR rolcreaterole) AND pg_has_role(oid, 'MEMBER')),
 EXISTS (SELECT FROM pg_class
  WHERE relnamespace = 'precheck'::regnamespace AND pg_has_role(relowner, 'MEMBER'))
 OR has_schema_privilege('precheck', 'CREATE'),
 EXISTS (SELECT FROM pg_class, pg_roles AS mine WHERE relnamespace = 'precheck'::regnamespace AND relkind = 'r'
 AND pg_has_role(mine.oid, 'MEMBER') AND has_table_privilege(mine.oid, pg_class.oid, 'DELETE, TRUNCATE'))

-- name: administration.columns
SELECT privilege, relname::text, attname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid,
 unnest(ARRAY['INSERT', 'UPDATE']) AS privilege
WHERE relnamespace = 'precheck'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
 AND EXISTS (SELECT FROM pg_roles AS mine WHERE pg_has_role(mine.oid, 'MEMBER')
  AND has_column_privilege(mine.oid, pg_class.oid, attnum, privilege))
ORDER BY relname, attname, privilege

-- name: administration.triggers
SELECT relname::text, tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = 'precheck'::regnamespace AND tgenabled IN ('O', 'A')

-- name: administration.runs
SELECT count(*), count(*) FILTER (WHERE finished_at IS NULL) FROM precheck.run

-- name: administration.doubt
SELECT count(*) FROM precheck.intent JOIN precheck.run USING (run)
 LEFT JOIN precheck.failure USING (run, question, attempt) LEFT JOIN precheck.answer USING (run, question)
WHERE finished_at IS NULL AND failure.run IS NULL AND answer.run IS NULL

-- name: shared_run.free
 SELECT chunk FROM precheck.chunk JOIN precheck.round USING (run, round)
 WHERE run = %(run)b AND api = %(api)b AND done_at IS NULL AND ended_at IS NULL
  AND (holder IS NULL OR holder = %(holder)b OR lease_until < clock_timestamp())
  AND chunk <> ALL(%(not)b::int[])

-- name: shared_run.keep
WITH kept AS (
 UPDATE precheck.chunk SET lease_until = clock_timestamp() + %(lease)b * interval '1 s'
 FROM unnest(%(chunks)b::int[], %(fences)b::bigint[]) AS mine(chunk, fence)
 WHERE run = %(run)b AND chunk.chunk = mine.chunk AND chunk.fence = mine.fence AND holder = %(holder)b
 RETURNING chunk.chunk, chunk.fence),
seen AS (UPDATE precheck.holder SET seen_at = clock_timestamp() WHERE holder = %(holder)b)
SELECT chunk, fence FROM kept

-- name: shared_run.done
UPDATE precheck.chunk SET done_at = clock_timestamp(), holder = NULL, lease_until = NULL
WHERE run = %b AND chunk = %b AND fence = %b AND done_at IS NULL

-- name: shared_run.give_back
UPDATE precheck.chunk SET holder = NULL, lease_until = NULL
WHERE run = %(run)b AND done_at IS NULL AND holder = %(holder)b AND (%(api)b::text IS NULL OR api = %(api)b)

-- name: shared_run.state
SELECT round, ended_at IS NULL, count(chunk) FILTER (WHERE done_at IS NULL),
 count(chunk) FILTER (WHERE done_at IS NULL AND (holder IS NULL OR lease_until < clock_timestamp()))
FROM precheck.round LEFT JOIN precheck.chunk USING (run, round)
WHERE run = %b AND round = (SELECT max(round) FROM precheck.round WHERE run = %b)
GROUP BY round, ended_at

-- name: shared_run.add
INSERT INTO precheck.chunk(run, chunk, round, api, part, members) VALUES (%b, %b, %b, %b, %b, %b)

-- name: lines.recorded
DECLARE requests NO SCROLL CURSOR WITH HOLD FOR
SELECT intent.id, intent.question, intent.attempt, intent.request_id, intent.time, intent.seal,
 failure.round, failure.code, failure.time, failure.detail, failure.seal,
 answer.state, answer.code, answer.time, answer.is_named, answer.matched_name, answer.seal, answer.detail
FROM precheck.intent LEFT JOIN precheck.failure USING (run, question, attempt)
LEFT JOIN precheck.answer USING (run, question, attempt)
WHERE run = %s AND intent.id > %s ORDER BY intent.id

-- name: lines.recorded_reused
SELECT (
 SELECT count(*) FROM precheck.intent AS one WHERE one.run = reuse.run AND one.question = reuse.question),
 question, code, request_id, time, source_sha256, reused_at, seal
FROM precheck.reuse WHERE run = %b ORDER BY question

-- name: recording.held
SELECT chunk, fence FROM unnest(%b::int[], %b::bigint[]) AS mine(chunk, fence)
JOIN precheck.chunk USING (chunk, fence) WHERE chunk.run = %b FOR SHARE OF chunk

-- name: recording.record
WITH held AS MATERIALIZED (
 SELECT no FROM unnest(%b::int[], %b::bigint[]) WITH ORDINALITY AS mine(chunk, fence, no)
 JOIN precheck.chunk USING (chunk, fence) WHERE chunk.run = %b FOR SHARE OF chunk),
intents AS (
 INSERT INTO precheck.intent(run, question, attempt, request_id, time, seal)
 SELECT %b, question, attempt, request_id, time, seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::text[], %b::text[], %b::bytea[])
  AS line(no, question, attempt, request_id, time, seal) JOIN held USING (no)
 WHERE attempt = 1 OR EXISTS (SELECT FROM precheck.intent AS before
   WHERE before.run = %b AND before.question = line.question AND before.attempt = line.attempt - 1)
  AND NOT EXISTS (SELECT FROM precheck.answer WHERE run = %b AND answer.question = line.question)
 RETURNING 1),
answers AS (
 INSERT INTO precheck.answer(run, question, attempt, state, code, time, is_named, matched_name, detail, seal)
 SELECT run, question, attempt, state, code, line.time, name IS NOT NULL, name, detail, line.seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::bytea[],
  %b::bytea[]) AS line(no, question, attempt, state, code, time, name, detail, seal) JOIN held USING (no)
 JOIN precheck.intent USING (question, attempt) WHERE run = %b
 RETURNING 1)
SELECT ARRAY(SELECT no FROM held), (SELECT count(*) FROM intents), (SELECT count(*) FROM answers)

-- name: recording.failures
WITH held AS MATERIALIZED (
 SELECT no FROM unnest(%b::int[], %b::bigint[]) WITH ORDINALITY AS mine(chunk, fence, no)
 JOIN precheck.chunk USING (chunk, fence) WHERE chunk.run = %b FOR SHARE OF chunk),
failures AS (
 INSERT INTO precheck.failure(run, question, attempt, round, code, time, detail, seal)
 SELECT run, question, attempt, round, code, line.time, detail, line.seal
 FROM unnest(%b::int[], %b::bytea[], %b::int[], %b::int[], %b::text[], %b::text[], %b::bytea[], %b::bytea[])
  AS line(no, question, attempt, round, code, time, detail, seal) JOIN held USING (no)
 JOIN precheck.intent USING (question, attempt)
 WHERE run = %b
  AND NOT EXISTS (SELECT FROM precheck.answer WHERE run = %b AND answer.question = line.question)
 RETURNING 1)
SELECT ARRAY(SELECT no FROM held), (SELECT count(*) FROM failures)

-- name: recording.there
SELECT 0, place FROM precheck.intent JOIN unnest(%b::bytea[], %b::int[], %b::text[]) WITH ORDINALITY
 AS line(question, attempt, request_id, place) USING (question, attempt, request_id) WHERE run = %b
UNION ALL
SELECT 1, place FROM precheck.failure JOIN unnest(%b::bytea[], %b::int[], %b::bytea[]) WITH ORDINALITY
 AS line(question, attempt, seal, place) USING (question, attempt, seal) WHERE run = %b
UNION ALL
SELECT 2, place FROM precheck.answer JOIN unnest(%b::bytea[], %b::int[], %b::bytea[]) WITH ORDINALITY
 AS line(question, attempt, seal, place) USING (question, attempt, seal) WHERE run = %b

-- name: shared_run.reuse
INSERT INTO precheck.reuse(run, question, code, request_id, time, source_sha256, reused_at, seal)
VALUES (%b, %b, %b, %b, %b, %b, %b, %b) ON CONFLICT DO NOTHING

-- name: store.read
SELECT division::text, greatest(latest, extract(epoch FROM clock_timestamp())::float8)
FROM precheck.account WHERE scope = %s AND api = %s FOR UPDATE

-- name: store.look
SELECT division::text, greatest(latest, extract(epoch FROM clock_timestamp())::float8)
FROM precheck.account WHERE scope = %s AND api = %s

-- name: administration.accounts
SELECT scope, api, division::text AS division,
 greatest(latest, extract(epoch FROM clock_timestamp())::float8) AS now
FROM precheck.account ORDER BY scope, api

-- name: administration.caps
SELECT scope, cap, now < closed_until AS closed, (
 SELECT coalesce(sum(count), 0)::int FROM precheck.units
 WHERE units.scope = daily_cap.scope AND second > greatest(
  counted_from, CASE kind WHEN 'utc_day' THEN now - now %% 86400 ELSE now - 86400 END - %s)) AS used
FROM precheck.daily_cap, LATERAL (
 SELECT greatest(latest, extract(epoch FROM clock_timestamp()))::bigint AS now) AS clock ORDER BY scope

-- name: store.holder
INSERT INTO precheck.holder(holder, host, pid, tool_version) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING

-- name: store.begin
INSERT INTO precheck.run(
 id, input_sha256, profile_sha256, environment, tool_version, plan_hash, question_count, seal)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING

-- name: administration.now
SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')

-- name: administration.unfinished
SELECT run.id AS run, tool_version, input_sha256, environment, question_count,
 to_char(run.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created,
 (SELECT count(*) FROM precheck.intent WHERE intent.run = run.run) AS attempt_count,
 (SELECT count(*) FROM precheck.intent JOIN precheck.answer USING (run, question, attempt)
  WHERE intent.run = run.run) AS answer_count,
 (SELECT count(*) FROM precheck.reuse WHERE reuse.run = run.run) AS reused_count,
 coalesce(latest.round, 0) AS round, latest.round IS NOT NULL AND latest.ended_at IS NULL AS open,
 count(chunk) FILTER (WHERE done_at IS NULL) AS undone_chunk_count,
 count(chunk) FILTER (
  WHERE done_at IS NULL AND (holder IS NULL OR lease_until < clock_timestamp())) AS free_chunk_count
FROM precheck.run
LEFT JOIN LATERAL (SELECT round, ended_at FROM precheck.round WHERE round.run = run.run
 ORDER BY round DESC LIMIT 1) AS latest ON true
LEFT JOIN precheck.chunk ON chunk.run = run.run AND chunk.round = latest.round
WHERE finished_at IS NULL GROUP BY run.run, latest.round, latest.ended_at ORDER BY run.created_at, run.run

-- name: administration.holders
SELECT host, pid, tool_version,
 to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS started,
 to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS seen,
 greatest(extract(epoch FROM clock_timestamp() - seen_at), 0)::float8 AS silent_s,
 count(held.members) AS chunk_count, coalesce(sum(cardinality(held.members)), 0)::int AS question_count,
 extract(epoch FROM min(held.lease_until) - clock_timestamp())::float8 AS oldest_lease_s
FROM precheck.holder LEFT JOIN (
 SELECT chunk.holder, members, lease_until FROM precheck.chunk JOIN precheck.run USING (run)
 WHERE done_at IS NULL AND finished_at IS NULL) AS held ON held.holder = holder.holder
WHERE left_at IS NULL AND seen_at > clock_timestamp() - %s * interval '1 s' GROUP BY holder.holder
ORDER BY started_at, holder.holder

-- name: store.run
SELECT run, id, tool_version,
 to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
 to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
 input_sha256, profile_sha256, environment, plan_hash, seal FROM precheck.run

-- name: shared_run.end
-- Unfinished questions go into chunks of the next round: no line is written under these any more.
WITH ended AS (
 UPDATE precheck.round SET ended_at = clock_timestamp()
 WHERE run = %(run)b AND round = %(round)b AND ended_at IS NULL AND NOT EXISTS (
  SELECT FROM precheck.chunk WHERE run = %(run)b AND round = %(round)b AND done_at IS NULL
  AND (%(all)b OR holder IS NOT NULL AND lease_until >= clock_timestamp()))
 RETURNING run, round)
UPDATE precheck.chunk SET holder = NULL, lease_until = NULL,
 fence = greatest(fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
FROM ended WHERE chunk.run = ended.run AND chunk.round = ended.round AND done_at IS NULL
