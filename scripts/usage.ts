/*
 * Reports over long ledgers: `npm run test:usage [-- entries [SQLite|PostgreSQL] [--keep FOLDER] [--url URL] [--ask]]`,
 * 10 million entries by default.
 *
 * First a million entries are posted with the chain, folded and partly given back, as by a server. Their traffic is
 * that of the property test of figures. `ledger verify` must find nothing, and reports must equal a scan of the ledger.
 * `-- verify 1000000 [SQLite|PostgreSQL]` does this part alone.
 *
 * Then a ledger of so many entries is written, over 13 months, 1,000 keys and 20 models. It is folded 500 entries a
 * commit, as a server does, its figures are compared, and the questions that people ask are asked. The times of the
 * first and the later answers are printed. The script fails if an answer takes longer than it may. These entries are
 * written without the chain, which would take longer than all else. So `ledger verify` compares only figures on them.
 *
 * The run takes minutes, and some gigabytes of disk. With `--keep` the file stays in that folder, and a run that was
 * ended continues. `--url` names an empty database to use instead of a server of its own; its data is kept too. `--ask`
 * asks what was kept, and writes nothing.
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
