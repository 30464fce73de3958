import type { Command } from 'commander'
import { isJson, note, print } from '../print.ts'

/** Adds `login`, `token` and `logout`. A person signs in at a gateway, and agents then use tokens instead of a key. */
export function addLoginCommands(program: Command): void {
  program
    .command('login')
    .argument('<url>', 'the URL of the gateway, such as https://gateway.example')
    .description('sign in at a gateway: in a browser of this machine, or with a code that you enter in any browser')
    .option('--device', 'show a code even if this machine has a browser')
    .action(async (named: string, { device }: { device?: true }, command: Command) => {
      const { signIn } = await import('./sign-in.ts')
      const { readGatewayUrl } = await import('./gateway-url.ts')
      const tell = (line: string) => (isJson(command) ? line !== '' && note(command, line.trim()) : console.error(line))
      const { url, email } = await signIn(readGatewayUrl(named), { isDevice: device === true, tell })
      const text = `signed in at ${url}${email === undefined ? '' : ` as ${email}`}; triwire token ${url} prints a token`
      print(command, { url, email: email ?? null }, () => text)
    })
  program
    .command('token')
    .argument('[url]', 'the URL of the gateway; needed only if you are signed in at several gateways')
    .description('print a token for an agent; it never opens a browser, and exits with code 3 if a person must sign in')
    .option('--named <agent>', 'make and print a key of yours for an agent that stores it, such as opencode')
    .action(async (url: string | undefined, { named }: { named?: string }) => {
      const { printToken } = await import('./print-token.ts')
      await printToken(url, named)
    })
  program
    .command('logout')
    .argument('[url]', 'the URL of the gateway; needed only if you are signed in at several gateways')
    .description('sign out: end the session at the gateway, and remove its file from this machine')
    .action(async (named: string | undefined, _options, command: Command) => {
      const { findUrl } = await import('./kept.ts')
      const { signOut } = await import('./sign-in.ts')
      const url = findUrl(named)
      const done = url === undefined ? undefined : await signOut(url)
      if (done?.isHeard === false)
        note(command, `the gateway has not confirmed it: its session expires, or end it on ${url}/console/sessions`)
      print(command, { url: url ?? null, signed_in: done !== undefined, heard: done?.isHeard ?? null }, () =>
        done ? `signed out at ${url}` : `nobody was signed in ${url === undefined ? 'on this machine' : `at ${url}`}`,
      )
    })
}
