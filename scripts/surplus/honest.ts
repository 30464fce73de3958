import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { bearer } from '../../src/catalog/credentials.ts'
import { openWay } from '../../test/upstream/flights.ts'

const lanes = 32

/**
 * Gets `count` answers from a correct upstream on kept connections, 0.1 ms after their requests. Answers have a length,
 * chunks, or no body. They come in one or two pieces, and some after an interim response.
 */
export async function runHonest(count: number): Promise<{ isGood: boolean; says: string }> {
  const upstream = new Worker(new URL('honest-upstream.ts', import.meta.url))
  const [port] = (await once(upstream, 'message')) as [number]
  const way = openWay(`http://127.0.0.1:${port}`, {}, {}, () => performance.now())
  const started = performance.now()
  const body = Buffer.from('{"model":"m"}')
  let [asked, ended, failed] = [0, 0, 0]
  await new Promise<void>((resolve) => {
    const ask = () => {
      if (asked++ >= count) return
      const over = (isGood: boolean) => {
        if (!isGood) failed++
        if (++ended === count) resolve()
        else ask()
      }
      way.upstreams.send(
        way.target,
        { headers: [], credential: bearer, body },
        { onHead() {}, onData() {}, onEnd: () => over(true), onError: () => over(false) },
      )
    }
    for (let i = 0; i < lanes; i++) ask()
  })
  const seconds = (performance.now() - started) / 1_000
  upstream.postMessage('connections')
  const [connections] = (await once(upstream, 'message')) as [number]
  await way.upstreams.close()
  await upstream.terminate()
  const says = `${count} honest answers in ${seconds.toFixed(0)} s on ${connections} connections: ${way.unasked.length} reported, ${failed} failed`
  // Nearly all answers must have come on kept connections, because other connections do not test anything.
  return { isGood: way.unasked.length === 0 && failed === 0 && connections < 100 + count / 100, says }
}
