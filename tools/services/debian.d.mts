/** A server's program, of the Debian that `ONCEBOX_DEBIAN` names; without it as `findOrInstall`. */
export function findServer(wanted: {
  package: string
  /** Its path there. */
  program: string
  variable: string
  find: () => Promise<string | undefined>
}): Promise<{ path: string; kind: 'binary' | 'installed'; version?: string }>
