/** No adapter reads a message outside of `guarded`: the next one is held to it as well. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const BROKERS = 'src/brokers'
/** Makes messages of our own events, not of what strangers sent. */
const NO_READER = ['link']
/** What readers are made of, of which each may throw. */
const PARTS = ['toIncoming', 'readEvent', 'readBinary', 'readStructured', 'readMapped', 'decodeWith', 'refusable']

const adapters = readdirSync(BROKERS, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !NO_READER.includes(entry.name))
  .map(({ name }) => name)

function isPart(node: ts.Node): boolean {
  return ts.isFunctionLike(node) && node.type !== undefined && node.type.getText() === 'Incoming'
}

function isGuard(node: ts.Node): boolean {
  return ts.isCallExpression(node) && node.expression.getText() === 'guarded'
}

/** Where a reader is used that is not guarded. */
function unguarded(text: string): string[] {
  const file = ts.createSourceFile('adapter.ts', text, ts.ScriptTarget.Latest, true)
  const parts = new Set(PARTS)
  const found: string[] = []
  for (const statement of file.statements) {
    if (!ts.isFunctionDeclaration(statement) || !isPart(statement)) continue
    parts.add(statement.name!.text)
    const isExported = statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    if (isExported) found.push(`${statement.name!.text} is exported`)
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || isPart(node) || isGuard(node)) return
    if (ts.isIdentifier(node) && parts.has(node.text)) {
      const isProperty = ts.isPropertyAccessExpression(node.parent) && node.parent.name === node
      if (!isProperty) found.push(`${node.text} is used in ${node.parent.getText().slice(0, 60)}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

test.for(adapters)('%s reads its messages through the guard', (adapter) => {
  const files = readdirSync(join(BROKERS, adapter)).map((name) => readFileSync(join(BROKERS, adapter, name), 'utf8'))
  expect(files.flatMap(unguarded)).toEqual([])
  expect(files.some((text) => /\bguarded\(/.test(text))).toBe(true)
})

test.for([
  [`export function read(raw: Raw): Incoming { return toIncoming(raw) }`, 'read is exported'],
  [`function read(raw: Raw): Incoming { return toIncoming(raw) }\nconst all = raws.map(read)`, 'read is used'],
  [`const all = raws.map((raw) => toIncoming(raw, received))`, 'toIncoming is used'],
] as const)('%j is found', ([text, problem]) => {
  expect(unguarded(text).join()).toContain(problem)
})
