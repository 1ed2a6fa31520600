/** The bar above every page: where the reader is, search, whether it is live, theme. */
import { ownCrumbs, type Crumb } from '../crumbs.js'
import { focusSearch } from '../search-focus.js'
import { link, problem, togglePaused } from '../live.js'
import { href, place } from '../router.js'
import { session } from '../session.js'
import { toggleTheme } from '../theme.js'
import { told } from '../told.js'
import { titleOfPage } from '../pages/index.js'
import { BoxSwitch } from './box-switch.js'
import { Button } from './button.js'
import { Environment } from './environment.js'
import { Icon, Mark } from './icon.js'

export function Topbar() {
  return (
    <header class="top">
      <a class="top-mark" href={href('overview')} aria-label={`${told.title}, overview`}>
        <Mark />
      </a>
      <Crumbs />
      <div class="top-right">
        {(session.value?.boxes.length ?? 0) > 1 && <BoxSwitch class="top-box" />}
        <Environment class="top-env" />
        <a class="find" href={href('messages')} onClick={(event) => focusSearch() && event.preventDefault()}>
          <Icon name="search" />
          <span>Search id, key, error, data…</span>
          <span class="kbd" aria-hidden="true">
            /
          </span>
        </a>
        <LiveButton />
        <Button kind="bare" icon="theme" class="theme" label="Change theme" onClick={toggleTheme} />
      </div>
    </header>
  )
}

export function crumbsNow(): readonly Crumb[] {
  return ownCrumbs.value ?? [{ text: titleOfPage(place.value?.page) }]
}

function Crumbs() {
  const crumbs = crumbsNow()
  return (
    <nav aria-label="Breadcrumb">
      <ol class="crumbs">
        {crumbs.map(({ text, href: to }, n) => (
          <li key={text}>
            {n === crumbs.length - 1 || to === undefined ? (
              <span class="clip" {...(n === crumbs.length - 1 && { 'aria-current': 'page' })}>
                {text}
              </span>
            ) : (
              <a href={to}>{text}</a>
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}

const WORDS = {
  connecting: 'Connecting',
  live: 'Live',
  polling: 'Every 5 s',
  lost: 'No connection',
  paused: 'Paused',
} as const

function LiveButton() {
  const at = link.value
  const stopped = at === 'paused'
  const word = at === 'lost' && problem.value !== undefined ? 'Not read' : WORDS[at]
  return (
    <button
      type="button"
      class={`btn btn-bare live live-${at}`}
      aria-pressed={stopped}
      aria-label={`${word}. ${stopped ? 'Resume' : 'Pause'} updates`}
      title={`${stopped ? 'Resume' : 'Pause'} updates (p)`}
      onClick={togglePaused}
    >
      <i />
      <span>{word}</span>
      <Icon name={stopped ? 'play' : 'pause'} />
    </button>
  )
}
