/** What users import. */
export { createBox, type Box, type BoxOf, type Consumer } from './box.js'
export type { FrontDoor } from './front-door.js'
export type { Health } from './health.js'
export type { BoxOptions } from './box-options.js'
export { defineConfig, type Config, type ConfiguredBox } from './config.js'
export type { PublishLimits, Refusal, Sink } from './brokers/sink.js'
export type { Codec } from './brokers/codec.js'
export type { Deliver, Source, Warn } from './brokers/source.js'
export type { FromArguments, FromOptions, QuarantineLimits } from './inbox/origin.js'
export { OnceboxError, Reject, RetryLater, type OnceboxErrorCode } from './errors.js'
export {
  batch,
  type BatchContext,
  type BatchHandler,
  type Context,
  type EffectOptions,
  type Handler,
  type Handlers,
  type Logger,
  type OutcomeOf,
  type ResultOf,
  type Send,
  type SendOptions,
} from './handler.js'
export type { Entry, FailedAttempt, Hooks, Place, Retrial, Takeover } from './hooks.js'
export type {
  Admin,
  AuditRecord,
  Bulk,
  ConsumerInfo,
  Counts,
  Criteria,
  DoctorOptions,
  Filter,
  Finding,
  HandledId,
  MarkOptions,
  Pruning,
  Removal,
  Signed,
  SinkInfo,
  Status,
} from './admin/index.js'
export type { ConsumerOptions } from './inbox/options.js'
export type { StartOptions } from './inbox/running.js'
export type { RetryPolicy } from './retry.js'
export type { SinkOptions } from './outbox/options.js'
export {
  defineMessages,
  unchecked,
  type ConsumerOutcome,
  type DataIn,
  type DataOut,
  type Failure,
  type Incoming,
  type IncomingOf,
  type Json,
  type Message,
  type MessageMap,
  type MessageOf,
  type Name as MessageName,
  type OnceOutcome,
  type Outcome,
  type QuarantineReason,
  type SendData,
  type State,
  type TypedMessages,
} from './message.js'
export type { Driver, Isolation, Loan } from './postgres/driver.js'
export { migrationSql, type MigrationOptions } from './postgres/migrate.js'
export { rolesSql, type Role, type RolesOptions } from './postgres/roles.js'
export type { StandardSchemaV1 } from './standard-schema.js'
