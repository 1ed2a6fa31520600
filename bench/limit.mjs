/**
 * The limit: the same work in hand-written SQL on pg directly, as somebody would write it who does nothing else.
 *
 * It does: durable commits; a dedup journal with hash and retention index, and a narrow work table (one row for each
 * message that is not settled), or lanes where order matters; claims of a batch by lease under a random token, noting
 * suspects; the handlers' statements, one after the other; a settlement as the last statement of the transaction,
 * which raises unless every row still carries the token and the transaction is the one that was begun. BEGIN shares a
 * trip with the first statement and COMMIT with the last (pg's pipeline mode). All statements are prepared by name.
 *
 * It does not: check or canonicalise what comes in, know several consumers, types or subscriptions, judge age, keep
 * envelopes, quarantine, extend leases, bound the wait for locks, catch a handler that ends its transaction, watch over
 * unanswered statements, time out, retry, bisect or stop gracefully. That is what the ratio to it pays for.
 */
import { hash, randomUUID } from 'node:crypto'
import pg from 'pg'
import { addEffect, addEffects } from './handlers.mjs'
import { chunks, inFlight } from './messages.mjs'

const TABLES = `
create schema lim;
create table lim.message (
  consumer text collate "C" not null, source text collate "C" not null, id text collate "C" not null,
  type text collate "C" not null, key text collate "C", body text not null, hash bytea,
  received_at timestamptz not null default statement_timestamp(), result text,
  primary key (consumer, source, id)) with (fillfactor = 95);
create index on lim.message (consumer, received_at);
create sequence lim.seq;
create table lim.work (
  consumer text collate "C" not null, source text collate "C" not null, id text collate "C" not null,
  seq bigint not null default nextval('lim.seq'), key text collate "C", due_at timestamptz, token uuid,
  suspect boolean not null default false, attempts int not null default 0, error text,
  primary key (consumer, source, id))
  with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index on lim.work (consumer, due_at, seq) where key is null;
create index on lim.work (consumer, key, seq) where key is not null;
create table lim.lane (
  consumer text collate "C" not null, key text collate "C" not null, due_at timestamptz not null, token uuid,
  suspect boolean not null default false, dirty boolean not null default false, blocked boolean not null default false,
  primary key (consumer, key))
  with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index on lim.lane (consumer, due_at) where due_at < 'infinity';`

/** Every statement names its consumer 'c'; they are texts of their own, so each gets its own plan. */
const RECEIVE = statement(`
with m as materialized (
  select distinct on (e->>'s', e->>'i') ord, e->>'s' s, e->>'i' id, e->>'t' t, e->>'b' b, decode(e->>'h', 'hex') h
  from jsonb_array_elements($1::text::jsonb) with ordinality x(e, ord) order by e->>'s', e->>'i', ord),
ins as (
  insert into lim.message (consumer, source, id, type, body, hash) select 'c', s, id, t, b, h from m
  order by s collate "C", id collate "C" on conflict do nothing returning source, id),
w as (
  insert into lim.work (consumer, source, id, due_at)
  select 'c', m.s, m.id, statement_timestamp() from ins join m on m.s = ins.source and m.id = ins.id order by m.ord
  returning source, id)
select coalesce(jsonb_agg(jsonb_build_array(source, id)), '[]')::text new from w`)

const RECEIVE_ONE = statement(`
with ins as (
  insert into lim.message (consumer, source, id, type, body) values ('c', $1, $2, $3, $4)
  on conflict do nothing returning source, id)
insert into lim.work (consumer, source, id, due_at) select 'c', source, id, statement_timestamp() from ins returning id`)

const RECEIVE_KEYED = statement(`
with m as materialized (
  select distinct on (e->>'s', e->>'i') ord, e->>'s' s, e->>'i' id, e->>'t' t, e->>'k' k, e->>'b' b,
    decode(e->>'h', 'hex') h
  from jsonb_array_elements($1::text::jsonb) with ordinality x(e, ord) order by e->>'s', e->>'i', ord),
ins as (
  insert into lim.message (consumer, source, id, type, key, body, hash) select 'c', s, id, t, k, b, h from m
  order by s collate "C", id collate "C" on conflict do nothing returning source, id, key),
ln as (
  insert into lim.lane as l (consumer, key, due_at)
  select 'c', key, statement_timestamp() from (select distinct key from ins) d order by key
  on conflict (consumer, key) do update set dirty = true,
    due_at = case when l.due_at = 'infinity' and l.token is null and not l.blocked then excluded.due_at
      else l.due_at end
  returning key),
w as (
  insert into lim.work (consumer, source, id, seq, key)
  select 'c', s, id, nextval('lim.seq'), key from (
    select m.s, m.id, ins.key from ins join m on m.s = ins.source and m.id = ins.id join ln on ln.key = ins.key
    order by m.ord) o
  returning source, id)
select coalesce(jsonb_agg(jsonb_build_array(source, id)), '[]')::text new from w`)

const CLAIM = statement(`
with c as (
  update lim.work w set suspect = (w.token is not null), token = $2::uuid, due_at = statement_timestamp() + interval '30 s'
  where w.ctid = any (array(
    select ctid from lim.work where consumer = 'c' and key is null and due_at <= statement_timestamp()
    order by due_at, seq limit (select $1::int) for update skip locked))
  returning *)
select c.source, c.id, c.seq::text, c.attempts, c.suspect, m.body from c
cross join lateral (select body from lim.message m
  where m.consumer = c.consumer and m.source = c.source and m.id = c.id limit 1) m
order by c.seq`)

const XID = statement(`select pg_current_xact_id()::text xid`)

/** One look at the index for each row: as a join, a plan made on an empty table reads the whole backlog. */
const SETTLE = statement(`
with d as (
  delete from lim.work w
  where w.token = $2::uuid and pg_current_xact_id() = $4::xid8 and w.ctid = any (array(
    select x.ctid from jsonb_array_elements($1::text::jsonb) u cross join lateral (select w.ctid from lim.work w
      where w.consumer = 'c' and w.source = u->>0 and w.id = u->>1 limit 1) x))
  returning 1)
select 1 / (case when count(*) = $3::int then 1 else 0 end) from d`)

const MARK = statement(`
with m as materialized (
  select distinct on (e->>'s', e->>'i') e->>'s' s, e->>'i' id, e->>'t' t, e->>'b' b, decode(e->>'h', 'hex') h
  from jsonb_array_elements($1::text::jsonb) e order by e->>'s', e->>'i'),
ins as (
  insert into lim.message (consumer, source, id, type, body, hash) select 'c', s, id, t, b, h from m
  order by s collate "C", id collate "C" on conflict do nothing returning source, id),
re as (
  delete from lim.work w using m
  where w.consumer = 'c' and w.source = m.s and w.id = m.id and w.due_at = 'infinity' and w.token is null
    and not exists (select 1 from ins where ins.source = m.s and ins.id = m.id)
  returning w.source, w.id, w.attempts)
select source, id, 0 attempts from ins union all select source, id, attempts from re`)

const SETTLE_INLINE = statement(`select 1 / (case when pg_current_xact_id() = $1::xid8 then 1 else 0 end)`)

const CLAIM_LANES = statement(`
update lim.lane l set suspect = (l.token is not null), token = $2::uuid, dirty = false,
  due_at = statement_timestamp() + interval '30 s'
where l.ctid = any (array(
  select ctid from lim.lane where consumer = 'c' and due_at <= statement_timestamp() and due_at < 'infinity'
  order by due_at limit (select $1::int) for update skip locked))
returning key, suspect`)

const READ_LANES = statement(`
select w.source, w.id, w.key, w.seq::text, w.attempts, m.body from jsonb_array_elements_text($1::text::jsonb) k(key)
cross join lateral (select * from lim.work w where w.consumer = 'c' and w.key = k.key order by w.seq limit $2::int) w
cross join lateral (select body from lim.message m
  where m.consumer = w.consumer and m.source = w.source and m.id = w.id limit 1) m
order by w.key, w.seq`)

const SETTLE_LANES = statement(`
with p as materialized (select $1::text::jsonb j),
r as materialized (select e->>0 k, (e->>1)::boolean more from p, jsonb_array_elements(j->'rel') e order by (e->>0) collate "C"),
l as materialized (
  select x.key, x.ctid tid from r cross join lateral (select l.key, l.ctid from lim.lane l
    where l.consumer = 'c' and l.key = r.k and l.token = $2::uuid limit 1 for update) x),
u as (
  update lim.lane x set token = null, suspect = false, dirty = false,
    due_at = case when x.dirty or r.more then statement_timestamp() else 'infinity' end
  from r where x.ctid = any (array(select tid from l)) and x.key = r.k returning 1),
d as (
  delete from lim.work w where w.ctid = any (array(
    select x.ctid from p, jsonb_array_elements(j->'done') e cross join lateral (select w.ctid from lim.work w
      where w.consumer = 'c' and w.source = e->>0 and w.id = e->>1 limit 1) x))
  returning 1)
select 1 / (case when (select count(*) from u) = (select count(*) from r)
  and (select count(*) from d) = jsonb_array_length(j->'done') and pg_current_xact_id() = $3::xid8
  then 1 else 0 end) from p`)

function statement(text) {
  return { name: `limit_${hash('sha256', text, 'hex').slice(0, 16)}`, text }
}

export class Limit {
  #url
  #clients = []
  #turn = 0
  #effect

  /** `effect` is what the handler does to a message. */
  constructor(url, { effect = addEffect } = {}) {
    this.#url = url
    this.#effect = effect
  }

  async open(connections) {
    const admin = new pg.Client({ connectionString: this.#url })
    await admin.connect()
    await admin.query(`drop schema if exists lim cascade; ${TABLES}`)
    await admin.end()
    this.#clients = await Promise.all(
      Array.from({ length: connections }, async () => {
        const client = new pg.Client({ connectionString: this.#url, pipeline: true })
        await client.connect()
        return client
      }),
    )
  }

  async close() {
    await this.#clients[0].query('drop schema lim cascade')
    await this.end()
  }

  /** Leaves its tables for whoever wants to look at them. */
  async end() {
    await Promise.all(this.#clients.map((client) => client.end()))
  }

  /** Tables to truncate before, and to vacuum after loading. */
  get tables() {
    return ['lim.message', 'lim.work', 'lim.lane']
  }

  /** Is anything left to do? */
  get leftQuery() {
    return 'select count(*)::int n from lim.work'
  }

  /** Stores messages: batches of 1 000, so many in flight. */
  async receive(messages, { inFlight: many = 4, size = 1_000 } = {}) {
    const free = this.#clients.slice(0, many)
    const keyed = messages[0]?.key !== undefined
    await inFlight(many, chunks(messages, size), async (batch) => {
      const client = free.pop()
      try {
        const { rows } = await ask(client, keyed ? RECEIVE_KEYED : RECEIVE, [JSON.stringify(batch.map(row))])
        if (JSON.parse(rows[0].new).length !== batch.length) throw new Error('not all messages were new')
      } finally {
        free.push(client)
      }
    })
  }

  /** Stores one message. */
  async receiveOne(message) {
    const client = this.#clients[this.#turn++ % this.#clients.length]
    const { rows } = await ask(client, RECEIVE_ONE, [
      message.source,
      message.id,
      message.type,
      JSON.stringify(message.data),
    ])
    if (rows.length === 0) throw new Error('the message was not new')
  }

  /** Stored messages in groups: claim, then one transaction for so many of them. */
  drainGroups(connections, total, size) {
    return this.#drain(connections, total, size, async (client, part) => {
      for (const { body } of part) await this.#effect(client, JSON.parse(body))
    })
  }

  /** The same, with the statements of a group in one packet. */
  drainTogether(connections, total, size) {
    return this.#drain(connections, total, size, async (client, part) => {
      const { stream } = client.connection
      stream.cork()
      const answers = part.map(({ body }) => this.#effect(client, JSON.parse(body)))
      stream.uncork()
      await Promise.all(answers)
    })
  }

  #drain(connections, total, { claim, group }, handle) {
    return this.#workers(connections, total, async (client) => {
      const token = randomUUID()
      const { rows } = await ask(client, CLAIM, [claim, token])
      for (const part of chunks(rows, group)) {
        await transaction(client, async (xid) => {
          await handle(client, part)
          return () => ask(client, SETTLE, [keysOf(part), token, part.length, xid])
        })
      }
      return rows.length
    })
  }

  /** One statement of the handler for the whole claim. */
  drainBatches(connections, total, size) {
    return this.#workers(connections, total, async (client) => {
      const token = randomUUID()
      const { rows } = await ask(client, CLAIM, [size, token])
      if (rows.length === 0) return 0
      await transaction(client, async (xid) => {
        const data = rows.map(({ body }) => JSON.parse(body))
        await addEffects(client, data)
        return () => ask(client, SETTLE, [keysOf(rows), token, rows.length, xid])
      })
      return rows.length
    })
  }

  /** On arrival: mark, run and commit, a group of `size` per transaction. */
  async handle(messages, { inFlight: many, size }) {
    const free = this.#clients.slice(0, many)
    await inFlight(many, chunks(messages, size), async (batch) => {
      const client = free.pop()
      try {
        await transaction(client, async (xid) => {
          const { rows } = await ask(client, MARK, [JSON.stringify(batch.map(row))])
          const ours = new Set(rows.map(({ source, id }) => `${source}\0${id}`))
          for (const { source, id, data } of batch) if (ours.has(`${source}\0${id}`)) await this.#effect(client, data)
          return () => ask(client, SETTLE_INLINE, [xid])
        })
      } finally {
        free.push(client)
      }
    })
  }

  /** Ordered by key: claim lanes, read them in a second statement, settle lanes and messages together. */
  drainLanes(connections, total, { lanes, group, handled }) {
    return this.#workers(connections, total, async (client) => {
      const token = randomUUID()
      const { rows: claimed } = await ask(client, CLAIM_LANES, [lanes, token])
      if (claimed.length === 0) return 0
      const depth = Math.max(1, Math.ceil(group / claimed.length))
      const keys = claimed.map(({ key }) => key)
      const { rows } = await ask(client, READ_LANES, [JSON.stringify(keys), depth])
      const counts = new Map()
      for (const { key } of rows) counts.set(key, (counts.get(key) ?? 0) + 1)
      const rel = keys.map((key) => [key, (counts.get(key) ?? 0) >= depth])
      await transaction(client, async (xid) => {
        for (const one of rows) {
          await this.#effect(client, JSON.parse(one.body))
          handled?.(one.key)
        }
        const done = rows.map(({ source, id }) => [source, id])
        return () => ask(client, SETTLE_LANES, [JSON.stringify({ rel, done }), token, xid])
      })
      return rows.length
    })
  }

  /** So many workers, until everything is done. */
  async #workers(connections, total, step) {
    let left = total
    const worker = async (client) => {
      while (left > 0) {
        const done = await step(client)
        left -= done
        // What is left is in the hands of others.
        if (done === 0) await new Promise((resolve) => setTimeout(resolve, 2))
      }
    }
    await Promise.all(this.#clients.slice(0, connections).map(worker))
  }
}

/** BEGIN shares a trip with the first statement, COMMIT with the settlement, which `work` answers how to send. */
async function transaction(client, work) {
  const [, { rows }] = await Promise.all([client.query('BEGIN'), ask(client, XID, [])])
  const settle = await work(rows[0].xid)
  const [, { command }] = await Promise.all([settle(), client.query('COMMIT')])
  if (command !== 'COMMIT') throw new Error('rolled back')
}

function ask(client, { name, text }, values) {
  return client.query({ name, text, values })
}

function keysOf(rows) {
  return JSON.stringify(rows.map(({ source, id }) => [source, id]))
}

function row({ id, source, type, key, data }) {
  const body = JSON.stringify(data)
  return { i: id, s: source, t: type, k: key, b: body, h: hash('sha256', body, 'hex') }
}
