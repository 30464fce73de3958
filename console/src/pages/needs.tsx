import { useEffect } from 'preact/hooks'
import { failingModels } from '../api/ask.ts'
import { consoleBase } from '../base.ts'
import { tellAway, tellTimesIn } from '../pure/format.ts'
import { loadStatus, status, viewerZone } from '../session.ts'
import type { Need } from '../shapes.ts'
import { Icon, type IconName } from '../ui/icons.tsx'

const signs = {
  bad: ['trouble', 'bad', 'bad'],
  warn: ['waiting', 'warn', 'soon'],
  note: ['trial', 'muted', 'note'],
} as const satisfies Record<Need['severity'], readonly [IconName, string, string]>

const againMs = 3_000

/** Lists what an operator should act on now. Each line has the page for the action, and its command (CON-P3). */
export function NeedsYou() {
  useEffect(() => {
    void loadStatus()
    // The gateway's answer waits only briefly for the store, so it can lack facts. A second answer has the facts that
    // the store has returned since.
    const again = window.setTimeout(() => void loadStatus(), againMs)
    return () => window.clearTimeout(again)
  }, [])
  // Failing models are already named above, as soon as they fail.
  const needs = (status.value?.needs ?? []).filter(
    ({ rule }) => rule !== 'model_failing' || failingModels.value.length === 0,
  )
  if (needs.length === 0) return null
  return (
    <section class="panel needs" aria-labelledby="needs-you">
      <header>
        <h2 id="needs-you">Needs you</h2>
      </header>
      <ul>
        {needs.map((one) => (
          <Line key={one.id} need={one} />
        ))}
      </ul>
    </section>
  )
}

function Line({ need: { severity, since, link, command, ...said } }: { need: Need }) {
  const text = tellTimesIn(said.text, Date.now(), viewerZone)
  const [icon, kind, word] = signs[severity]
  return (
    <li>
      <span class={`state ${kind}`}>
        <Icon name={icon} /> <span class="offscreen">{word}</span>
      </span>
      <div>
        {link === '' ? text : <a href={consoleBase + link}>{text}</a>}
        <p class="small">
          {since && <time dateTime={since}>{tellAway(since, Date.now())}</time>} <code>{command}</code>
        </p>
      </div>
    </li>
  )
}

/** Counts the lines that should not wait. Notes do not count. */
export function countNeeds(): number {
  return (status.value?.needs ?? []).filter(({ severity }) => severity !== 'note').length
}
