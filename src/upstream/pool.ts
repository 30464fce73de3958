import type { Model, Route } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import { modelPlace } from '../config/endpoints.ts'
import { type Health, type HealthState, maySpare, type Visit } from './health.ts'
import { fixedKey, type KeyFinder } from './keyring.ts'
import { type Heard, type PoolMemory, placeOf } from './pool-memory.ts'
import { hashText, scoreOf } from './rendezvous.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { Target } from './target.ts'
import type { Verdict } from './verdict.ts'
import { covers, type Meant, type Steering } from './wishes.ts'

/** One request that looks for a target. */
export type Search = {
  requestId: string
  /** The conversation key scoped to its account: the same one goes to the same place (ruling P6). */
  affinity: string | undefined
  /** Of a conversation without a key: the digest of what was sealed in it last, scoped likewise; it goes to whoever is known to have sealed it (ruling U13). */
  sealed?: string | undefined
  /** Targets that were asked for this request and must not be asked again. */
  tried: readonly Target[]
  /** No other attempt can follow: it goes to a further priority, where there is one (ruling U1). */
  isLast: boolean
}

/** By what a conversation is known. */
type Named = Pick<Search, 'affinity' | 'sealed'>

/** Why a request goes to an account. */
export type ChoiceReason =
  /** There is no other. */
  | 'only'
  /** The conversation is with it. */
  | 'bound'
  /** It has the conversation's key, of which nothing is known. */
  | 'hashed'
  /** No conversation is named: chance, by weight. */
  | 'spread'
  /** The one that it would have gone to was asked, is off, or is left alone. */
  | 'diverted'

export type ChosenTarget = {
  target: Target
  why: ChoiceReason
  /** It can open what the answers of this conversation sealed (ruling U13). */
  isHome: boolean
}

/** What is to be told where nobody can be asked. */
export type Outlook = { tell: 'capacity' | 'account'; retryAfterSeconds: number | undefined }

/** Which account of which upstream a request goes to. */
export interface Pool {
  /** The target of the next attempt, or undefined where nobody is left to ask. A key that has changed since ends its account's cooldown here. */
  choose(model: Model, search: Search): ChosenTarget | undefined
  /** An attempt goes there. Exactly one of what it can come to is to be told; `left` may always follow. */
  enter(choice: ChosenTarget, search: Named, isRetry: boolean): Stay
  /** Whether an upstream's traffic bears another attempt (ruling U1). */
  mayRetry(target: Target): boolean
  /** How many accounts of the model are not switched off. */
  sizeOf(model: Model): number
  outlook(model: Model): Outlook
  /** Every target of the model that is switched on, whatever is known of its health. */
  listTargets(model: Model): Target[]
  /** Every account of every model, as people see it. */
  list(models: Iterable<Model>): PoolRow[]
  /** What an operator wants of those that are meant, for all servers of a store. @returns how they are then */
  steer(steering: Steering, meant: Meant, models: Iterable<Model>): PoolRow[]
  /** How often this process has left accounts alone, by upstream and then by cause. */
  readonly cooldowns: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** This configuration is in force now: what is remembered of accounts and upstreams that it does not have is forgotten. */
  adopt(models: Iterable<Model>): void
}

/** One attempt at a target, for what it says about the account's health. */
export interface Stay {
  /** An answer. @param isUnsealed the request was sent without its sealed history */
  succeeded(isUnsealed: boolean): void
  /** What the answer has sealed last, by which its conversation is known when it comes back. @param isUnsealed as above */
  continuesAs(sealed: string, isUnsealed: boolean): void
  /** A refusal that is the request's own fault: the account is well, and has sealed nothing of the conversation. */
  refused(): void
  failed(verdict: Verdict, cause: string, retryAfterSeconds: number | undefined): void
  /** It came to nothing that says something of the account; told again, or behind the others, it does nothing. */
  left(): void
}

export type PoolRow = {
  model: string
  upstream: string
  account: string | undefined
  priority: number
  /** `no_key`: what its key comes from has not told it yet. */
  state: HealthState | 'off' | 'no_key'
  /** What it was left alone for, in the words of the log. */
  cause: string | undefined
  /** Another server of the store has met that, and told this one. */
  isHeard: boolean
  /** What other servers of the store have met there, whether or not it is left alone here. */
  heard: Heard | undefined
  /** Until it is tried again, in ms. */
  waitMs: number | undefined
  /** Since its last success. */
  failures: number
  /** How many second attempts of this minute its upstream still bears, for all models together (ruling U1). */
  retriesLeft: number
}

/** A target with all that choosing needs. */
type RankedTarget = {
  readonly target: Target
  readonly id: string
  readonly hash: number
  readonly weight: number
  readonly priority: number
  readonly isEnabled: boolean
  readonly health: Health
  readonly budget: RetryBudget
}

/**
 * @param memory outlives the configuration: a reload takes health, budgets and conversations along (U14)
 * @param keyOf keys that change have an owner of their own, who outlives it as well
 */
export function createPool(
  upstreams: ReadonlyMap<string, Upstream>,
  memory: PoolMemory,
  keyOf: KeyFinder = fixedKey,
): Pool {
  const placesByModel = new Map<Model, readonly RankedTarget[]>()
  const placesByTarget = new Map<Target, RankedTarget>()
  return {
    choose(model, search) {
      const places = placesOf(model)
      if (places.length === 1) return chooseOnly(places[0]!, search)
      const { affinity, sealed } = search
      // What nobody knows the account of says nothing.
      const isKnown = affinity !== undefined || (sealed !== undefined && memory.bindings.find(nameOf(model, sealed)))
      return chooseAmong(places, search, isKnown ? conversationOf(model, search) : undefined)
    },
    enter({ target }, search, isRetry) {
      const place = placesByTarget.get(target)!
      place.budget.note(isRetry)
      const places = placesOf(target.model)
      const isRemembered = places.length > 1
      const conversation = isRemembered ? conversationOf(target.model, search) : undefined
      return new PoolStay({ place, places, conversation, isRemembered, memory, isRetry })
    },
    mayRetry: (target) => placesByTarget.get(target)!.budget.mayRetry,
    sizeOf(model) {
      let size = 0
      for (const place of placesOf(model)) if (isOn(place)) size++
      return size
    },
    outlook: (model) => outlookOf(placesOf(model)),
    cooldowns: memory.cooldowns,
    listTargets: (model) => placesOf(model).flatMap(({ target, isEnabled }) => (isEnabled ? [target] : [])),
    list: (models) => [...models].flatMap((model) => placesOf(model).map((place) => rowOf(memory, model, place))),
    steer(steering, meant, models) {
      memory.wish(steering, meant)
      return [...models].flatMap((model) => steerPlaces(memory, steering, meant, model, placesOf(model)))
    },
    adopt(models) {
      const places = [...models].flatMap((model) => placesOf(model).map(({ id }) => id))
      memory.keepOnly(new Set(places), new Set(upstreams.keys()))
    },
  }

  /** @param model of the catalog, or as a target has it */
  function placesOf(model: Model): readonly RankedTarget[] {
    const found = placesByModel.get(model)
    if (found) return found
    const places = model.routes.flatMap((route) => openRoute(model, route))
    placesByModel.set(model, places)
    memory.group(places.flatMap(({ id, isEnabled }) => (isEnabled ? [id] : [])))
    for (const place of places) {
      placesByTarget.set(place.target, place)
      placesByModel.set(place.target.model, places)
    }
    return places
  }

  function openRoute(model: Model, route: Route): RankedTarget[] {
    const upstream = upstreams.get(route.upstream)
    if (!upstream) return []
    const { upstreamModel, profile } = route.serving
    const isPlain = upstreamModel === model.upstreamModel && profile === model.profile
    const served = isPlain ? model : { ...model, ...route.serving }
    const headers = [...new Map([...upstream.headers, ...route.headers])].flat()
    const path = upstream.endpoints[model.wire].replaceAll(modelPlace, encodeURIComponent(upstreamModel))
    const accounts: readonly (UpstreamAccount | undefined)[] =
      upstream.accounts.length > 0 ? upstream.accounts : [undefined]
    // The weight is the upstream's, whatever number of accounts it has that are on.
    const weight = route.weight / Math.max(1, accounts.filter((account) => account?.isEnabled !== false).length)
    return accounts.map((account) => {
      const id = placeOf(model, upstream, route, account)
      return {
        target: { upstream, account, key: account && keyOf(account), model: served, path, headers },
        id,
        hash: hashText(id),
        weight,
        priority: route.priority,
        isEnabled: account?.isEnabled !== false,
        health: memory.healthOf(id),
        budget: memory.budgetOf(upstream.name),
      }
    })
  }

  function chooseAmong(
    places: readonly RankedTarget[],
    search: Search,
    conversation: string | undefined,
  ): ChosenTarget | undefined {
    const binding = conversation === undefined ? undefined : memory.bindings.find(conversation)
    const key = hashText(conversation ?? search.requestId)
    const floor = search.isLast ? furtherPriority(places, search.tried) : undefined
    let chosen: RankedTarget | undefined
    let chosenScore = 0
    /** Who has the key as long as nothing is known of the conversation, whether or not it can be asked. */
    let home: RankedTarget | undefined
    let homeScore = 0
    for (const place of places) {
      const { target, priority } = place
      if (chosen !== undefined && priority > chosen.priority) break
      const score = binding?.place === place.id ? Number.POSITIVE_INFINITY : scoreOf(key, place.hash, place.weight)
      if (priority === places[0]!.priority && score > homeScore) {
        home = place
        homeScore = score
      }
      if (floor !== undefined && priority < floor) continue
      if (!place.isEnabled || (chosen !== undefined && score <= chosenScore)) continue
      if (search.tried.includes(target) || !isOpen(place)) continue
      chosen = place
      chosenScore = score
    }
    if (chosen === undefined) return undefined
    // Without a key nobody knows whose history it is, and behind the last attempt none could do without what is sealed.
    if (conversation === undefined) return { target: chosen.target, why: 'spread', isHome: !search.isLast }
    const isHome = binding ? chosen.id === binding.place : chosen === home
    const why = !isHome ? 'diverted' : binding ? 'bound' : 'hashed'
    return { target: chosen.target, why, isHome: isHome && binding?.isMixed !== true }
  }
}

function conversationOf(model: Model, { affinity, sealed }: Named): string | undefined {
  const name = affinity ?? sealed
  return name === undefined ? undefined : nameOf(model, name)
}

function steerPlaces(
  memory: PoolMemory,
  steering: Steering,
  meant: Meant,
  model: Model,
  places: readonly RankedTarget[],
): PoolRow[] {
  const found = places.filter((place) => covers(meant, rowOf(memory, model, place)))
  for (const { id } of found) memory.steer(steering, id)
  return found.map((place) => rowOf(memory, model, place))
}

/** What a conversation with a model is remembered by. */
function nameOf({ entryId: id }: Model, name: string): string {
  return `${id} ${name}`
}

function chooseOnly(place: RankedTarget, { tried }: Search): ChosenTarget | undefined {
  const { target, isEnabled } = place
  if (!isEnabled || !isOpen(place) || tried.includes(target)) return undefined
  return { target, why: 'only', isHome: true }
}

/** Neither the configuration nor an operator wants it to be asked for nothing. */
function isOn({ isEnabled, health }: RankedTarget): boolean {
  return isEnabled && health.state !== 'disabled'
}

/** It may be sent something now: its key is known, and it is not left alone. */
function isOpen({ target: { key }, health }: RankedTarget): boolean {
  if (key !== undefined) {
    if (key.value === undefined) return false
    health.useKey(key.version)
  }
  return health.isOpen
}

/** The next priority behind those that were tried, if somebody there can be asked. */
function furtherPriority(places: readonly RankedTarget[], tried: readonly Target[]): number | undefined {
  let last = Number.NEGATIVE_INFINITY
  for (const { target, priority } of places) if (tried.includes(target)) last = Math.max(last, priority)
  return places.find((place) => place.priority > last && place.isEnabled && isOpen(place))?.priority
}

/** All that are on are left alone: for capacity if any is, with the shortest wait that is known (rulings U1, R6). */
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
  const { target, priority, isEnabled, health, budget } = place
  const { trouble } = health
  return {
    model: id,
    upstream: target.upstream.name,
    account: target.account?.name,
    priority,
    state: stateOf({ isEnabled, target, health }),
    cause: trouble?.cause,
    isHeard: health.isHeard,
    heard: memory.heardOf(place.id),
    waitMs: trouble?.waitMs,
    failures: health.failures,
    retriesLeft: budget.left,
  }
}

function stateOf({
  isEnabled,
  target: { key },
  health,
}: Pick<RankedTarget, 'isEnabled' | 'target' | 'health'>): PoolRow['state'] {
  if (!isEnabled) return 'off'
  return health.state !== 'disabled' && key && key.value === undefined ? 'no_key' : health.state
}

type StayParts = {
  place: RankedTarget
  places: readonly RankedTarget[]
  conversation: string | undefined
  /** Conversations are: there is more than one place. */
  isRemembered: boolean
  memory: PoolMemory
  isRetry: boolean
}

class PoolStay implements Stay {
  readonly #place: RankedTarget
  readonly #places: readonly RankedTarget[]
  readonly #conversation: string | undefined
  readonly #isRemembered: boolean
  readonly #memory: PoolMemory
  readonly #isRetry: boolean
  readonly #visit: Visit
  #isTold = false
  #isWell = false

  constructor({ place, places, conversation, isRemembered, memory, isRetry }: StayParts) {
    this.#place = place
    this.#places = places
    this.#conversation = conversation
    this.#isRemembered = isRemembered
    this.#memory = memory
    this.#isRetry = isRetry
    this.#visit = place.health.enter()
  }

  succeeded(isUnsealed: boolean): void {
    if (this.#isTold) return
    this.#noteWell()
    if (this.#conversation === undefined) return
    this.#memory.bindings.answered(this.#conversation, this.#place.id, isUnsealed)
  }

  continuesAs(sealed: string, isUnsealed: boolean): void {
    const { target, id } = this.#place
    if (this.#isRemembered) this.#memory.bindings.answered(nameOf(target.model, sealed), id, isUnsealed)
  }

  refused(): void {
    if (!this.#isTold) this.#noteWell()
  }

  failed(verdict: Verdict, cause: string, retryAfterSeconds: number | undefined): void {
    // An answer that had begun well may still end for a reason that shuts the account.
    if (this.#isTold && !(this.#isWell && verdict.cool === 'now')) return
    this.#isWell = false
    this.#isTold = true
    this.#place.health.failed(this.#visit, verdict, cause, () => this.#mayCool(), retryAfterSeconds)
    if (verdict.tell === 'account' && verdict.cool !== 'no') this.#place.target.key?.doubt()
  }

  left(): void {
    if (this.#isTold) return
    this.#isTold = true
    this.#place.health.left(this.#visit)
  }

  #noteWell(): void {
    this.#isTold = true
    this.#isWell = true
    this.#place.health.succeeded(this.#visit)
    if (this.#isRetry) this.#place.budget.noteAnswered()
  }

  #mayCool(): boolean {
    const others = this.#places.filter((place) => place !== this.#place && isOn(place))
    return maySpare(others.map(({ health }) => health.state))
  }
}
