import { signal } from '@preact/signals'
import { newOnce } from './api/act.ts'
import { ask, failingModels, Refusal, unreachedServers } from './api/ask.ts'
import { forget } from './api/load.ts'
import { retrySoon } from './api/recover.ts'
import { consoleBase, hasSignIn } from './base.ts'
import { isDemo } from './demo.ts'
import { mayPass } from './pure/may-pass.ts'
import type { Me, Session, Status } from './shapes.ts'
import { forgetTab, recall, remember } from './store.ts'

/** The person who is signed in; undefined while unknown, null if no one is. */
export const me = signal<Me | null | undefined>(undefined)

/** The gateway's status, which has its reporting time zone. */
export const status = signal<Status | undefined>(undefined)

/** A message for the sign-in page: that a session has ended. */
export const signInNote = signal('')

/** Whether the page offers actions of admins. The demo can only be read. */
export const isAdmin = () => me.value?.role === 'admin' && !isDemo.value
export const isOwner = () => me.value?.kind === 'owner'

/** Returns the kind of person for whom pages are chosen: the owner of a key, finance, or another operator. */
export function audience(): 'owner' | 'finance' | 'operator' {
  if (isOwner()) return 'owner'
  return me.value?.role === 'finance' ? 'finance' : 'operator'
}

/**
 * The name of a stored note that someone has signed in with this browser. Scripts cannot see the cookie. So without the
 * note, the page does not ask who is signed in. Each sign-in writes another value, which other tabs notice.
 */
const storedName = 'triwire.signed-in'

/** The token of the link by which the page was opened, until it is used. */
let linkToken: string | undefined

/** Removes the token of a link from the address, so that neither the history nor a copied address has it. */
function takeLinkToken(): void {
  const { hash, pathname, search } = window.location
  if (!hash.startsWith('#t=')) return
  window.history.replaceState(null, '', pathname + search)
  linkToken = hash.slice(3)
}

/** Signs in if the page was opened with the link that the start of a server printed. @throws Refusal */
async function openLink(): Promise<void> {
  takeLinkToken()
  if (linkToken === undefined) return
  try {
    await ask<Session>('/session', { method: 'POST', body: { token: linkToken } })
    noteSignIn()
  } catch (error) {
    if (!(error instanceof Refusal) || mayPass(error.status)) throw error
    signInNote.value =
      'This link was used, or is older than ten minutes. Sign in with a token, or start the server again.'
  }
  linkToken = undefined
}

/** Loads the person who is signed in. @throws Refusal if the gateway does not answer */
export async function lookWhoAsks(): Promise<void> {
  await openLink()
  if (recall(storedName) === undefined) {
    me.value = null
    return
  }
  try {
    const { body } = await ask<Me>('/me')
    if (body.kind === 'operator') await loadStatus()
    me.value = body
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 401) throw error
    forgetSignIn()
  }
}

/** Loads the gateway's status. If that fails, the last one stays. Without a status, days begin in UTC. */
export async function loadStatus(): Promise<void> {
  try {
    status.value = (await ask<Status>('/status')).body
    failingModels.value = status.value.failing
  } catch (error) {
    if (error instanceof Refusal && mayPass(error.status)) retrySoon(status, () => void loadStatus())
  }
}

/** Notes a sign-in with a token or a key, or the return of the browser from a sign-in at the identity provider. */
export function noteSignIn(): void {
  remember(storedName, newOnce())
}

/** @throws Refusal */
export async function signIn(token: string): Promise<void> {
  await ask<Session>('/session', { method: 'POST', body: { token } })
  signInNote.value = ''
  noteSignIn()
  await lookWhoAsks()
}

/** Ends the session. @throws Refusal if the gateway did not end it; the user is then still signed in */
export async function signOut(): Promise<void> {
  if (hasSignIn) {
    forgetSignIn()
    leave()
    return
  }
  await ask('/session', { method: 'DELETE' }).catch((error: unknown) => {
    if (!(error instanceof Refusal && error.status === 401)) throw error
  })
  forgetSignIn()
  signInNote.value = 'You are signed out.'
}

/** Ends the session through a page of the server, which then also signs out at the provider. */
function leave(): void {
  const form = Object.assign(document.createElement('form'), { method: 'post', action: `${consoleBase}sign-out` })
  document.body.append(form)
  form.submit()
}

/**
 * Calls `look` after somebody has signed in or out in another tab. The cookie is then another person's, or there is
 * none. So the data of the previous person is deleted from this tab first.
 */
export function watchOtherTabs(look: () => void): void {
  window.addEventListener('storage', ({ key, newValue }) => {
    if (key !== storedName) return
    forgetPerson()
    if (newValue === null) signInNote.value = 'You are signed out.'
    me.value = undefined
    look()
  })
}

/** Called when the session has ended. Data on the page belongs to the person who was signed in, so it is deleted. */
export function signedOut(): void {
  if (!me.peek()) return
  forgetSignIn()
  signInNote.value = 'Your session has ended. Sign in again to go on where you were.'
}

function forgetSignIn(): void {
  forgetPerson()
  remember(storedName, undefined)
  me.value = null
}

/** Deletes the data of the person who was signed in from this tab. */
function forgetPerson(): void {
  forget()
  forgetTab()
  isDemo.value = false
  status.value = undefined
  failingModels.value = []
  unreachedServers.value = undefined
}

/** Returns the time zone in which days begin. */
export const reportingZone = () => status.value?.reporting.time_zone ?? me.value?.time_zone ?? 'UTC'
/** Returns the name of a credit, such as EUR, which follows each amount. */
export const creditName = () => me.value?.credit_name ?? 'credits'
export const viewerZone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
export const zones = () => ({ viewer: viewerZone, reporting: reportingZone() })
