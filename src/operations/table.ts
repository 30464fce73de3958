import { accountOperations } from './accounts.ts'
import { demoOperations } from './demo.ts'
import { keyOperations } from './keys.ts'
import { ledgerOperations } from './ledger.ts'
import type { Operation } from './operation.ts'
import { meOperations, operatorOperations } from './operators.ts'
import { ownOperations } from './own.ts'
import { personOperations } from './persons.ts'
import { requestOperations } from './requests.ts'
import { runningOperations, webhookOperations } from './running.ts'
import { sessionOperations } from './session.ts'
import { signInOperations } from './sign-ins.ts'
import { statementOperations } from './statements.ts'
import { usageOperations } from './usage.ts'
import { usageTable } from './usage-table.ts'
import { workbenchOperations } from './workbench.ts'

/** All operations of the API for operators and owners of keys. The command line uses the same table. */
export const operations: readonly Operation[] = [
  ...sessionOperations,
  ...meOperations,
  ...demoOperations,
  ...ownOperations,
  ...accountOperations,
  ...keyOperations,
  ...personOperations,
  ...signInOperations,
  ...ledgerOperations,
  ...usageOperations,
  usageTable,
  ...statementOperations,
  ...runningOperations,
  ...requestOperations,
  ...workbenchOperations,
  ...webhookOperations,
  ...operatorOperations,
]
