/** Loaded together: what needs a person. */
export { FailuresPage } from './failures.js'
export { KeysPage } from './keys.js'
export { QuarantinePage } from './quarantine.js'
