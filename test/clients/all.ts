/**
 * `ONCEBOX_CLIENTS=all npx vitest run test/clients`: each client in each version that is promised, on each database client
 * that it runs on, with lost networks and crashes. By default only its main one has all of that.
 */
export const ALL = process.env['ONCEBOX_CLIENTS'] === 'all'
