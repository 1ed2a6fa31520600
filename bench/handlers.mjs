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

/** Tables of the business: what the handlers write. */
export const BUSINESS = `
  create schema bench;
  create table bench.effect (n bigint generated always as identity primary key, id text not null, sku int not null,
    quantity int not null);
  create table bench.stock (sku int primary key, reserved int not null default 0);`
