/** Statements that fill a box past its front door: messages that were handled, and after them some that wait, a fifth of a second apart. */
export function filled({ handled, pending }) {
  const all = handled + pending
  const at = `now() - (${all} - i) * interval '0.2 second'`
  return [
    `insert into ob.consumer (name, ordered, retain_ms) values ('orders', false, 2592000000), ('ledger', true, 2592000000), ('mail', false, 2592000000)`,
    `insert into ob.message (consumer, source, id, type, key, body, hash, envelope, received_at, n)
   select case when i % 10 < 6 then 'orders' when i % 10 < 9 then 'ledger' else 'mail' end, 'shop', i::text, 't' || i % 10,
     'k' || i % 20000, '{"orderId":"' || i || '","quantity":1}', sha256(i::text::bytea), '{}', ${at}, i
   from generate_series(1, ${all}) i`,
    `insert into ob.handled (n, at) select i, ${at} + interval '1 second' from generate_series(1, ${handled}) i`,
    `insert into ob.work (consumer, source, id, seq, lane, due_at, token)
   select consumer, source, id, n, case when consumer = 'ledger' then key end,
     case when consumer = 'orders' and n % 1000 = 1 then now() + interval '1 hour' else received_at end,
     case when consumer = 'orders' and n % 1000 = 1 then gen_random_uuid() end
   from ob.message where n > ${handled}`,
    `insert into ob.lane (consumer, key, due_at, token) select 'ledger', lane,
     case when lane like 'k11%' then now() + interval '1 hour' else min(due_at) end, case when lane like 'k11%' then gen_random_uuid() end
   from ob.work where lane is not null group by lane`,
    `insert into ob.quarantine (consumer, source, id, type, reason, detail, body, hash, received_at)
   select 'orders', 'shop', i::text, 't1', 'conflict', 'why', '{}', sha256(i::text::bytea), now() - (20000 - i) * interval '1 minute'
   from generate_series(1, 20000) i`,
    `insert into ob.sink (name) values ('broker')`,
    `insert into ob.shard (sink, shard) select 'broker', g from generate_series(0, 31) g`,
    `insert into ob.outbox (source, id, type, key, body, envelope, published_at)
   select 'box', i::text, 't' || i % 10, 'k' || i % 20000, '{}', '{}', case when i <= ${pending * 0.9} then now() end from generate_series(1, ${pending}) i`,
    `insert into ob.delivery (n, sink, shard, key, due_at)
   select n, 'broker', n % 32, key, created_at from ob.outbox where n > ${pending * 0.9}`,
    `select setval('ob.seq', ${all})`,
  ]
}
