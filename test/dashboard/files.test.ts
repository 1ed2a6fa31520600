/** The files of the interface: as a build leaves them, under any base path, and nothing beside them. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { assetsIn, type Assets } from '../../src/dashboard/assets.js'
import { pageAt, tell } from '../../src/dashboard/page.js'

let directory: string
let assets: Assets

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'oncebox-ui-'))
  const ui = path.join(directory, 'ui')
  await mkdir(path.join(ui, 'assets'), { recursive: true })
  await writeFile(path.join(directory, 'secret.js'), 'secret')
  await writeFile(path.join(ui, 'index.html'), '<!doctype html><html lang="en"><head><title>x</title><script type="module" src="./assets/index-Dk3f9aB2.js"></script></head></html>')
  await writeFile(path.join(ui, 'favicon.svg'), '<svg/>')
  await writeFile(path.join(ui, 'assets/index-Dk3f9aB2.js'), 'export {}')
  await writeFile(path.join(ui, 'assets/index-Dk3f9aB2.css'), 'a{}')
  await writeFile(path.join(ui, 'assets/plain.js'), 'export {}')
  await writeFile(path.join(ui, 'assets/index-Dk3f9aB2.js.map'), '{}')
  await symlink(path.join(directory, 'secret.js'), path.join(ui, 'assets/linked.js'))
  assets = assetsIn(ui)
}) // prettier-ignore
afterAll(() => rm(directory, { recursive: true, force: true }))

test.for<[name: string, type: string, cache: string]>([
  ['assets/index-Dk3f9aB2.js', 'text/javascript; charset=utf-8', 'private, max-age=31536000, immutable'],
  ['assets/index-Dk3f9aB2.css', 'text/css; charset=utf-8', 'private, max-age=31536000, immutable'],
  ['assets/plain.js', 'text/javascript; charset=utf-8', 'no-cache'],
  ['favicon.svg', 'image/svg+xml', 'no-cache'],
])('%s is %s, and kept: %s', async ([name, type, cache]) => {
  expect(await assets(name)).toMatchObject({ type, cache })
})

test.for([
  'assets/../../secret.js',
  '../secret.js',
  'assets/linked.js',
  'assets',
  '',
  '/etc/passwd',
  'assets/index-Dk3f9aB2.js.map',
  'assets/none.js',
  'assets\\plain.js',
])('there is no %s', async (name) => {
  expect(await assets(name)).toBeUndefined()
})

test('the page is told where it is, what it is called and where it runs, and has no script of its own', async () => {
  const told = { base: '/ops/inbox', title: `A "B" <C> $& '`, environment: 'production', readOnly: true }
  const html = await pageAt(told, assets)
  expect(html).toContain('<base href="/ops/inbox/">')
  expect(html).toContain(
    'data-base="/ops/inbox" data-title="A &#34;B&#34; &#60;C&#62; $&#38; &#39;" data-environment="production" data-read-only=""',
  )
  expect(html).toContain(`<title>A &#34;B&#34; &#60;C&#62; $&#38; &#39;</title>`)
  expect(html.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="./assets/index-Dk3f9aB2.js">'])
  // Before anything that is named relative to it.
  expect(html.indexOf('<base')).toBeLessThan(html.indexOf('src='))
})

test('a base path cannot break out of its attribute', () => {
  expect(
    tell('<html><head></head></html>', { base: '/"><script>', title: 't', environment: undefined, readOnly: false }),
  ).not.toContain('<script>')
})

test('a file that could not be read is read again when it is asked for again', async () => {
  const place = path.join(directory, 'returning')
  await mkdir(place)
  const file = path.join(place, 'favicon.svg')
  await writeFile(file, '<svg/>')
  await writeFile(path.join(place, 'other.svg'), '<svg/>')
  const own = assetsIn(place)
  expect(await own('other.svg')).toBeDefined()
  await rm(file)
  await expect(own('favicon.svg')).rejects.toMatchObject({ code: 'ENOENT' })
  await writeFile(file, '<svg/>')
  expect(await own('favicon.svg')).toMatchObject({ type: 'image/svg+xml' })
})

test('files that could not be listed do not pass for a build that is not there', async () => {
  const place = path.join(directory, 'in-the-way')
  await writeFile(place, '')
  const own = assetsIn(place)
  await expect(own('favicon.svg')).rejects.toMatchObject({ code: 'ENOTDIR' })
  await rm(place)
  await mkdir(place)
  await writeFile(path.join(place, 'favicon.svg'), '<svg/>')
  expect(await own('favicon.svg')).toMatchObject({ type: 'image/svg+xml' })
})

test('without a build, the page says so', async () => {
  const told = { base: '', title: 'Shop', environment: undefined, readOnly: false }
  const html = await pageAt(told, assetsIn(path.join(directory, 'nothing')))
  expect(html).toContain('not part of this build')
  expect(html).toContain('<title>Shop</title>')
})
