import { randomBytes } from 'node:crypto'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { figuresOf } from './behaviours.ts'
import { askProbe, probesEveryMs } from './probes.ts'
import { bodyOf, hearStream, hearWhole, paths, type Told } from './wires.ts'

/*
 * Paying clients in a thread of their own. They send requests at a fixed rate, even if earlier ones are slow. All pairs
 * of wires are used, as JSON and as streams. Each answer is checked against its nonce. Some requests go to the same
 * upstream without the gateway, which shows the influence of the machine.
 *
 * A message `take` ends a window. The answer has the results of the requests that began in it.
 */

export type PayerData = {
  url: string
  honestUrl: string
  keys: string[]
  probeKey: string
  perSecond: number
}

/** The results of the requests that began between two messages. Times in ms. */
export type Window = {
  times: number[]
  directTimes: number[]
  /** Requests without the answer that a payer must get, in words. */
  faults: string[]
  /** The id of each whole answer, with the figures in it. */
  answers: [id: string, told: Told][]
}

type Answer = { status: number; headers: IncomingHttpHeaders; body: string }

/** A payer without an answer after this time counts as failed. */
const patienceMs = 10_000
/** The number of requests to the gateway between two to the upstream itself. */
const directEach = 3

const { url, honestUrl, keys, probeKey, perSecond } = workerData as PayerData
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const directAgent = new Agent({ keepAlive: true })
const kinds = clientWireNames.flatMap((client) =>
  clientWireNames.flatMap((model) => [false, true].map((isStream) => ({ client, model, isStream }))),
)
const filler = 'It is a long way to the end of this sentence, and nobody knows what waits there. '.repeat(8)
let asked = 0
let window = newWindow()
let pending: Promise<unknown>[] = []

setInterval(pay, 1_000 / perSecond)
setInterval(() => {
  const { faults } = window
  begin(askProbe(url, probeKey).catch((error) => void faults.push(`probe ${error.message}`)))
}, probesEveryMs)
parentPort!.on('message', async () => {
  const [taken, begun] = [window, pending]
  window = newWindow()
  pending = []
  await Promise.all(begun)
  parentPort!.postMessage(taken)
})

function newWindow(): Window {
  return { times: [], directTimes: [], faults: [], answers: [] }
}

function begin(work: Promise<unknown>): void {
  pending.push(work)
}

function pay(): void {
  begin(payOne(window))
  if (asked % directEach === 0) begin(askDirectly(window))
}

async function payOne(into: Window): Promise<void> {
  const { client, model, isStream } = kinds[asked % kinds.length]!
  const key = keys[asked % keys.length]!
  const nonce = `nonce-${asked++}-${randomBytes(6).toString('hex')}`
  const body = bodyOf(client, `payer-${model}`, `${filler}Repeat: ${nonce}`, isStream ? { stream: true } : {})
  const what = `${client} to ${model}${isStream ? ', stream' : ''}`
  const started = performance.now()
  try {
    const answer = await ask(agent, url + paths[client], key, body)
    into.times.push(performance.now() - started)
    const fault = checkAnswer(answer, client, `payer-${model}`, isStream, nonce)
    if (fault) into.faults.push(`${what}: ${fault}`)
    else into.answers.push([String(answer.headers['x-request-id']), figuresOf(nonce).told])
  } catch (error) {
    into.times.push(performance.now() - started)
    into.faults.push(`${what}: ${(error as Error).message}`)
  }
}

async function askDirectly(into: Window): Promise<void> {
  const started = performance.now()
  try {
    await ask(directAgent, honestUrl + paths.chat, '', bodyOf('chat', 'echo', `${filler}Repeat: nonce-1-a`))
    into.directTimes.push(performance.now() - started)
  } catch {
    // A direct request that fails does not matter: the gateway is what is tried.
  }
}

/** Checks an answer against the interface (spec 1 to 9). @returns what is wrong with it */
function checkAnswer(
  { status, headers, body }: Answer,
  wire: ClientWire,
  model: string,
  isStream: boolean,
  nonce: string,
): string | undefined {
  const id = headers['x-request-id']
  if (status !== 200) return `${status} ${body.slice(0, 200)}`
  if (!/^req_/.test(String(id))) return `x-request-id ${id}`
  const type = isStream ? 'text/event-stream' : 'application/json'
  if (!headers['content-type']?.startsWith(type)) return `content-type ${headers['content-type']}`
  const heard = isStream ? hearStream(wire, body) : hearWhole(wire, body)
  const { text, told } = figuresOf(nonce)
  if (heard.text !== text) return `got ${JSON.stringify(heard.text.slice(0, 100))} instead of ${text}`
  if (heard.model !== model) return `model ${heard.model}`
  const prefix = { messages: 'msg_', chat: 'chatcmpl-', responses: 'resp_' }[wire]
  if (!String(heard.id).startsWith(prefix)) return `id ${heard.id}`
  if (heard.told.input !== told.input || heard.told.output !== told.output)
    return `usage ${JSON.stringify(heard.told)} instead of ${JSON.stringify(told)}`
  return undefined
}

/** Sends a request. If the idle connection was closed, sends it once more on a new one, as every client does. */
async function ask(from: Agent, to: string, key: string, body: string): Promise<Answer> {
  try {
    return await askOnce(from, to, key, body)
  } catch (error) {
    // The second try opens a connection, because other idle connections were probably closed too.
    if ((error as Error & { isReuseRace?: boolean }).isReuseRace) return askOnce(false, to, key, body)
    throw error
  }
}

function askOnce(from: Agent | false, to: string, key: string, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    let hasHead = false
    const sent = request(to, { method: 'POST', agent: from, headers }, (response) => {
      hasHead = true
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('error', fail)
      response.on('end', () => {
        clearTimeout(timer)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
      })
    })
    const timer = setTimeout(() => sent.destroy(new Error(`no answer in ${patienceMs / 1_000} s`)), patienceMs)
    sent.on('error', fail)
    sent.end(body)

    function fail(error: NodeJS.ErrnoException): void {
      clearTimeout(timer)
      const isReuseRace = sent.reusedSocket && error.code === 'ECONNRESET' && !hasHead
      reject(Object.assign(error, { isReuseRace }))
    }
  })
}
