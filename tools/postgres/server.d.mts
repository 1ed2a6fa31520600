export interface PostgresOptions {
  /** Default `on`. `off` makes commits cheap, and lets a killed server forget the last ones. */
  synchronousCommit?: 'on' | 'off' | 'local' | 'remote_write' | 'remote_apply'
  /** Further server settings, as in postgresql.conf. */
  settings?: Record<string, string | number>
  /** Default true. False never runs apt-get, not even as root: npm's binaries are next. */
  debianPackage?: boolean
  /** A major version of which npm has binaries, 14 to 18, instead of the one that is installed. */
  embedded?: number
  /** Default false: the loopback address alone. True also listens in `socketDirectory`. */
  unixSocket?: boolean
  /** The URL of a running server, of which this one becomes a streaming standby: a copy that follows it, read-only. */
  standbyOf?: string
}

export interface PostgresServer {
  readonly url: string
  readonly port: number
  /** The postmaster's, or that of the last one while none runs. */
  readonly pid: number
  readonly dataDir: string
  readonly logFile: string
  /** Where the unix socket is, if it was asked for. */
  readonly socketDirectory: string
  /** Sends a signal to the postmaster. For one that ends it, resolves when it has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts the postmaster again on the same port and data; a running one is shut down first. Resolves when it answers. */
  restart(): Promise<void>
  /** Such as 15.18. */
  version(): Promise<string>
  /** Ends the server and removes its directory. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export function startPostgres(options?: PostgresOptions): Promise<PostgresServer>

/** Below the range that outgoing connections are given, so that nobody takes the port while its server is down. */
export function freePort(): Promise<number>

/** Runs one statement on a connection of its own. */
export function statement(url: string, text: string): Promise<void>
