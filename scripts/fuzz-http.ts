/**
 * Damages requests and responses. Our server or client and two independent parsers read each of them: llhttp (through
 * Node's `http`) and HAProxy. If two readers see different messages in the same bytes, requests can be smuggled:
 *
 *     node bin/node.mjs scripts/fuzz-http.ts [inputs] [seed]
 *
 * - A request that we accept is the same for llhttp, with the same body, or llhttp refuses it. If a request is
 *   incomplete for us, it is not complete for llhttp.
 * - With HAProxy in front, every request that we accept is one that HAProxy has sent, with the method and the length
 *   that it has read.
 * - A response that is complete for us is the same for llhttp and through HAProxy, or they refuse it.
 *
 * At the first input that breaks a rule, the exit code is 1, and the bytes are printed in base64. Without HAProxy its
 * rules are skipped, which is printed.
 */
import { createDraw, damage, requests, responses } from './fuzz-http/bytes.ts'
import { frontSecret, startHaproxy } from './fuzz-http/haproxy.ts'
import {
  type ReadAnswer,
  type ReadingServer,
  readByNode,
  readByOurs,
  type SeenRequest,
  type SentBytes,
  sendBytes,
  startNode,
  startOurs,
  startRaw,
} from './fuzz-http/servers.ts'

const inputs = Number(process.argv[2] ?? 20_000)
const seed = Number(process.argv[3] ?? 1)
const draw = createDraw(seed)
/** The number of concurrent inputs. */
const lanes = 48
/**
 * A client leaves after this time without data, in ms. An input that breaks a rule is tried again with the longer one.
 */
const quietMs = { first: 50, again: 2_000 }

const [ours, behind, node, raw] = await Promise.all([startOurs(), startOurs(), startNode(), startRaw()])
const haproxy = await startHaproxy(behind.port, raw.port)
console.log(`seed ${seed}, llhttp ${process.versions['llhttp']}, ${haproxy?.version ?? 'no HAProxy'}`)
if (!haproxy)
  console.log('LEFT OUT: haproxy is not installed (apt-get install haproxy): nothing is shown of a proxy in front')

const counts = { taken: 0, closed: 0, cut: 0, fronted: 0, whole: 0, broken: 0, throughHaproxy: 0 }
/** HAProxy's numbers of requests that we have received. */
const fronts = new Set<string>()
let started = 0
let failure: string | undefined
const startedMs = performance.now()
await Promise.all(Array.from({ length: lanes }, runLane))
for (const server of [ours, behind, node, raw]) server.close()
await haproxy?.close()

const seconds = (performance.now() - startedMs) / 1_000
const { taken, closed, cut, fronted, whole, broken, throughHaproxy } = counts
console.log(`requests: ${taken} taken, ${cut} cut, ${closed} connections closed by us, ${fronted} taken behind HAProxy`)
console.log(`responses: ${whole} taken, ${broken} refused or cut, ${throughHaproxy} taken through HAProxy`)
console.log(`${started} inputs in ${seconds.toFixed(0)} s`)
if (failure !== undefined) {
  console.error(failure)
  process.exitCode = 1
}

async function runLane(): Promise<void> {
  while (started < inputs && failure === undefined) {
    const number = started++
    const isRequest = number % 2 === 0
    const corpus = isRequest ? requests : responses
    const bytes = Buffer.from(damage(corpus[draw(corpus.length)]!, draw), 'latin1')
    const isLenient = draw(2) === 1
    try {
      const read = (ms: number) => (isRequest ? readRequest(bytes, isLenient, ms) : readResponse(bytes, `/${number}`))
      const broken = (await read(quietMs.first)) && (await read(quietMs.again))
      if (broken !== undefined)
        failure ??= `input ${number}, a ${isRequest ? 'request' : 'response'}: ${broken}\n${JSON.stringify(bytes.toString('latin1'))}\n${bytes.toString('base64')}`
    } catch (error) {
      failure ??= `input ${number}: ${(error as Error).stack}\n${bytes.toString('base64')}`
    }
  }
}

/** @returns the broken rule, or undefined */
async function readRequest(bytes: Buffer, isLenient: boolean, ms: number): Promise<string | undefined> {
  const [byOurs, byNode] = await Promise.all([sendBytes(ours.port, bytes, ms), sendBytes(node.port, bytes, ms)])
  const [own, other] = [takeSeen(ours, byOurs), takeSeen(node, byNode)]
  for (const { isWhole } of own.requests) counts[isWhole ? 'taken' : 'cut']++
  if (own.isClosed) counts.closed++
  const broken = compareSeen(own, other)
  if (broken !== undefined || !haproxy) return broken
  await sendBytes(haproxy.requestPorts[isLenient ? 1 : 0], bytes, ms)
  return judgeFronted([...behind.seen.values()].flatMap(({ requests }) => requests.splice(0)))
}

/** The requests that a reader has seen. When it has closed the connection, it reads no further bytes. */
type SeenByReader = { requests: SeenRequest[]; isClosed: boolean }

function takeSeen({ seen }: ReadingServer, { port, isClosed }: SentBytes): SeenByReader {
  const { requests = [] } = seen.get(port) ?? {}
  seen.delete(port)
  return { requests, isClosed }
}

function compareSeen(own: SeenByReader, other: SeenByReader): string | undefined {
  const length = Math.max(own.requests.length, other.requests.length)
  for (let i = 0; i < length; i++) {
    const [mine, theirs] = [own.requests[i], other.requests[i]]
    if (!mine?.isWhole && own.isClosed) return undefined
    if (!theirs?.isWhole && other.isClosed) return undefined
    if (show(mine) !== show(theirs)) return `request ${i} is ${show(mine)} for us, and ${show(theirs)} for llhttp`
    if (!mine?.isWhole || mine.upgrades) return undefined
  }
  return undefined
}

/** Of an incomplete request only the head is compared, because the received part of the body depends on time. */
function show(request: SeenRequest | undefined): string {
  if (request === undefined) return 'none'
  const { method, target, body, isWhole } = request
  return isWhole ? `${method} ${target} ${JSON.stringify(body)}` : `a part of ${method} ${target}`
}

function judgeFronted(seen: readonly SeenRequest[]): string | undefined {
  for (const { method, body, isWhole, front } of seen) {
    const [secret, sentMethod, length, id = ''] = front[0]?.split(' ') ?? []
    if (front.length !== 1 || secret !== frontSecret || fronts.has(id))
      return `we took ${method} with ${JSON.stringify(front)}, which HAProxy has not sent`
    fronts.add(id)
    if (!isWhole) continue
    counts.fronted++
    if (method !== sentMethod || body.length !== Number(length))
      return `we took ${method} with ${body.length} octets, and HAProxy sent ${sentMethod} with ${length}`
  }
  return undefined
}

/** @returns the broken rule, or undefined */
async function readResponse(bytes: Buffer, path: string): Promise<string | undefined> {
  raw.answers.set(path, bytes)
  const [own, other] = await Promise.all([readByOurs(raw.port, path), readByNode(raw.port, path)])
  const through = haproxy && own.is === 'whole' ? await readByOurs(haproxy.responsePort, path) : undefined
  raw.answers.delete(path)
  counts[own.is === 'whole' ? 'whole' : 'broken']++
  if (own.is !== 'refused' && other.is !== 'refused' && tell(own) !== tell(other))
    return `it is ${tell(own)} for us, and ${tell(other)} for llhttp`
  if (through?.is !== 'whole' || isRefusalOfHaproxy(through)) return undefined
  counts.throughHaproxy++
  return tell(own) === tell(through) ? undefined : `it is ${tell(own)} directly, and ${tell(through)} through HAProxy`
}

function tell(answer: ReadAnswer): string {
  return answer.is === 'whole' ? `${answer.status} ${JSON.stringify(answer.body)}` : answer.is
}

function isRefusalOfHaproxy(answer: ReadAnswer): boolean {
  return answer.is === 'whole' && answer.status >= 500 && answer.body.startsWith('<html><body><h1>')
}
