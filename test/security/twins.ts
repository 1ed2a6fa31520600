/**
 * What somebody who may CREATE in `public` can put there: twins of everything that our statements call, for every type that
 * an argument of theirs may have. PostgreSQL takes the best match on the whole path, so a twin that fits the arguments
 * better than the original wins, although `pg_catalog` comes first. All of them raise when they run.
 */
import type pg from 'pg'

/** Every type that occurs in our statements, and those that they are converted to without being asked. */
const TYPES = [
  ...['text', 'varchar', 'bpchar', 'name', '"char"', 'bytea', 'json', 'jsonb', 'uuid', 'bool'],
  ...['int2', 'int4', 'int8', 'numeric', 'float4', 'float8', 'timestamptz', 'timestamp', 'date', 'interval'],
  ...['xid', 'xid8', 'tid', 'oid', 'regclass', 'text[]', 'int8[]', 'name[]', 'float4[]', 'jsonb[]'],
]

const OPERATORS = [...['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '~~'], ...['||', '->', '->>', '<@']]

export async function createTwins(client: pg.ClientBase, functions: readonly string[]): Promise<void> {
  await client.query('begin')
  await createOperators(client)
  await createFunctions(client, functions)
  await client.query('commit')
}

async function createOperators(client: pg.ClientBase): Promise<void> {
  await client.query(`do $do$
    declare a text; b text; o text;
    begin
      foreach a in array array[${TYPES.map(quoted).join(', ')}] loop
        foreach b in array array[${TYPES.map(quoted).join(', ')}] loop
          execute pg_catalog.format($f$create function public.hostile(%1$s, %2$s) returns bool language plpgsql
            as 'begin raise exception ''a hostile operator ran''; end'$f$, a, b);
          foreach o in array array[${OPERATORS.map(quoted).join(', ')}] loop
            execute pg_catalog.format(
              'create operator public.%1$s (leftarg = %2$s, rightarg = %3$s, function = public.hostile)', o, a, b);
          end loop;
        end loop;
      end loop;
    end $do$`)
}

/** The functions of these names, each again with any other type for one of its arguments. */
async function createFunctions(client: pg.ClientBase, names: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ name: string; types: string[]; variadic: boolean }>(
    `select distinct p.proname as name, p.provariadic operator(pg_catalog.<>) 0::oid as variadic,
       array(select pg_catalog.format_type(t, null) from pg_catalog.unnest(p.proargtypes) t)::text[] as types
     from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) p.pronamespace
     where n.nspname operator(pg_catalog.=) 'pg_catalog'::name and p.proname operator(pg_catalog.=) any ($1::name[])`,
    [names],
  )
  const signatures = new Set<string>()
  for (const { name, types, variadic } of rows) {
    if (variadic) for (let n = 1; n <= 8; n++) signatures.add(`${name}(${Array(n).fill('text').join(', ')})`)
    for (const twin of variants(types)) signatures.add(`${name}(${twin.join(', ')})`)
  }
  const body = `returns text language plpgsql as 'begin raise exception ''a hostile function ran''; end'`
  await client.query(
    [...signatures].map((signature) => `create or replace function public.${signature} ${body}`).join(';\n'),
  )
}

function variants(types: readonly string[]): string[][] {
  const concrete = types.map((type) => (type.includes('any') || type === 'internal' ? 'text' : type))
  return [concrete, ...concrete.flatMap((_, at) => TYPES.map((type) => concrete.with(at, type)))]
}

function quoted(text: string): string {
  return `'${text}'`
}
