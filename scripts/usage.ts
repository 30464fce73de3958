/*
 * Tries reports on long ledgers: `npm run test:usage [-- entries [SQLite|PostgreSQL] [--keep FOLDER] [--url URL]
 * [--ask]]`, by default 10 million entries.
 *
 * First, a million entries are posted with the chain, folded and partly reversed, as by a server. Their traffic is that
 * of the property test of figures. `ledger verify` must find nothing, and reports must equal a scan of the ledger. `--
 * verify 1000000 [SQLite|PostgreSQL]` does only this part.
 *
 * Then a ledger of all entries is written, over 13 months, 1,000 keys and 20 models. It is folded 500 entries a commit,
 * like in a server, its figures are compared, and the usual reports are requested. The times of the first and the later
 * responses are printed. The script fails if a response exceeds its bound. These entries have no chain, which would
 * take longer than the rest. So `ledger verify` compares only their figures.
 *
 * The run takes minutes, and some gigabytes of disk. With `--keep` the file stays in that folder, and an interrupted
 * run continues. `--url` names an empty database to use instead of a new server; its data is kept too. `--ask` only
 * requests reports from kept data.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { proveEqual } from './usage/equal.ts'
import { askInDatabase } from './usage/postgres.ts'
import { askInFile } from './usage/sqlite.ts'

const { values, positionals } = parseArgs({
  options: { keep: { type: 'string' }, url: { type: 'string' }, ask: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const own = mkdtempSync(join(tmpdir(), 'triwire-usage-'))
const folder = values.keep ?? own
mkdirSync(folder, { recursive: true })
process.env['TRIWIRE_TEST_DIR'] ??= own
const isVerify = positionals[0] === 'verify'
const [entries, engine] = isVerify ? positionals.slice(1) : positionals
try {
  if (isVerify || engine === undefined) await proveEqual(own, Number((isVerify && entries) || 1_000_000), engine)
  if (!isVerify) {
    if (engine !== 'PostgreSQL') await askInFile(folder, Number(entries ?? 10_000_000), values.ask)
    if (engine !== 'SQLite') await askInDatabase(folder, Number(entries ?? 10_000_000), values.ask, values.url)
  }
} finally {
  rmSync(own, { recursive: true })
}
