/**
 * Imports point one way: admin → inbox → outbox, effects → worker, postgres → message, errors.
 * Brokers see only the latter and their own seams, nothing imports testing, and box.ts and index.ts wire everything.
 */
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('./src/', import.meta.url))

/** The files of src/ itself. Any that is not listed is a leaf, such as message.ts and errors.ts. */
const WIRING = [
  'box.ts',
  'assembly.ts',
  'arrive.ts',
  'box-life.ts',
  'box-type.ts',
  'drain.ts',
  'config.ts',
  'index.ts',
  'health.ts',
  'advice.ts',
  'metering.ts',
  'parts.ts',
]
/** What every step of the flow is given. */
const SHARED = ['about.ts', 'hooks.ts', 'runtime.ts', 'box-options.ts', 'endpoint.ts']
/** What a broker is to the rest. */
const SEAMS = [
  ...[
    'source.ts',
    'sink.ts',
    'handover.ts',
    'cloudevents.ts',
    'percent.ts',
    'written-members.ts',
    'codec.ts',
    'unmapped.ts',
    'stand-in.ts',
    'event.ts',
    'read.ts',
    'lanes.ts',
    'run.ts',
  ],
  ...['in-order.ts', 'redelivery.ts', 'reopening.ts', 'send.ts', 'sides.ts'],
]

/** A part of src/ → the parts it may import, besides itself. */
const GROUND = ['leaf', 'worker', 'postgres', 'seam', 'telemetry', 'metrics']
const FLOW = [...GROUND, 'shared', 'inbox', 'outbox', 'effects']
const MAY_IMPORT = {
  leaf: [],
  telemetry: ['leaf'],
  worker: ['leaf', 'postgres', 'seam'],
  postgres: ['leaf'],
  metrics: ['leaf', 'postgres', 'telemetry'],
  clients: ['leaf', 'postgres'],
  seam: ['leaf'],
  http: ['leaf'],
  brokers: ['leaf', 'seam', 'http'],
  shared: GROUND,
  outbox: [...GROUND, 'shared'],
  effects: [...GROUND, 'shared'],
  inbox: FLOW,
  admin: FLOW,
  wiring: [...FLOW, 'admin'],
  idempotency: ['leaf', 'shared', 'http', 'postgres', 'wiring'],
  monitoring: ['leaf', 'http', 'metrics', 'wiring'],
  testing: [...FLOW, 'admin', 'wiring'],
  nest: [...FLOW, 'wiring'],
  cli: ['leaf', 'postgres', 'seam', 'shared', 'admin', 'wiring', 'http', 'dashboard'],
  dashboard: [...FLOW, 'admin', 'wiring', 'http'],
}

/** Database clients, brokers and ORMs are the user's: the core names their shapes, and imports none of them. */
const TYPES_FROM_PACKAGES = new Set(['postgres', 'clients', 'brokers', 'testing'])

/** A framework is another matter: its decorators and classes are what its part is made of, and it is imported by itself. */
const PACKAGES = { nest: ['@nestjs/common', '@nestjs/core', '@nestjs/terminus'] }

/** @type {import('eslint').Rule.RuleModule} */
const oneWay = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      wrongWay: '{{from}} must not import {{to}}: imports point one way, see eslint.layers.js',
      package: '{{from}} must not import {{to}}: the core has no dependency; take a structural type instead',
      unknown: '{{from}} is not a part of src/ that eslint.layers.js knows: say there what it may import',
    },
  },
  create(context) {
    const file = path.relative(SOURCE, context.filename)
    const from = partOf(file)
    if (!(from in MAY_IMPORT)) {
      return { Program: (node) => context.report({ node, messageId: 'unknown', data: { from } }) }
    }

    const check = (node, specifier, typeOnly) => {
      if (typeof specifier !== 'string' || specifier.startsWith('node:')) return
      if (!specifier.startsWith('.')) {
        if (!(typeOnly && TYPES_FROM_PACKAGES.has(from)) && !PACKAGES[from]?.includes(specifier)) {
          context.report({ node, messageId: 'package', data: { from, to: specifier } })
        }
        return
      }
      const target = path.relative(SOURCE, path.resolve(path.dirname(context.filename), specifier))
      const to = partOf(target)
      const allowed = to === from ? sameBroker(file, target) : MAY_IMPORT[from].includes(to)
      if (!allowed) context.report({ node, messageId: 'wrongWay', data: { from, to } })
    }

    return {
      ImportDeclaration: (node) => check(node.source, node.source.value, node.importKind === 'type'),
      ExportNamedDeclaration: (node) =>
        node.source && check(node.source, node.source.value, node.exportKind === 'type'),
      ExportAllDeclaration: (node) => check(node.source, node.source.value, node.exportKind === 'type'),
      TSImportType: (node) => check(node, node.argument?.literal?.value ?? node.source?.value, true),
      ImportExpression(node) {
        // A package that is loaded when it is asked for, such as the test kit's PGlite, is no dependency of the core.
        if (node.source.type === 'Literal' && String(node.source.value).startsWith('.'))
          check(node, node.source.value, false)
      },
    }
  },
}

function partOf(file) {
  const [head, second] = file.replace(/\.js$/, '.ts').split(path.sep)
  if (head === '..') return 'what is outside src/'
  if (second === undefined) return WIRING.includes(head) ? 'wiring' : SHARED.includes(head) ? 'shared' : 'leaf'
  return head === 'brokers' && SEAMS.includes(second) ? 'seam' : head
}

/** Each broker is a folder of its own, and knows no other. */
function sameBroker(file, target) {
  const [head, broker] = file.split(path.sep)
  return head !== 'brokers' || partOf(file) === 'seam' || target.split(path.sep)[1] === broker
}

export default { rules: { 'one-way': oneWay } }
