import { accountOperations } from './accounts.ts'
import { keyOperations } from './keys.ts'
import { ledgerOperations } from './ledger.ts'
import type { Operation } from './operation.ts'
import { meOperations, operatorOperations } from './operators.ts'
import { runningOperations } from './running.ts'
import { sessionOperations } from './session.ts'

/** All that operators, and owners of keys, can do over HTTP: each once, whatever asks for it. */
export const operations: readonly Operation[] = [
  ...sessionOperations,
  ...meOperations,
  ...accountOperations,
  ...keyOperations,
  ...ledgerOperations,
  ...runningOperations,
  ...operatorOperations,
]
