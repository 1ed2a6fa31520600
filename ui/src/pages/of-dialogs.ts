/** Dialogs, and what runs: nobody sees them at first. */
export { BulkHost } from '../components/bulk/host.js'
export { JobLines } from '../components/bulk/job-lines.js'
export { ConfirmDialog } from '../components/confirm-dialog.js'
export { HelpDialog } from '../components/help-dialog.js'
