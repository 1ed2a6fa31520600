/** Stacks: one's own frames are told from those of libraries. */
import { expect, test } from 'vitest'
import { linesOf } from '../../ui/src/logic/stack.js'

const STACK = `GatewayTimeout: POST gave no answer
    at a second line of the message
    at charge (/app/src/gateway.ts:88:13)
    at async effect (file:///app/src/charge.ts:41:22)
    at runEffect (file:///app/node_modules/oncebox/dist/effects/run.js:112:20)
    at a (/app/node_modules/x/a.js:1:1)
    at b (/app/node_modules/x/b.js:1:1)
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)
    at own2 (/app/src/own.ts:1:1)
    at TCPConnectWrap.afterConnect (node:net:1637:16)`

test('own frames stay, and of a run of library frames the first', () => {
  expect(linesOf(STACK).map(({ kind, text }) => [kind, text.trim()])).toEqual([
    ['own', 'at a second line of the message'],
    ['own', 'at charge (/app/src/gateway.ts:88:13)'],
    ['own', 'at async effect (file:///app/src/charge.ts:41:22)'],
    ['library', 'at runEffect (file:///app/node_modules/oncebox/dist/effects/run.js:112:20)'],
    ['fold', '… 3 frames in node_modules and Node.js'],
    ['own', 'at own2 (/app/src/own.ts:1:1)'],
    ['library', 'at TCPConnectWrap.afterConnect (node:net:1637:16)'],
  ])
})

test('a fold has its frames', () => {
  const fold = linesOf(STACK).find((line) => line.kind === 'fold')
  expect(fold?.kind === 'fold' && fold.frames.map(({ text }) => text.trim().slice(0, 4))).toEqual([
    'at a',
    'at b',
    'at p',
  ])
})

test('a stack without frames has no lines', () => {
  expect(linesOf('Error: nothing more')).toEqual([])
  expect(linesOf('')).toEqual([])
})

test('a stack of a thousand lines is cut off', () => {
  expect(linesOf(`Error: x\n${'    at own (/app/src/a.ts:1:1)\n'.repeat(5_000)}`).length).toBeLessThan(600)
})
