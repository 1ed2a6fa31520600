/** Tables as a busy service has them, written past the library: what was handled, waits, is parked, and is on its way out. */

/** `ob.` stands for the schema. Sequences are set behind the rows, so that samples can be inserted. */
export const FILL = `
insert into ob.consumer (name, ordered, retain_ms) values
  ('orders', false, 86400000), ('ledger', true, 86400000), ('mail', false, 86400000), ('quiet', false, 86400000);
insert into ob.subscription (consumer, type)
select name, 't' || i from ob.consumer, generate_series(0, 19) i;
insert into ob.forgotten (consumer, sent_before) select name, now() - interval '10 days' from ob.consumer;

insert into ob.message (consumer, source, id, type, key, body, hash, envelope, origin_source, origin_id, received_at, n)
select case when i % 10 < 6 then 'orders' when i % 10 < 9 then 'ledger' else 'mail' end, 's' || i % 4, i::text, 't' || i % 20,
  'k' || i % 2000, '{"n":1}', decode(md5(i::text), 'hex'), '{}', case when i % 50 = 9 then 's' end,
  case when i % 50 = 9 then 'o' || i end, now() - i * interval '1 second', i
from generate_series(1, 200000) i;

insert into ob.work (consumer, source, id, seq, lane, due_at, token, attempts, parked, reason, error, fingerprint, failed_at)
select consumer, source, id, n, case when consumer = 'ledger' then key end,
  case when consumer = 'mail' then 'infinity' when n % 20 < 10 then received_at
    else now() + n * interval '1 second' end,
  case when consumer = 'orders' and n % 20 = 15 then '00000000-0000-4000-8000-000000000001'::uuid end, n % 3,
  case when consumer = 'mail' then (array['failed', 'dead', 'discarded', 'quarantined'])[n / 10 % 4 + 1]
    when consumer = 'ledger' and n <= 2000 and n % 8 = 1 then 'dead' end,
  case when consumer = 'mail' then 'effect-unknown' end, case when n % 3 > 0 then '{"message":"no"}' end,
  case when n % 3 > 0 and n % 7 > 0 then left(md5((n % 90)::text), 12) end, case when n % 3 > 0 then received_at end
from ob.message where n <= 20000;
insert into ob.lane (consumer, key, due_at, token, blocked)
select 'ledger', 'k' || i, case when i % 4 = 0 then now() when i % 4 = 1 then 'infinity' else now() + i * interval '1 second' end,
  case when i % 4 = 3 then '00000000-0000-4000-8000-000000000001'::uuid end, i % 8 = 1
from generate_series(0, 1999) i;
insert into ob.handled (n, at) select n, received_at from ob.message where n > 20000;
insert into ob.attempt (consumer, source, id, attempt, error)
select consumer, source, id, a, '{"message":"no"}' from ob.work, generate_series(1, 2) a where attempts > 0;
insert into ob.effect (consumer, source, id, name, state, token)
select consumer, source, id, 'charge', case when n % 2 = 0 then 'intent' else 'done' end, '00000000-0000-4000-8000-000000000001'
from ob.message where n <= 10000;

insert into ob.sink (name, types, keep_ms) values ('broker', null, 1000), ('search', '{t1,t2}', 0);
insert into ob.shard (sink, shard, due_at) select name, g, now() - interval '1 second' from ob.sink, generate_series(0, 31) g;
update ob.shard set token = '00000000-0000-4000-8000-000000000001', due_at = now() + interval '1 hour'
where sink = 'broker' and shard < 8;
insert into ob.sink_declaration (sink, process, host) select name, '00000000-0000-4000-8000-000000000002', 'here' from ob.sink;
insert into ob.catch_up (sink, holds) values ('search', false);
insert into ob.removed_sink (sink, n) values ('old', 50000);
insert into ob.outbox (n, source, id, type, key, body, hash, envelope, created_at, published_at) overriding system value
select i, 'box', i::text, 't' || i % 20, 'k' || i % 2000, '{"n":1}', decode(md5(i::text), 'hex'), '{}',
  now() - (60000 - i) * interval '1 second', case when i <= 10000 then now() - interval '1 minute' end
from generate_series(1, 60000) i;
insert into ob.delivery (n, sink, shard, key, due_at, waiting, attempts, parked, error)
select n, case when n % 100 < 85 then 'broker' when n % 100 < 90 then 'search' when n % 100 < 91 then 'old' else '' end,
  n % 32, key, case when n % 100 in (80, 81) then now() + interval '1 hour' else created_at end, n % 100 in (80, 81) or n % 100 > 91,
  (n % 100 = 80)::int, case n % 100 when 70 then 'dead' when 71 then 'discarded' end, case when n % 100 = 70 then '{"message":"no"}' end
from ob.outbox where n > 10000;

insert into ob.quarantine (n, consumer, source, id, type, key, reason, detail, body, hash, envelope, received_at, discarded, via)
  overriding system value
select i, case when i % 3 = 0 then '' else 'orders' end, 's' || i % 4, i::text, 'u' || i % 30, 'k' || i % 2000,
  case i % 3 when 0 then 'unrouted' when 1 then 'conflict' else 'too-old' end, 'why', '{"n":1}', decode(md5(i::text), 'hex'), '{}',
  now() - (30000 - i) * interval '1 second', case when i % 10 = 5 then 'no use' end, case when i % 2 = 0 then 'topic' end
from generate_series(1, 30000) i;
insert into ob.audit (action, detail) select 'retry', '{}' from generate_series(1, 5000);
insert into ob.minute (consumer, at, received, pending, lag_ms, dead, quarantined)
select c, 'epoch'::timestamptz + ((extract(epoch from now()) / 60)::bigint - i) * interval '1 min', i, i % 100, i % 1000, 0, 0
from unnest(array['', 'orders', 'ledger', 'mail']) c, generate_series(1, 10000) i;
insert into ob.sink_minute (sink, at, published)
select k, 'epoch'::timestamptz + ((extract(epoch from now()) / 60)::bigint - i) * interval '1 min', i
from unnest(array['broker', 'search', 'old']) k, generate_series(1, 10000) i;

select setval('ob.seq', 1000000), setval(pg_get_serial_sequence('ob.outbox', 'n'), 1000000),
  setval(pg_get_serial_sequence('ob.quarantine', 'n'), 1000000);
`

/** The picture that plans are made by. */
export const TABLES = [
  ...['message', 'work', 'lane', 'handled', 'attempt', 'effect', 'quarantine', 'outbox', 'delivery', 'shard', 'audit'],
  ...['consumer', 'subscription', 'forgotten', 'sink', 'sink_set', 'sink_declaration', 'catch_up', 'removed_sink'],
  ...['minute', 'sink_minute'],
]
