/*
 * Reports over long ledgers: `npm run test:usage [-- entries [SQLite|PostgreSQL] [--keep FOLDER] [--url URL] [--ask]]`, 10 million
 * entries where nothing is said.
 *
 * First a million entries of the traffic that the property of figures has, posted with the chain and folded as by a server, with
 * returns: `ledger verify` must find nothing, and what is asked must be answered as by a scan of the ledger.
 * `-- verify 1000000 [SQLite|PostgreSQL]` does that alone.
 *
 * Then a ledger of so many entries over 13 months, 1,000 keys and 20 models is written, folded 500 entries a commit as a server
 * does, compared with its figures, and asked what people ask. It prints how long each answer took, the first time and afterwards,
 * and fails where one takes longer than it may. These entries are written past the chain, which takes longer than all else: of
 * `ledger verify` the part that compares figures is run on them, and the part that follows the chain is not.
 *
 * It takes minutes, and some gigabytes of disk. With `--keep` the file stays in that folder, and a run that was ended goes on where
 * it was; `--url` names an empty database to be used instead of a server of its own, which is kept too; `--ask` asks what was kept,
 * and writes nothing.
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
