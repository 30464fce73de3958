import { createBooks } from '../../src/accounts/books.ts'
import { parseCredits } from '../../src/accounts/credit.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { newRequestId } from '../../src/ids.ts'
import { createRandom } from '../../src/store/seeded-random.ts'
import { openStore } from '../../src/store/sqlite/store.ts'

const days = 30
const names = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'stark', 'wayne', 'tyrell']
const labels = ['ci', 'laptop', 'nightly']
const shares = [
  ['reasoner', 'messages', 6],
  ['writer-mini', 'chat', 3],
  ['coder', 'responses', 2],
  ['dear', 'chat', 0.2],
] as const

/** Fills a store with weeks of traffic of eight teams. There is less traffic at night and on Sundays. */
export async function fillHistory(storePath: string): Promise<void> {
  let nowMs = Date.now() - days * 86_400_000
  const store = openStore(storePath, { nowMs: () => nowMs } as never)
  const books = createBooks(store, () => nowMs)
  const owners: { accountId: string; keyId: string }[] = []
  for (const name of names) {
    const { id } = await books.createAccount(name, parseCredits('400'))
    for (const label of labels) owners.push({ accountId: id, keyId: (await books.createKey(id, { label })).id })
  }
  const random = createRandom(7)
  for (; nowMs < Date.now() - 900_000; nowMs += 1_800_000) {
    const at = new Date(nowMs)
    const hour = at.getUTCHours()
    const busy = Math.max(0.08, Math.sin(((hour - 6) / 24) * 2 * Math.PI) + 0.5) * (at.getUTCDay() === 0 ? 0.35 : 1)
    const rows = Array.from({ length: Math.ceil(busy * 14 * (0.6 + random() * 0.8)) }, () => {
      const owner = owners[Math.floor(random() ** 1.7 * owners.length)]!
      return debitOf(owner, random, nowMs)
    })
    store.postDebits(rows)
  }
  store.close()
}

function debitOf(owner: { accountId: string; keyId: string }, random: () => number, nowMs: number): Debit {
  const [model, wire] = choose(random() * 11.2)
  const input = Math.floor(2_000 + random() * 9_000)
  const read = Math.floor(random() * 24_000)
  const output = Math.floor(150 + random() * 1_800)
  const rates = { inputNanos: 3_000_000_000n, cacheReadNanos: 300_000_000n, outputNanos: 15_000_000_000n }
  const amountNanos =
    (BigInt(input) * rates.inputNanos + BigInt(read) * rates.cacheReadNanos + BigInt(output) * rates.outputNanos) /
    1_000_000n
  return {
    requestId: newRequestId(),
    ...owner,
    clientWire: random() < 0.7 ? wire : 'chat',
    model,
    modelWire: wire,
    upstream: 'sim',
    upstreamAccount: 'main',
    amountNanos,
    usage: {
      ...{ inputTokens: input, cacheReadTokens: read, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
      ...{ outputTokens: output, reasoningTokens: Math.floor(output * 0.3), estimated: false },
    },
    usageSource: 'final',
    pricedCalls: 0,
    calls: undefined,
    priceVersion: 'v1',
    prices: { ...rates, cacheWriteNanos: 3_750_000_000n, cacheWrite1hNanos: 6_000_000_000n },
    outcome: random() < 0.97 ? 'ok' : random() < 0.5 ? 'client_abort' : 'upstream_cut',
    createdMs: nowMs,
  }
}

function choose(pick: number): (typeof shares)[number] {
  let left = pick
  for (const one of shares) {
    left -= one[2]
    if (left < 0) return one
  }
  return shares[0]
}
