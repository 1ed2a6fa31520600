import type { ServerUser } from '../users.mjs'

/** A broker to test against. */
export interface Service {
  readonly name: string
  /** The environment variable that names one to use instead. */
  readonly variable: string
  /** Where it comes from; a `mock` speaks the protocol of the real thing, and is not it. */
  readonly kind: 'given' | 'binary' | 'installed' | 'npm' | 'mock'
  readonly version: string
  readonly url: string
  /** Ends it, and removes what it left. One that was given is left alone. */
  stop(): Promise<void>
  /** SIGKILL. Resolves when it is gone. Rejects for one that was given, as the next two do. */
  kill(): Promise<void>
  /** Starts it again, on the same port and data. Resolves when it answers. */
  resume(): Promise<void>
  /** Shuts it down in good order, and starts it again. */
  restart(): Promise<void>
}

/** One that we started. */
export interface PrivateService extends Service {
  readonly directory: string
  readonly pid: number
  [Symbol.asyncDispose](): Promise<void>
}

export interface Daemon {
  readonly pid: number
  readonly running: boolean
  /** For the exit of our process, where nothing can be waited for. */
  killNow(): void
  /** Resolves when it has ended; after 20 s it is killed. */
  end(signal: NodeJS.Signals): Promise<void>
}

export function givenService(options: { name: string; variable: string; version: string; url: string }): Service

export function startService(options: {
  name: string
  variable: string
  kind: Service['kind']
  version: string
  url: string
  /** Before the first launch: files, or a process of its own that `dispose` ends. */
  prepare?: (directory: string) => Promise<void>
  launch: (directory: string) => Promise<Daemon>
  dispose?: () => Promise<void> | undefined
}): Promise<PrivateService>

export function startProcess(options: {
  command: string
  args?: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Who it runs as; default us. */
  user?: ServerUser
  /** Where it runs; its output goes to the file `log` there. */
  directory: string
  ready: () => boolean | Promise<boolean>
}): Promise<Daemon>

export function accepts(port: number): Promise<boolean>
