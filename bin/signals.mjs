// Plain JavaScript, and imported before anything else: from here on no signal is lost and none opens a debugger (ruling X11).

/** What a server has an answer to. Until somebody has taken them over they are kept. */
const names = ['SIGHUP', 'SIGTERM', 'SIGINT']

/** Signals this close together are one that came two ways. */
const oneSignalMs = 50

const kept = []
let stopMs
let take = keep

// Node would open its debugger to every user of the machine. That there is a listener is enough to keep it shut.
process.on('SIGUSR1', () => {})
for (const name of names) process.on(name, hear)

// Whoever launched us passes signals on from now on.
if (process.env.TRIWIRE_LAUNCHED && process.send) {
  delete process.env.TRIWIRE_LAUNCHED
  process.send('listening', () => process.disconnect())
}

// `npm start` and `npx` pass a signal to their shell alone, which ends without a word to us. Then another process is our
// parent. A script that ends in `&` puts us into the background, and wants us to go on.
if (/(?:^|[\s'"/])triwire(?:\.mjs)?(?=['"\s]|$)(?!.*&\s*$)/.test(process.env.npm_lifecycle_script ?? '')) {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    hear('SIGTERM')
  }, 250).unref()
}

/** From now on `taker` gets them, those that were kept first. */
export function takeSignals(taker) {
  take = taker
  for (const name of kept.splice(0)) taker(name)
}

/** They do again what they do to any program, those that were kept as well. */
export function releaseSignals() {
  for (const name of names) process.off(name, hear)
  for (const name of kept.splice(0)) process.kill(process.pid, name)
}

/** The one listener there ever is: a signal that is on its way to a listener that was taken off is lost. */
function hear(name) {
  take(name)
}

function keep(name) {
  const isStop = name !== 'SIGHUP'
  // Who asks a second time does not want to wait for the end of the start.
  if (isStop && stopMs !== undefined && performance.now() - stopMs > oneSignalMs) {
    kept.push(name)
    releaseSignals()
  } else if (!isStop || stopMs === undefined) kept.push(name)
  if (isStop) stopMs ??= performance.now()
}
