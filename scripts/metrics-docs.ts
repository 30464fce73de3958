import { type FamilyFacts, families, labelSources, processFamilies } from '../src/telemetry/families.ts'
import { genAi, genAiMetrics, http, own, resource } from '../src/telemetry/otlp/conventions.ts'
import { putGenerated } from './support/generated.ts'

// Writes the tables of docs/metrics.md from the tables in the code. `--check` only reports whether they are up to date.

const tables: Readonly<Record<string, () => string>> = {
  ours: () => familyTable(Object.values(families)),
  process: () => familyTable(Object.values(processFamilies)),
  labels() {
    const used = new Set<string>(Object.values(families).flatMap(({ labels }) => labels))
    const rows = Object.entries(labelSources).filter(([label]) => used.has(label))
    return ['| Label | Value |', '|---|---|', ...rows.map(([label, source]) => `| \`${label}\` | ${source} |`)].join(
      '\n',
    )
  },
  genai() {
    const rows = Object.values<FamilyFacts>(genAiMetrics).map(
      ({ name, type, unit, help }) => `| \`${name}\` | ${type} | ${unit} | ${help} |`,
    )
    return ['| Metric | Type | Unit | What it measures |', '|---|---|---|---|', ...rows].join('\n')
  },
  attributes() {
    const list = (names: object) =>
      Object.values(names)
        .filter((name: string) => name.includes('.'))
        .map((name: string) => `\`${name}\``)
        .join(', ')
    return `HTTP: ${list(http)}.\n\nGenerative AI: ${list(genAi)}.\n\nAttributes of triwire: ${list(own)}.\n\nResource: ${list(resource)}.`
  },
}

putGenerated('docs/metrics.md', (old) =>
  old.replace(
    /(<!-- (\w+) -->\n)[\s\S]*?(?=<!-- \/\2 -->)/g,
    (_, mark: string, name: string) => `${mark}${tables[name]!()}\n`,
  ),
)

function familyTable(all: readonly FamilyFacts[]): string {
  const rows = all.map(({ name, type, labels, help }) => {
    return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`
  })
  return ['| Metric | Type | Labels | What it measures |', '|---|---|---|---|', ...rows].join('\n')
}
