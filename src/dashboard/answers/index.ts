/**
 * What the routes answer: the contract of the JSON API. Times are ISO 8601 in UTC. Payloads are JSON in a text, exactly as they
 * were stored: parse it if numbers may be rounded, and print it if they may not.
 */
export type * from './change.js'
export type * from './history.js'
export type * from './message.js'
export type * from './overview.js'
export type * from './trouble.js'
