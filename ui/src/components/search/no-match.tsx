/** Nothing matches: every term can be dropped by itself. */
import { piecesOf, textOf, without } from '../../logic/query.js'
import { visible } from '../../logic/visible.js'
import { Button } from '../button.js'
import { Empty } from '../empty.js'

interface Props {
  q: string
  onSearch(q: string): void
  /** There is more to look through. */
  onFurther?: (() => void) | undefined
}

export function NoMatch({ q, onSearch, onFurther }: Props) {
  const pieces = piecesOf(q)
  if (onFurther) {
    return (
      <Empty icon="search" title="Nothing yet" level={2} actions={<Button onClick={onFurther}>Look further</Button>}>
        The newest messages were looked through, and none of them matches. There are older ones.
      </Empty>
    )
  }
  if (pieces.length === 0) {
    return (
      <Empty icon="messages" title="No message yet" level={2}>
        Nothing was received by this box. What your sources deliver appears here by itself.
      </Empty>
    )
  }
  return (
    <Empty
      icon="search"
      title="No message matches"
      level={2}
      actions={
        <>
          {pieces.map((piece, n) => (
            <Button small onClick={() => onSearch(without(q, n))} key={n}>
              {`Drop ${visible(textOf(piece))}`}
            </Button>
          ))}
          {pieces.length > 1 && (
            <Button small onClick={() => onSearch('')}>
              Drop all
            </Button>
          )}
        </>
      }
    >
      Each part of the search has to fit. Drop one that may be too much.
    </Empty>
  )
}
