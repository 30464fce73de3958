import uPlot from 'uplot'
import type { Bucket } from '../pure/range.ts'
import { stack, type Values } from '../pure/stack.ts'
import { axisTicks, firstOpen, whollySeen, type Zones } from '../pure/ticks.ts'
import { colour } from '../theme.ts'

export type Drawn = {
  id: string
  label: string
  values: Values
  /** A colour token of the style: `s1` … `s6`, `other`. */
  colour: string
  /** The dash pattern. It marks the previous period, or distinguishes lines for people who do not see the colours. */
  dash?: readonly number[] | undefined
  /** Whether only points are drawn, without a line. */
  isMarks?: boolean
}

export type Drawing = {
  kind: 'bars' | 'lines' | 'steps'
  series: readonly Drawn[]
  buckets: readonly string[]
  bucket: Bucket
  zones: Zones
  completeUntil?: string | undefined
  isLog?: boolean
  /** The axis ends at this value or at a higher one. */
  top?: number
  /** @param step the distance between two labels, for a label of the axis */
  tell(value: number, step?: number): string
}

const heightPx = 190
const fontPx = 11
/** The space to the right of a plot. */
const marginPx = 20

/**
 * Draws into an element with the colours in force. A canvas does not follow the style, so after a change of colours it
 * must be drawn again.
 * @param onCursor gets the index in `buckets`, or null outside the plot
 */
export function draw(target: HTMLElement, drawing: Drawing, onCursor: (at: number | null) => void): uPlot {
  const { kind, buckets, isLog, tell } = drawing
  const text = colour('muted')
  const line = colour('line')
  const font = `${fontPx}px ${window.getComputedStyle(document.body).fontFamily}`
  const axis = { stroke: text, font, ticks: { show: false }, gap: 6 }
  const order = orderOf(drawing)
  const tops: BarTops = new Map()
  const options: uPlot.Options = {
    width: Math.max(120, target.clientWidth),
    height: heightPx,
    legend: { show: false },
    // The last label of the axis may reach beyond the plot by half of its width.
    padding: [10, marginPx, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: kind !== 'bars', size: 6 } },
    scales: {
      x: { time: false, range: [-0.5, Math.max(0.5, buckets.length - 0.5)] },
      y: isLog
        ? { distr: 3, range: (_, min, max) => logRange(min, max) }
        : { range: (_, min, max) => range(min, max, drawing.top) },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, ...xWords(drawing) },
      {
        ...axis,
        grid: { stroke: line, width: 1, ...(isLog && { filter: powersOfTen }) },
        ...(isLog && { filter: powersOfTen }),
        size: (_, values) => 14 + Math.max(24, ...(values ?? []).map((value) => value.length * fontPx * 0.58)),
        space: 34,
        ...(isWhole(drawing) && { incrs: wholeSteps }),
        values: (_, splits, __, ___, step) =>
          splits.map((value) => (value === null ? '' : isLog ? tell(value, value) : tell(value, step))),
      },
    ],
    series: [{}, ...order.map((series) => strokeOf(series, kind, tops))],
    hooks: {
      setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)],
      drawClear: [(plot) => hatch(plot, drawing)],
      drawSeries: [(plot, at) => drawGaps(plot, at, tops)],
    },
  }
  return new uPlot(options, dataOf(drawing), target)
}

/**
 * Returns the data in uPlot's form: indexes, then the values of each series. Stacked bars are drawn from the highest to
 * the lowest.
 */
export function dataOf(drawing: Drawing): uPlot.AlignedData {
  const { kind, series, buckets } = drawing
  const places = buckets.map((_, at) => at)
  const values = series.map(({ values }) => values)
  const drawn = kind === 'bars' ? stack(values).reverse() : values.map((list) => [...list])
  return [places, ...drawn]
}

function orderOf({ kind, series }: Drawing): readonly Drawn[] {
  return kind === 'bars' ? [...series].reverse() : series
}

/** The upper edges of drawn bars, in pixels of the canvas, by the number of the series and the index in `buckets`. */
type BarTops = Map<number, Map<number, { left: number; top: number; width: number }>>

function strokeOf({ label, colour: token, dash, isMarks }: Drawn, kind: Drawing['kind'], tops: BarTops): uPlot.Series {
  const ink = colour(token)
  if (isMarks)
    return {
      label,
      stroke: ink,
      paths: () => null,
      points: { show: true, size: 9, fill: ink, stroke: colour('panel'), width: 2 },
    }
  if (kind === 'bars') {
    const paths = uPlot.paths.bars!({
      ...{ size: [0.82, 48, 1], gap: 0 },
      each: (_, series, at, left, top, width) => {
        const own = tops.get(series) ?? new Map()
        tops.set(series, own.set(at, { left, top, width }))
      },
    })
    return { label, fill: ink, stroke: ink, width: 0, paths, points: { show: false } }
  }
  const paths = kind === 'steps' ? uPlot.paths.stepped!({ align: 1 }) : uPlot.paths.linear!()
  const shape: uPlot.Series = { label, stroke: ink, width: 1.75, paths, points: { show: isLonely, size: 7, fill: ink } }
  return dash ? { ...shape, dash: [...dash] } : shape
}

/**
 * Draws a line in the background colour at the upper edge of each part of a stack that has another part on it. Parts
 * that are too low for it get none.
 */
function drawGaps({ ctx, data, valToPos }: uPlot, series: number, tops: BarTops): void {
  const own = tops.get(series)
  // The whole stack is the first series that is drawn.
  const whole = data[1]
  if (!own || series < 2 || !whole) return
  const gapPx = Math.max(1, Math.round(devicePixelRatio))
  ctx.save()
  ctx.fillStyle = colour('panel')
  for (const [at, { left, top, width }] of own) {
    const value = data[series]?.[at] ?? 0
    const below = valToPos(data[series + 1]?.[at] ?? 0, 'y', true)
    if ((whole[at] ?? 0) > value && below - top >= 3 * gapPx) ctx.fillRect(left, Math.round(top), width, gapPx)
  }
  ctx.restore()
}

/** Whether a series has fewer than three values. They are drawn as points, because a line might not show them. */
function isLonely(plot: uPlot, series: number): boolean {
  const values = plot.data[series] ?? []
  return values.filter((value) => value !== null && value !== undefined).length < 3
}

function xWords({ buckets, bucket, zones }: Drawing): Pick<uPlot.Axis, 'splits' | 'values'> {
  let ticks: { at: number; text: string }[] = []
  return {
    splits: (plot) => {
      const widthPx = plot.bbox.width / devicePixelRatio
      ticks = whollySeen(axisTicks(buckets, bucket, zones, widthPx), buckets.length, widthPx, marginPx)
      return ticks.map(({ at }) => at)
    },
    values: () => ticks.map(({ text }) => text),
  }
}

/** Keeps only the labels at powers of ten of a logarithmic axis, because more labels would overlap. */
function powersOfTen(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((value) => (Math.abs(Math.log10(value) % 1) < 1e-9 ? value : null))
}

/** Steps of an axis of counts, which have no fractions. */
const wholeSteps = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat()

function isWhole({ series }: Drawing): boolean {
  return series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)))
}

function range(min: number | null, max: number | null, top = 0): uPlot.Range.MinMax {
  const high = Math.max(max ?? 0, top)
  const low = Math.min(min ?? 0, 0)
  return [low * 1.05, high > 0 ? high * 1.06 : low < 0 ? 0 : 1]
}

function logRange(min: number | null, max: number | null): uPlot.Range.MinMax {
  if (!min || !max) return [0.1, 10]
  return [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max * 1.01))]
}

/** Hatches the background of buckets that are not complete yet. */
function hatch(plot: uPlot, { buckets, completeUntil, zones }: Drawing): void {
  const open = firstOpen(buckets, completeUntil, zones.reporting)
  if (completeUntil === undefined || open >= buckets.length) return
  const { ctx, bbox } = plot
  const from = Math.max(bbox.left, plot.valToPos(open - 0.5, 'x', true))
  const to = bbox.left + bbox.width
  ctx.save()
  ctx.beginPath()
  ctx.rect(from, bbox.top, to - from, bbox.height)
  ctx.clip()
  ctx.strokeStyle = colour('line')
  ctx.lineWidth = devicePixelRatio
  const step = 6 * devicePixelRatio
  ctx.beginPath()
  for (let x = from - bbox.height; x < to; x += step) {
    ctx.moveTo(x, bbox.top + bbox.height)
    ctx.lineTo(x + bbox.height, bbox.top)
  }
  ctx.stroke()
  ctx.restore()
}

/** Makes a picture of the plot, with the background colour. */
export function toPicture(plot: uPlot): Promise<Blob | null> {
  const { canvas } = plot.ctx
  const copy = document.createElement('canvas')
  copy.width = canvas.width
  copy.height = canvas.height
  const ctx = copy.getContext('2d')!
  ctx.fillStyle = colour('panel')
  ctx.fillRect(0, 0, copy.width, copy.height)
  ctx.drawImage(canvas, 0, 0)
  return new Promise((resolve) => copy.toBlob(resolve, 'image/png'))
}
