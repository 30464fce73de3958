import type { Config } from '../config/config.ts'
import type { Running } from '../operations/operation.ts'
import { wrongField } from '../operations/problem.ts'

/** Hides what the configuration adds to a path, since it may be a credential and clients over HTTP need not know it. */
function withoutValues(path: string): string {
  const [before, query] = path.split('?', 2)
  return query === undefined ? path : `${before}?${query.replace(/=[^&]*/g, '=[configured]')}`
}

/** Operations that need only the configuration. Their code is loaded with the first call. */
export function workbench(config: () => Config): Pick<Running, 'translate' | 'listClients' | 'setUp'> {
  return {
    async translate({ from, model, upstream, body, answer }) {
      const { describeTranslation, NotServedError } = await import('./translation.ts')
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const told = await describeTranslation(config(), from, bytes, model, {
        ...(upstream !== undefined && { upstream }),
        ...(answer !== undefined && { answer: { body: Buffer.from(answer) } }),
      }).catch((error: unknown) => {
        throw error instanceof NotServedError ? wrongField('upstream', `does not serve ${error.modelId}`) : error
      })
      const shown = 'path' in told && told.path !== undefined ? { ...told, path: withoutValues(told.path) } : told
      return JSON.parse(JSON.stringify(shown))
    },
    async listClients() {
      const { listClients } = await import('./setup.ts')
      return listClients()
    },
    async setUp(client, asked) {
      const { setUp } = await import('./setup.ts')
      return setUp(config(), client, asked)
    },
  }
}
