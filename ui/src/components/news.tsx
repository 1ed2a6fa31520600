/** "12 new" above a list that stays as it is until the reader wants to see them. */
import { plural } from '../logic/format.js'
import { Banner } from './banner.js'
import { Button } from './button.js'

export function News({ n, what, onShow }: { n: number; what: string; onShow(): void }) {
  if (n === 0) return null
  const words =
    n > 0 ? `${plural(n, what)} more since this list was read.` : `${plural(-n, what)} fewer since this list was read.`
  return (
    <Banner
      tone="calm"
      icon="retry"
      end={
        <Button small onClick={onShow}>
          Show
        </Button>
      }
    >
      {words}
    </Banner>
  )
}
