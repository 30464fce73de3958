import { hash } from 'node:crypto'
import type { Cooldown, SharedCooldowns } from '../accounts/server-store.ts'
import type { Model, Route } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import { Bindings } from './bindings.ts'
import { Health, maySpare } from './health.ts'
import { sourceOf } from './keyring.ts'
import { Widths } from './widths.ts'

/**
 * A cooldown that another replica reported for a place (one account as it serves one model).
 * @property by the name of the replica, as operators see it
 * @property waitMs the time until the place is used again; undefined if an operator has disabled the place
 */
export type Heard = { by: string; cause: string; waitMs: number | undefined }

/** The cause of a cooldown, as replicas send it to each other, if an operator has disabled the account. */
const disabled = 'disabled'

export type PoolMemory = ReturnType<typeof createPoolMemory>

/**
 * Facts about accounts, upstreams and conversations that outlive one configuration (U14). A place is one model at one
 * upstream account; `placeOf` makes its name.
 * @param clockMs monotonic. @param random in [0, 1)
 */
export function createPoolMemory(clockMs: () => number, random: () => number = Math.random) {
  const healths = new Map<string, Health>()
  const budgets = new Map<string, RetryBudget>()
  const groups = new Map<string, readonly string[]>()
  /**
   * Reported cooldowns of places that are in no group of this process. A cooldown is applied when its place joins a
   * group.
   */
  const heard = new Map<string, { cooldown: Cooldown; untilMs: number }>()
  /** The cooldowns that other replicas reported and that have not ended. */
  const met = new Map<string, { by: string; cause: string; untilMs: number }>()
  const cooldowns = new Map<string, Map<string, number>>()
  const wishes = new Wishes()
  let shared: SharedCooldowns | undefined
  return {
    clockMs,
    countCooldown,
    healthOf: (place: string): Health =>
      findOrMake(healths, place, () => {
        return new Health(clockMs, random, (cooling) => {
          countCooldown(place, cooling.cause)
          shared?.cool({ place, ...cooling })
        })
      }),
    budgetOf: (upstream: string): RetryBudget => findOrMake(budgets, upstream, () => new RetryBudget(clockMs)),
    bindings: new Bindings(clockMs),
    widths: new Widths(clockMs),
    /** The number of cooldowns that this process started, by upstream and then by cause. */
    cooldowns: cooldowns as ReadonlyMap<string, ReadonlyMap<string, number>>,
    /**
     * Sets the enabled upstream accounts (places) of a model. Temporary failures must not put all of them on cooldown
     * at once (ruling U1).
     */
    group(places: readonly string[]): void {
      for (const place of places) groups.set(place, places)
      for (const place of places) {
        const early = heard.get(place)
        heard.delete(place)
        if (early) hear({ ...early.cooldown, forMs: early.untilMs - clockMs() })
        const service = serviceOf(place)
        const isUnwanted = service !== undefined && wishes.isDisabled(service)
        if (isUnwanted && healths.get(place)?.state !== 'disabled') steer('disable', place)
      }
    },
    /**
     * Returns the trouble that other replicas reported at a place. This replica may still send requests to that place.
     */
    heardOf(place: string): Heard | undefined {
      const { by, cause, untilMs = 0 } = met.get(place) ?? {}
      const waitMs = untilMs - clockMs()
      if (by === undefined || cause === undefined || waitMs <= 0) return undefined
      return { by, cause, waitMs: cause === disabled ? undefined : waitMs }
    },
    steer,
    /** Remembers an operator's command, which also applies to accounts and models that are added later. */
    wish(steering: Steering, meant: Meant): void {
      if (steering !== 'retry') wishes.say(steering === 'disable', meant)
    },
    /** Connects to the other replicas of the store, so that they share cooldowns. */
    share(cooldowns: SharedCooldowns): void {
      shared = cooldowns
      cooldowns.onCooled(hear)
      cooldowns.onLifted(({ place, cause }) => {
        heard.delete(place)
        met.delete(place)
        lift(place, cause === disabled ? 'enable' : 'retry')
        if (cause === disabled) noteWish(place, false)
      })
    },
    keepOnly(places: ReadonlySet<string>, upstreams: ReadonlySet<string>): void {
      for (const known of [healths, groups, heard, met])
        for (const place of known.keys()) if (!places.has(place)) known.delete(place)
      for (const upstream of budgets.keys()) if (!upstreams.has(upstream)) budgets.delete(upstream)
    },
  }

  /** Applies an operator's command about a place, in all replicas. `retry` does not enable a disabled place. */
  function steer(steering: Steering, place: string): void {
    if (steering === 'retry' && healths.get(place)?.state === 'disabled') return
    lift(place, steering)
    if (steering === 'retry') shared?.lift(place)
    else shared?.steer(steering, place)
  }

  /**
   * Applies an operator's command that another replica reported. The command concerns the account and the model of the
   * place, whatever the key. So places that get another key later follow the command too.
   */
  function noteWish(place: string, isDisabled: boolean): void {
    const service = serviceOf(place)
    if (service === undefined) return
    wishes.say(isDisabled, service)
    for (const own of groups.keys()) {
      const other = own === place ? undefined : serviceOf(own)
      if (other && covers(service, other)) lift(own, isDisabled ? 'disable' : 'enable')
    }
  }

  /** Counts a cooldown of a place (an account that serves a model), or a trial that begins because requests hang. */
  function countCooldown(place: string, cause: string): void {
    const causes = findOrMake(cooldowns, serviceOf(place)?.upstream ?? '', () => new Map<string, number>())
    causes.set(cause, (causes.get(cause) ?? 0) + 1)
  }

  function lift(place: string, steering: Steering): void {
    const health = healths.get(place)
    if (steering === 'retry') health?.tryNow()
    else if (health) health.isDisabled = steering === 'disable'
  }

  function hear(cooldown: Cooldown): void {
    const { place, forMs, cool, cause, by } = cooldown
    if (by === undefined) met.delete(place)
    else met.set(place, { by, cause, untilMs: clockMs() + forMs })
    const group = groups.get(place)
    if (cause === disabled) noteWish(place, true)
    if (cause === disabled && group !== undefined) {
      lift(place, 'disable')
      return
    }
    if (group === undefined) {
      for (const known of [heard, met])
        for (const [other, { untilMs }] of known) if (untilMs <= clockMs()) known.delete(other)
      heard.set(place, { cooldown, untilMs: clockMs() + forMs })
    } else if (forMs > 0 && (cool === 'now' || mayCool(place, group))) healths.get(place)?.hear(cooldown)
  }

  /**
   * Whether the rules allow this replica to cool a place after temporary failures. Each replica decides alone, so
   * together the replicas may cool all places of a model.
   */
  function mayCool(place: string, group: readonly string[]): boolean {
    return maySpare(group.filter((other) => other !== place).map((other) => healths.get(other)?.state))
  }
}

function findOrMake<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const found = map.get(key)
  if (found) return found
  const made = make()
  map.set(key, made)
  return made
}

/**
 * Returns the name of a place, which is one account that serves a model. The name stays the same when the configuration
 * is reloaded. It contains model, upstream, address, account, the upstream's name for the model, and a digest of the
 * key. For a key that is renewed, the digest is that of its source.
 */
export function placeOf(model: Model, upstream: Upstream, route: Route, account: UpstreamAccount | undefined): string {
  const { key: secret, renewal } = account ?? {}
  const key = hash('sha256', renewal ? sourceOf(renewal) : (secret?.reveal() ?? ''), 'hex').slice(0, 16)
  return JSON.stringify([
    model.entryId,
    upstream.name,
    upstream.baseUrl,
    route.serving.upstreamModel,
    account?.name,
    key,
  ])
}

/** Reads the service from the name of a place (see `placeOf`). Returns undefined for the invented names of tests. */
function serviceOf(place: string): Service | undefined {
  if (!place.startsWith('[')) return undefined
  const [model, upstream, , , account] = JSON.parse(place) as string[]
  return { model: model!, upstream: upstream!, account: account ?? undefined }
}

const windowMs = 60_000
const shareOfTraffic = 0.1
/** The number of retries that is allowed in a minute even with little traffic. */
const alwaysAllowed = 10

/**
 * Limits the retries at an upstream to a tenth of its requests in the last minute. Otherwise a failing upstream would
 * get twice the load (ruling U1). Answered retries do not count, so a healthy backup can serve all requests that failed
 * at the first upstream. Requests are counted in windows of one minute. If half of the previous window lies within the
 * last minute, its requests count half.
 */
export class RetryBudget {
  readonly #clockMs: () => number
  #sinceMs: number
  #sent = 0
  #retried = 0
  #sentBefore = 0
  #retriedBefore = 0

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
    this.#sinceMs = clockMs()
  }

  get left(): number {
    const inSight = 1 - this.#turn() / windowMs
    const sent = this.#sent + this.#sentBefore * inSight
    const retried = this.#retried + this.#retriedBefore * inSight
    return Math.max(0, Math.floor(Math.max(alwaysAllowed, sent * shareOfTraffic) - retried))
  }

  note(isRetry: boolean): void {
    this.#turn()
    this.#sent++
    if (isRetry) this.#retried++
  }

  noteAnswered(): void {
    this.#turn()
    if (this.#retried > 0) this.#retried--
    else if (this.#retriedBefore > 0) this.#retriedBefore--
  }

  /** Begins a new window if the last one is over. @returns the time since the window began, in ms */
  #turn(): number {
    const sinceMs = this.#clockMs() - this.#sinceMs
    if (sinceMs < windowMs) return sinceMs
    const isNext = sinceMs < 2 * windowMs
    this.#sentBefore = isNext ? this.#sent : 0
    this.#retriedBefore = isNext ? this.#retried : 0
    this.#sent = 0
    this.#retried = 0
    this.#sinceMs += Math.floor(sinceMs / windowMs) * windowMs
    return this.#clockMs() - this.#sinceMs
  }
}

/**
 * An operator's command about accounts. `retry`: try them next. `disable`: send them nothing. `enable`: use them again.
 */
export type Steering = 'retry' | 'disable' | 'enable'

/** The accounts that a command is about: one or all accounts of an upstream, for one or all models. */
export type Meant = {
  readonly upstream: string
  readonly account?: string | undefined
  readonly model?: string | undefined
}

/** The names of an upstream, of one of its accounts, and of a model that the account serves. */
type Service = { readonly upstream: string; readonly account: string | undefined; readonly model: string }

/** The maximum number of commands that are remembered. If there are more, the oldest ones are forgotten. */
const wishesMax = 10_000

/**
 * Remembers the accounts that operators have disabled. For each account the last command applies. It still applies
 * after the key or the address has changed, or after the account was removed and added again. It also applies to models
 * that are added later.
 */
export class Wishes {
  #said: { isDisabled: boolean; meant: Meant }[] = []

  say(isDisabled: boolean, meant: Meant): void {
    const older = this.#said.filter((one) => !covers(meant, one.meant))
    // A command to enable is kept only if an older command has disabled some of its accounts. Otherwise it has no
    // effect.
    const isNeeded = isDisabled || older.some((one) => one.isDisabled && overlap(one.meant, meant))
    this.#said = isNeeded ? [...older, { isDisabled, meant }].slice(-wishesMax) : older
  }

  isDisabled(one: Service): boolean {
    return this.#said.findLast(({ meant }) => covers(meant, one))?.isDisabled === true
  }
}

/**
 * Whether the command `meant` applies to everything that `other` names: a service, or the services of another command.
 */
export function covers(meant: Meant, other: Meant | Service): boolean {
  const { upstream, account, model } = meant
  return (
    upstream === other.upstream &&
    (account === undefined || account === other.account) &&
    (model === undefined || model === other.model)
  )
}

function overlap(one: Meant, other: Meant): boolean {
  const isSame = (a: string | undefined, b: string | undefined) => a === undefined || b === undefined || a === b
  return one.upstream === other.upstream && isSame(one.account, other.account) && isSame(one.model, other.model)
}
