/** "12 new" beside the head of a list that stays as it is until the reader wants to see them. It takes no place from the list. */
import { count } from '../logic/format.js'
import { Button } from './button.js'

export function News({ n, onShow }: { n: number; onShow(): void }) {
  if (n === 0) return null
  return (
    <Button icon="retry" onClick={onShow}>
      {n > 0 ? `Show ${count(n)} new` : `${count(-n)} fewer, read again`}
    </Button>
  )
}
