import { expect, test } from 'vitest'
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
