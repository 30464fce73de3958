/** The most conversations that are remembered. The longest idle conversation is forgotten first (reliability §3). */
const conversationsMax = 100_000

/** A conversation moves to another account after this many answers in a row from accounts other than its own. */
const missesMax = 3

/** The number of slow first bytes in a row after which a conversation may leave its slow account (ruling Y25). */
const slowMax = 2

/** The account that answers a conversation, and how many answers in a row had a slow first byte (`slow`). */
type Binding = {
  readonly place: string
  /** Whether another account has sealed parts of the history. This account cannot open these parts (ruling U13). */
  readonly isMixed: boolean
  readonly slow: number
}

type KeptBinding = { place: string; isMixed: boolean; misses: number; slow: number; usedMs: number }

/** Whether the conversation may leave its account because the account is slow. */
export function mayLeave({ slow }: Pick<Binding, 'slow'>): boolean {
  return slow >= slowMax
}

/**
 * Remembers the account of each conversation, so that the account's prompt cache stays warm. If the account fails once,
 * another account answers that request. The conversation itself moves only after repeated failures.
 */
export class Bindings {
  readonly #kept = new Map<string, KeptBinding>()
  readonly #clockMs: () => number

  /** Creates the memory. @param clockMs returns a monotonic time in ms */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /**
   * Finds the account of a conversation.
   * @param lifeMs the life of the prompt cache; infinite by default. If the last request is older than this, no account
   * has the cache any more, so the conversation is not found
   */
  find(conversation: string, lifeMs?: number): Binding | undefined {
    return this.#find(conversation, lifeMs)
  }

  /**
   * Notes which account answered.
   * @param isUnsealed whether the request left out the items that other accounts had sealed
   * @param isSlow whether the account is slow, and the first byte of this answer was slow too
   * @param lifeMs see `find`. A conversation that is not found any more begins anew, at the account that answered
   */
  answered(conversation: string, place: string, isUnsealed: boolean, isSlow: boolean, lifeMs?: number): void {
    const kept = this.#find(conversation, lifeMs)
    this.#kept.delete(conversation)
    this.#kept.set(conversation, { ...move(kept, place, isUnsealed, isSlow), usedMs: this.#clockMs() })
    if (this.#kept.size > conversationsMax) this.#kept.delete(this.#kept.keys().next().value!)
  }

  #find(conversation: string, lifeMs = Number.POSITIVE_INFINITY): KeptBinding | undefined {
    const kept = this.#kept.get(conversation)
    return kept && this.#clockMs() - kept.usedMs <= lifeMs ? kept : undefined
  }
}

type MovedBinding = Omit<KeptBinding, 'usedMs'>

function move(kept: KeptBinding | undefined, place: string, isUnsealed: boolean, isSlow: boolean): MovedBinding {
  if (kept === undefined) return { place, isMixed: isUnsealed, misses: 0, slow: Number(isSlow) }
  const isAway = kept.place !== place
  if (isAway && mayLeave(kept)) return { place, isMixed: true, misses: 0, slow: Number(isSlow) }
  // The conversation's account cannot open the items that other accounts sealed in their answers.
  kept.isMixed ||= isAway || isUnsealed
  kept.misses = isAway ? kept.misses + 1 : 0
  if (!isAway) kept.slow = isSlow ? kept.slow + 1 : 0
  if (kept.misses < missesMax) return kept
  return { place, isMixed: true, misses: 0, slow: 0 }
}

/** A 32-bit hash of a text: FNV-1a over its UTF-16 units. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * Scores a place (an upstream account) for a conversation's key. The place with the highest score gets the key. If a
 * place goes away, only its own keys move. A place gets its share of keys by weight (weighted rendezvous hashing).
 */
export function scoreOf(key: number, place: number, weight: number): number {
  let mixed = key ^ place
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  mixed = (mixed ^ (mixed >>> 16)) >>> 0
  return -weight / Math.log((mixed + 0.5) / 0x1_0000_0000)
}
