import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { helloWorld } from './readme.js'

const fence = (info: string, text: string) => `\`\`\`${info}\n${text}\n\`\`\`\n`

test('the hello world is the block with its title, with its tables and its output', () => {
  const readme = [
    '# x',
    fence('ts', 'other()'),
    fence('ts title="hello.ts"', 'hello()'),
    fence('sql title="hello.sql"', 'create'),
  ]
  expect(helloWorld([...readme, fence('text title="output"', 'hi')].join('\n'))).toEqual({
    program: 'hello()\n',
    sql: 'create\n',
    output: 'hi\n',
  })
})

test('without a title it is the first TypeScript block', () => {
  const readme = [fence('sh', 'npm i'), fence('ts', 'first()'), fence('ts', 'second()')].join('\n')
  expect(helloWorld(readme)).toEqual({ program: 'first()\n', sql: undefined, output: undefined })
})

test('a README without one is an error', () => {
  expect(() => helloWorld('# nothing')).toThrow('no TypeScript block')
})

test('it is a program for Node as it stands, under the name that the README gives it', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const name = /run `node ([\w.]+)`/.exec(readme)?.[1]
  const project = await mkdtemp(path.join(tmpdir(), 'oncebox-readme-'))
  onTestFinished(() => rm(project, { recursive: true }))
  // As `npm init -y` of npm 11 writes it.
  await writeFile(path.join(project, 'package.json'), '{ "type": "commonjs" }')
  await writeFile(path.join(project, name!), helloWorld(readme).program)
  await promisify(execFile)(process.execPath, ['--check', name!], { cwd: project })
})
