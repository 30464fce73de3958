/** What an operator wants of accounts: they are tried by the next request; or are asked for nothing until they are enabled again. */
export type Steering = 'retry' | 'disable' | 'enable'

/** Of which accounts an operator speaks: all of an upstream, or those that he names, for all models or for one. */
export type Meant = {
  readonly upstream: string
  readonly account?: string | undefined
  readonly model?: string | undefined
}

/** One account's service of one model, by what they are called. */
export type Service = { readonly upstream: string; readonly account: string | undefined; readonly model: string }

/** So many are remembered; of more the newest. */
const wishesMax = 10_000

/**
 * Which accounts operators want to be asked for nothing. The last wish about an account holds, also when its key or address has changed
 * since, when it was away for a while, and for models that were not there then.
 */
export class Wishes {
  #said: { isDisabled: boolean; meant: Meant }[] = []

  say(isDisabled: boolean, meant: Meant): void {
    const older = this.#said.filter((one) => !covers(meant, one.meant))
    // Where nothing of it is disabled it is an exception to nothing.
    const isNeeded = isDisabled || older.some((one) => one.isDisabled && overlap(one.meant, meant))
    this.#said = isNeeded ? [...older, { isDisabled, meant }].slice(-wishesMax) : older
  }

  isDisabled(one: Service): boolean {
    return this.#said.findLast(({ meant }) => covers(meant, one))?.isDisabled === true
  }
}

/** Whether all that the other means, or is, is meant. */
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
