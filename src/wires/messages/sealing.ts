import { splice } from '../../bytes/json.ts'
import { elementsOf, removeElements } from '../../bytes/json-edit.ts'
import { ClientBody } from '../requests/client-body.ts'
import type { Sealing } from '../wire.ts'

/**
 * Removes thinking from a translated request (ruling U13). Claude refuses its own thinking if anything before it has
 * changed since. Translation may change `system` and `tools` from one request to the next, for example for
 * `tool_choice`. A client of this wire keeps its history unchanged itself, so its requests are not changed here.
 */
export const sealing: Sealing = { remove }

/** The beginning of a block as `encodeConversation` writes it. */
const thinking = /^\{"type":"(?:redacted_)?thinking"/
const beginLength = '{"type":"redacted_thinking"'.length

function remove(body: Buffer): Buffer | undefined {
  const parsed = new ClientBody(body)
  const edits = elementsOf(body, parsed.member('messages')!).flatMap((message) => {
    const content = parsed.membersAt(message).find(({ key }) => key === 'content')!
    const blocks = elementsOf(body, content)
    return removeElements(blocks, (at) => {
      const { start } = blocks[at]!
      return thinking.test(body.toString('latin1', start, start + beginLength))
    })
  })
  // Thinking is never last in its turn, so no turn becomes empty.
  return edits.length === 0 ? undefined : splice(body, edits)
}
