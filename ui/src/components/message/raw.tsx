/** A payload as it is stored. A long one is in blocks, of which the browser lays out those that are seen. */
import { blocksOf } from '../../logic/blocks.js'
import { hexLines } from '../../logic/hex.js'
import { Shown } from '../shown.js'

const BLOCK = 16_384
const MOST_BYTES = 4_096
/** Of all blocks together. */
const MOST_PARTS = 1_000

export function Raw({ text, label }: { text: string; label: string }) {
  const blocks = blocksOf(text, BLOCK)
  return (
    <pre class="raw" tabIndex={0} role="group" aria-label={label}>
      {blocks.map((block, n) => (
        <span class={blocks.length > 1 ? 'raw-block' : ''} key={n}>
          <Shown text={block} most={Math.ceil(MOST_PARTS / blocks.length)} />
        </span>
      ))}
    </pre>
  )
}

export function Bytes({ base64, label }: { base64: string; label: string }) {
  return (
    <pre class="raw raw-hex" tabIndex={0} role="group" aria-label={label}>
      {hexLines(base64, MOST_BYTES).map(({ at, hex, letters }) => `${at}  ${hex}  ${letters}\n`)}
    </pre>
  )
}
