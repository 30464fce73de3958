import { createHash } from 'node:crypto'
import type { Prompt, Segment, SimulatorWire, UsageCounts } from './prompt.ts'
import { countTokens } from './tokens.ts'

/** How long a prefix is cached after its last use, in ms, for each of the lifetimes that a request can ask for. */
type Lives = Readonly<Record<'5m' | '1h', number>>

/** The behaviour of a vendor's prompt cache. Lengths are in tokens. */
type VendorCache = {
  /** `marked`: the request marks the ends of cached prefixes. `automatic`: each prefix is cached. */
  caching: 'marked' | 'automatic'
  /** The number of tokens in the shortest prefix that is cached. */
  least: number
  /** The number of tokens that are read from the cache is rounded down to a multiple of this. */
  step: number
  /**
   * A cached prefix may end at a cache mark of the request, or up to this many segments (parts of the prompt) before
   * the mark.
   */
  lookBack: number
  livesMs: Lives
}

const minuteMs = 60_000
const livesMs: Lives = { '5m': 5 * minuteMs, '1h': 60 * minuteMs }
const automatic: VendorCache = {
  caching: 'automatic',
  least: 1_024,
  step: 128,
  lookBack: Number.POSITIVE_INFINITY,
  livesMs,
}

/**
 * The caches of the vendors, by wire (platform.claude.com/docs/en/build-with-claude/prompt-caching and
 * developers.openai.com/api/docs/guides/prompt-caching, November 2026). If a vendor's models differ, the most common
 * minimum and the shorter lifetime are used.
 */
const vendorsCache: Readonly<Record<SimulatorWire, VendorCache>> = {
  messages: { caching: 'marked', least: 1_024, step: 1, lookBack: 20, livesMs },
  chat: automatic,
  responses: automatic,
}

/** Replaces the values of the vendor's cache, so that tests can use short prompts. */
const shortPrompts = { least: 64, step: 1 } as const

/** The tokens for the role and the end of a segment. */
const segmentOverheadTokens = 3

/** The tokens of a prompt, and how many of them were read from or written to the cache. */
export type PromptCounts = Omit<UsageCounts, 'outputTokens' | 'reasoningTokens'>

type PrefixCacheOptions = {
  /** The shortest prefix that is cached: `vendors` for the minimum of the wire's vendor, `short` for 64 tokens. */
  length: 'vendors' | 'short'
  /** Returns the current time in Unix milliseconds. */
  clock: () => number
  /** The most prefixes. Beyond that, the least recently used one is removed. */
  prefixesMax?: number
}

/** Creates a prompt cache of hashed prefixes. A prefix is kept as long as the wire's vendor keeps prefixes. */
export function createPrefixCache({ length, clock, prefixesMax = 10_000 }: PrefixCacheOptions) {
  const known = new Map<string, { untilMs: number; lifeMs: number }>()
  return { read }

  function read(prompt: Prompt, scope: string, wire: SimulatorWire): PromptCounts {
    const ways = { ...vendorsCache[wire], ...(length === 'short' && shortPrompts) }
    const borders = bordersOf(prompt, scope)
    const promptTokens = borders.at(-1)?.tokens ?? 0
    const counts = ways.caching === 'automatic' ? readAutomatic(borders, ways) : readMarked(borders, prompt, ways)
    return { promptTokens, ...counts }
  }

  function readAutomatic(borders: Border[], ways: VendorCache) {
    // The last token is never read from the cache, because the model continues from it.
    const hit = Math.min(longestKnown(borders, borders.length - 1, ways), (borders.at(-1)?.tokens ?? 1) - 1)
    for (const border of borders) remember(border, ways, '5m')
    return { readTokens: hit - (hit % ways.step), writtenTokens: 0, written1hTokens: 0 }
  }

  function readMarked(borders: Border[], prompt: Prompt, ways: VendorCache) {
    let readTokens = 0
    let end = 0
    let end1h = 0
    const marked: [Border, keyof Lives][] = []
    for (const [index, { mark }] of prompt.segments.entries()) {
      const border = borders[index]!
      if (!mark || border.tokens < ways.least) continue
      readTokens = Math.max(readTokens, longestKnown(borders, index, ways))
      end = border.tokens
      if (mark === '1h') end1h = border.tokens
      marked.push([border, mark])
    }
    for (const [border, mark] of marked) remember(border, ways, mark)
    return {
      readTokens,
      writtenTokens: Math.max(0, end - readTokens),
      written1hTokens: Math.max(0, end1h - readTokens),
    }
  }

  /** Returns the number of tokens in the longest known prefix, and renews the lifetime of this prefix. */
  function longestKnown(borders: Border[], from: number, { lookBack }: VendorCache): number {
    for (let i = from; i >= Math.max(0, from - lookBack); i--) {
      const { hash, tokens } = borders[i]!
      const entry = known.get(hash)
      if (!entry || entry.untilMs <= clock()) continue
      keep(hash, entry.lifeMs)
      return tokens
    }
    return 0
  }

  function remember({ hash, tokens }: Border, { least, livesMs }: VendorCache, mark: keyof Lives): void {
    if (tokens >= least) keep(hash, livesMs[mark])
  }

  function keep(hash: string, lifeMs: number): void {
    known.delete(hash)
    known.set(hash, { untilMs: clock() + lifeMs, lifeMs })
    if (known.size > prefixesMax) known.delete(known.keys().next().value!)
  }
}

export function tokensOf({ text, extraTokens = 0 }: Segment): number {
  return countTokens(text) + extraTokens + segmentOverheadTokens
}

/** The end of a segment, with the hash and the token count of the prompt from its beginning to this end. */
type Border = { hash: string; tokens: number }

function bordersOf(prompt: Prompt, scope: string): Border[] {
  let hash = `${prompt.model}\n${prompt.cacheKey}\n${scope}`
  let tokens = 0
  return prompt.segments.map((segment) => {
    hash = createHash('sha256').update(hash).update('\0').update(segment.text).digest('base64')
    tokens += tokensOf(segment)
    return { hash, tokens }
  })
}
