/** So many conversations are remembered; the one that was quiet the longest is forgotten first (reliability §3). */
const conversationsMax = 100_000

/** Answers in a row from elsewhere after which a conversation stays there. */
const missesMax = 3

/** Which account answers a conversation. */
export type Binding = {
  /** The target, by its id. */
  readonly place: string
  /** Something of its history was sealed by another account than this one (ruling U13). */
  readonly isMixed: boolean
}

type KeptBinding = { place: string; isMixed: boolean; misses: number }

/**
 * Remembers which account a conversation is with, so that its prompt cache stays warm: an account that fails once loses
 * one answer of it, and the conversation itself only when it fails again and again.
 */
export class Bindings {
  readonly #kept = new Map<string, KeptBinding>()

  find(conversation: string): Binding | undefined {
    return this.#kept.get(conversation)
  }

  /** @param isUnsealed the request was sent without what another account had sealed */
  answered(conversation: string, place: string, isUnsealed: boolean): void {
    const kept = this.#kept.get(conversation)
    this.#kept.delete(conversation)
    this.#kept.set(conversation, move(kept, place, isUnsealed))
    if (this.#kept.size <= conversationsMax) return
    for (const oldest of this.#kept.keys()) {
      this.#kept.delete(oldest)
      return
    }
  }
}

function move(kept: KeptBinding | undefined, place: string, isUnsealed: boolean): KeptBinding {
  if (kept === undefined) return { place, isMixed: isUnsealed, misses: 0 }
  const isAway = kept.place !== place
  // What is sealed while it is away the account it comes back to cannot open.
  kept.isMixed ||= isAway || isUnsealed
  kept.misses = isAway ? kept.misses + 1 : 0
  if (kept.misses < missesMax) return kept
  return { place, isMixed: true, misses: 0 }
}
