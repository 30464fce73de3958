import { largest, type Values } from '../pure/stack.ts'

/** Draws values over time, as small as a word. */
export function Spark({ values, label }: { values: Values; label: string }) {
  const [width, height] = [96, 22]
  const most = largest(values)?.value ?? 0
  if (most <= 0) return <span class="none">–</span>
  const step = width / Math.max(1, values.length)
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {values.map((value, at) => {
        const tall = value === null || value <= 0 ? 0 : Math.max(1, (value / most) * (height - 2))
        return tall === 0 ? null : (
          <rect key={at} x={at * step} y={height - tall} width={Math.max(1, step - 1)} height={tall} />
        )
      })}
    </svg>
  )
}
