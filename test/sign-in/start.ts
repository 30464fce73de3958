import { createBooks } from '../../src/accounts/books.ts'
import { TestBrowser, type Visit } from '../support/browser.ts'
import { startTestGateway } from '../support/gateway.ts'
import { type Hostility, standInSecret, startStandIn } from '../support/stand-in-issuer.ts'

export const rules = [
  { groups: ['admins'], role: 'admin' },
  { groups: ['leads'], account: 'tester', role: 'lead' },
  { groups: ['developers'], account: 'tester', models: 'native-chat' },
  { groups: ['lost'], account: 'nobody' },
]

/** A gateway at which people sign in by a stand-in for the provider, and the ways of programs and browsers. */
export async function startSignIn(hostility: Hostility = {}, more: Record<string, unknown> = {}) {
  const standIn = await startStandIn(hostility)
  const signIn = { issuer: standIn.issuer, client_id: 'triwire', client_secret: standInSecret, rules, ...more }
  const gateway = await startTestGateway({ config: { sign_in: signIn } })
  const books = createBooks(gateway.store.asked, gateway.nowMs)
  const lives = { accessMs: 3_600_000, idleMs: 7_200_000, absoluteMs: 86_400_000 }
  return { standIn, gateway, books, lives, ask, page, toApproval, approve, poll, authorize, redeem }

  /** A program asks for a code. */
  async function ask(agent = 'claude_code') {
    const { code, userCode, id } = await books.beginGrant({ kind: 'device', agent, address: '10.1.2.3' })
    return { id, code, userCode: userCode! }
  }

  function page(path: string): string {
    return `${gateway.url}/console/${path}`
  }

  /** A person types the address, goes on, signs in at the provider, and is asked. */
  async function toApproval(browser: TestBrowser, userCode: string): Promise<Visit> {
    const first = await browser.go(page(`device?user_code=${userCode}`))
    return browser.follow(first, 'Continue')
  }

  async function approve(browser: TestBrowser, userCode: string): Promise<Visit> {
    return browser.press(await toApproval(browser, userCode), 'approve')
  }

  /** @returns what the program hears when it asks: an error, or `issued` */
  async function poll({ id, code }: { id: string; code: string }): Promise<string> {
    const grant = await books.findGrant({ id })
    if (grant?.state === 'pending') return 'authorization_pending'
    const told = await books.pollGrant(code, lives)
    return 'error' in told ? told.error : 'issued'
  }

  /** The address with which a program on the person's machine begins. */
  function authorize(own: Record<string, string>): string {
    const asked = { response_type: 'code', surface: 'triwire', code_challenge_method: 'S256', state: 'st-1', ...own }
    return page(`authorize?${new URLSearchParams(asked)}`)
  }

  async function redeem(code: string, verifier: string, redirectUri: string): Promise<string> {
    const told = await books.redeemCode(code, { verifier, redirectUri }, lives)
    return 'error' in told ? told.error : 'issued'
  }
}

export type SignInTest = Awaited<ReturnType<typeof startSignIn>>
export { TestBrowser }
