/** Loaded together: what is looked at now and then. */
export { AuditPage } from './audit.js'
export { DoctorPage } from './doctor.js'
export { OutboxPage } from './outbox.js'
export { SettingsPage } from './settings.js'
