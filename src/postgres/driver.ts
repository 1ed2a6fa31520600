/**
 * The first of the three seams: what oncebox needs of a PostgreSQL client.
 *
 * `Tx` is the client's own transaction, as handlers get it; `TxIn` is what `send` and `once` accept
 * (pg lends a `PoolClient` but takes any client that is inside a transaction).
 */
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/** How a statement outside a transaction is to run. A driver may ignore any of it. */
export interface StatementOptions {
  /** Without an answer in so many ms the connection is destroyed, and the statement rejects as a lost connection does. */
  readonly limitMs?: number
  /** It keeps a claim alive, so it must not wait behind other statements. */
  readonly urgent?: boolean
  /** It may wait for a lock, so that no other claim may depend on what is sent behind it. */
  readonly waits?: boolean
  /** Commands such as SET LOCAL: the statement runs behind them in a READ COMMITTED transaction of its own. */
  readonly settings?: string | undefined
}

export interface TransactionOptions {
  readonly isolation?: Isolation | undefined
  /** Commands such as SET LOCAL that follow BEGIN. */
  readonly settings?: string | undefined
  /** A BEGIN without an answer in so many ms is given up. */
  readonly limitMs?: number
}

export interface Driver<Tx, TxIn = Tx> {
  /**
   * Runs one statement: inside `tx` if given, else on a connection of its own, autocommitted.
   * Values are strings, numbers, booleans or null, never arrays or objects. Columns come back as strings.
   * Rejects with `TRANSACTION_REQUIRED` if `tx` is a root handle or is not inside a transaction.
   * Errors from the server carry `code`, the SQLSTATE.
   * Inside a transaction of this driver nobody has to await the answer: a failure then rejects the transaction, and
   * is not reported as an unhandled rejection.
   */
  query(
    text: string,
    values: readonly unknown[],
    tx?: Tx | TxIn,
    options?: StatementOptions,
  ): Promise<readonly Record<string, unknown>[]>

  /**
   * BEGIN, `work`, COMMIT; ROLLBACK if `work` rejects, and the same error is thrown.
   * - Resolves only after the server has confirmed the COMMIT: an answer of ROLLBACK rejects with `ROLLED_BACK`,
   *   a warning during COMMIT with `COMMIT_UNCERTAIN`. A connection that breaks during COMMIT rejects with the
   *   client's own error, which has no SQLSTATE or one of class 08 or 57.
   * - If a statement is still running on the connection when `work` rejects, the connection is destroyed.
   * - Statements issued inside `work` and not yet answered when it resolves run before the COMMIT. If one of them
   *   fails, its error is thrown.
   * - Whatever `work` sends before its first `await` may share a trip with BEGIN. Should BEGIN fail while the
   *   connection survives (next to impossible), those statements ran on their own, and reject with BEGIN's error.
   */
  transaction<R>(work: (tx: Tx) => Promise<R>, options?: TransactionOptions): Promise<R>

  /** Calls `wake` on each notification on the channel and after each reconnect. Answers with an unsubscribe. */
  listen?(channel: string, wake: () => void): Promise<() => Promise<void>>

  /**
   * Wraps the transaction for one handler call. `giveBack` rejects if the handler left a statement unanswered
   * (`UNAWAITED_QUERY`, once it is answered: to cut it short would reject promises that nobody looks at) or the
   * transaction is no longer the one it was lent (`HANDLER_COMMITTED`); after it, the lent handle refuses every use with
   * `TRANSACTION_CLOSED`. Optional: without it handlers get `tx` as it is.
   */
  lend?(tx: Tx): Loan<Tx>

  /**
   * The same for handlers that run side by side: there may be several loans of one transaction at a time, whose statements
   * share trips. What cannot be sent while others use the transaction (savepoints, settings, cursors) is refused with
   * `GROUP_ABANDONED`, and `leave` is called. `giveBack` rejects with that too, if the handler caught it; and with
   * `TRANSACTION_ABORTED` if a statement of this loan has failed. Called only where `together` is true.
   */
  lendTogether?(tx: Tx, leave: () => void): Loan<Tx>

  /** For how many ms the server has left a statement of this transaction of ours, or its COMMIT, unanswered; else 0. */
  silentMs?(tx: Tx): number

  /** Destroys the connection of this transaction: what is unanswered rejects with `reason`, and so does the transaction. */
  hangUp?(tx: Tx, reason: Error): void

  /**
   * Called before a migration and at a start, with the schema of the box: rejects if the client has settings by which it
   * would destroy what is in it.
   */
  check?(schema: string): void | Promise<void>

  /** True if all connections are taken and somebody waits for one. */
  readonly exhausted?: boolean

  /** How many transactions can run at once, where the client tells. `start()` warns when that is too few. */
  readonly capacity?: number | undefined

  /** True if a statement may be sent before the one ahead of it is answered, so that trips can be shared. */
  readonly pipelines?: boolean | undefined

  /**
   * True if `lendTogether` works with this client; consumers cannot ask for `group.together` otherwise. One that does not know
   * before it has connected says true until then: it is asked again at the start.
   */
  readonly together?: boolean | undefined
}

export interface Loan<Tx> {
  readonly tx: Tx
  /**
   * Calls the handler, for a client that has something to do around it: run it in an async context of its own, send what it
   * has kept back once the handler has returned, add the `cause` of errors that it wraps. All of it is a part of the call:
   * within its time, and what it rejects with is the handler's failure. `giveBack` comes after it.
   */
  run?<R>(handler: () => Promise<R>): Promise<R>
  giveBack(): void | Promise<void>
}
