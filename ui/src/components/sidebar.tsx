/** The sidebar: a rail on small desktops, tabs at the bottom of a phone. */
import { overview } from '../live.js'
import { count } from '../logic/format.js'
import { helpOpen } from '../keyboard.js'
import { box, href, place, type PageName } from '../router.js'
import { looksOnly, session } from '../session.js'
import { told } from '../told.js'
import { BoxSwitch } from './box-switch.js'
import { Environment } from './environment.js'
import { Icon, Mark, type IconName } from './icon.js'

interface Entry {
  readonly page: PageName & IconName
  readonly text: string
  /** How many need somebody. */
  readonly n?: number
  readonly tone?: 'dead' | 'quarantined' | 'warn'
  readonly of?: string
}

export const MORE: readonly Entry[] = [
  { page: 'outbox', text: 'Outbox' },
  { page: 'doctor', text: 'Doctor' },
  { page: 'audit', text: 'Audit' },
  { page: 'settings', text: 'Settings' },
]

export function Sidebar() {
  // A choice takes the whole row.
  const several = (session.value?.boxes.length ?? 0) > 1
  return (
    <aside class="side" aria-label="Box">
      <a class="brand" href={href('overview')} aria-label={`${told.title}, overview`}>
        <Mark />
        <span class="clip">{told.title}</span>
      </a>
      <div class="place">
        <div class="place-row">
          <BoxSwitch />
          {!several && <Environment />}
        </div>
        <div class="place-row faint">
          <code class="clip" title={schema()}>
            schema {schema()}
          </code>
        </div>
        {several && (
          <div class="place-row">
            <Environment />
          </div>
        )}
      </div>
      <nav aria-label="Main" class="nav">
        <MainEntries />
      </nav>
      <nav aria-label="More" class="nav nav-2">
        {MORE.map((entry) => (
          <NavLink key={entry.page} {...entry} />
        ))}
      </nav>
      <SideFoot />
    </aside>
  )
}

function MainEntries() {
  const now = overview.value
  const sum = (state: 'dead' | 'quarantined'): number => now?.consumers.reduce((all, one) => all + one[state], 0) ?? 0
  const entries: readonly Entry[] = [
    { page: 'overview', text: 'Overview' },
    { page: 'messages', text: 'Messages' },
    { page: 'failures', text: 'Failures', n: sum('dead'), tone: 'dead', of: 'dead' },
    { page: 'quarantine', text: 'Quarantine', n: sum('quarantined'), tone: 'quarantined', of: 'quarantined' },
    { page: 'keys', text: 'Keys', n: now?.blocked.keys ?? 0, tone: 'warn', of: 'blocked' },
  ]
  return (
    <>
      {entries.map((entry) => (
        <NavLink key={entry.page} {...entry} />
      ))}
    </>
  )
}

function NavLink({ page, text, n = 0, tone, of }: Entry) {
  const at = place.value?.page
  const current = at === page || (page === 'messages' && at === 'message')
  return (
    <a href={href(page)} title={text} {...(current && { 'aria-current': 'page' })}>
      <Icon name={page} />
      <span>{text}</span>
      {n > 0 && (
        <span class={`n n-${tone}`}>
          {count(n)}
          <span class="vh"> {of}</span>
        </span>
      )}
    </a>
  )
}

function SideFoot() {
  const server = overview.value?.server
  const who = session.value
  const version = /^[\d.]+/.exec(server?.version ?? '')?.[0]
  return (
    <div class="side-foot">
      <div>
        <span>PostgreSQL {version ?? '…'}</span>
        <span>{server && `${server.ms} ms`}</span>
      </div>
      <div>
        <span class="clip">{who?.user ?? 'nobody signed in'}</span>
        <span>{who && (looksOnly() ? 'read-only' : who.may.length >= 6 ? 'all' : 'some')}</span>
      </div>
      <button type="button" class="side-help" onClick={() => (helpOpen.value = true)}>
        <span>Shortcuts</span>
        <span class="kbd">?</span>
      </button>
    </div>
  )
}

function schema(): string {
  return session.value?.boxes.find(({ name }) => name === box.value)?.schema ?? '…'
}
