import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { listen } from '../../test/support/listen.ts'
import type { Trial, TrialResult } from './trial.ts'

/* Upstreams and clients of scripts/surplus-answers.ts, in a thread of their own. */

type Place = { port: number; sockets: Set<Socket>; trial: Trial | undefined; answered: number }

/** Sent to this thread once the gateway listens. */
type Told = { url: string; adminUrl: string; key: string; trials: Trial[] }

const facts = { id: 'chatcmpl-1', created: 1_795_000_000, model: 'up-chat' }
const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }

const places = await Promise.all(Array.from({ length: workerData.places }, openPlace))
parentPort!.postMessage(places.map(({ port }) => port))
const [told] = (await once(parentPort!, 'message')) as [Told]
const waiting = [...told.trials]
const results: TrialResult[] = []
await Promise.all(
  places.map(async (place, index) => {
    for (let trial = waiting.shift(); trial; trial = waiting.shift()) results.push(await run(place, index, trial))
  }),
)
parentPort!.postMessage(results)

async function run(place: Place, index: number, trial: Trial): Promise<TrialResult> {
  for (const socket of place.sockets) socket.destroy()
  place.trial = trial
  place.answered = 0
  const before = await countEvents(index)
  const result: TrialResult = { trial, requests: trial.lanes * trial.requests, hurt: 0, events: 0, broken: [] }
  await Promise.all(Array.from({ length: trial.lanes }, (_, lane) => runLane(index, lane, result)))
  // The gateway may report the surplus answer after the last request.
  const until = performance.now() + trial.takesMs + trial.lateMs + 1_000
  do {
    await sleep(20)
    result.events = (await countEvents(index)) - before
  } while (result.events === 0 && performance.now() < until)
  return result
}

async function runLane(index: number, lane: number, result: TrialResult): Promise<void> {
  const { number, requests, kind } = result.trial
  for (let i = 0; i < requests; i++) {
    const nonce = `nonce-${number}-${lane}-${i}-`
    const body = { model: `m${index}`, stream: kind === 'stream', messages: [{ role: 'user', content: nonce }] }
    const response = await fetch(`${told.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${told.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (response.status === 200 && text.includes(nonce)) continue
    result.hurt++
    // After a surplus 408, requests may be refused. Otherwise a request may fail only by a foreign answer.
    if (!/nonce-/.test(text) && kind !== '408') result.broken.push(`${response.status} ${text.slice(0, 200)}`)
  }
}

async function countEvents(index: number): Promise<number> {
  const text = await (await fetch(`${told.adminUrl}/metrics`)).text()
  return Number(
    new RegExp(`^triwire_upstream_unasked_total\\{upstream="u${index}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
  )
}

async function openPlace(): Promise<Place> {
  const place: Place = { port: 0, sockets: new Set(), trial: undefined, answered: 0 }
  const server = createServer({ noDelay: true }, (socket) => {
    place.sockets.add(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('close', () => place.sockets.delete(socket))
    socket.on('data', (bytes) => {
      text += bytes.toString()
      const end = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
      if (end < 0 || text.length < end + 4 + length) return
      const nonce = /nonce-[\d-]+/.exec(text)![0]
      text = text.slice(end + 4 + length)
      void answer(place, socket, nonce)
    })
  })
  place.port = await listen(server)
  return place
}

async function answer(place: Place, socket: Socket, nonce: string): Promise<void> {
  const { kind, takesMs, lateMs, after } = place.trial!
  await sleep(takesMs)
  const bytes = kind === 'stream' ? streamOf(nonce) : jsonOf(nonce)
  socket.write(bytes)
  if (++place.answered !== after) return
  if (lateMs > 0) await sleep(lateMs)
  if (kind !== '408') socket.write(bytes)
  else socket.end('HTTP/1.1 408 Request Time-out\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
}

function jsonOf(nonce: string): string {
  const choices = [{ index: 0, message: { role: 'assistant', content: nonce }, finish_reason: 'stop' }]
  const body = JSON.stringify({ ...facts, object: 'chat.completion', choices, usage })
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

function streamOf(nonce: string): string {
  const event = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const last = `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`
  const pieces = [event({ role: 'assistant', content: nonce }, null), event({}, 'stop'), last]
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)
  return `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`
}
