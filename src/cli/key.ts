import { type Command, InvalidArgumentError, Option } from 'commander'
import type { IssuedKey, KeyRow } from '../accounts/book-rows.ts'
import { formatTable, formatTime, print } from './print.ts'
import { withStore } from './store.ts'

const unitsMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('what clients authenticate with: make, list, revoke and rotate keys')
  key
    .command('create <account>')
    .description('make a key; it is shown this once')
    .option('--label <text>', 'what people call it; its successors keep it')
    .action(async (account: string, { label }: { label?: string }, command: Command) => {
      const made = await withStore(command, (books) => books.createKey(account, { label }))
      print(command, made, () => made.key, lost(made))
    })
  key
    .command('list [account]')
    .description('list keys by their first characters')
    .action(async (account: string | undefined, _options, command: Command) => {
      const rows = (await withStore(command, (books) => books.listKeys(account))).map(toData)
      print(command, rows, () => {
        const columns = ['id', 'prefix', 'label', 'account', 'created', 'expires', 'revoked', 'last_used'] as const
        return formatTable(
          columns,
          rows.map((row) => columns.map((name) => row[name] ?? '-')),
        )
      })
    })
  key
    .command('revoke <key>')
    .description('end a key for good, by id or first characters')
    .action(async (name: string, _options, command: Command) => {
      const data = toData(await withStore(command, (books) => books.revokeKey(name)))
      print(command, data, () => `${data.id} is revoked`)
    })
  key
    .command('rotate <key>')
    .description('make a new key for the same account; the old one ends after a grace')
    .addOption(
      new Option('--grace <time>', 'how long the old key lives on, such as 90s, 30m, 24h or 7d')
        .argParser(readTime)
        .default(readTime('24h'), '24h'),
    )
    .action(async (name: string, { grace }: { grace: number }, command: Command) => {
      const made = await withStore(command, (books) => books.rotateKey(name, grace))
      print(command, made, () => made.key, lost(made))
    })
}

/** A key that nobody has seen is of no use, and lives. */
function lost({ id }: IssuedKey): string {
  return `The new key was not shown: revoke it with triwire key revoke ${id}`
}

/** @returns milliseconds */
function readTime(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (!count || !unit) throw new InvalidArgumentError('Write it like 90s, 30m, 24h or 7d.')
  return Number(count) * unitsMs[unit]!
}

function toData({ id, prefix, label, accountId, createdMs, expiresMs, revokedMs, lastUsedMs }: KeyRow) {
  return {
    id,
    prefix,
    label: label ?? null,
    account: accountId,
    created: formatTime(createdMs),
    expires: formatTime(expiresMs),
    revoked: formatTime(revokedMs),
    last_used: formatTime(lastUsedMs),
  }
}
