import { signal } from '@preact/signals'
import { ask, Refusal } from './api/ask.ts'
import { forget } from './api/load.ts'
import type { Me, Session, Status } from './shapes.ts'
import { recall, remember } from './store.ts'

/** Who is signed in: unknown at first, null where nobody is. */
export const me = signal<Me | null | undefined>(undefined)

/** What the gateway says of itself; its zone of reporting, above all. */
export const status = signal<Status | undefined>(undefined)

/** What to say on the page where people sign in: that a session has ended. */
export const signInNote = signal('')

export const isAdmin = () => me.value?.role === 'admin'
export const isOwner = () => me.value?.kind === 'owner'

/** That somebody signed in here: the cookie itself no script can see, and whoever never did need not ask. */
const storedName = 'triwire.signed-in'

/** @throws Refusal where the gateway cannot be asked. */
export async function lookWhoAsks(): Promise<void> {
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

/** A gateway that does not tell is one whose days are UTC's. */
async function loadStatus(): Promise<void> {
  try {
    status.value = (await ask<Status>('/status')).body
  } catch {
    status.value = undefined
  }
}

/** @throws Refusal */
export async function signIn(token: string): Promise<void> {
  await ask<Session>('/session', { method: 'POST', body: { token } })
  signInNote.value = ''
  remember(storedName, 'yes')
  await lookWhoAsks()
}

export async function signOut(): Promise<void> {
  await ask('/session', { method: 'DELETE' }).catch(() => {})
  forgetSignIn()
  signInNote.value = 'You are signed out.'
}

/** The session is over: what was shown belongs to whoever was signed in. */
export function signedOut(): void {
  if (!me.peek()) return
  forgetSignIn()
  signInNote.value = 'Your session has ended. Sign in again to go on where you were.'
  // A cookie that is good for nothing would count as a wrong token.
  void ask('/session', { method: 'DELETE' }).catch(() => {})
}

function forgetSignIn(): void {
  forget()
  remember(storedName, undefined)
  me.value = null
}

/** In which days begin. */
export const reportingZone = () => status.value?.reporting.time_zone ?? 'UTC'
export const viewerZone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
export const zones = () => ({ viewer: viewerZone, reporting: reportingZone() })
