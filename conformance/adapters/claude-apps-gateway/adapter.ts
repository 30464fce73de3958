import type { Adapter } from '../../src/adapter.ts'

const adapter: Adapter = {
  title: 'Claude apps gateway',
  homepage: 'https://code.claude.com/docs/en/claude-apps-gateway',
  switchedOn: [],
  features: [],
  // One wire on both sides.
  pairs: ['messages>messages'],
  deviations: [],
  lanes: 1,
  async find() {
    return {
      missing:
        'it takes an identity provider with OpenID Connect, a PostgreSQL database, and a person who signs in by a browser: it gives keys ' +
        'to nobody else (https://code.claude.com/docs/en/claude-apps-gateway-config, 2026-11-28)',
    }
  },
  start() {
    throw new Error('it is not started')
  },
}

export default adapter
