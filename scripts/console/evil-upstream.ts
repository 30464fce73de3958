import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * An upstream on the chat wire that puts markup into all texts: of answers, errors, names and ids. If the name of a
 * model ends in `-refuses`, it refuses; in `-fails`, it fails; in `-cuts`, it ends half way. Others answer.
 */
export async function startEvilUpstream(markup: readonly string[]) {
  const [a, b, c] = markup as readonly [string, string, string]
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (piece) => (body += piece))
    request.on('end', () => {
      const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean }
      const error = { message: markup.join(' '), type: a, code: b, param: c }
      const status = model.endsWith('-refuses') ? 400 : model.endsWith('-fails') ? 500 : 200
      if (status !== 200) {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
        return
      }
      const call = { index: 0, id: b, type: 'function', function: { name: c, arguments: JSON.stringify({ [a]: b }) } }
      const said = { role: 'assistant', content: markup.join(' '), reasoning_content: a, tool_calls: [call] }
      const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 }
      const head = { id: a, created: 1, model: b, system_fingerprint: c }
      if (!stream) {
        const choices = [{ index: 0, message: said, finish_reason: 'tool_calls' }]
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }))
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (more: object) =>
        response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...more })}\n\n`)
      send({ choices: [{ index: 0, delta: said, finish_reason: null }] })
      if (model.endsWith('-cuts')) {
        send({ error, choices: [] })
        response.end()
        return
      }
      send({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] })
      send({ choices: [], usage })
      response.end('data: [DONE]\n\n')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, close: () => server.close() }
}
