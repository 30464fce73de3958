import { setTimeout as pause } from 'node:timers/promises'
import { priceNanos } from '../../src/catalog/model.ts'
import { ask, type Seen, tally } from './clients.ts'
import { type Finding, finding, formatCounts, type Trial } from './report.ts'
import { holdTokens, type Payer, type Replica, type Setting } from './setting.ts'

const perMinute = 300
const asked = 1_000
const keyPerMinute = 120
/** The price of a token of output: 15 credits for a million. */
const outputNanos = 15_000n

/* A thousand concurrent requests of one account at three gateways. As many may run as a single gateway would admit. */

export const limits: readonly Trial[] = [
  {
    name: 'window',
    demand: '1,000 at once over three gateways, one account: exactly 300 × 200 and 700 × 429',
    options: { perMinute },
    async run(setting) {
      const [replicas, payer] = await begin(setting)
      const seen = await askAtOnce(replicas, payer)
      return [isExact(seen)]
    },
  },
  {
    name: 'window, PostgreSQL restarted hard',
    demand: 'the same across a hard restart: never a 301st',
    options: { perMinute },
    async run(setting) {
      const [replicas, payer] = await begin(setting)
      const { postgres } = setting
      const asking = askInRounds(replicas, payer)
      await pause(150)
      postgres.stop('immediate')
      postgres.start()
      return judgeRounds(await asking)
    },
  },
  {
    name: 'window, unlogged tables lost',
    demand: 'the same across the loss of the unlogged tables: some may be 500, never a 301st 200',
    options: { perMinute },
    async run(setting) {
      const [replicas, payer] = await begin(setting)
      const asking = askInRounds(replicas, payer)
      for (let i = 0; i < 3; i++) {
        await pause(120)
        emptyUnlogged(setting)
      }
      return judgeRounds(await asking)
    },
  },
  {
    name: 'key window',
    demand:
      '1,000 at once over three gateways by a key of 120 a minute: exactly 120 × 200, and its account has its own',
    options: { perMinute },
    async run(setting) {
      const [replicas, payer] = await begin(setting)
      const { key } = await setting.books.createKey(payer.account, { requestsPerMinute: keyPerMinute })
      const counts = tally(await askAtOnce(replicas, { ...payer, key }))
      const rest = tally(await askAtOnce(replicas, payer))
      return [
        finding(counts[200] === keyPerMinute && counts[429] === asked - keyPerMinute, formatCounts(counts)),
        finding(rest[200] === perMinute - keyPerMinute, `by another key of the account then: ${formatCounts(rest)}`),
      ]
    },
  },
  {
    name: 'key budget',
    demand: 'a budget for ten, 1,000 at once on three, cost ≤ hold: nothing is spent beyond the last hold',
    async run(setting) {
      return overspend(setting, 'within-hold')
    },
  },
  {
    name: 'key budget, cost 1.5 × hold',
    demand: 'spent ≤ budget + Σ max(0, actual − hold) + the last hold',
    async run(setting) {
      return overspend(setting, 'beyond-hold')
    },
  },
  {
    name: 'overdraft',
    demand: 'credit for ten, 1,000 at once on three, cost ≤ hold: no overdraft beyond the last hold',
    async run(setting) {
      return overdraw(setting, 'within-hold')
    },
  },
  {
    name: 'overdraft, cost 1.5 × hold',
    demand: 'overdraft ≤ Σ max(0, actual − hold) + the last hold',
    async run(setting) {
      return overdraw(setting, 'beyond-hold')
    },
  },
]

async function begin(setting: Setting): Promise<[Replica[], Payer]> {
  const payer = await setting.makePayer()
  const replicas = await Promise.all([1, 2, 3].map(() => setting.startReplica()))
  return [replicas, payer]
}

function askAtOnce(replicas: readonly Replica[], { key }: Payer): Promise<Seen[]> {
  return Promise.all(Array.from({ length: asked }, (_, i) => ask(replicas[i % replicas.length]!, { key })))
}

/** Sends requests in twenty rounds, so that some come before the trial's event, some during it and some after it. */
async function askInRounds(replicas: readonly Replica[], { key }: Payer): Promise<Seen[]> {
  const rounds: Promise<Seen>[] = []
  for (let i = 0; i < asked; i++) {
    rounds.push(ask(replicas[i % replicas.length]!, { key }))
    if (i % 50 === 49) await pause(40)
  }
  const first = await Promise.all(rounds)
  // A request that got 500 was not admitted, so its client may repeat it.
  const again: Seen[] = []
  for (let left = first.filter(({ status }) => status === 500).length; left > 0; left--) {
    let seen = await ask(replicas[left % replicas.length]!, { key })
    for (let tries = 0; seen.status === 500 && tries < 40; tries++) {
      await pause(100)
      seen = await ask(replicas[left % replicas.length]!, { key })
    }
    again.push(seen)
  }
  return [...first, ...again]
}

function isExact(seen: readonly Seen[]): Finding {
  const counts = tally(seen)
  const isSo = counts[200] === perMinute && counts[429] === asked - perMinute
  return finding(isSo, formatCounts(counts))
}

function judgeRounds(seen: readonly Seen[]): Finding[] {
  const counts = tally(seen)
  const others = Object.keys(counts).filter((status) => !['200', '429', '500'].includes(status))
  return [
    finding(counts[200] === perMinute, formatCounts(counts)),
    finding(others.length === 0, others.length ? `also ${others.join(', ')}` : 'nothing but 200, 429 and 500'),
  ]
}

function emptyUnlogged({ postgres, url }: Setting): void {
  postgres.run(
    'TRUNCATE triwire.shares, triwire.present, triwire.epoch, triwire.failures',
    new URL(url).pathname.slice(1),
  )
}

/**
 * Sends concurrent requests on a balance that suffices for ten answers. The first answer's ledger entry has the cost of
 * an answer, and the tokens by which it exceeds its hold.
 */
async function overdraw(setting: Setting, model: 'within-hold' | 'beyond-hold'): Promise<Finding[]> {
  const { books } = setting
  const rich = await setting.makePayer()
  const replicas = await Promise.all([1, 2, 3].map(() => setting.startReplica()))
  const { requestId } = await ask(replicas[0]!, { key: rich.key, model })
  const bill = await books.findEntry(requestId!)
  if (!bill?.bill) throw new Error('the first answer has no debit')
  const costNanos = bill.amountNanos
  const excessTokens = Math.max(0, bill.bill.usage.outputTokens - holdTokens)
  const excessNanos = BigInt(excessTokens) * outputNanos
  const creditNanos = costNanos * 10n
  const { id } = await books.createAccount('short', creditNanos)
  const { key } = await books.createKey('short')
  const seen = await Promise.all(Array.from({ length: asked }, (_, i) => ask(replicas[i % 3]!, { key, model })))
  const { balanceNanos } = await books.findAccount(id)
  const counts = tally(seen)
  const answered = counts[200] ?? 0
  // The law of src/accounts/live-accounts.ts. 50 tokens are added for input, whose estimate can exceed the real number.
  const holdNanos = BigInt(holdTokens + 50) * outputNanos
  const allowedNanos = -(excessNanos * BigInt(answered) + holdNanos)
  return [
    finding(balanceNanos >= allowedNanos, `${formatCounts(counts)}; balance ${balanceNanos}, at least ${allowedNanos}`),
    finding(answered > 0 && counts[402] === asked - answered, 'all others are 402'),
    finding(balanceNanos === creditNanos - costNanos * BigInt(answered), 'the balance is the credit less the answers'),
  ]
}

/** Like `overdraw`, for the budget of a key whose account has enough credit. Spending must equal the key's entries. */
async function overspend(setting: Setting, model: 'within-hold' | 'beyond-hold'): Promise<Finding[]> {
  const { books } = setting
  const rich = await setting.makePayer()
  const replicas = await Promise.all([1, 2, 3].map(() => setting.startReplica()))
  const { requestId } = await ask(replicas[0]!, { key: rich.key, model })
  const bill = await books.findEntry(requestId!)
  if (!bill?.bill) throw new Error('the first answer has no debit')
  const costNanos = bill.amountNanos
  const excessNanos = BigInt(Math.max(0, bill.bill.usage.outputTokens - holdTokens)) * outputNanos
  const budgetNanos = costNanos * 10n
  const { key, id } = await books.createKey(rich.account, { budget: { nanos: budgetNanos, per: 'day' } })
  const counts = tally(
    await Promise.all(Array.from({ length: asked }, (_, i) => ask(replicas[i % 3]!, { key, model }))),
  )
  const answered = counts[200] ?? 0
  const [row] = await books.findKeys(id)
  const spentNanos = row!.spend!.spentNanos
  const holdNanos = BigInt(holdTokens + 50) * outputNanos
  const allowedNanos = budgetNanos + excessNanos * BigInt(answered) + holdNanos
  const findings = await books.verify({ priceNanos })
  return [
    finding(spentNanos <= allowedNanos, `${formatCounts(counts)}; spent ${spentNanos}, at most ${allowedNanos}`),
    finding(answered > 0 && counts[402] === asked - answered, 'all others are 402'),
    finding(spentNanos === costNanos * BigInt(answered), 'what is counted is what was answered'),
    finding(findings.length === 0, `${findings.length} findings of verify`),
  ]
}
