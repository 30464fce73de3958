import type { FallbackCause } from '../catalog/model.ts'

/** Why an entry was passed over: a cause that the operator declared, or `fit` if the request does not fit the entry. */
export type PassedOverFor = FallbackCause | 'fit'

/** Remembers conversations whose last answer came from a later entry of a chain. It stores their keys, but no text. */
export class ChainStays {
  readonly #kept = new Map<string, Stay & { untilMs: number }>()
  readonly #clockMs: () => number

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /**
   * Returns the functions for one conversation. They read and set the chain entry that the conversation continues to
   * use.
   * @param name the id of the chain, and the conversation key of the account
   */
  of(name: string): Stays {
    return {
      find: () => {
        const stay = this.#kept.get(name)
        return stay && stay.untilMs > this.#clockMs() ? stay : undefined
      },
      note: (stay, forMs) => {
        this.#kept.delete(name)
        if (stay) this.#kept.set(name, { ...stay, untilMs: this.#clockMs() + forMs })
        if (this.#kept.size > staysMax) this.#kept.delete(this.#kept.keys().next().value!)
      },
    }
  }
}

/** The most conversations that are remembered. The conversation that was answered longest ago is forgotten first. */
const staysMax = 100_000

/** The entry of a chain that a conversation continues to use. @property cause why the first entry was passed over */
type Stay = { entryId: string; cause: PassedOverFor }

export type Stays = { find(): Stay | undefined; note(stay: Stay | undefined, forMs: number): void }
