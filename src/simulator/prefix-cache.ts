import { createHash } from 'node:crypto'
import type { Prompt, Segment, SimulatorWire, UsageCounts } from './prompt.ts'
import { countTokens } from './tokens.ts'

/** How long a prefix stays after its last use, by the mark that wrote it. */
type Lives = Readonly<Record<'5m' | '1h', number>>

/** The behaviour of a vendor's prompt cache. All lengths are tokens. */
type VendorCache = {
  /** Whether the request marks where prefixes end, or each prefix is cached by itself. */
  caching: 'marked' | 'automatic'
  /** The shortest prefix that is cached. */
  least: number
  /** Of a cached prefix only whole multiples of it are read. */
  step: number
  /** The number of segments before a mark in which a prefix is looked for. */
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
 * The ways of each wire's vendor (platform.claude.com/docs/en/build-with-claude/prompt-caching and
 * developers.openai.com/api/docs/guides/prompt-caching, November 2026). Of the models of one vendor the commonest minimum is taken,
 * and the shorter life.
 */
const vendorsCache: Readonly<Record<SimulatorWire, VendorCache>> = {
  messages: { caching: 'marked', least: 1_024, step: 1, lookBack: 20, livesMs },
  chat: automatic,
  responses: automatic,
}

/** The same for prompts of tests, which are short. */
const shortPrompts = { least: 64, step: 1 } as const

/** The tokens of a segment's role and end. */
const segmentOverheadTokens = 3

/** The prompt's tokens, and how many of them came from the cache or went into it. */
export type PromptCounts = Omit<UsageCounts, 'outputTokens' | 'reasoningTokens'>

type PrefixCacheOptions = {
  /** Whether prefixes must have the length that vendors ask for, or 64 tokens are enough. */
  length: 'vendors' | 'short'
  /** Unix milliseconds. */
  clock: () => number
  /** At most that many prefixes are kept; the one unused for longest goes first. */
  prefixesMax?: number
}

/** Remembers prefixes of prompts as hashes, for as long as the vendor of the wire does. */
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

  /** Returns the tokens of the longest known prefix, whose life begins anew. */
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

/** The end of a segment: a hash of everything up to it, and the number of tokens before it. */
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
