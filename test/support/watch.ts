import { after, beforeEach } from 'node:test'
import { isMainThread } from 'node:worker_threads'

/*
 * Loaded by scripts/test.ts into every test file's process. A file that does not come to its end says what it was doing
 * and what keeps it alive, and ends: no run hangs, and no leak is hidden by an exit that is forced.
 */

const { TRIWIRE_TEST_FILE_LIMIT_MS = '600000', TRIWIRE_TEST_END_LIMIT_MS = '60000', NODE_TEST_CONTEXT } = process.env

if (isMainThread && NODE_TEST_CONTEXT) watch()

function watch(): void {
  let running = 'nothing yet'
  beforeEach((test) => {
    running = test.name
  })
  giveUpAfter(Number(TRIWIRE_TEST_FILE_LIMIT_MS), () => `the file takes too long, at: ${running}`)
  // The first of the hooks: those of the file itself come after it, and have this long too.
  after(() => giveUpAfter(Number(TRIWIRE_TEST_END_LIMIT_MS), () => 'all tests are over, but the process is kept alive'))
}

function giveUpAfter(ms: number, why: () => string): void {
  const timer = setTimeout(() => {
    const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
    const what = [...process.getActiveResourcesInfo(), ...handles.map(describe)]
    console.error(`${process.argv[1]}: ${why()}\n${what.map((one) => `  ${one}`).join('\n')}`)
    process.exit(1)
  }, ms)
  timer.unref()
}

/** A handle by its class and the ends of its connection or program. */
function describe(handle: object): string {
  const { localPort, remotePort, pid, spawnargs, address } = handle as Record<string, unknown>
  const place = typeof address === 'function' ? JSON.stringify(address.call(handle)) : ''
  return [handle.constructor.name, localPort, remotePort, pid, spawnargs, place].filter(Boolean).join(' ')
}
