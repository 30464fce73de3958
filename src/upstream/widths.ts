import type { Model } from '../catalog/model.ts'
import { cacheLifeMs } from '../catalog/profile.ts'
import type { Likeness } from '../inference/likeness.ts'

/**
 * The most rates (recent input tokens) that are kept for each model. Each preamble and each list of tools has a rate.
 * The rate that was unused for longest is removed first.
 */
const ratesMax = 10_000

/**
 * A rate without new tokens falls to 1/e in this time, in ms. In a model's first `decayMs`, its rates are not used yet.
 */
const decayMs = 60_000

/**
 * The most input of one preamble that an account gets, as a fraction of an account's mean input. A preamble with more
 * input gets more accounts. With 1 instead, the cached share of the input was 0.3 % higher in simulations. But the
 * busiest account then had 1.77 times the mean input, not 1.6 times.
 */
const fullShare = 0.72

/** A sum of recent input tokens. The older a token is, the less it counts. */
class Rate {
  #tokens = 0
  #atMs: number
  /**
   * Until this time, the preamble of this rate may use one more account than `fullShare` allows. It is set when one of
   * the preamble's accounts was full.
   */
  wideUntilMs = 0
  /**
   * The digest by which places are ranked, usually the digest of this rate's preamble. A preamble that is new in the
   * model's first minute gets the digest of the first preamble with the same tools. It keeps that digest until a pause
   * longer than the life of the prompt cache.
   */
  name = ''

  constructor(nowMs: number) {
    this.#atMs = nowMs
  }

  add(tokens: number, nowMs: number): void {
    this.#tokens = this.at(nowMs) + tokens
    this.#atMs = nowMs
  }

  get usedMs(): number {
    return this.#atMs
  }

  at(nowMs: number): number {
    return this.#tokens * Math.exp((this.#atMs - nowMs) / decayMs)
  }
}

type ModelRates = { sinceMs: number; all: Rate; alike: Map<string, Rate> }

/**
 * How many upstream accounts (`places`) get the requests with one preamble.
 * @property name the digest that determines the order in which the accounts are used
 */
export type Width = { name: string; places: number }

/**
 * Decides how many upstream accounts (places) get the requests with one preamble (leading instructions, ruling Y24).
 * One place is best, because its prompt cache then has the preamble. A preamble with a large share of the model's input
 * gets further places. The rates count the requests of this process, and they are not stored.
 */
export class Widths {
  readonly #models = new Map<string, ModelRates>()
  readonly #clockMs: () => number

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /**
   * Counts a request of a model and returns how many places (accounts) its preamble may use. In the model's first
   * minute, this is one place. After that, the rate of requests with the preamble decides. For a new preamble, the rate
   * of requests with the same tools decides.
   * @param places the number of enabled places in the model's best priority
   * @returns the width of the request's preamble
   */
  count(
    { entryId, profile }: Pick<Model, 'entryId' | 'profile'>,
    { tools, preamble, tokens }: Likeness,
    places: number,
  ): Width {
    const nowMs = this.#clockMs()
    const rates = this.#ratesOf(entryId, nowMs)
    const isKnown = nowMs - rates.sinceMs >= decayMs
    const isNew = !rates.alike.has(preamble)
    const [own, ofTools] = [this.#rateOf(rates, preamble, nowMs), this.#rateOf(rates, tools, nowMs)]
    if (ofTools.name === '') ofTools.name = preamble
    if (isNew) own.name = isKnown ? preamble : ofTools.name
    else if (nowMs - own.usedMs > cacheLifeMs(profile)) own.name = preamble
    rates.all.add(tokens, nowMs)
    own.add(tokens, nowMs)
    if (own !== ofTools) ofTools.add(tokens, nowMs)
    const rate = isNew ? ofTools : own
    const share = rate.at(nowMs) / rates.all.at(nowMs)
    const wide = (isKnown ? Math.max(1, Math.ceil((share * places) / fullShare)) : 1) + Number(nowMs < own.wideUntilMs)
    return { name: own.name, places: Math.min(places, wide) }
  }

  /** Lets requests with this preamble use one more account for a minute, because one of their accounts was full. */
  full(model: string, { preamble }: Likeness): void {
    const nowMs = this.#clockMs()
    this.#rateOf(this.#ratesOf(model, nowMs), preamble, nowMs).wideUntilMs = nowMs + decayMs
  }

  #ratesOf(model: string, nowMs: number): ModelRates {
    const found = this.#models.get(model)
    if (found) return found
    const made = { sinceMs: nowMs, all: new Rate(nowMs), alike: new Map<string, Rate>() }
    this.#models.set(model, made)
    return made
  }

  #rateOf({ alike }: ModelRates, name: string, nowMs: number): Rate {
    const rate = alike.get(name) ?? new Rate(nowMs)
    alike.delete(name)
    alike.set(name, rate)
    if (alike.size > ratesMax) alike.delete(alike.keys().next().value!)
    return rate
  }
}
