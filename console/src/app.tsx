import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from './api/ask.ts'
import { retrySoon } from './api/recover.ts'
import { isDemo } from './demo.ts'
import { hrefOf, place, setQuery, subject } from './location.ts'
import { Accounts } from './pages/accounts.tsx'
import { Audit } from './pages/audit.tsx'
import { Finance } from './pages/finance.tsx'
import { Keys } from './pages/keys.tsx'
import { Models } from './pages/models.tsx'
import { Operators } from './pages/operators.tsx'
import { Overview } from './pages/overview.tsx'
import { Own } from './pages/own.tsx'
import { OwnModels } from './pages/own-models.tsx'
import { OwnRequests } from './pages/own-requests.tsx'
import { People } from './pages/people.tsx'
import { OwnPlayground, Playground } from './pages/playground.tsx'
import { Requests } from './pages/requests.tsx'
import { Sessions } from './pages/sessions.tsx'
import { SetUp } from './pages/set-up.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { Translate } from './pages/translate.tsx'
import { Upstreams } from './pages/upstreams.tsx'
import { Webhooks } from './pages/webhooks.tsx'
import { mayPass } from './pure/may-pass.ts'
import type { Page } from './pure/place.ts'
import { audience, isOwner, lookWhoAsks, me, noteSignIn, watchOtherTabs } from './session.ts'
import { focusPage } from './ui/focus.ts'
import { Frame, titleOf } from './ui/frame.tsx'
import { Palette } from './ui/palette.tsx'
import { Help } from './ui/shortcuts.tsx'
import { Empty, Failure } from './ui/states.tsx'
import { Toasts } from './ui/toasts.tsx'

type Shown = ComponentType<{ id: string | undefined }>

const ofOperators: Record<Exclude<Page, 'people' | 'sessions'>, Shown> = {
  overview: Overview,
  finance: Finance,
  requests: Requests,
  accounts: Accounts,
  keys: Keys,
  models: Models,
  upstreams: Upstreams,
  playground: Playground,
  translate: Translate,
  setup: SetUp,
  webhooks: Webhooks,
  audit: Audit,
  operators: Operators,
}

const pagesOf: Readonly<Record<ReturnType<typeof audience>, Partial<Record<Page, Shown>>>> = {
  operator: ofOperators,
  finance: { overview: Finance, finance: Finance },
  owner: {
    overview: Own,
    requests: OwnRequests,
    people: People,
    models: OwnModels,
    playground: OwnPlayground,
    setup: SetUp,
    sessions: Sessions,
  },
}

/** Shows the page of the address, or the sign-in page. The person who is signed in decides which pages exist. */
export function App() {
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const look = () => {
    lookWhoAsks().then(
      () => setRefusal(undefined),
      (error: unknown) => {
        if (!(error instanceof Refusal)) throw error
        setRefusal(error)
        if (mayPass(error.status)) retrySoon(setRefusal, look)
      },
    )
  }
  useEffect(() => {
    if (place.peek().query['signed-in']) {
      noteSignIn()
      setQuery({ 'signed-in': undefined }, 'replace')
    }
    look()
    watchOtherTabs(look)
  }, [])
  if (refusal)
    return (
      <main class="alone">
        <Failure refusal={refusal} retry={look} />
      </main>
    )
  if (me.value === undefined) return <div class="opening" role="status" aria-label="Loading" />
  if (me.value === null) return <SignIn />
  return (
    <>
      <Frame>
        <Shown />
      </Frame>
      <Palette />
      <Help />
      <Toasts />
    </>
  )
}

function Shown() {
  const { page, id } = place.value
  const isTheirs = page && (me.value?.pages?.includes(page) ?? true)
  const Page = isTheirs ? pagesOf[audience()][page] : undefined
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${isDemo.value ? 'Demo · ' : ''}${titleOf(place.value)} · triwire`
  }, [page, id, subject.value])
  useEffect(() => {
    if (!isFirst.current) focusPage()
    isFirst.current = false
  }, [page])
  if (!Page)
    return (
      <Empty act={<a href={hrefOf({ page: 'overview' })}>To the overview</a>}>
        {page ? `This page is for ${isOwner() ? '' : 'other '}operators.` : 'There is no such page.'}
      </Empty>
    )
  return <Page id={id} key={page} />
}
