// Exits with 0 if the server of this container is well. `health.mjs readyz` checks whether it accepts inference
// requests.
import { get } from 'node:http'
import { get as getSecurely } from 'node:https'

const address = process.env.TRIWIRE_ADMIN_LISTEN ?? '127.0.0.1:8081'

// With `admin.tls` the listener speaks TLS only, and cuts a plain connection.
ask('http', get, () => ask('https', getSecurely, fail))

function ask(scheme, send, onError) {
  const origin = `${scheme}://${address}`
  // The certificate need not name this address. The question stays within the container.
  const options = { timeout: 2_000, rejectUnauthorized: false }
  const asked = send(`${origin}/${process.argv[2] ?? 'healthz'}`, options, (response) => {
    response.resume()
    process.exitCode = response.statusCode === 200 ? 0 : 1
  })
  asked.on('timeout', () => {
    asked.off('error', onError)
    asked.on('error', fail)
    asked.destroy(new Error(`${origin} does not answer`))
  })
  asked.on('error', onError)
}

function fail(error) {
  console.error(error.message)
  process.exitCode = 1
}
