/** What one of several processes answered to a scrape. */
export type WorkerExposition = { worker: number; text: string }

/** One scrape of several, each family once; a series says in `worker` whose it is (ruling X9). */
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

/** Names have no braces; a value of a label may. */
function labelled(line: string, worker: number): string {
  const [, name = '', rest = ''] = /^([a-zA-Z0-9_:]+)(.*)$/.exec(line) ?? []
  const label = `worker="${worker}"`
  return rest.startsWith('{') ? `${name}{${label},${rest.slice(1)}` : `${name}{${label}}${rest}`
}
