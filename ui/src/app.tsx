/** The shell: everything that is the same on every page. */
import { useEffect, useRef } from 'preact/hooks'
import { announced } from './announce.js'
import { bulk } from './components/bulk/open.js'
import { asked } from './components/confirm.js'
import { Empty } from './components/empty.js'
import { titleOf, wordsOf } from './components/failed.js'
import { Notices } from './components/notices.js'
import { PhoneMore } from './components/phone-more.js'
import { Sidebar } from './components/sidebar.js'
import { Toasts } from './components/toasts.js'
import { crumbsNow, Topbar } from './components/topbar.js'
import { Button } from './components/button.js'
import { helpOpen } from './keyboard.js'
import { jobs } from './live.js'
import { BulkDialog, ConfirmDialog, HelpDialog, JobLines, PAGE_OF } from './pages/index.js'
import { box, href, place, visits } from './router.js'
import { searchFocused, searchWanted } from './search-focus.js'
import { boxKnown, loadSession, session, sessionError } from './session.js'
import { useShellShortcuts } from './shell-shortcuts.js'
import { told } from './told.js'

export function App() {
  const main = useRef<HTMLElement>(null)
  useShellShortcuts()
  useEffect(() => {
    // Whoever hears the page is brought to what is new, as whoever sees it is.
    if (place.value?.page !== 'messages') searchWanted.value = false
    if (visits.value > 0 && !searchWanted.value && !searchFocused()) main.current?.focus({ preventScroll: true })
  }, [visits.value])
  const title = [...crumbsNow().map(({ text }) => text), told.title].join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
  return (
    <>
      <a
        class="skip"
        href={`${location.pathname}${location.search}#main`}
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to content
      </a>
      <div class="app">
        <Sidebar />
        <div class="main">
          <Topbar />
          <main class="page" id="main" tabIndex={-1} ref={main}>
            <Notices />
            <Content />
            <PhoneMore />
          </main>
        </div>
      </div>
      {helpOpen.value && <HelpDialog />}
      {asked.value && <ConfirmDialog />}
      {bulk.value && <BulkDialog />}
      <Toasts>{jobs.value.length > 0 && <JobLines />}</Toasts>
      <div class="vh" role="status" aria-live="polite">
        {announced}
      </div>
    </>
  )
}

function Content() {
  const at = place.value
  if (sessionError.value !== undefined && !session.value) {
    const error = sessionError.value
    return (
      <div class="panel">
        <Empty
          icon="plug"
          level={1}
          title={titleOf(error)}
          actions={<Button onClick={() => void loadSession()}>Try again</Button>}
        >
          {wordsOf(error)}
        </Empty>
      </div>
    )
  }
  if (!at) {
    return <Nowhere title="There is no such page">What you look for may have another address now.</Nowhere>
  }
  if (!boxKnown()) return <Nowhere title={`There is no box ${box.value}`}>Perhaps it has another name here.</Nowhere>
  const Page = PAGE_OF[at.page].Page
  // Another box is another page: nothing of the one before may be seen for a moment.
  return <Page key={`${at.page} ${box.value}`} />
}

function Nowhere({ title, children }: { title: string; children: string }) {
  const first = session.value?.boxes[0]?.name
  return (
    <div class="panel">
      <Empty
        icon="search"
        level={1}
        title={title}
        actions={
          <a class="btn" href={href('overview', {}, first)}>
            Overview
          </a>
        }
      >
        {children}
      </Empty>
    </div>
  )
}
