import { colourMemory } from '../plot/memory.ts'
import type { Plotted } from '../plot/plot.tsx'
import { assignColours, outcomeColours } from '../pure/colours.ts'
import { idOf, labelOf, sumOf, sumOfCredits, valuesOf } from '../pure/usage.ts'
import type { Figures, Measure, Usage } from '../shapes.ts'
import { Count, Credits } from '../ui/numbers.tsx'

/** Dash patterns of lines, which must differ by more than their colours. */
export const dashes = [undefined, [8, 3], [2, 3], [10, 3, 2, 3], [5, 5], [12, 4]] as const
const beforeDash = [3, 4]

/** Makes the series of an answer, each in its colour. All others together are grey, and the period before is dashed. */
export function seriesOf(
  usage: Usage,
  measure: Measure,
  { before, isCompared }: { before?: Usage | undefined; isCompared?: boolean },
): Plotted[] {
  const colours = assignColours(usage.series.map(idOf), colourMemory)
  const length = usage.buckets.length
  const now = usage.series.map((series, at): Plotted => {
    const id = idOf(series)
    const colour = colours.get(id)
    return {
      id,
      label: labelOf(series),
      values: valuesOf(series, measure),
      colour: colour === undefined ? 'other' : `s${colour + 1}`,
      dash: isCompared || before ? dashes[at % dashes.length] : undefined,
      total: totalOf(series, measure),
    }
  })
  if (usage.other && !isCompared && measure !== 'first_byte_ms')
    now.push({
      id: ' other',
      label: `${usage.other.count} other${usage.other.count === 1 ? '' : 's'}`,
      values: valuesOf(usage.other, measure),
      colour: 'other',
      total: totalOf(usage.other, measure),
    })
  const old = (before?.series ?? []).flatMap((series): Plotted[] => {
    const colour = colours.get(idOf(series))
    if (colour === undefined) return []
    const values = valuesOf(series, measure).slice(0, length)
    return [
      {
        id: `${idOf(series)} before`,
        label: `${labelOf(series)}, before`,
        values,
        colour: `s${colour + 1}`,
        dash: beforeDash,
        total: totalOf(series, measure),
      },
    ]
  })
  return [...now, ...old]
}

export function outcomeSeries(usage: Usage): Plotted[] {
  return usage.series.map((series) => ({
    id: idOf(series),
    label: idOf(series).replaceAll('_', ' '),
    values: valuesOf(series, 'requests'),
    colour: outcomeColours[idOf(series)] ?? 'other',
    total: totalOf(series, 'requests'),
  }))
}

function totalOf(figures: Figures, measure: Measure) {
  if (measure === 'credits') return <Credits value={sumOfCredits(figures)} />
  if (measure === 'cache_share' || measure === 'first_byte_ms' || measure === 'total_ms') return undefined
  return <Count value={sumOf(figures, measure)} />
}
