import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import test, { before } from 'node:test'
import { listen } from '../support/listen.ts'
import { openStore } from '../support/operator.ts'
import { configFile, newFolder, type Served, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

/*
 * What outlives a young collection is copied, what outlives two waits for a collection of everything: of a finished request
 * that is waste, and was once a sixth of all the gateway's time (decision 12). Bytes are counted, not milliseconds.
 */

const connections = 16
/** Across the gateway's threads, the way that allocates the least has a collection for some 200 of them. */
const requests = 2_000

/**
 * Of a request's bytes those that outlive two collections: some 110 on an idle machine, most of them kept on purpose
 * (`live/recents.ts`). They were 8,000 and more. What is under way when a collection comes outlives that one, rightly.
 */
const promotedBytesMax = 1_500

/** A stall of the machine keeps requests under way for long; what outlives them does so each time. */
const roundsMax = 3

/** At the signal all is collected, which makes an old object of what stays, and from then on collections are told. */
const telling = `import v8 from 'node:v8'
process.on('SIGUSR2', () => {
  gc()
  v8.setFlagsFromString('--trace-gc-nvp')
  console.log('telling')
})`

const asks = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 } },
  messages: { path: '/v1/messages', body: { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 } },
  responses: { path: '/v1/responses', body: { input: 'Hi', max_output_tokens: 16 } },
}
type Wire = keyof typeof asks

const answers: Record<Wire, object> = {
  chat: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Yes.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 2 },
  },
  responses: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Yes.', annotations: [] }],
      },
    ],
    usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 },
  },
}

const ways: [wire: Wire, modelWire: Wire][] = [
  ['chat', 'chat'],
  ['messages', 'messages'],
  ['responses', 'responses'],
  ['messages', 'chat'],
  ['chat', 'messages'],
  ['chat', 'responses'],
]

/** One gateway for all ways: a process and what it compiles cost more than the requests of a way. */
let running: Served
let port: number
let key: string
let tellings = 0

before(async () => {
  const origins = new Map<Wire, string>()
  for (const wire of Object.keys(answers) as Wire[]) {
    const answer = Buffer.from(JSON.stringify(answers[wire]))
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n`
    const upstream = createServer((socket) => {
      socket.on('data', () => void socket.write(head + answer))
      socket.on('error', () => {})
    })
    origins.set(wire, `http://127.0.0.1:${await listen(upstream)}`)
  }
  const folder = newFolder()
  const store = openStore(join(folder, 'triwire.db'))
  store.createAccount('one', 10n ** 15n)
  key = store.createKey('one').key
  store.close()
  const models = [...origins.keys()].map(
    (wire) =>
      `    - { id: ${wire}, wire: ${wire}, upstream: ${wire}, max_output_tokens: 99, prices: { input: "1", output: "1" } }`,
  )
  const config = configFile(folder, models.join('\n'), { upstreams: Object.fromEntries(origins) })
  appendFileSync(config, 'limits: { requests_per_minute: 1000000000 }\n')
  const env = { NODE_OPTIONS: `--expose-gc --import data:text/javascript,${encodeURIComponent(telling)}` }
  running = serve(['--config', config], folder, { env })
  port = Number(new URL(await running.url()).port)
})

for (const [wire, modelWire] of ways)
  test(`decision 12 no more of a finished request survives a young collection than is kept on purpose, ${wire} → ${modelWire}`, async () => {
    await putLoad(wire, modelWire, 500)
    const figures: number[] = []
    while (!figures.some((bytes) => bytes < promotedBytesMax) && figures.length < roundsMax) {
      running.child.kill('SIGUSR2')
      tellings++
      await until(() => running.stdout().split('telling').length > tellings)
      await putLoad(wire, modelWire, requests)
      const told = running.stdout().split('telling').at(-1)!
      const collections = [...told.matchAll(/"gc":"s".*?"promoted":(\d+)/g)]
      assert.ok(collections.length > 5, told)
      figures.push(collections.reduce((sum, [, bytes]) => sum + Number(bytes), 0) / requests)
    }
    assert.ok(figures.at(-1)! < promotedBytesMax, `bytes a request, in each round: ${figures.map(Math.round)}`)
  })

/** On kept connections, one request after the other. */
async function putLoad(wire: Wire, modelWire: Wire, count: number): Promise<void> {
  const { path, body } = asks[wire]
  const asked = JSON.stringify({ model: modelWire, ...body })
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    `content-length: ${asked.length}`,
  ]
  const request = `${head.join('\r\n')}\r\n\r\n${asked}`
  let left = count
  await Promise.all(
    Array.from({ length: connections }, () => {
      return new Promise<void>((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', next)
        socket.setEncoding('latin1')
        let text = ''
        socket.on('error', reject)
        socket.on('data', (piece: string) => {
          text += piece
          const end = text.indexOf('\r\n\r\n')
          const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
          if (end < 0 || text.length < end + 4 + length) return
          // On a machine with other work it may be too late for five seconds, and turn requests away (reliability §7).
          if (text.startsWith('HTTP/1.1 429')) left++
          else if (!text.startsWith('HTTP/1.1 200')) reject(new Error(text))
          text = ''
          next()
        })
        function next() {
          if (left-- > 0) socket.write(request)
          else {
            socket.destroy()
            resolve()
          }
        }
      })
    }),
  )
}
