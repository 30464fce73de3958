import { type LookupAddress, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

type LookupCallback = Parameters<LookupFunction>[2]

const underWay = new Map<string, LookupCallback[]>()

/**
 * Looks a name up as the system does, with one lookup at a time for each name. Lookups occupy threads and cannot be
 * cancelled; there are two for them in Node and eight in our program. Without this, one upstream with silent name servers
 * would hold up all other upstreams (faults F-U3).
 */
export const lookupOnce: LookupFunction = (hostname, options, tell) => {
  const { family, hints, all } = options
  const key = `${hostname} ${family} ${hints} ${all}`
  const waiting = underWay.get(key)
  if (waiting) {
    waiting.push(tell)
    return
  }
  const told = [tell]
  underWay.set(key, told)
  lookup(hostname, options, (error, address: string | LookupAddress[], family?: number) => {
    underWay.delete(key)
    for (const one of told) one(error, address, family)
  })
}
