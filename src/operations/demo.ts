import { demoShape } from './live-shapes.ts'
import { operation } from './operation.ts'

/**
 * Operations on the console's demo, which has its own store. The real store has only audit records of these operations.
 */
export const demoOperations = [
  operation({
    id: 'demo.show',
    http: 'GET /demo',
    role: 'viewer',
    output: demoShape,
    text: 'show whether a demo exists or can be made',
    asks: 'server',
    run: async ({ running }) => ({ body: await running.demo.state() }),
  }),
  operation({
    id: 'demo.make',
    http: 'POST /demo',
    role: 'admin',
    output: demoShape,
    problems: ['conflict'],
    text: 'make the demo: 30 days of invented requests in a separate store, which is read under `/demo/api/v1`',
    asks: 'server',
    async run({ running, openBooks }) {
      const { made, making } = await running.demo.state()
      const body = await running.demo.make()
      if (!made && !making) await (await openBooks()).noteAct({ operation: 'demo.make', object: 'demo' })
      return { body }
    },
  }),
  operation({
    id: 'demo.remove',
    http: 'DELETE /demo',
    role: 'admin',
    output: demoShape,
    problems: ['invalid_request'],
    text: 'end the demo, and remove its file',
    asks: 'server',
    async run({ running, openBooks }) {
      const { made, making } = await running.demo.state()
      const body = await running.demo.remove()
      if (made || making) await (await openBooks()).noteAct({ operation: 'demo.remove', object: 'demo' })
      return { body }
    },
  }),
]
