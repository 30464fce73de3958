import type { OtherReplica, ReplicaDoor, SharedReplicas } from '../accounts/server-store.ts'
import type { ApiAnswer } from '../admin/answer.ts'
import type { Running } from '../operations/operation.ts'
import { type FetchResponse, fetchHttp } from '../upstream/http-fetch.ts'
import { type DoorMethod, doorPath, unpack } from './replica-door.ts'

/** How long another server may take to answer, in ms. It answers from memory, or with one read of the store. */
const patienceMs = 2_000

/** How long a silent server is not asked again, in ms. So operators do not wait for it each time. */
const restMs = 5_000

type ReachableReplica = { key: string; origin: string }

type DoorAnswer<Method extends DoorMethod> = Awaited<ReturnType<Running[Method]>>

type OtherReplicasParts = {
  replicas: SharedReplicas
  /** The name of the loopback interface of this process. */
  loopback: string
  /** The key of this server's own door. A door is the path on which a server answers other servers. */
  key: string
  /** Returns the token for the door of another server. @param key the key of that door */
  tokenOf(key: string): string
  /** Monotonic, in ms. */
  clockMs(): number
  /** Returns a signal that aborts after this many ms. */
  timeout?(ms: number): AbortSignal
}

/** Asks the other servers of the store. Each answers at its door, which is a path for such questions (ruling X9). */
export class OtherReplicas {
  readonly #parts: OtherReplicasParts
  /** The servers as they were last listed. They stay if the store does not answer. */
  #listed: readonly OtherReplica[] = []
  /**
   * Servers that did not answer, and have not answered since, by the key of their door. A server is not asked again
   * before its time in the map.
   */
  readonly #restUntilMs = new Map<string, number>()

  constructor(parts: OtherReplicasParts) {
    this.#parts = parts
  }

  /** Lists the other servers that can be asked now. */
  async list(): Promise<ReachableReplica[]> {
    const { replicas, key } = this.#parts
    const listed = await replicas.listOthers().catch(() => this.#listed)
    // If this server registered anew after a failover, the store may list it twice, both times with this server's key.
    this.#listed = listed.filter(({ door }) => door?.key !== key)
    const keys = new Set(this.#listed.map(({ door }) => door?.key))
    for (const gone of this.#restUntilMs.keys()) if (!keys.has(gone)) this.#restUntilMs.delete(gone)
    return this.#listed.flatMap((one) => this.#reach(one) ?? [])
  }

  /** The names of the running servers that could not be asked. */
  readonly listUnreached = (): string[] =>
    this.#listed.filter((one) => this.#reach(one) === undefined).map(({ name }) => name)

  /**
   * The names of the running servers whose live events are missing. A server that could not be asked is named until it
   * answers, also while it is asked again.
   */
  readonly listMissing = (): string[] =>
    this.#listed
      .filter((one) => this.#reach(one) === undefined || this.#restUntilMs.has(one.door!.key))
      .map(({ name }) => name)

  /** Notes that a server did not answer. @param key the key of its door */
  rest(key: string): void {
    this.#restUntilMs.set(key, this.#parts.clockMs() + restMs)
  }

  /** Asks all servers that can be asked now. @returns the results of those that answer */
  async ask<Method extends DoorMethod>(
    method: Method,
    args: Parameters<Running[Method]>,
  ): Promise<DoorAnswer<Method>[]> {
    const asked = await this.list()
    const answers = await Promise.all(asked.map((one) => this.#askOne(one, method, JSON.stringify(args))))
    return answers.flatMap((text) => (text === undefined ? [] : [unpack(text) as DoorAnswer<Method>]))
  }

  /** The live events of one server, as pieces of text. They end when the signal aborts, or the server is gone. */
  async *watch(one: ReachableReplica, signal: AbortSignal): AsyncIterable<string> {
    try {
      const response = await this.#send(one, 'watch', '', signal)
      if (!response.ok) throw new Error(`${response.status}`)
      this.#restUntilMs.delete(one.key)
      yield* response.body.setEncoding('utf8')
    } catch {
      if (!signal.aborted) this.rest(one.key)
    }
  }

  /**
   * Passes a request on to another server of this machine that shares the port of this server. A caller on another
   * machine reaches only the shared port, where the operating system chooses the server.
   */
  readonly pass = async (key: string, name: string, body: string): Promise<ApiAnswer> => {
    await this.list()
    const origin = this.#listed.flatMap(({ door }) => (door?.key === key ? (this.#findLocal(door) ?? []) : []))[0]
    if (origin === undefined) return { status: 404, headers: {} }
    const gone = new AbortController()
    const late = setTimeout(() => gone.abort(), patienceMs)
    try {
      const response = await this.#send({ key, origin }, name, body, gone.signal)
      const type = response.headers.get('content-type')
      return {
        status: response.status,
        headers: type === undefined ? {} : { 'content-type': type },
        pieces: response.body.setEncoding('utf8'),
      }
    } catch {
      return { status: 502, headers: {} }
    } finally {
      clearTimeout(late)
    }
  }

  async #askOne(one: ReachableReplica, method: DoorMethod, body: string): Promise<string | undefined> {
    try {
      const { timeout = AbortSignal.timeout } = this.#parts
      const response = await this.#send(one, method, body, timeout(patienceMs))
      const text = await response.text()
      if (response.ok) {
        this.#restUntilMs.delete(one.key)
        return text
      }
    } catch {
      // The server is about to end, or cannot be reached.
    }
    this.rest(one.key)
    return undefined
  }

  #send({ key, origin }: ReachableReplica, name: string, body: string, signal: AbortSignal): Promise<FetchResponse> {
    const headers = { authorization: `Bearer ${this.#parts.tokenOf(key)}` }
    return fetchHttp(`${origin}${doorPath}${key}/${name}`, { method: 'POST', headers, body, signal })
  }

  #reach({ door }: OtherReplica): ReachableReplica | undefined {
    const origin = door && (this.#findLocal(door) ?? door.url)
    if (origin === undefined) return undefined
    const isResting = (this.#restUntilMs.get(door!.key) ?? 0) > this.#parts.clockMs()
    return isResting ? undefined : { key: door!.key, origin }
  }

  #findLocal({ local }: ReplicaDoor): string | undefined {
    return local?.loopback === this.#parts.loopback ? local.origin : undefined
  }
}
