/** A 32-bit hash of a text: FNV-1a over its UTF-16 units. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * Scores a place for a key; the place with the highest score gets the key. If a place goes away, only its own keys move.
 * Each place gets a share of the keys by its weight (weighted rendezvous hashing).
 */
export function scoreOf(key: number, place: number, weight: number): number {
  let mixed = key ^ place
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  mixed = (mixed ^ (mixed >>> 16)) >>> 0
  return -weight / Math.log((mixed + 0.5) / 0x1_0000_0000)
}
