import { useEffect } from 'preact/hooks'
import { useSteady } from '../api/load.ts'
import { hrefOf } from '../location.ts'
import { readCredits } from '../pure/format.ts'
import type { Me } from '../shapes.ts'
import { AccountState, Expires } from '../ui/badges.tsx'
import { Away, Credits } from '../ui/numbers.tsx'
import { Panel, Shown } from '../ui/states.tsx'
import { Fact, LimitFacts } from './key-fields.tsx'

/** How often the figures are loaded, in ms: an owner may ask 60 times a minute. */
const everyMs = 10_000

/** The overview for the owner of a key: the balance, the key's spending and its limits. */
export function Own() {
  const told = useSteady<Me>('/me')
  useEffect(() => {
    const timer = window.setInterval(() => !document.hidden && told.reload(), everyMs)
    return () => window.clearInterval(timer)
  }, [])
  return (
    <Shown of={told} height={84} lines={2}>
      {(me) => (me.kind === 'owner' ? <OwnView me={me} /> : null)}
    </Shown>
  )
}

function OwnView({ me: { account, key, models } }: { me: Extract<Me, { kind: 'owner' }> }) {
  return (
    <>
      <div class="page-head">
        <h2>{account.name}</h2>
        <AccountState {...account} />
      </div>
      <dl class="tiles">
        <div class="tile">
          <dt>Balance of the account</dt>
          <dd class={readCredits(account.balance) <= 0n ? 'figure bad' : 'figure'}>
            <Credits value={account.balance} />
          </dd>
          <dd class="change">credits</dd>
        </div>
        <div class="tile">
          <dt>Spent by this key</dt>
          <dd class="figure">
            <Credits value={key.spent} />
          </dd>
          <dd class="change">credits in all</dd>
        </div>
      </dl>
      <Panel title={`Key ${key.label ?? ''}`}>
        <dl class="facts">
          <Fact name="Begins with">
            <code>{key.prefix}…</code>
          </Fact>
          <LimitFacts of={key} />
          <Fact name="Models">
            {key.models ? key.models.join(', ') : 'all'} ·{' '}
            <a href={hrefOf({ page: 'models' })}>{models.length} names</a>
          </Fact>
          <Fact name="Expires">
            <Expires iso={key.expires} />
          </Fact>
          {key.last_used !== undefined && (
            <Fact name="Last used">
              <Away iso={key.last_used} none="never" />
            </Fact>
          )}
        </dl>
      </Panel>
      <p class="pad">
        <a class="button primary" href={hrefOf({ page: 'setup' })}>
          Set up an agent
        </a>
      </p>
    </>
  )
}
