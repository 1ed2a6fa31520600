/** So many a second. Zero is grey, and so is what nobody recorded. */
import { rate } from '../logic/format.js'

export function Speed({ of }: { of: number | undefined }) {
  return <span class={of === undefined || of < 0.05 ? 'nil' : ''}>{of === undefined ? '–' : rate(of)}</span>
}
