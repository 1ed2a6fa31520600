/** The options of a monitoring handler. */
import { boolean, callback, number, optional, orInfinity } from '../options.js'

export interface MonitoringOptions {
  /** `/readyz` fails when the oldest message or event that is due has waited for longer. Default: as `box.health()` judges. */
  maxLagMs?: number | undefined
  /**
   * Who may ask: `true`, or `false` for a 401, or a response of your own. `page` is what is asked for, so that probes may be
   * let in without a secret. Default: everybody.
   */
  authorize?: ((request: Request, page: MonitoringPage) => Authorized | Promise<Authorized>) | undefined
  /** `/readyz` says why it is not ready, in words that may name hosts and brokers. Default: false. */
  reasons?: boolean | undefined
}

export type MonitoringPage = 'metrics' | 'healthz' | 'readyz'
export type Authorized = boolean | Response

export const MONITORING = {
  maxLagMs: optional(orInfinity(number({ least: 0 })), 'as `box.health()` judges'),
  authorize: optional(callback<NonNullable<MonitoringOptions['authorize']>>(), 'everybody may ask'),
  reasons: boolean(false),
}
