/** An operator's command about accounts. `retry`: try them next. `disable`: send them nothing. `enable`: use them again. */
export type Steering = 'retry' | 'disable' | 'enable'

/** The accounts that a command is about: all of an upstream, or one by name, for all models or for one. */
export type Meant = {
  readonly upstream: string
  readonly account?: string | undefined
  readonly model?: string | undefined
}

/** One account's service of one model, by name. */
export type Service = { readonly upstream: string; readonly account: string | undefined; readonly model: string }

/** The most commands that are remembered; the oldest are forgotten. */
const wishesMax = 10_000

/**
 * Remembers the accounts that operators have disabled. The last command about an account holds. It holds even after the key
 * or the address has changed, after the account was removed and added again, and for models added later.
 */
export class Wishes {
  #said: { isDisabled: boolean; meant: Meant }[] = []

  say(isDisabled: boolean, meant: Meant): void {
    const older = this.#said.filter((one) => !covers(meant, one.meant))
    // Enabling accounts that are not disabled needs no entry.
    const isNeeded = isDisabled || older.some((one) => one.isDisabled && overlap(one.meant, meant))
    this.#said = isNeeded ? [...older, { isDisabled, meant }].slice(-wishesMax) : older
  }

  isDisabled(one: Service): boolean {
    return this.#said.findLast(({ meant }) => covers(meant, one))?.isDisabled === true
  }
}

/** Whether a command covers another one, or a service, completely. */
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
