import type { Command } from 'commander'
import type { Program } from '../../programs/program.ts'
import { readBearer } from '../login/bearer.ts'
import { discover } from '../login/exchange.ts'
import { SignInFault } from '../login/fault.ts'
import { chooseUrl, fileOf, readKept } from '../login/kept.ts'
import { makeOwnKey } from '../login/own-key.ts'
import { findNetwork } from '../login/private-network.ts'
import { signIn } from '../login/sign-in.ts'
import { findTokenCommand } from '../login/token-command.ts'
import { usage } from '../options.ts'
import { note } from '../print.ts'

/** How a client authenticates: it signs in by itself, runs a command for tokens, or stores a key of the person. */
type SignInWay = 'itself' | 'command' | 'key'

/** How a client authenticates. @property bearer the token for reading the list of models; undefined before a sign-in */
export type SetupSignIn = {
  url: string
  way: SignInWay
  bearer: string | undefined
  tokenCommand?: readonly string[]
  /** Makes the key for the client. It is called just before the settings are shown or written. */
  makeKey?: () => Promise<string>
}

/**
 * Decides how a client authenticates, and signs the person in if the client uses a session of this machine.
 * @param asked the way that the person chose; `true` leaves the choice to this function
 * @throws SignInFault if the gateway offers no sign-in, or refuses the person
 */
export async function findSignIn(
  { name, program }: { name: string; program: Program },
  asked: SignInWay | true,
  named: string | undefined,
  command: Command,
): Promise<SetupSignIn> {
  const possible: readonly SignInWay[] = [
    ...(program.signsIn ? (['itself'] as const) : []),
    ...(program.runsTokenCommand ? (['command'] as const) : []),
    'key',
  ]
  if (asked !== true && !possible.includes(asked))
    throw usage(`${name} has no such way: with --login ${possible.join(' or ')}`)
  const url = chooseUrl(named)
  await discover(url)
  const tell = (line: string) => line !== '' && note(command, line.trim())
  const way = asked === true ? await chooseWay(name, possible, url, tell) : asked
  if (way === 'itself') return { url, way, bearer: await ifSignedIn(url) }
  const bearer = (await ifSignedIn(url)) ?? (await signInNow(url, tell))
  if (way === 'key') return { url, way, bearer, makeKey: () => makeOwnKey(url, bearer, name) }
  const { words, note: more } = findTokenCommand(url)
  if (more) tell(more)
  return { url, way, bearer, tokenCommand: words }
}

/** Chooses the first way to authenticate that works for the program and the gateway, and prints the reason. */
async function chooseWay(
  name: string,
  possible: readonly SignInWay[],
  url: string,
  tell: (line: string) => void,
): Promise<SignInWay> {
  if (!possible.includes('itself')) {
    const [way] = possible
    tell(way === 'key' ? `${name} runs no command for a token: it ${ofKey}` : `${name} runs triwire token`)
    return way!
  }
  const { isPrivate, reason } = await findNetwork(url).catch((error: NodeJS.ErrnoException) => {
    throw new SignInFault(1, `${new URL(url).hostname} cannot be looked up (${error.code ?? error.message})`)
  })
  if (isPrivate) tell(`${name} signs in by itself, since ${reason}: it asks once whether to trust the gateway`)
  else tell(`${name} runs triwire token, since ${reason}: its own sign-in takes private ones only`)
  return isPrivate ? 'itself' : 'command'
}

const ofKey =
  'gets a key that is yours, ends with you, and pauses after seven days without an answer of the identity provider'

/** Returns a token of the person. @returns undefined if the person must sign in first */
async function ifSignedIn(url: string): Promise<string | undefined> {
  try {
    return await readBearer(url, () => {})
  } catch (error) {
    if (error instanceof SignInFault && error.exitCode === 3) return undefined
    throw error
  }
}

async function signInNow(url: string, tell: (line: string) => void): Promise<string> {
  await signIn(url, { tell })
  return readKept(fileOf(url))!.tokens!.access_token
}
