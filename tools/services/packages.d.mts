/** The path of a program, and whether it was there or had to be installed. Rejects with what to do. */
export function findOrInstall(wanted: {
  package: string
  /** Names a running one to use instead, if that is possible. */
  variable?: string
  find: () => Promise<string | undefined>
}): Promise<{ path: string; kind: 'binary' | 'installed' }>

/** The first in PATH or in one of the further directories that we may run. */
export function findProgram(name: string, directories?: readonly string[]): Promise<string | undefined>

/** Answers why it failed, if it did. */
export function installPackages(wanted: readonly string[], along?: readonly string[]): Promise<string | undefined>
