/** The answer of one of several processes to a scrape. */
export type WorkerExposition = { worker: number; text: string }

/** Merges several scrapes into one, with each family once. The label `worker` tells the series apart (ruling X9). */
export function mergeExpositions(parts: readonly WorkerExposition[]): string {
  const families = new Map<string, { head: string; series: string }>()
  for (const { worker, text } of parts) {
    let family = { head: '', series: '' }
    for (const line of text.split('\n')) {
      const [, name] = /^# HELP (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        family = families.get(name) ?? { head: '', series: '' }
        const isFirst = !families.has(name)
        families.set(name, family)
        if (isFirst) family.head = `${line}\n`
      } else if (line.startsWith('# TYPE ')) {
        if (!family.head.includes('# TYPE ')) family.head += `${line}\n`
      } else if (line !== '') family.series += `${labelled(line, worker)}\n`
    }
  }
  return Array.from(families.values(), ({ head, series }) => head + series).join('')
}

/** Adds the label. Names of metrics have no braces, but label values may. */
function labelled(line: string, worker: number): string {
  const [, name = '', rest = ''] = /^([a-zA-Z0-9_:]+)(.*)$/.exec(line) ?? []
  const label = `worker="${worker}"`
  return rest.startsWith('{') ? `${name}{${label},${rest.slice(1)}` : `${name}{${label}}${rest}`
}
