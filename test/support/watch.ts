import { after, beforeEach } from 'node:test'

/*
 * scripts/support/test-queue.ts loads this module into every process of test files. If a test or a step between tests
 * does not end, it prints the test and what keeps the process alive, and exits. So no run hangs, and no forced exit
 * hides a leak.
 */

const { TRIWIRE_TEST_STEP_LIMIT_MS = '600000', TRIWIRE_TEST_END_LIMIT_MS = '60000' } = process.env

let running = 'nothing yet'
const step = giveUpAfter(Number(TRIWIRE_TEST_STEP_LIMIT_MS), () => `a step takes too long, at: ${running}`)
beforeEach((test) => {
  running = test.name
  step.refresh()
})
// This hook runs first, so the limit includes the hooks of the files.
after(() => giveUpAfter(Number(TRIWIRE_TEST_END_LIMIT_MS), () => 'all tests are over, but the process is kept alive'))

function giveUpAfter(ms: number, why: () => string): NodeJS.Timeout {
  const timer = setTimeout(() => {
    const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
    const what = [...process.getActiveResourcesInfo(), ...handles.map(describe)]
    console.error(`${process.argv[1]}: ${why()}\n${what.map((one) => `  ${one}`).join('\n')}`)
    process.exit(1)
  }, ms)
  return timer.unref()
}

/** Describes a handle by its class and its ports, program or address. */
function describe(handle: object): string {
  const { localPort, remotePort, pid, spawnargs, address } = handle as Record<string, unknown>
  const place = typeof address === 'function' ? JSON.stringify(address.call(handle)) : ''
  return [handle.constructor.name, localPort, remotePort, pid, spawnargs, place].filter(Boolean).join(' ')
}
