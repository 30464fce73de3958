import { writeOpenError } from '../chat/format.ts'
import type { WireFormat } from '../prompt.ts'
import { checkResponses } from './check.ts'
import { read } from './read.ts'
import { ended, writeFailure, writeFrames, writeItems } from './write.ts'

/** The responses wire as its vendor speaks it, stateless (wires/responses-wire). */
export const responses: WireFormat = {
  path: '/v1/responses',
  idPrefix: 'resp_',
  requestIdHeader: 'x-request-id',
  check: checkResponses,
  read,
  writeJson: (reply, head) => ended(reply, head, writeItems(reply, head)),
  writeFrames,
  writeFailure,
  writeError: writeOpenError,
}
