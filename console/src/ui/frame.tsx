import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { failingModels, unreachedServers } from '../api/ask.ts'
import { liveState } from '../api/live.ts'
import { refresh } from '../api/load.ts'
import { pageHref, place, subject } from '../location.ts'
import { DemoBar } from '../pages/demo.tsx'
import { countNeeds } from '../pages/needs.tsx'
import { tellZone } from '../pure/calendar.ts'
import type { Page, Place } from '../pure/place.ts'
import { audience, isOwner, loadStatus, me, reportingZone, signOut, status, viewerZone } from '../session.ts'
import { nextTheme, theme } from '../theme.ts'
import { Dialog } from './dialog.tsx'
import { Icon, Logo } from './icons.tsx'
import { groups, shownGroups } from './page-groups.ts'
import { RangePicker } from './range-picker.tsx'
import { isHelpOpen, isSearchOpen } from './shortcuts.tsx'
import { say } from './toasts.tsx'

export const titles: Readonly<Record<Page, string>> = {
  overview: 'Overview',
  finance: 'Finance',
  requests: 'Requests',
  accounts: 'Accounts',
  keys: 'Keys',
  models: 'Models',
  upstreams: 'Upstreams',
  playground: 'Playground',
  translate: 'Translate',
  setup: 'Set up',
  webhooks: 'Webhooks',
  audit: 'Audit',
  operators: 'Operators',
  people: 'People',
  sessions: 'Sessions',
}

/** Returns the heading of a page. Finance has its own page in the place of the overview. */
function headOf(page: Page | undefined): string {
  if (page === 'overview' && audience() === 'finance') return titles.finance
  return page ? titles[page] : 'Not found'
}

/** Returns the title of a page: the name of its object, if any, then that of the page. */
export function titleOf({ page, id }: Place): string {
  const name = id === undefined ? '' : `${subject.value ?? id} · `
  return `${name}${headOf(page)}`
}

/** Pages in the bar at the bottom of a phone's screen; the others are below "More". */
const atHand: readonly Page[] = ['overview', 'requests', 'accounts', 'keys']

/** Pages whose figures depend on the range of time. */
const ranged: readonly Page[] = ['overview', 'models', 'upstreams', 'requests', 'people']
/** The same pages for owners of keys, whose list of requests has no plot. */
const ownRanged: readonly Page[] = ['overview', 'people']
/** Pages that depend on the range only if they show a single object, not the list. */
const rangedOnes: readonly Page[] = ['accounts', 'keys']

/** The time between two loads of the status in the navigation, in ms. Not every page gets events. */
const statusMs = 30_000

/** Everything around a page: the navigation and the head. */
export function Frame({ children }: { children: ComponentChildren }) {
  const [isMore, setMore] = useState(false)
  useEffect(() => {
    if (isOwner()) return undefined
    const timer = window.setInterval(() => !document.hidden && void loadStatus(), statusMs)
    return () => window.clearInterval(timer)
  }, [])
  const shown = shownGroups()
  const first = audience() === 'operator' ? atHand : shown.flat()
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the page
      </button>
      <nav class="rail" aria-label="Pages">
        <a class="brand" href={pageHref('overview')}>
          <Logo />
          <span>triwire</span>
        </a>
        {shown.map((group) => (
          <ul key={group[0]}>
            {group.map((page) => (
              <li key={page}>
                <PageLink page={page} />
              </li>
            ))}
          </ul>
        ))}
        <RailFoot />
      </nav>
      <div class="beside">
        <TopBar />
        <main id="main" tabIndex={-1} aria-label={titleOf(place.value)}>
          <DemoBar />
          <Folding />
          {children}
        </main>
      </div>
      <nav class="bottom" aria-label="Pages at hand">
        {first.map((page) => (
          <PageLink key={page} page={page} />
        ))}
        {audience() === 'operator' && (
          <button type="button" aria-haspopup="dialog" onClick={() => setMore(true)}>
            <Icon name="more" />
            <span>More</span>
          </button>
        )}
      </nav>
      {isMore && <MorePages close={() => setMore(false)} />}
    </div>
  )
}

const foldingMs = 5_000

/** Shows how much of a long ledger the figures cover, and loads them again until they cover all of it. */
function Folding() {
  const { folding } = status.value ?? {}
  useEffect(() => {
    if (!folding) return undefined
    const timer = window.setInterval(() => {
      if (document.hidden) return
      // Lists may be sorted by figures.
      void loadStatus().then(() => refresh('/usage', '/accounts', '/keys'))
    }, foldingMs)
    return () => window.clearInterval(timer)
  }, [folding === undefined])
  if (!folding) return null
  const percent = Math.floor((100 * folding.folded) / folding.entries)
  return (
    <p class="note" role="status">
      Figures are of {percent} % of the ledger. The rest is being counted, and this page follows.
    </p>
  )
}

function PageLink({ page }: { page: Page }) {
  const isHere = (place.value.page ?? '') === page
  return (
    <a href={pageHref(page)} aria-current={isHere ? 'page' : undefined}>
      <Icon name={page} />
      <span>{titles[page]}</span>
      {(page === 'upstreams' || page === 'models') && failingModels.value.length > 0 && (
        <span class="bad mark">
          <Icon name="trouble" size={12} />
          <span class="offscreen">failing: {failingModels.value.length}</span>
        </span>
      )}
      {page === 'overview' && countNeeds() > 0 && (
        <span class="warn mark count">
          <span aria-hidden="true">{countNeeds()}</span>
          <span class="offscreen">needs you: {countNeeds()}</span>
        </span>
      )}
    </a>
  )
}

function MorePages({ close }: { close(): void }) {
  return (
    <Dialog title="Pages" close={close}>
      <div class="more-pages">
        {groups.flat().map((page) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click
          // biome-ignore lint/a11y/noStaticElementInteractions: around a link, whose click it hears
          <div key={page} onClick={close}>
            <PageLink page={page} />
          </div>
        ))}
      </div>
    </Dialog>
  )
}

function RailFoot() {
  const { version, ready, ledger } = status.value ?? {}
  const state = !status.value
    ? undefined
    : !ledger?.writable
      ? 'The ledger cannot be written'
      : !ready
        ? 'Not ready'
        : ledger.blocked_accounts > 0
          ? `Accounts blocked: ${ledger.blocked_accounts}`
          : undefined
  return (
    <div class="rail-foot">
      {unreachedServers.value && (
        <p class="bad">
          <Icon name="trouble" /> Not reached: {unreachedServers.value}
        </p>
      )}
      {state && (
        <p class="bad">
          <Icon name="trouble" /> {state}
        </p>
      )}
      {version && <p class="small">triwire {version}</p>}
    </div>
  )
}

const liveWords = { off: '', opening: 'Connecting', live: 'Live', lost: 'Not live' } as const
const themeWords = { auto: 'as the system', light: 'light', dark: 'dark' } as const
const themeIcons = { auto: 'auto', light: 'sun', dark: 'moon' } as const

function TopBar() {
  const { page, id } = place.value
  const isListed = page && (isOwner() ? ownRanged : ranged).includes(page)
  const isRanged = isListed || (id !== undefined && page && rangedOnes.includes(page))
  const zone = reportingZone()
  const now = Date.now()
  const asked = me.value
  // The name of the person who has signed in is shown, and not that of the account that pays for them.
  const name = (asked?.kind === 'owner' && asked.role !== null && asked.key.person_name) || asked?.name
  return (
    <header class="top">
      <div class="title">
        <a class="brand small-brand" href={pageHref('overview')} aria-label="triwire">
          <Logo />
        </a>
        <h1>{headOf(page)}</h1>
        {liveState.value !== 'off' && (
          <span class={`live ${liveState.value}`}>
            <span class="dot" />
            {liveWords[liveState.value]}
          </span>
        )}
      </div>
      <div class="acts">
        {isRanged && audience() !== 'finance' && <RangePicker />}
        <span
          class="zones"
          title={`Your hours are ${tellZone(viewerZone, now)}. Days begin in ${tellZone(zone, now)}.`}
        >
          Hours {tellZone(viewerZone, now)} · days {zone === viewerZone ? 'too' : tellZone(zone, now)}
        </span>
        {audience() === 'operator' && (
          <button
            key="search"
            type="button"
            class="search"
            aria-label="Find"
            onClick={() => {
              isSearchOpen.value = true
            }}
          >
            <Icon name="search" />
            <span>Find</span>
            <kbd>/</kbd>
          </button>
        )}
        <button
          type="button"
          class="quiet"
          title={`Colours: ${themeWords[theme.value]}`}
          aria-label={`Colours: ${themeWords[theme.value]}. Change`}
          onClick={nextTheme}
        >
          <Icon name={themeIcons[theme.value]} />
        </button>
        <button
          type="button"
          class="quiet keys-help"
          title="Keys"
          aria-label="Keys"
          onClick={() => {
            isHelpOpen.value = true
          }}
        >
          <Icon name="help" />
        </button>
        {asked && (
          <span class="signed-in">
            <span class="offscreen">Signed in as </span>
            <span class="name" title={name}>
              {name}
            </span>{' '}
            <span class="role">{asked.role ?? 'key'}</span>
          </span>
        )}
        <button
          type="button"
          class="quiet"
          title={`Signed in as ${name}${asked?.role ? `, ${asked.role}` : ''}. Sign out`}
          aria-label={`Sign out ${name}`}
          onClick={() => void signOut().catch((error: Error) => say(`You are still signed in. ${error.message}`, true))}
        >
          <Icon name="signout" />
        </button>
      </div>
    </header>
  )
}
