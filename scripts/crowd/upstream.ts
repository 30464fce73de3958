import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'

/*
 * The model of the crowd, in a thread of its own. Its name chooses the behaviour. `tick` sends a word a second until
 * the message `end`, and then posts that it has ended. `flood` writes 10 MB in deltas of 50 KB as fast as they are
 * read. `quick` answers at once. The thread posts its port.
 */

const live = new Set<ServerResponse>()
const chunk = (choice: object, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice], ...more })}\n\n`
const delta = (content: string) => chunk({ index: 0, delta: { content }, finish_reason: null })
const finish = chunk({ index: 0, delta: {}, finish_reason: 'stop' })
const usage = chunk({}, { choices: [], usage: { prompt_tokens: 9, completion_tokens: 60, total_tokens: 69 } })
const end = `${finish}${usage}data: [DONE]\n\n`
/** Random words: real text can be compressed to less than half; one repeated letter would nearly vanish. */
const vocabulary = Array.from({ length: 4_000 }, () =>
  Math.random()
    .toString(36)
    .slice(2, 4 + Math.random() * 6),
)
const prose = () => {
  let text = ''
  while (text.length < 50_000) text += `${vocabulary[Math.floor(Math.random() ** 3 * vocabulary.length)]} `
  return text.slice(0, 50_000)
}
const flooded = Array.from({ length: 40 }, () => delta(prose()))
const floodPieces = 200

const server = createServer((request, response) => {
  response.on('error', () => {})
  let text = ''
  request.setEncoding('latin1')
  // The name of the model is in the first bytes, however long the request is.
  request.on('data', (piece: string) => {
    if (text.length < 4_096) text += piece
  })
  request.on('end', () => {
    const model = /"model":"(\w+)/.exec(text)?.[1]
    if (model === 'tick') tick(response)
    else if (model === 'flood') flood(response)
    else quick(response)
  })
})
server.listen(0, '127.0.0.1', 4_096, () => parentPort!.postMessage((server.address() as AddressInfo).port))

setInterval(() => {
  for (const response of live) response.write(delta(' word'))
}, 1_000)

parentPort!.on('message', () => {
  for (const response of live) response.end(end)
  live.clear()
})

function tick(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(delta('word'))
  live.add(response)
  response.on('close', () => live.delete(response))
}

function flood(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let pieces = 0
  const write = () => {
    while (pieces < floodPieces) {
      pieces++
      if (!response.write(flooded[pieces % flooded.length])) {
        response.once('drain', write)
        return
      }
    }
    response.end(end)
  }
  write()
}

function quick(response: ServerResponse): void {
  const message = { role: 'assistant', content: 'Yes.' }
  const body = {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 1_000, total_tokens: 1_009 },
  }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
}
