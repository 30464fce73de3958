import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { booksOf } from '../test/support/sessions.ts'
import { npmAgents as agents } from './agents/npm.ts'
import { programOf } from './installs.ts'
import { modelOf, openPlace, type Place, run, scripted } from './place.ts'
import { readScreen } from './screen.ts'
import type { Story } from './stories.ts'

/*
 * Claude Code's own sign-in, in a terminal, from an empty home folder to an answer: the device grant of
 * docs/sign-in.md. The person sees one code and no secret. `Books` approves the code here; test/sign-in tests the page.
 * Loopback replaces a private network.
 */

const done = 'That is the answer.'
const limitMs = 120_000
const config = {
  sign_in: {
    ...{ issuer: 'http://127.0.0.1:9', client_id: 'triwire' },
    rules: [{ groups: ['dev'], account: 'tester' }],
  },
}

/** Keys that accept the theme, the gateway, its address and the account. For the last two, the arrow up selects yes. */
export const loginKeys = ['\r', '\r', '\x1b[A', '\r', '\x1b[A', '\r']

export async function runClaudeLogin(): Promise<Story> {
  const name =
    'Y20 claude-code signs in by a code in its terminal, refreshes once for four at a time, is ended, and signs out'
  const agent = agents.find(({ client }) => client === 'claude-code')!
  const place = await openPlace(undefined, config)
  const { gateway, work, home, env } = place
  try {
    gateway.simulator.script(scripted, { reply: done })
    const { opened, browser } = prepareLogin(home, gateway.url)
    const own = { ...env, ...agent.env, BROWSER: browser, ANTHROPIC_MODEL: modelOf('messages') }
    const program = programOf(agent.source)
    const [connected, code] = await Promise.all([
      readScreen(program, { cwd: work, env: own, keys: loginKeys, text: /Connected to Cloud gateway/ }),
      approveFirst(place),
    ])
    const ask = () => run(program, ['-p', 'What is the answer?'], { cwd: work, env: own, limitMs })
    const hasAnswer = ({ stdout }: { stdout: string }) => stdout.includes(done)
    const first = await ask()
    expireLogin(home)
    const four = await Promise.all([ask(), ask(), ask(), ask()])
    const books = booksOf(gateway)
    const [session] = await books.pageSessions({ limit: 1 })
    await books.endSession({ id: session!.id }, 'ended')
    const ended = await ask()
    await run(program, ['auth', 'logout'], { cwd: work, env: own, limitMs })
    const paths = (await gateway.logLines()).map(({ path, status }) => `${path} ${status}`)
    const verdicts: [boolean, string][] = [
      [connected !== '', 'it was not signed in'],
      [readFileSync(opened, 'utf8').trim().endsWith(`/console/device?user_code=${code}`), 'it opened another page'],
      [hasAnswer(first), `it has no answer: ${first.stdout} ${first.stderr}`],
      [four.every(hasAnswer), `not all four have an answer: ${four.map(({ stdout }) => stdout).join('; ')}`],
      [session?.generation === 1, `it caused ${session?.generation} refreshes`],
      [/session has ended/.test(ended.stdout), `after the session's end it printed: ${ended.stdout} ${ended.stderr}`],
      [paths.filter((one) => one === '/oauth/revoke 200').length === 2, 'it did not sign out'],
    ]
    return { name, failures: verdicts.flatMap(([isSo, otherwise]) => (isSo ? [] : [otherwise])) }
  } catch (error) {
    return { name, failures: [String(error)] }
  } finally {
    await place.close()
  }
}

/** Waits for a grant, reads its code from the address that the program opens, and approves it. @returns the code */
async function approveFirst({ gateway, home }: Place): Promise<string> {
  const db = new DatabaseSync(gateway.storePath, { readOnly: true })
  const books = booksOf(gateway)
  for (const limit = Date.now() + limitMs; Date.now() < limit; await sleep(100)) {
    const [grant] = db.prepare('SELECT id FROM oauth_grants').all()
    const code = /user_code=([A-Z-]+)/.exec(readIfThere(join(home, 'opened')))?.[1]
    if (!grant || code === undefined) continue
    const { id } = (await books.findGrant(code))!
    const dev = { issuer: 'http://127.0.0.1:9', subject: 'dev', email: 'dev@corp.test' }
    await books.decideGrant(id, { ...dev, account: 'tester', role: 'member' })
    db.close()
    return code
  }
  db.close()
  return ''
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/**
 * Prepares an empty home for a sign-in at a gateway.
 * @returns the program to use as the browser, and the file in which it notes each address
 */
export function prepareLogin(home: string, url: string): { opened: string; browser: string } {
  mkdirSync(join(home, '.claude'), { recursive: true })
  const settings = { forceLoginMethod: 'gateway', forceLoginGatewayUrl: url }
  writeFileSync(join(home, '.claude/settings.json'), JSON.stringify(settings))
  const [opened, browser] = [join(home, 'opened'), join(home, 'browser')]
  writeFileSync(browser, `#!/bin/sh\necho "$1" >> '${opened}'\n`)
  chmodSync(browser, 0o700)
  return { opened, browser }
}

/** Returns the path of the file in which the program keeps its sign-in. */
export function credentialsOf(home: string): string {
  return join(home, '.claude/.credentials.json')
}

/** Reads the sign-in that the program keeps in a home. @returns undefined if it keeps none */
export function readLogin(home: string): { jwt?: string; expiresAt?: number } | undefined {
  return JSON.parse(readIfThere(credentialsOf(home)) || '{}').enterpriseGateway
}

/** Makes the stored token look expired to the program, so that it gets another one before its next request. */
export function expireLogin(home: string): void {
  const kept = JSON.parse(readFileSync(credentialsOf(home), 'utf8'))
  kept.enterpriseGateway.expiresAt = Date.now() - 10_000
  writeFileSync(credentialsOf(home), JSON.stringify(kept))
}
