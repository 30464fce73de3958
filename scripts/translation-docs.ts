/**
 * Writes docs/translation/<client>-to-<model>.md, one page per pair of wires, from the field tables:
 * node bin/node.mjs scripts/translation-docs.ts [--check]
 */
import { type ClientWire, clientWireNames, type ModelWire, modelWireNames } from '../src/catalog/wire-names.ts'
import type { FieldOutcome } from '../src/wires/requests/field-table.ts'
import { fateOf } from '../src/wires/requests/scalars.ts'
import { wires } from '../src/wires/wires.ts'
import { putGenerated } from './support/generated.ts'

const headings: [FieldOutcome, string][] = [
  ['carried', 'Carried as it is'],
  ['mapped', 'Said in another way'],
  ['dropped', 'Dropped'],
  ['refused', 'Refused with 400'],
]

/** Returns the text of every page by file name. */
export function translationPages(): Map<string, string> {
  const pages = new Map<string, string>()
  for (const from of clientWireNames) {
    for (const to of modelWireNames.filter((wire) => wire !== from)) {
      pages.set(`${from}-to-${to}.md`, page(from, to))
    }
  }
  return pages
}

function page(from: ClientWire, to: ModelWire): string {
  const lines = [
    `# A ${from} request to a ${to} model`,
    '',
    'Made by `scripts/translation-docs.ts` from the table that the tests check; do not edit by hand.',
    '',
    'What is dropped is named in the access log of the request, field names only. Fields that are not listed here are',
    'dropped as well. A model’s profile may drop further fields that its upstream rejects.',
    '',
  ]
  for (const [verdict, heading] of headings) {
    const rows = [...wires[from].client.fields.values()].flatMap((facts) => {
      const [fate, note] = fateOf(facts, from, wires[to])
      return fate === verdict ? [`| \`${facts.field}\` | ${note} |`] : []
    })
    if (rows.length > 0) lines.push(`## ${heading}`, '', '| Field | |', '| --- | --- |', ...rows, '')
  }
  return lines.join('\n')
}

if (process.argv[1] === import.meta.filename)
  for (const [name, text] of translationPages()) putGenerated(`docs/translation/${name}`, () => text)
