import type { Command } from 'commander'
import { withoutKeys } from '../accounts/keys.ts'
import type { Explanation } from '../operations/shapes.ts'
import type { Told } from './admin.ts'
import { note } from './print.ts'
import { withStore } from './store.ts'

/**
 * What a server that could not tell leaves to the ledger: what was billed.
 * @throws Error where nobody knows of the request, with what that may mean.
 */
export async function explainWithout(command: Command, requestId: string, told: Told): Promise<Explanation> {
  if ('status' in told && told.status === 404)
    throw new Error(
      `There is no request ${withoutKeys(requestId)}: it is not among the last ones that the server remembers, and has no debit; refused and failed requests have none`,
    )
  note(command, 'trouble' in told ? told.trouble : `the server says: ${(told.body as { detail?: string }).detail}`)
  const debit = await withStore(command, (books) => books.findDebit(requestId))
  if (!debit)
    throw new Error(
      `The ledger has no debit of request ${requestId}, and no server could be asked: refused and failed requests have none`,
    )
  const { explainDebit } = await import('../live/explanation.ts')
  return explainDebit(debit)
}
