/** The client: what it loads, and what it makes of problems. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { createClient } from 'oncebox/dashboard/client'
import { ROOT } from '../docs/markdown.js'

/** Modules that are there at run time: imports of types are gone by then. */
function loaded(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen
  seen.add(file)
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  for (const [, clause = '', from = ''] of text.matchAll(
    /^(?:import|export)\s+((?:(?!from).)*?)\s*from '([^']+)'/gms,
  )) {
    if (clause.startsWith('type ')) continue
    if (from.startsWith('.')) loaded(path.join(path.dirname(file), from.replace(/\.js$/, '.ts')), seen)
    else seen.add(from)
  }
  return seen
}

test('a browser loads the client, the routes and the fields, and nothing of the server', () => {
  const names = ['client', 'fields', 'route', 'routes'].map((name) => `src/dashboard/${name}.ts`)
  expect([...loaded('src/dashboard/client.ts')].sort()).toEqual(names)
})

test('an answer that is not the dashboard’s is a problem like others', async () => {
  const proxy = createClient({
    url: '/ops',
    fetch: () => Promise.resolve(new Response('<h1>Bad gateway</h1>', { status: 502 })),
  })
  await expect(proxy.session({})).rejects.toMatchObject({ name: 'DashboardError', status: 502, code: 'INTERNAL' })
})

test('what is asked for is in the path, the query or the body, and nothing else is sent', async () => {
  const asked: [url: string, init: RequestInit][] = []
  const respond = (url: string, init: RequestInit): Promise<Response> => {
    asked.push([url, init])
    return Promise.resolve(Response.json({}))
  }
  const client = createClient({ url: 'https://ops.example.com/in box/', headers: { 'x-a': 'b' }, fetch: respond })
  await client.messages({ box: 'a/b', q: 'x&y=1', limit: 5, cursor: undefined })
  await client.pause({ box: 'a', consumer: 'c' })
  expect(asked.map(([url]) => url)).toEqual([
    'https://ops.example.com/in box/api/v1/boxes/a%2Fb/messages?q=x%26y%3D1&limit=5',
    'https://ops.example.com/in box/api/v1/boxes/a/pause',
  ])
  expect(asked[1]![1]).toMatchObject({
    method: 'POST',
    body: '{"consumer":"c"}',
    headers: { origin: 'https://ops.example.com', 'content-type': 'application/json', 'x-a': 'b' },
  })
})
