// Exits with 0 if the server of this container is well. `health.mjs readyz` checks whether it accepts inference
// requests.
import { get } from 'node:http'

const origin = `http://${process.env.TRIWIRE_ADMIN_LISTEN ?? '127.0.0.1:8081'}`
const asked = get(`${origin}/${process.argv[2] ?? 'healthz'}`, { timeout: 2_000 }, (response) => {
  response.resume()
  process.exitCode = response.statusCode === 200 ? 0 : 1
})
asked.on('timeout', () => asked.destroy(new Error(`${origin} does not answer`)))
asked.on('error', (error) => {
  console.error(error.message)
  process.exitCode = 1
})
