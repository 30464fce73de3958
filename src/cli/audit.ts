import type { Command } from 'commander'
import { print } from './print.ts'
import { withStore } from './store.ts'

/** Adds `audit verify` beside `audit list` of the table. It computes every digest of the trail again. */
export function addAuditCommands(program: Command): void {
  program.commands
    .find((command) => command.name() === 'audit')!
    .command('verify')
    .description(
      'do every digest of the audit trail again; fails on any finding, else prints its end to keep elsewhere',
    )
    .action(async (_options, command: Command) => {
      const { findings, head } = await withStore(command, (books) => books.verifyAudit())
      const ok = findings.length === 0
      print(command, { ok, findings, head: head ?? null }, () =>
        ok ? `the audit trail is whole\nhead ${head ?? 'none: nothing was changed yet'}` : findings.join('\n'),
      )
      if (!ok) process.exitCode = 1
    })
}
