import type { ComponentChildren } from 'preact'
import type { Loaded } from '../api/load.ts'
import { tellChange } from '../pure/format.ts'
import type { Range } from '../pure/range.ts'
import { cacheShareOf, sumOf, sumOfCredits, valuesOf } from '../pure/usage.ts'
import type { Usage } from '../shapes.ts'
import { Count, Credits, Ms, Share } from '../ui/numbers.tsx'
import { Failure, Skeleton } from '../ui/states.tsx'

type Props = { span: Loaded<Usage> & { reload(): void }; before: Loaded<Usage>; range: Range }

/** Shows figures of the whole range, compared with the period before it. */
export function Tiles({ span, before, range }: Props) {
  if (span.data === undefined)
    return span.refusal ? <Failure refusal={span.refusal} retry={span.reload} /> : <Skeleton height={84} />
  const { total } = span.data
  const old = before.data?.total
  const [requests, errors] = [sumOf(total, 'requests'), sumOf(total, 'errors')]
  const credits = sumOfCredits(total)
  const cacheShare = cacheShareOf(total)
  const firstByte = valuesOf(total, 'first_byte_ms')[0]
  const oldByte = old && valuesOf(old, 'first_byte_ms')[0]
  const oldShare = old && cacheShareOf(old)
  return (
    <dl class="tiles" aria-label={range.label}>
      <Tile
        name="Credits"
        value={<Credits value={credits} />}
        change={old && tellChange(Number(credits), Number(sumOfCredits(old)))}
      />
      <Tile
        name="Requests"
        value={<Count value={requests} />}
        change={old && tellChange(requests, sumOf(old, 'requests'))}
      />
      <Tile
        name="Failed"
        value={<Count value={errors} />}
        more={requests > 0 ? <Share value={errors / requests} /> : undefined}
        change={old && tellChange(errors, sumOf(old, 'errors'))}
        isBad={errors > 0}
      />
      <Tile
        name="First byte, p95"
        value={<Ms value={firstByte} />}
        change={firstByte && oldByte ? tellChange(firstByte, oldByte) : undefined}
      />
      <Tile
        name="Cache share of input"
        value={<Share value={cacheShare} />}
        change={
          cacheShare !== undefined && oldShare !== undefined
            ? `${cacheShare >= oldShare ? '+' : '−'}${Math.abs((cacheShare - oldShare) * 100).toFixed(1)} points`
            : undefined
        }
      />
    </dl>
  )
}

function Tile(props: {
  name: string
  value: ComponentChildren
  more?: ComponentChildren
  change?: string | undefined
  isBad?: boolean
}) {
  const { name, value, more, change, isBad } = props
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd class={isBad ? 'figure bad' : 'figure'}>
        {value}
        {more && <span class="share"> {more}</span>}
      </dd>
      <dd class="change">{change ? `${change} against before` : 'nothing to compare'}</dd>
    </div>
  )
}
