import type { Model, Route } from '../catalog/model.ts'
import { cacheLifeMs } from '../catalog/profile.ts'
import { modelPlace } from '../catalog/wire-names.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import type { Likeness } from '../inference/likeness.ts'
import { hashText, mayLeave, scoreOf } from './bindings.ts'
import { type AnswerForm, type FirstBytes, Usual, type Wait } from './first-bytes.ts'
import { type Health, type HealthState, hangingCause, maySpare, type Visit } from './health.ts'
import { fixedKey } from './keyring.ts'
import type { KeyFinder } from './live-key.ts'
import {
  covers,
  type Heard,
  type Meant,
  type PoolMemory,
  placeOf,
  type RetryBudget,
  type Steering,
} from './pool-memory.ts'
import type { Target } from './target.ts'
import type { Verdict } from './verdict.ts'
import type { Width } from './widths.ts'

/** A request that needs a target. */
export type Search = {
  requestId: string
  /**
   * The conversation key, scoped to the customer's account. The same key goes to the same upstream account (ruling P6).
   */
  affinity: string | undefined
  /**
   * A digest of the last sealed item, if the request has no conversation key. The account that sealed this item is used
   * (ruling U13).
   */
  sealed?: string | undefined
  /**
   * Digests that similar requests share (ruling Y24). They are set only if the request has no conversation key, and the
   * choice of the account may depend on them.
   */
  likeness?: Likeness | undefined
  /**
   * The number of accounts among which requests like this one are spread. Set by the pool when it counts the request.
   */
  width?: Width
  /** The customer's account; undefined if the request has no customer (ruling Y18). */
  customer?: Customer | undefined
  /** Targets that were tried for this request and must not be tried again. */
  tried: readonly Target[]
  /**
   * Whether this is the last attempt. The last attempt goes to an account of the next priority if there is one (ruling
   * U1).
   */
  isLast: boolean
  /** The form of answer to ask for; JSON by default. Each form has its own times to first byte (ruling Y25). */
  form?: AnswerForm | undefined
}

/** A customer's account. The configuration refers to it by name or id. */
type Customer = { readonly id: string; readonly name: string }

/** The fields of a search by which the pool remembers a conversation. */
type Named = Pick<Search, 'affinity' | 'sealed' | 'likeness' | 'form' | 'customer'>

/** The reason why a request goes to an account. */
export type ChoiceReason =
  /** The model has no other account for this customer. */
  | 'only'
  /** The account answered this conversation before. */
  | 'bound'
  /** The pool remembers no account for the conversation, so the hash of the conversation's key chose this account. */
  | 'hashed'
  /** The request names no conversation. The account is one of the accounts that get similar requests (ruling Y24). */
  | 'alike'
  /** The request names no conversation, and is not compared with others, e.g. because it is small. A hash chose. */
  | 'spread'
  /** The usual account has failed for this request, is disabled, cooling or on trial, or has become slow. */
  | 'diverted'

export type ChosenTarget = {
  target: Target
  why: ChoiceReason
  /** The account can open the sealed items of this conversation (ruling U13). */
  isHome: boolean
  /** Why a conversation goes to another account than before. */
  moved?: MovedFor | undefined
}

/**
 * Why a conversation leaves its account. `failed`: the account was tried for this request. `off`: the account is
 * disabled, has no key, or is configured no more. `preferred`: an account of a better priority works again.
 */
export type MovedFor = 'failed' | 'off' | 'cooling' | 'hanging' | 'slow' | 'preferred'

/** The client's error if no target can be tried. */
type Outlook = { tell: 'capacity' | 'account'; retryAfterSeconds: number | undefined }

export type PoolRow = {
  model: string
  upstream: string
  account: string | undefined
  priority: number
  /** `no_key`: the account's key comes from a source that has not returned a key yet. */
  state: HealthState | 'off' | 'no_key'
  /** The cause of the cooldown, in the words of the log. */
  cause: string | undefined
  /** Whether another replica of the store reported the cooldown. */
  isHeard: boolean
  /** Trouble with the account that other replicas reported. This replica can still use the account. */
  heard: Heard | undefined
  /** The time until the next trial, in ms. */
  waitMs: number | undefined
  failures: number
  /**
   * The number of retries that the upstream's budget still allows in this minute, for all its models together (ruling
   * U1).
   */
  retriesLeft: number
}

/** One upstream account for one model, with the facts by which the pool chooses. The code calls this a place. */
type RankedTarget = {
  readonly target: Target
  readonly id: string
  readonly hash: number
  readonly weight: number
  readonly priority: number
  readonly isEnabled: boolean
  readonly health: Health
  readonly budget: RetryBudget
  /** The usual times to the first byte of this model. All upstream accounts that serve the model share them. */
  readonly usual: Usual
}

export type Pool = ReturnType<typeof createPool>

/**
 * Chooses the account and the upstream of a request.
 * @param memory health, budgets and conversations; a reload of the configuration keeps this object (U14)
 * @param keyOf returns the current key of an account, because a key can change while the configuration stays
 */
export function createPool(upstreams: ReadonlyMap<string, Upstream>, memory: PoolMemory, keyOf: KeyFinder = fixedKey) {
  const placesByModel = new Map<Model, readonly RankedTarget[]>()
  const placesByTarget = new Map<Target, RankedTarget>()
  return {
    /** Chooses the target of the next attempt; undefined if no target is left. */
    choose(model: Model, search: Search): ChosenTarget | undefined {
      const places = servedBy(placesOf(model), search.customer)
      if (places.length < 2) return places[0] && chooseOnly(places[0], search)
      const conversation = recall(memory, model, search)
      if (conversation?.isNamed === false && search.likeness?.isSmall === false)
        search.width ??= memory.widths.count(model, search.likeness, firstOn(places))
      // An account on trial gets a second request only if that request has tried all ready accounts (ruling Y25).
      return (
        chooseAmong(memory, places, search, conversation, false) ??
        (places.some((place) => isSound(place, search.form ?? 'json') && !search.tried.includes(place.target))
          ? undefined
          : chooseAmong(memory, places, search, conversation, true))
      )
    },
    /**
     * Begins an attempt at the target. The caller reports at least one result to the returned `Stay`. Only the first
     * counts, unless an answer that began well ends with a failure that cools the account at once.
     */
    enter({ target }: ChosenTarget, search: Named, isRetry: boolean): Stay {
      const place = placesByTarget.get(target)!
      const { form = 'json', likeness, customer } = search
      place.budget.note(isRetry)
      const places = servedBy(placesOf(target.model), customer)
      const isRemembered = places.length > 1
      const conversation = isRemembered ? recall(memory, target.model, search) : undefined
      return new Stay({ place, places, conversation, likeness, isRemembered, memory, isRetry, form })
    },
    /** Whether the upstream's traffic allows another retry (ruling U1). */
    mayRetry: (target: Target): boolean => placesByTarget.get(target)!.budget.left > 0,
    /** The number of accounts of the model that are enabled and serve the customer, whether they have a key or not. */
    sizeOf: (model: Model, customer?: Customer): number => servedBy(placesOf(model), customer).filter(isInUse).length,
    outlook: (model: Model, customer?: Customer): Outlook => outlookOf(servedBy(placesOf(model), customer)),
    /** The number of cooldowns that this process started, by upstream and then by cause. */
    cooldowns: memory.cooldowns,
    /** Lists every enabled target of the model, whatever its health. */
    listTargets: (model: Model): Target[] =>
      placesOf(model).flatMap(({ target, isEnabled }) => (isEnabled ? [target] : [])),
    /** Lists every account of every model, for operators. */
    list: (models: Iterable<Model>): PoolRow[] =>
      [...models].flatMap((model) => {
        const places = placesOf(model)
        for (const place of places) if (places.length > 1) watch(memory, places, place)
        return places.map((place) => rowOf(memory, model, place))
      }),
    /**
     * Applies an operator's command to the matching accounts, in all replicas of a store.
     * @returns their state afterwards
     */
    steer(steering: Steering, meant: Meant, models: Iterable<Model>): PoolRow[] {
      memory.wish(steering, meant)
      return [...models].flatMap((model) => {
        const found = placesOf(model).filter((place) => covers(meant, rowOf(memory, model, place)))
        for (const { id } of found) memory.steer(steering, id)
        return found.map((place) => rowOf(memory, model, place))
      })
    },
    /** Forgets what is remembered of accounts and upstreams that this configuration lacks. */
    adopt(models: Iterable<Model>): void {
      const places = [...models].flatMap((model) => placesOf(model).map(({ id }) => id))
      memory.keepOnly(new Set(places), new Set(upstreams.keys()))
    },
  }

  /** Lists a model's places (the accounts that serve it). @param model an entry of the catalog, or a target's model */
  function placesOf(model: Model): readonly RankedTarget[] {
    const found = placesByModel.get(model)
    if (found) return found
    const healths: FirstBytes[] = []
    const usual = new Usual(healths, memory.clockMs)
    const places = model.routes.flatMap((route) => openRoute(model, route, usual))
    healths.push(...places.map(({ health }) => health.firstBytes))
    placesByModel.set(model, places)
    memory.group(places.flatMap(({ id, isEnabled }) => (isEnabled ? [id] : [])))
    for (const place of places) {
      placesByTarget.set(place.target, place)
      placesByModel.set(place.target.model, places)
    }
    return places
  }

  function openRoute(model: Model, route: Route, usual: Usual): RankedTarget[] {
    const upstream = upstreams.get(route.upstream)
    if (!upstream) return []
    const { upstreamModel, profile, cost } = route.serving
    const isPlain = upstreamModel === model.upstreamModel && profile === model.profile && cost === model.cost
    const served = isPlain ? model : { ...model, ...route.serving }
    const headers = [...new Map([...upstream.headers, ...route.headers])].flat()
    const paths = pathsOf(upstream, served)
    const accounts: readonly (UpstreamAccount | undefined)[] =
      upstream.accounts.length > 0 ? upstream.accounts : [undefined]
    // The weight of the upstream is divided among its enabled accounts that serve the same customers.
    const sharing = (one: UpstreamAccount | undefined) =>
      accounts.filter((other) => other?.isEnabled !== false && isReservedAlike(one, other)).length
    return accounts.map((account) => {
      const id = placeOf(model, upstream, route, account)
      const key = account && keyOf(account)
      const health = memory.healthOf(id)
      // Other replicas may report a cooldown before the first request. A key that is renewed later then ends it.
      if (key?.value !== undefined) health.useKey(key.version)
      return {
        target: { upstream, account, key, model: served, ...paths, headers },
        id,
        hash: hashText(id),
        weight: route.weight / Math.max(1, sharing(account)),
        priority: route.priority,
        isEnabled: account?.isEnabled !== false,
        health,
        budget: memory.budgetOf(upstream.name),
        usual,
      }
    })
  }
}

/** Whether the reservations of two accounts let at least one customer use both (ruling Y18). */
function isReservedAlike(one: UpstreamAccount | undefined, other: UpstreamAccount | undefined): boolean {
  const [names, others] = [one?.isolation, other?.isolation]
  return names === undefined || others === undefined ? names === others : !names.isDisjointFrom(others)
}

/**
 * Returns the places that are reserved for a customer. If there are none, returns the places without a reservation
 * (ruling Y18).
 */
function servedBy(places: readonly RankedTarget[], customer: Customer | undefined): readonly RankedTarget[] {
  if (places.every(({ target }) => target.account?.isolation === undefined)) return places
  const own = places.filter(({ target: { account } }) => {
    const names = account?.isolation
    return names !== undefined && customer !== undefined && (names.has(customer.id) || names.has(customer.name))
  })
  return own.length > 0 ? own : places.filter(({ target }) => target.account?.isolation === undefined)
}

/** This factor lowers the score of a slow account below all other accounts of its priority (ruling Y25). */
const avoidedShare = 1e-15

/**
 * Chooses a place (an upstream account that serves the model) by its score.
 * @param isAnyTried whether a place on trial can be chosen while another request is trying this place
 */
function chooseAmong(
  memory: PoolMemory,
  places: readonly RankedTarget[],
  search: Search,
  conversation: Recalled | undefined,
  isAnyTried: boolean,
): ChosenTarget | undefined {
  const { form = 'json', tried } = search
  const isFree = (place: RankedTarget) => isOpen(place) && (isAnyTried || !isHeldBack(memory, places, place, form))
  const isSlow = ({ usual, health }: RankedTarget) => usual.isSlowAt(form, health.firstBytes)
  const binding = conversation && memory.bindings.find(conversation.name, lifeOf(conversation, places))
  /** Whether the conversation has no name and is not remembered. Nothing ties such a conversation to an account. */
  const isFresh = conversation?.isNamed !== true && binding === undefined
  const isLeaving =
    binding !== undefined &&
    mayLeave(binding) &&
    places.some((place) => place.priority === places[0]!.priority && !isSlow(place) && isFree(place))
  const key = hashText(conversation?.name ?? search.requestId)
  const rank = isFresh && search.width ? rankBy(search.width, places) : undefined
  const floor = search.isLast ? furtherPriority(places, tried, isFree) : undefined
  let chosen: RankedTarget | undefined
  let chosenScore = 0
  /** The place with the highest score in the best priority, even if it cannot be used now. */
  let home: RankedTarget | undefined
  let homeScore = 0
  for (const place of places) {
    const { target, priority } = place
    if (chosen !== undefined && priority > chosen.priority) break
    const isAvoided = (isFresh || isLeaving) && isSlow(place)
    const isBound = binding?.place === place.id && !isAvoided
    let score = isBound ? Number.POSITIVE_INFINITY : (rank?.(place) ?? scoreOf(key, place.hash, place.weight))
    if (isAvoided) score *= avoidedShare
    if (priority === places[0]!.priority && score > homeScore) {
      home = place
      homeScore = score
    }
    if (floor !== undefined && priority < floor) continue
    if (!place.isEnabled || (chosen !== undefined && score <= chosenScore)) continue
    if (tried.includes(target) || !isFree(place)) continue
    chosen = place
    chosenScore = score
  }
  if (chosen === undefined) return undefined
  // Nothing ties this conversation to an account, so any account may have sealed items of its history. These items are
  // sent, except in the last attempt: if the account refused them, no attempt without them could follow.
  if (isFresh) {
    const why = chosen === home ? 'alike' : 'diverted'
    return { target: chosen.target, why: rank ? why : 'spread', isHome: !search.isLast }
  }
  if (binding === undefined)
    return { target: chosen.target, why: chosen === home ? 'hashed' : 'diverted', isHome: chosen === home }
  if (chosen.id === binding.place) return { target: chosen.target, why: 'bound', isHome: !binding.isMixed }
  const before = places.find(({ id }) => id === binding.place)
  return { target: chosen.target, why: 'diverted', isHome: false, moved: movedFor(before, chosen, tried, isLeaving) }
}

/** Returns why a conversation moves to another account. @param before the previous target, if it is still configured */
function movedFor(
  before: RankedTarget | undefined,
  chosen: RankedTarget,
  tried: readonly Target[],
  isLeaving: boolean,
): MovedFor {
  if (before !== undefined && tried.includes(before.target)) return 'failed'
  if (before === undefined || !isOn(before)) return 'off'
  if (chosen.priority < before.priority && isOpen(before)) return 'preferred'
  return !isOpen(before) ? 'cooling' : isLeaving ? 'slow' : 'hanging'
}

/**
 * A conversation, with the name under which the pool remembers it.
 * @property isNamed true if the name comes from a conversation key or from a sealed item
 */
type Recalled = { name: string; isNamed: boolean }

/** How long a conversation is remembered after its last answer, in ms; undefined if its name does not expire. */
function lifeOf({ isNamed }: Recalled, places: readonly RankedTarget[]): number | undefined {
  return isNamed ? undefined : cacheLifeMs(places[0]!.target.model.profile)
}

/**
 * Ranks the places for requests that are alike. In each priority, the `width.places` best places keep their scores. The
 * others get far lower scores, so that they are used only if no best place can be used.
 * @returns a function that returns the lowered score of a place, or undefined if the place keeps its score
 */
function rankBy(width: Width, places: readonly RankedTarget[]): (place: RankedTarget) => number | undefined {
  const name = hashText(width.name)
  const scores = places.map((place) => ({ place, score: scoreOf(name, place.hash, place.weight) }))
  scores.sort((one, other) => Number(isOn(other.place)) - Number(isOn(one.place)) || other.score - one.score)
  const alike = Map.groupBy(scores, ({ place }) => place.priority).values()
  const outside = new Map(
    alike.flatMap((ranked) => ranked.slice(width.places)).map(({ place, score }) => [place, score * outsideShare]),
  )
  return (place) => outside.get(place)
}

/** Counts the enabled places of the best priority. Other places get only requests that none of these can take. */
function firstOn(places: readonly RankedTarget[]): number {
  const on = places.filter(isOn)
  return on.filter(({ priority }) => priority === on[0]!.priority).length
}

/**
 * The factor by which `rankBy` lowers scores. It makes a score lower than every score that is kept, since kept scores
 * differ by a factor of some billions at most.
 */
const outsideShare = 1e-12

/** Whether the account is on trial and another request is trying it. Then this request goes elsewhere (ruling Y25). */
function isHeldBack(
  memory: PoolMemory,
  places: readonly RankedTarget[],
  place: RankedTarget,
  form: AnswerForm,
): boolean {
  const { firstBytes } = place.health
  watch(memory, places, place)
  return firstBytes.isOnTrial(form) && firstBytes.waitMs > 0
}

/** Puts the account on trial if its requests hang (ruling Y25). */
function watch(memory: PoolMemory, places: readonly RankedTarget[], place: RankedTarget): void {
  const isNew = place.health.firstBytes.judge(place.usual, (form) =>
    places.some((it) => it !== place && isSound(it, form)),
  )
  if (isNew) memory.countCooldown(place.id, hangingCause)
}

/** Encodes a model's name for a path. Names of Google's models have `@`, which a path may contain (RFC 3986 3.3). */
function segmentOf(upstreamModel: string): string {
  return encodeURIComponent(upstreamModel).replaceAll('%40', '@')
}

function pathsOf({ endpoints }: Upstream, { wire, upstreamModel }: Model): Pick<Target, 'path' | 'streamPath'> {
  const [path, streamPath] = endpoints[wire]
  const fill = (template: string) => template.replaceAll(modelPlace, () => segmentOf(upstreamModel))
  return { path: fill(path), streamPath: fill(streamPath) }
}

/**
 * Returns the name under which a conversation is remembered. It is the conversation key of the request. Without a key,
 * it is the last sealed item whose account is known (U13), or else the beginning of the request (Y24).
 */
function recall({ bindings }: PoolMemory, model: Model, { affinity, sealed, likeness }: Named): Recalled | undefined {
  const isKnown = affinity !== undefined || (sealed !== undefined && bindings.find(nameOf(model, sealed)))
  const name = isKnown ? (affinity ?? sealed) : undefined
  if (name !== undefined) return { name: nameOf(model, name), isNamed: true }
  return likeness && { name: nameOf(model, likeness.opener), isNamed: false }
}

/** The name under which a conversation with a model is remembered. */
function nameOf({ entryId: id }: Model, name: string): string {
  return `${id} ${name}`
}

function chooseOnly(place: RankedTarget, { tried }: Search): ChosenTarget | undefined {
  const { target, isEnabled } = place
  if (!isEnabled || !isOpen(place) || tried.includes(target)) return undefined
  return { target, why: 'only', isHome: true }
}

/** Whether neither the configuration nor an operator has disabled the place. */
function isInUse({ isEnabled, health }: RankedTarget): boolean {
  return isEnabled && health.state !== 'disabled'
}

/** Whether the place is in use and has a key. */
function isOn(place: RankedTarget): boolean {
  const { key } = place.target
  return isInUse(place) && (key === undefined || key.value !== undefined)
}

/** Whether the account is enabled, has a known key, and is neither cooling nor on trial. */
function isSound(place: RankedTarget, form: AnswerForm): boolean {
  return isOn(place) && place.health.stateFor(form) === 'ready'
}

/** Whether a request may be sent now: the key is known, and the account is not cooling. */
function isOpen({ target: { key }, health }: RankedTarget): boolean {
  if (key !== undefined) {
    if (key.value === undefined) return false
    health.useKey(key.version)
  }
  return health.isOpen
}

/** Returns the next priority after those that were tried; undefined if no place of a later priority can be used. */
function furtherPriority(
  places: readonly RankedTarget[],
  tried: readonly Target[],
  isFree: (place: RankedTarget) => boolean,
): number | undefined {
  let last = Number.NEGATIVE_INFINITY
  for (const { target, priority } of places) if (tried.includes(target)) last = Math.max(last, priority)
  return places.find((place) => place.priority > last && place.isEnabled && isFree(place))?.priority
}

/**
 * Returns the error for a request whose accounts are all cooling down. If one of them lacks capacity, the error is
 * `capacity`. The client is then asked to wait for the shortest cooldown of such accounts (U1, R6).
 */
function outlookOf(places: readonly RankedTarget[]): Outlook {
  let tell: Outlook['tell'] = 'account'
  let waitMs: number | undefined
  for (const place of places) {
    const { trouble } = place.health
    if (!isOn(place) || trouble?.tell !== 'capacity') continue
    tell = 'capacity'
    if (trouble.waitMs > 0) waitMs = Math.min(waitMs ?? Number.POSITIVE_INFINITY, trouble.waitMs)
  }
  return { tell, retryAfterSeconds: waitMs === undefined ? undefined : Math.ceil(waitMs / 1000) }
}

function rowOf(memory: PoolMemory, { id }: Model, place: RankedTarget): PoolRow {
  const { target, priority, health, budget } = place
  const { trouble } = health
  return {
    model: id,
    upstream: target.upstream.name,
    account: target.account?.name,
    priority,
    state: stateOf(place),
    cause: trouble?.cause,
    isHeard: health.isHeard,
    heard: memory.heardOf(place.id),
    waitMs: trouble?.waitMs,
    failures: health.failures,
    retriesLeft: budget.left,
  }
}

function stateOf({ isEnabled, target: { key }, health }: RankedTarget): PoolRow['state'] {
  if (!isEnabled) return 'off'
  return health.state !== 'disabled' && key && key.value === undefined ? 'no_key' : health.state
}

type StayParts = {
  place: RankedTarget
  places: readonly RankedTarget[]
  conversation: Recalled | undefined
  likeness: Likeness | undefined
  /** Whether the pool remembers the account of a conversation. It does so only if the model has several accounts. */
  isRemembered: boolean
  memory: PoolMemory
  isRetry: boolean
  form: AnswerForm
}

/** The causes of failures by which a provider refuses the key itself. */
const refusesKey: ReadonlySet<string> = new Set(['upstream_401', 'upstream_account_key'])

/** One attempt at a target. The caller reports how it goes, and this object updates the health of the account. */
export class Stay {
  readonly #parts: StayParts
  readonly #visit: Visit
  readonly #wait: Wait
  #hasBegun = false
  /** Whether the account is slow and the first byte of this answer was slow too. */
  #isSlow = false
  #isTold = false
  #isWell = false

  constructor(parts: StayParts) {
    this.#parts = parts
    this.#visit = parts.place.health.enter()
    this.#wait = parts.place.health.firstBytes.enter(parts.form)
  }

  firstByte(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    const { place, form } = this.#parts
    const { health, usual } = place
    const ms = health.firstBytes.came(this.#wait, usual)
    this.#isSlow = usual.isSlow(form, ms) && usual.isSlowAt(form, health.firstBytes)
  }

  /** Reports that an answer came. @param isUnsealed whether the request was sent without its sealed items */
  succeeded(isUnsealed: boolean): void {
    if (this.#isTold) return
    this.#noteWell()
    const { memory, conversation, place, places } = this.#parts
    if (conversation === undefined) return
    const lifeMs = lifeOf(conversation, places)
    memory.bindings.answered(conversation.name, place.id, isUnsealed, this.#isSlow, lifeMs)
  }

  /**
   * Remembers this account for the conversation, under the answer's last sealed item. The client sends this item back.
   * @param isUnsealed see `succeeded`
   */
  continuesAs(sealed: string, isUnsealed: boolean): void {
    const { memory, place, isRemembered } = this.#parts
    if (isRemembered) memory.bindings.answered(nameOf(place.target.model, sealed), place.id, isUnsealed, false)
  }

  /**
   * Reports that the model refused a faulty request, so the account works. The account is not remembered for the
   * conversation, because a refusal has no sealed item that the client could send back.
   */
  refused(): void {
    this.#parts.place.health.firstBytes.answered(this.#wait)
    if (!this.#isTold) this.#noteWell()
  }

  /**
   * Reports a failure.
   * @returns false if it does not count: the attempt has a result already, or the account was cooled or got a new key
   *   in the meantime
   */
  failed(verdict: Verdict, cause: string, retryAfterSeconds: number | undefined): boolean {
    const { health, usual, target } = this.#parts.place
    health.firstBytes.left(this.#wait, usual)
    // An answer that began well may still end with a failure that cools the account at once.
    if (this.#isTold && !(this.#isWell && verdict.cool === 'now')) return false
    this.#isTold = true
    const isFirst = health.failed(this.#visit, verdict, cause, () => this.#mayCool(), retryAfterSeconds)
    const { memory, likeness } = this.#parts
    if (verdict.tell === 'capacity' && likeness) memory.widths.full(target.model.entryId, likeness)
    if (verdict.tell === 'account' && verdict.cool !== 'no') target.key?.doubt(refusesKey.has(cause))
    return isFirst
  }

  /** Reports that the attempt shows nothing about the account. Does nothing after another report. */
  left(): void {
    const { health, usual } = this.#parts.place
    health.firstBytes.left(this.#wait, usual)
    if (this.#isTold) return
    this.#isTold = true
    health.left(this.#visit)
  }

  #noteWell(): void {
    const { place, isRetry } = this.#parts
    this.#isTold = true
    this.#isWell = true
    place.health.succeeded(this.#visit)
    if (isRetry) place.budget.noteAnswered()
  }

  #mayCool(): boolean {
    const { places, place, form } = this.#parts
    const others = places.filter((other) => other !== place && isOn(other))
    return maySpare(others.map(({ health }) => health.stateFor(form)))
  }
}
