import { Agent, request } from 'node:http'
import type { TestGateway } from './gateway.ts'
import { type AskedBody, createChance, mutate } from './mutations.ts'
import { patienceMs } from './waiting.ts'

export type FuzzReport = {
  asked: number
  /** The number of answers by status. */
  statuses: Map<number, number>
  /** Forbidden results with the body: a 5xx, a response without an id, a bill for a refusal, or no response in time. */
  faults: string[]
  /** The time of the slowest answer, in ms. */
  slowestMs: number
}

/** Sends mutated bodies to the gateway, several concurrently. @returns the results */
export async function fuzzGateway(gateway: TestGateway, count: number, seed: number): Promise<FuzzReport> {
  const chance = createChance(seed)
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const report: FuzzReport = { asked: 0, statuses: new Map(), faults: [], slowestMs: 0 }
  await Promise.all(Array.from({ length: 8 }, work))
  agent.destroy()
  return report

  async function work(): Promise<void> {
    while (report.asked < count) {
      report.asked++
      const asked = mutate(chance)
      const started = performance.now()
      const { status, id, text } = await ask(asked)
      report.slowestMs = Math.max(report.slowestMs, performance.now() - started)
      report.statuses.set(status, (report.statuses.get(status) ?? 0) + 1)
      const isBilled = gateway.store.findEntry(id) !== undefined
      const isCount = asked.path.endsWith('count_tokens')
      const isRight = status === 200 ? isBilled !== isCount && text !== '' : status >= 400 && status < 500 && !isBilled
      if (isRight && id.startsWith('req_')) continue
      const shown = asked.body.toString('latin1').slice(0, 2_000)
      if (report.faults.length < 20) report.faults.push(`${status} ${asked.path} ${shown}\n  -> ${text.slice(0, 300)}`)
    }
  }

  function ask({ path, body }: AskedBody): Promise<{ status: number; id: string; text: string }> {
    return new Promise((resolve) => {
      const headers = { 'x-api-key': gateway.key, 'content-length': body.length }
      const sent = request(gateway.url + path, { method: 'POST', agent, headers, timeout: patienceMs }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        const done = () =>
          resolve({ status: response.statusCode ?? 0, id: String(response.headers['x-request-id'] ?? ''), text })
        response.on('end', done)
        response.on('error', done)
      })
      sent.on('timeout', () => sent.destroy())
      sent.on('error', (error) => resolve({ status: 0, id: '', text: error.message }))
      sent.end(body)
    })
  }
}
