/** Dialogs that nobody sees at first. */
export { BulkHost } from '../components/bulk/host.js'
export { HelpDialog } from '../components/help-dialog.js'
