/** A payload as a tree. A branch is read when it is opened, and its members come two hundred at a time. */
import { useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { bytes, count } from '../../logic/format.js'
import {
  levelOf,
  openAtFirst,
  PAGE,
  treeOf,
  type Branch,
  type Leaf,
  type Level,
  type Member,
  type Source,
} from '../../logic/payload.js'
import { Button } from '../button.js'
import { Shown } from '../shown.js'

const LONG = 2_000

interface Tree {
  readonly open: ReadonlySet<number>
  /** Reads so many members, once: of an object with a hundred thousand names that takes a while. */
  level(branch: Branch, most: number): Level
}

function planned(source: Source): { tree: Tree; root: Branch | Leaf } {
  const known = new Map<string, Level>()
  const level = (branch: Branch, most: number): Level => {
    const key = `${branch.place.from} ${most}`
    const read = known.get(key) ?? levelOf(source, branch, { most })
    known.set(key, read)
    return read
  }
  const root = treeOf(source)
  const open = openAtFirst(source, root, (_, branch) => level(branch, PAGE))
  return { tree: { open, level }, root }
}

export function PayloadTree({ source }: { source: Source }) {
  const { tree, root } = useMemo(() => planned(source), [source.text, source.redacted])
  return 'place' in root ? <BranchView tree={tree} branch={root} /> : <LeafView leaf={root} />
}

function BranchView({ tree, branch, member }: { tree: Tree; branch: Branch; member?: Member }) {
  const open = useSignal(tree.open.has(branch.place.from))
  const [begin, end] = branch.kind === 'object' ? ['{', '}'] : ['[', ']']
  const head = (
    <>
      {member && <Name member={member} />}
      <span class="p">{begin}</span>
    </>
  )
  if (branch.count === 0) {
    return (
      <>
        {head}
        <span class="p">{end}</span>
      </>
    )
  }
  return (
    <details open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>
        {head}
        <span class="m">{` ${branch.size} ${end}`}</span>
      </summary>
      {open.value && <Members tree={tree} branch={branch} />}
      <span class="p">{end}</span>
    </details>
  )
}

function Members({ tree, branch }: { tree: Tree; branch: Branch }) {
  const most = useSignal(PAGE)
  const { members, total } = tree.level(branch, most.value)
  return (
    <ul>
      {members.map((member, n) => (
        <li key={n}>
          {'place' in member.value ? (
            <BranchView tree={tree} branch={member.value} member={member} />
          ) : (
            <>
              <Name member={member} />
              <LeafView leaf={member.value} />
            </>
          )}
        </li>
      ))}
      {total > members.length && (
        <li>
          <Button small onClick={() => (most.value += PAGE)}>
            {`Show ${count(Math.min(PAGE, total - members.length))} of ${count(total - members.length)} more`}
          </Button>
        </li>
      )}
    </ul>
  )
}

function Name({ member: { name, isIndex, isOverruled } }: { member: Member }) {
  return (
    <>
      <span class={isIndex ? 'p' : 'k'}>{name === '' ? '""' : <Shown text={escaped(name)} />}</span>
      {isOverruled && (
        <>
          {' '}
          <span class="hid">again below, which counts</span>
        </>
      )}
      <span class="p">: </span>
    </>
  )
}

function LeafView({ leaf: { kind, text, label } }: { leaf: Leaf }) {
  if (kind === 'redacted') return <span class="hid">{text === '' ? 'redacted' : `redacted ${text}`}</span>
  return (
    <>
      {kind === 'string' ? <Words text={text} /> : <span class={kind === 'number' ? 'n' : 'w'}>{text}</span>}
      {label !== undefined && (
        <>
          {' '}
          <span class="hid">{label}</span>
        </>
      )}
    </>
  )
}

function Words({ text }: { text: string }) {
  const whole = useSignal(text.length <= LONG)
  if (whole.value) return <span class="s">"{<Shown text={escaped(text)} />}"</span>
  return (
    <>
      <span class="s">"{<Shown text={escaped(text.slice(0, LONG))} />}…</span>{' '}
      <Button small onClick={() => (whole.value = true)}>
        {`Show all ${bytes(text.length)}`}
      </Button>
    </>
  )
}

/** As JSON writes it between its quotes. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
