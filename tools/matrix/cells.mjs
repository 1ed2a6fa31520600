/** What `engines`, `peerDependencies` and the docs promise to work with, cell by cell, and the tests that show it. */

/** What touches the server: every statement, and every driver. */
const CORE = ['test/inbox', 'test/drivers', 'test/outbox', 'test/effects', 'test/admin', 'test/link', 'test/testing']
/** What touches clients: the conformance suites and the tests beside them. */
const CLIENTS = [
  'test/drivers',
  'test/brokers',
  'test/testing',
  'test/inbox/handle.test.ts',
  'test/outbox/relay.test.ts',
]

/**
 * @typedef {object} Cell
 * @property {string} name
 * @property {string} about
 * @property {string[]} tests
 * @property {number} [postgres] a major version, of npm's binaries
 * @property {string} [node] a version, of npm's package `node`
 * @property {true} [lowest] with the lowest version of every client that `peerDependencies` allows
 */

/** @type {readonly Cell[]} */
export const CELLS = [
  ...[14, 15, 16, 17, 18].map((major) => ({
    name: `postgres-${major}`,
    about: `PostgreSQL ${major}`,
    postgres: major,
    tests: CORE,
  })),
  ...['20.19', '22', '24'].map((version) => ({
    name: `node-${version}`,
    about: `Node.js ${version}`,
    node: version,
    tests: CORE,
  })),
  { name: 'clients', about: 'every client at its lowest version', lowest: true, tests: CLIENTS },
]
