import { readBearer } from './bearer.ts'
import { SignInFault } from './fault.ts'
import { chooseUrl } from './kept.ts'

/**
 * Prints a bearer on stdout, and nothing else there. Agents run this before their requests, and again after a 401. A failure is one
 * line on stderr. Its exit code is 1 for a fault that may pass, and 3 if a person must act. No browser is ever opened.
 * @param named the gateway; it may be left out if there is one sign-in
 * @param agent prints a key of the person for this agent instead, which may be kept (own-key.ts)
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
