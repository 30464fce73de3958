/** The cost of a request at one size. @property mainUs for the serving thread, in µs @property allUs for all threads, in µs */
export type Point = { size: number; allUs: number; mainUs: number; rssMb: number }

export type Panel = { title: string; points: readonly Point[] }

const [wide, high, left, top, gap] = [360, 220, 48, 40, 70]
const lines = [
  { name: 'all threads', of: (point: Point) => point.allUs, color: '#4477aa' },
  { name: 'serving thread', of: (point: Point) => point.mainUs, color: '#bb5566' },
]

/** Draws a panel for each axis, two in a row: µs a request from zero up, sizes by their logarithm. */
export function drawPanels(panels: readonly Panel[]): string {
  const rows = Math.ceil(panels.length / 2)
  const [width, height] = [2 * (left + wide) + gap, rows * (top + high + gap / 2) + top]
  const drawn = panels.map((panel, i) => {
    const [x, y] = [left + (i % 2) * (left + wide + gap / 2), top + Math.floor(i / 2) * (top + high + gap / 2)]
    return `<g transform="translate(${x} ${y})">${drawPanel(panel)}</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">
<title>What a request of 1 KB costs as a gateway grows</title>
<rect width="100%" height="100%" fill="white"/>
${drawn.join('\n')}
</svg>
`
}

function drawPanel({ title, points }: Panel): string {
  const most = 1.2 * Math.max(...points.map(({ allUs }) => allUs))
  const [from, to] = [Math.log10(points[0]!.size), Math.log10(points.at(-1)!.size)]
  const x = (size: number) => ((Math.log10(size) - from) / Math.max(to - from, 1e-9)) * wide
  const y = (us: number) => high - (us / most) * high
  const ticks = points.map(({ size }) => label(x(size), high + 16, size.toLocaleString('en'), 'middle'))
  const steps = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    label(-6, y(share * most) + 4, `${Math.round(share * most)}`, 'end'),
  )
  const paths = lines.map(({ name, of, color }, i) => {
    const path = points.map((point) => `${x(point.size).toFixed(1)},${y(of(point)).toFixed(1)}`).join(' ')
    const dots = path.split(' ').map((at) => `<circle cx="${at.replace(',', '" cy="')}" r="3" fill="${color}"/>`)
    const key = `<text x="${wide - 4}" y="${14 + 15 * i}" text-anchor="end" fill="${color}">${name}</text>`
    return `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join('')}${key}`
  })
  const frame = `<path d="M0,0V${high}H${wide}" fill="none" stroke="#888"/>`
  return [label(0, -14, `${title}: µs a request`, 'start'), frame, ...ticks, ...steps, ...paths].join('\n')
}

function label(x: number, y: number, text: string, anchor: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${text}</text>`
}
