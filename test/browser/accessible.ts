/** axe on a page as it is right now. It comes over the protocol of the debugger, which no policy of the page is in the way of. */
import { createRequire } from 'node:module'
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
let source: Promise<string> | undefined

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/** Everything of WCAG 2.2 AA that a program can check, and axe's advice on landmarks and headings. */
export async function expectAccessible(page: Page): Promise<void> {
  const found = (await violationsOn(page)).map(({ id, help, nodes }) => ({
    id,
    help,
    nodes: nodes.slice(0, 5).map(({ html, failureSummary }) => `${html}: ${failureSummary ?? ''}`),
  }))
  expect(found).toEqual([])
}

export async function violationsOn(page: Page): Promise<readonly Violation[]> {
  source ??= readFile(AXE, 'utf8')
  const session = await page.context().newCDPSession(page)
  try {
    await evaluate(session, `void (globalThis.axe ?? (() => { ${await source}\n })())`)
    return (await evaluate(session, `axe.run(document).then(({ violations }) => violations)`)) as Violation[]
  } finally {
    await session.detach()
  }
}

type Session = Awaited<ReturnType<ReturnType<Page['context']>['newCDPSession']>>

async function evaluate(session: Session, expression: string): Promise<unknown> {
  const answer = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
  if (answer.exceptionDetails) {
    throw new Error(answer.exceptionDetails.exception?.description ?? answer.exceptionDetails.text)
  }
  return answer.result.value
}
