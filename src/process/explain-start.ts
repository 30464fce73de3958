import { cureOf, explainMaking } from '../store/files/cures.ts'
import { StoreError } from '../store/files/store-error.ts'

type SystemError = NodeJS.ErrnoException & { address?: string; port?: number }

/** By the system's code, where nothing could be listened on: what is the matter, and the cure. */
const listenCures: Readonly<Record<string, (where: string) => string>> = {
  EADDRINUSE: (where) =>
    `address already in use ${where}: stop what listens there, or choose another address with --listen or --admin-listen`,
  EADDRNOTAVAIL: (where) =>
    `${where} is no address of this machine: choose 127.0.0.1, 0.0.0.0 (all of them) or one of its own with --listen or --admin-listen`,
  EACCES: (where) =>
    `${where} may not be listened on: ports below 1024 are the system's, choose a higher one with --listen`,
}

const noSuchHost = (where: string) =>
  `${where} is the name of no address: check --listen and --admin-listen, or write the address itself`

/** Why a start failed, in words for the operator. An unknown error is a bug, and is shown with its stack. */
export function explainStart(error: unknown): string {
  if (error instanceof StoreError) return error.message
  const { code = '', syscall = '', message, stack, address, port } = error as SystemError
  if (/^E(NOTFOUND|AI_)/.test(code)) return noSuchHost((error as { hostname?: string }).hostname ?? message)
  if (syscall === 'listen' || syscall === 'bind') {
    // Of port 0, any free one, the system names none.
    const where = `${address?.includes(':') ? `[${address}]` : address}:${port ?? 0}`
    return (
      listenCures[code]?.(where) ?? `${where} cannot be listened on (${code}): choose another address with --listen`
    )
  }
  // A fault of SQLite, or of the disk below it, names no file.
  const cure = cureOf(error)
  return explainMaking(error) ?? (cure && `the store ${cure} (choose its place with --store)`) ?? stack ?? message
}
