import { createHash } from 'node:crypto'
import type { Prompt, Segment, UsageCounts } from './prompt.ts'
import { countTokens } from './tokens.ts'

/** The shortest prefix that is cached. Vendors require 1,024 tokens or more, which would make tests long. */
const cacheTokensMin = 64

/** The number of segments before a cache mark in which an entry is looked for (as the messages vendor documents). */
const lookBackSegments = 20

/** The number of borders at the end of a prompt that automatic caching remembers. */
const rememberedBorders = 8

/** The tokens of a segment's role and end. */
const segmentOverheadTokens = 3

/** The prompt's tokens, and how many of them came from the cache or went into it. */
export type PromptCounts = Omit<UsageCounts, 'outputTokens' | 'reasoningTokens'>

/** Remembers at most `entriesMax` prompt prefixes as hashes, and forgets the oldest first. */
export function createPrefixCache(entriesMax = 1_000) {
  const known = new Set<string>()
  return { read }

  function read(prompt: Prompt, scope: string, caching: 'automatic' | 'marked'): PromptCounts {
    const borders = bordersOf(prompt, scope)
    const promptTokens = borders.at(-1)?.tokens ?? 0
    const counts = caching === 'automatic' ? readAutomatic(borders, prompt) : readMarked(borders, prompt)
    return { promptTokens, ...counts }
  }

  function readAutomatic(borders: Border[], prompt: Prompt) {
    const hit = longestKnown(borders, borders.length - 1, 0)
    const kept = borders.slice(-rememberedBorders)
    const preamble = borders[prompt.preambleSegments - 1]
    if (preamble) kept.push(preamble)
    for (const border of kept) remember(border)
    // The last token is never read from the cache, because the model continues from it.
    const readTokens = Math.min(hit, (borders.at(-1)?.tokens ?? 1) - 1)
    return { readTokens, writtenTokens: 0, written1hTokens: 0 }
  }

  function readMarked(borders: Border[], prompt: Prompt) {
    let readTokens = 0
    let end = 0
    let end1h = 0
    const marked: Border[] = []
    for (const [index, segment] of prompt.segments.entries()) {
      const border = borders[index]!
      if (!segment.mark || border.tokens < cacheTokensMin) continue
      readTokens = Math.max(readTokens, longestKnown(borders, index, index - lookBackSegments))
      end = border.tokens
      if (segment.mark === '1h') end1h = border.tokens
      marked.push(border)
    }
    for (const border of marked) remember(border)
    return {
      readTokens,
      writtenTokens: Math.max(0, end - readTokens),
      written1hTokens: Math.max(0, end1h - readTokens),
    }
  }

  function longestKnown(borders: Border[], from: number, to: number): number {
    for (let i = from; i >= Math.max(0, to); i--) if (known.has(borders[i]!.hash)) return borders[i]!.tokens
    return 0
  }

  function remember(border: Border): void {
    if (border.tokens < cacheTokensMin) return
    known.delete(border.hash)
    known.add(border.hash)
    if (known.size > entriesMax) known.delete(known.values().next().value!)
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
