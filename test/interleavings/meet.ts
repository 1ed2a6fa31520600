/** Runs meetings on one database: prepares the row, lets the parties meet, and judges what is left. */
import { Actor, openTransaction, send, type Ended, type Hand, type Outcome } from './stage.js'

/** What one process does in one transaction, and what it was told. */
export interface PartyOf<State, Deed> {
  readonly name: string
  /** The constants in src/postgres/sql that it runs. */
  readonly statements: readonly string[]
  act(hand: Hand, scene: SceneOf<State>): Promise<Deed>
  /** Not in these states, where its process would never say it. */
  readonly never?: (state: State) => boolean
  /** The call of an effect has one verdict: a process that comes to this one does not come to another. */
  readonly verdictOf?: string
  /** Several transactions, of which the first party could only hold the last one open. */
  readonly onlySecond?: boolean
  /** The first of several transactions: who comes second has time for all of them. */
  readonly onlyFirst?: boolean
}

/** Every meeting has a name of its own for what it writes. */
export interface SceneOf<State> {
  readonly consumer: string
  readonly state: State
}

export interface StateOf {
  readonly name: string
  sql(consumer: string): string
}

/** What is looked at afterwards: one statement with the name of the scene, and what must hold. */
export interface Domain<State, Deed, Snapshot> {
  readonly snapshot: string
  judge(state: State, before: Snapshot, after: Snapshot, deeds: readonly Deed[]): string[]
  /** Before each meeting, where scenes would see each other. */
  readonly clear?: string
}

export interface Finding {
  readonly meeting: string
  readonly wrong: readonly string[]
}

export interface Result {
  readonly findings: Finding[]
  readonly meetings: number
  readonly waits: number
}

/**
 * A lost claim, a transaction that is not ours, a message of an age that retention has just forgotten (the only reason
 * for this state where no transaction is repeatable), and what a party or the meeting itself takes back.
 */
export const REFUSALS: ReadonlySet<string> = new Set(['OB001', 'OB002', '40001', 'abandoned', 'rolled back'])

let scenes = 0

/** A few connections, on which one meeting takes place at a time. */
export class Room<State extends StateOf, Deed, Snapshot> {
  readonly #domain: Domain<State, Deed, Snapshot>
  readonly #actors: readonly [Actor, ...Actor[]]

  private constructor(domain: Domain<State, Deed, Snapshot>, actors: readonly [Actor, ...Actor[]]) {
    this.#domain = domain
    this.#actors = actors
  }

  static async open<State extends StateOf, Deed, Snapshot>(
    domain: Domain<State, Deed, Snapshot>,
    url: string,
    schema: string,
  ): Promise<Room<State, Deed, Snapshot>> {
    const actors = await Promise.all([1, 2, 3].map((at) => Actor.connect(url, schema, at)))
    return new Room(domain, actors as [Actor, ...Actor[]])
  }

  async close(): Promise<void> {
    await Promise.all(this.#actors.map((actor) => actor.close()))
  }

  async #prepare(state: State): Promise<SceneOf<State>> {
    const consumer = `c${process.pid}_${++scenes}`
    const sql = (this.#domain.clear ?? '') + state.sql(consumer)
    if (sql) await this.#actors[0].script(sql)
    return { consumer, state }
  }

  async #snapshot({ consumer }: SceneOf<State>): Promise<Snapshot> {
    const [row] = await this.#actors[0].run(this.#domain.snapshot, [consumer])
    return JSON.parse(row!['snapshot'] as string) as Snapshot
  }

  async initial(state: State): Promise<Snapshot> {
    return this.#snapshot(await this.#prepare(state))
  }

  async #judge(scene: SceneOf<State>, before: Snapshot, ended: readonly Ended<Deed>[]): Promise<string[]> {
    // Anything else than a refusal of ours is no way for a statement to end: a deadlock, for instance.
    const failed = ended.flatMap(({ refused }) => (refused === undefined || REFUSALS.has(refused) ? [] : [refused]))
    if (failed.length > 0) return failed.map((code) => `a party failed with ${code}`)
    const deeds = ended.flatMap(({ deed }) => (deed === undefined ? [] : [deed]))
    return this.#domain.judge(scene.state, before, await this.#snapshot(scene), deeds)
  }

  /** The party alone in this state. If it touches nothing, nobody can meet it. */
  async alone(
    state: State,
    party: PartyOf<State, Deed>,
    before: Snapshot,
  ): Promise<{ touches: boolean; wrong: string[] }> {
    const scene = await this.#prepare(state)
    const actor = this.#actors[0]
    const open = await openTransaction(actor, (hand) => party.act(hand, scene))
    const touched =
      open.refused === undefined
        ? await actor.script('select 1 where pg_current_xact_id_if_assigned() is not null')
        : []
    const ended = await open.end('commit')
    return { touches: touched.length > 0, wrong: await this.#judge(scene, before, [ended]) }
  }

  /**
   * The first holds its transaction open, the others come one after the other, each until it has ended or waits; then
   * the first ends. Deeds are judged in the order of their commits.
   */
  async meet(
    { state, parties, outcome }: { state: State; parties: readonly PartyOf<State, Deed>[]; outcome: Outcome },
    before: Snapshot,
  ): Promise<{ waited: boolean; wrong: string[] }> {
    const scene = await this.#prepare(state)
    const [first, ...others] = parties
    const open = await openTransaction(this.#actors[0], (hand) => first!.act(hand, scene))
    const early: Ended<Deed>[] = []
    const waiting: Promise<Ended<Deed>>[] = []
    for (const [at, party] of others.entries()) {
      const present = this.#actors.slice(1, at + 1)
      const sent = await send(this.#actors[at + 1]!, (hand) => party.act(hand, scene), [this.#actors[0], ...present])
      if (sent.waited) waiting.push(sent.result)
      else early.push(await sent.result)
    }
    const end = await open.end(outcome)
    const late = await Promise.all(waiting)
    // Those that waited commit at about the same time: one order in which all is well is enough.
    const judged: string[][] = []
    for (const order of late.length > 1 ? [late, late.toReversed()] : [late]) {
      judged.push(await this.#judge(scene, before, [...early, end, ...order]))
    }
    return { waited: late.length > 0, wrong: judged.find((wrong) => wrong.length === 0) ?? judged[0]! }
  }
}

/** All ordered pairs in one state. The rollback of a first party matters only to one that waited for it. */
export async function meetAll<State extends StateOf, Deed, Snapshot>(
  rooms: readonly Room<State, Deed, Snapshot>[],
  state: State,
  parties: readonly PartyOf<State, Deed>[],
): Promise<Result> {
  const [room] = rooms
  const before = await room!.initial(state)
  const findings: Finding[] = []
  const firsts: PartyOf<State, Deed>[] = []
  const seconds: PartyOf<State, Deed>[] = []
  for (const party of parties.filter(({ never }) => !never?.(state))) {
    const { touches, wrong } = await room!.alone(state, party, before)
    // What is wrong by itself is wrong in every meeting: once is enough to say it.
    if (wrong.length > 0) findings.push({ meeting: `${state.name} | ${party.name} | alone`, wrong })
    else if (!party.onlyFirst) seconds.push(party)
    if (wrong.length === 0 && touches && !party.onlySecond) firsts.push(party)
  }
  const pairs = firsts.flatMap((first) =>
    seconds
      .filter((second) => first.verdictOf === undefined || first.verdictOf !== second.verdictOf)
      .map((second) => [first, second]),
  )
  const met = await meetInTurn(rooms, { state, before, casts: pairs })
  return { ...met, findings: [...findings, ...met.findings] }
}

/** These casts in one state, in as many rooms as there are. */
export async function meetInTurn<State extends StateOf, Deed, Snapshot>(
  rooms: readonly Room<State, Deed, Snapshot>[],
  { state, before, casts }: { state: State; before: Snapshot; casts: PartyOf<State, Deed>[][] },
): Promise<Result> {
  const result = { findings: [] as Finding[], meetings: 0, waits: 0 }
  const left = [...casts]
  const work = async (room: Room<State, Deed, Snapshot>): Promise<void> => {
    for (let parties = left.pop(); parties; parties = left.pop()) {
      for (const outcome of ['commit', 'rollback'] as const) {
        const { waited, wrong } = await room.meet({ state, parties, outcome }, before)
        result.meetings += 1
        if (waited) result.waits += 1
        const names = parties.map(({ name }) => name)
        if (wrong.length > 0) result.findings.push({ meeting: [state.name, ...names, outcome].join(' | '), wrong })
        if (!waited) break
      }
    }
  }
  await Promise.all(rooms.map(work))
  return result
}
