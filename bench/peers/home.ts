import { homedir } from 'node:os'
import { join } from 'node:path'

/** What is kept of peers between runs: their installations, and the figures of the last run. Outside of any checkout. */
export const peersHome =
  process.env['TRIWIRE_PEERS_DIR'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'triwire-peers')

export function homeOf(peer: { name: string }): string {
  return join(peersHome, peer.name)
}
