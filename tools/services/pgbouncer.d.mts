import type { PrivateService } from './process.mjs'

/**
 * In transaction mode unless the settings (as in pgbouncer.ini) say otherwise. Its URL is the target's, with its own
 * address.
 */
export function startPgBouncer(
  target: string,
  settings?: Readonly<Record<string, string | number>>,
): Promise<PrivateService>
