import { readFileSync, writeFileSync } from 'node:fs'
import { jsonSchema } from '../src/config/schema.ts'
import { apiReference, problemReference } from './api-reference.ts'
import { configReference } from './config-reference.ts'

// Writes what follows from the schema of the configuration and from the table of operations: the editors' schema, and the
// tables in the documentation.
// `--check` only says whether they are up to date.

const generated = {
  'triwire.schema.json': () => `${JSON.stringify(jsonSchema(), null, 2)}\n`,
  'docs/configuration.md': (old: string) =>
    old.replace(/(<!-- keys -->\n)[\s\S]*?(?=<!-- \/keys -->)/, (_, mark: string) => mark + configReference()),
  'docs/api.md': (old: string) =>
    old
      .replace(/(<!-- problems -->\n)[\s\S]*?(?=<!-- \/problems -->)/, (_, mark: string) => mark + problemReference())
      .replace(/(<!-- operations -->\n)[\s\S]*?(?=<!-- \/operations -->)/, (_, mark: string) => mark + apiReference()),
}

for (const [name, write] of Object.entries(generated)) {
  const file = new URL(`../${name}`, import.meta.url)
  const old = readOr(file, '')
  const now = write(old)
  if (now === old) continue
  if (process.argv.includes('--check')) {
    console.error(`${name} is out of date: run npm run generate`)
    process.exitCode = 1
  } else {
    writeFileSync(file, now)
    console.log(`wrote ${name}`)
  }
}

function readOr(file: URL, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return otherwise
  }
}
