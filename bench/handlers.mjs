/**
 * What the handlers do: the same statements for the library and for the hand-written limit. All are prepared by name,
 * and awaited one by one.
 */
const ADD_EFFECT = {
  name: 'bench_effect',
  text: 'insert into bench.effect (id, sku, quantity) values ($1, $2, $3)',
}
const ADD_EFFECTS = {
  name: 'bench_effects',
  text: `insert into bench.effect (id, sku, quantity)
    select x->>0, (x->>1)::int, (x->>2)::int from jsonb_array_elements($1::text::jsonb) x`,
}
const LOOK_UP = { name: 'bench_look_up', text: 'select reserved from bench.stock where sku = $1' }
const RESERVE = {
  name: 'bench_reserve',
  text: 'update bench.stock set reserved = reserved + 1 where sku = $1',
}

/** One INSERT for each message. */
export function addEffect(client, { orderId, sku, quantity }) {
  return client.query({ ...ADD_EFFECT, values: [orderId, sku, quantity] })
}

/** One INSERT … SELECT for all of them. */
export function addEffects(client, list) {
  return client.query({
    ...ADD_EFFECTS,
    values: [JSON.stringify(list.map(({ orderId, sku, quantity }) => [orderId, sku, quantity]))],
  })
}

/** The hello world: one UPDATE of a row that other messages update too. */
export function reserve(client, { sku }) {
  return client.query({ ...RESERVE, values: [sku] })
}

/** Three statements, none of which depends on another message: look, insert, update. */
export async function fulfil(client, data) {
  await client.query({ ...LOOK_UP, values: [data.sku] })
  await addEffect(client, data)
  await reserve(client, data)
}

/** What a handler may do to each message. `stock`: the rows of it, of so many messages; `skuOf`: which one a message is about. */
export const HANDLERS = {
  insert: { title: 'one INSERT', work: addEffect },
  update: {
    title: `one UPDATE of one of 100 shared rows`,
    work: reserve,
    stock: () => 100,
    skuOf: (i) => Math.floor(Math.abs(Math.sin(i + 1)) * 1e9) % 100,
  },
  three: { title: 'SELECT, INSERT and UPDATE of its own row', work: fulfil, stock: (count) => count, skuOf: (i) => i },
  none: { title: 'no statement', work: async () => undefined },
}

/** Tables of the business: what the handlers write. */
export const BUSINESS = `
  create schema bench;
  create table bench.effect (n bigint generated always as identity primary key, id text not null, sku int not null,
    quantity int not null);
  create table bench.stock (sku int primary key, reserved int not null default 0);`
