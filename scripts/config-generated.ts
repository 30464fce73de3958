import { editorSchema } from '../src/config/schema.ts'
import { apiReference, problemReference } from './api-reference.ts'
import { withCommands } from './cli-reference.ts'
import { configReference } from './config-reference.ts'
import { putGenerated } from './support/generated.ts'

// Writes files that are made from the schema of the configuration and the table of operations. They are the schema for
// editors, and tables in the documentation. `--check` only reports whether they are up to date.

const generated = {
  'triwire.schema.json': () => `${JSON.stringify(editorSchema(), null, 2)}\n`,
  'docs/configuration.md': (old: string) =>
    old.replace(/(<!-- keys -->\n)[\s\S]*?(?=<!-- \/keys -->)/, (_, mark: string) => mark + configReference()),
  'docs/api.md': (old: string) =>
    old
      .replace(/(<!-- problems -->\n)[\s\S]*?(?=<!-- \/problems -->)/, (_, mark: string) => mark + problemReference())
      .replace(/(<!-- operations -->\n)[\s\S]*?(?=<!-- \/operations -->)/, (_, mark: string) => mark + apiReference()),
  'docs/cli.md': withCommands,
}

for (const [name, write] of Object.entries(generated)) putGenerated(name, write)
