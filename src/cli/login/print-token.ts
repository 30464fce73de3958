import { readBearer } from './bearer.ts'
import { SignInFault } from './fault.ts'
import { chooseUrl } from './kept.ts'

/**
 * Prints a bearer token on stdout and nothing else. Agents run this before their requests, and again after a 401. A
 * failure is one line on stderr, with exit code 1 if a retry may succeed, and 3 if a person must act. No browser opens.
 * @param named the gateway; optional if there is only one sign-in
 * @param agent set for an agent that stores its key. It then gets a key of its own instead of a token (own-key.ts)
 */
export async function printToken(named: string | undefined, agent?: string): Promise<void> {
  try {
    const url = chooseUrl(named)
    const bearer = await readBearer(url, say)
    const text = agent === undefined ? bearer : await (await import('./own-key.ts')).makeOwnKey(url, bearer, agent)
    process.stdout.write(`${text}\n`)
  } catch (error) {
    say((error as Error).message)
    process.exitCode = error instanceof SignInFault ? error.exitCode : 1
  }
}

function say(line: string): void {
  process.stderr.write(`triwire: ${line}\n`)
}
