/** The pages there are: one file each. */
import type { ComponentType } from 'preact'
import type { PageName } from '../router.js'
import { AuditPage } from './audit.js'
import { DoctorPage } from './doctor.js'
import { FailuresPage } from './failures.js'
import { KeysPage } from './keys.js'
import { MessagePage } from './message.js'
import { MessagesPage } from './messages.js'
import { OutboxPage } from './outbox.js'
import { OverviewPage } from './overview.js'
import { QuarantinePage } from './quarantine.js'
import { SettingsPage } from './settings.js'

interface Page {
  /** In the breadcrumbs and in the title of the tab. */
  readonly title: string
  readonly Page: ComponentType
}

export const PAGE_OF: Readonly<Record<PageName, Page>> = {
  overview: { title: 'Overview', Page: OverviewPage },
  messages: { title: 'Messages', Page: MessagesPage },
  message: { title: 'Message', Page: MessagePage },
  failures: { title: 'Failures', Page: FailuresPage },
  quarantine: { title: 'Quarantine', Page: QuarantinePage },
  keys: { title: 'Keys', Page: KeysPage },
  outbox: { title: 'Outbox', Page: OutboxPage },
  doctor: { title: 'Doctor', Page: DoctorPage },
  audit: { title: 'Audit', Page: AuditPage },
  settings: { title: 'Settings', Page: SettingsPage },
}

export function titleOfPage(page: PageName | undefined): string {
  return page === undefined ? 'Not found' : PAGE_OF[page].title
}
