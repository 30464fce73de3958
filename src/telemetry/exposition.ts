import type { FamilyFacts } from './families.ts'
import type { Family, Sample } from './instruments.ts'

/** The content type of the Prometheus text format. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** Writes all families in the Prometheus text format. Each family appears once, followed by its series. */
export function writeExposition(families: Iterable<Family>, replica?: string): string {
  const writeLabels = labelWriter(replica)
  let text = ''
  for (const { facts, samples } of bound(families)) {
    text += `# HELP ${facts.name} ${escapeHelp(facts.help)}\n# TYPE ${facts.name} ${facts.type}\n`
    const write = facts.bounds ? writeHistogram : writePlain
    for (const sample of samples()) text += write(facts, sample, writeLabels)
  }
  return text
}

function* bound(families: Iterable<Family>) {
  for (const family of families) yield { facts: family.facts, samples: () => family.samples() }
}

type LabelWriter = (names: readonly string[], values: readonly string[]) => string

function writePlain({ name, labels }: FamilyFacts, { values, value }: Sample, writeLabels: LabelWriter): string {
  return `${name}${writeLabels(labels, values)} ${writeNumber(value)}\n`
}

/** Writes cumulative buckets, because the format requires them. */
function writeHistogram(
  { name, labels, bounds = [] }: FamilyFacts,
  { values, counts = [], sum = 0 }: Sample,
  writeLabels: LabelWriter,
): string {
  let text = ''
  let below = 0
  for (const [index, count] of counts.entries()) {
    below += count
    const end = index < bounds.length ? String(bounds[index]) : '+Inf'
    text += `${name}_bucket${writeLabels([...labels, 'le'], [...values, end])} ${below}\n`
  }
  const all = writeLabels(labels, values)
  return `${text}${name}_sum${all} ${writeNumber(sum)}\n${name}_count${all} ${below}\n`
}

function labelWriter(replica: string | undefined): LabelWriter {
  const first = replica === undefined ? [] : [`replica="${escapeValue(replica)}"`]
  return (names, values) => {
    const all = [...first, ...names.map((name, index) => `${name}="${escapeValue(values[index] ?? '')}"`)]
    return all.length === 0 ? '' : `{${all.join(',')}}`
  }
}

function writeNumber(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

function escapeValue(text: string): string {
  return /[\\"\n]/.test(text) ? text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n') : text
}

function escapeHelp(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
}
