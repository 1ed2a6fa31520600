/** The pages there are: one file each. All but the overview are loaded when they are first shown, or nobody is in a hurry. */
import type { ComponentType } from 'preact'
import { later } from '../components/later.js'
import type { PageName } from '../router.js'
import { OverviewPage } from './overview.js'

interface Page {
  /** In the breadcrumbs and in the title of the tab. */
  readonly title: string
  readonly Page: ComponentType
}

/** What is looked at together is loaded together. */
const inMessages = later(() => import('./of-messages.js'))
const inTrouble = later(() => import('./of-trouble.js'))
const inMore = later(() => import('./of-more.js'))
const inDialogs = later(() => import('./of-dialogs.js'), null)

export const BulkDialog = inDialogs.page('BulkHost')
export const JobLines = inDialogs.page('JobLines')
export const ConfirmDialog = inDialogs.page('ConfirmDialog')
export const HelpDialog = inDialogs.page('HelpDialog')

export const PAGE_OF: Readonly<Record<PageName, Page>> = {
  overview: { title: 'Overview', Page: OverviewPage },
  messages: { title: 'Messages', Page: inMessages.page('MessagesPage') },
  message: { title: 'Message', Page: inMessages.page('MessagePage') },
  failures: { title: 'Failures', Page: inTrouble.page('FailuresPage') },
  quarantine: { title: 'Quarantine', Page: inTrouble.page('QuarantinePage') },
  keys: { title: 'Keys', Page: inTrouble.page('KeysPage') },
  outbox: { title: 'Outbox', Page: inMore.page('OutboxPage') },
  doctor: { title: 'Doctor', Page: inMore.page('DoctorPage') },
  audit: { title: 'Audit', Page: inMore.page('AuditPage') },
  settings: { title: 'Settings', Page: inMore.page('SettingsPage') },
}

/** The next click finds its page there. */
export function loadTheRest(): void {
  for (const group of [inMessages, inTrouble, inMore, inDialogs]) group.load()
}

export function titleOfPage(page: PageName | undefined): string {
  return page === undefined ? 'Not found' : PAGE_OF[page].title
}
