import { readBearer } from './bearer.ts'
import { SignInFault } from './fault.ts'
import { chooseUrl } from './kept.ts'

/**
 * Prints a bearer on stdout, and nothing else there. Agents run this before their requests, and again after a 401. A failure is one
 * line on stderr. Its exit code is 1 for a fault that may pass, and 3 if a person must act. No browser is ever opened.
 * @param named the gateway; it may be left out if there is one sign-in
 */
export async function printToken(named: string | undefined): Promise<void> {
  try {
    const bearer = await readBearer(chooseUrl(named), say)
    process.stdout.write(`${bearer}\n`)
  } catch (error) {
    say((error as Error).message)
    process.exitCode = error instanceof SignInFault ? error.exitCode : 1
  }
}

function say(line: string): void {
  process.stderr.write(`triwire: ${line}\n`)
}
