import { homedir } from 'node:os'
import { join } from 'node:path'

/** The folder for data that is kept between runs, outside of any checkout: peers' installations, and the last figures. */
export const peersHome =
  process.env['TRIWIRE_PEERS_DIR'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'triwire-peers')

export function homeOf(peer: { name: string }): string {
  return join(peersHome, peer.name)
}
