import { sha256Base62 } from '../ids/digest.ts'

/**
 * An id made of the request id, so that stream and JSON agree and encoding twice gives the same (R-ID). An upstream's
 * own ids are never shown: they tell of the hosting, have another prefix, may be blank or repeat.
 * @param prefix what the client's wire begins such an id with
 * @param part tells the ids of one answer apart: a block's index, or '' for the answer itself
 */
export function mintId(prefix: string, requestId: string, part: number | ''): string {
  // A sum of strings would send JSON.stringify a slower way for the whole answer.
  return [prefix, sha256Base62(`${requestId}/${prefix}${part}`, 24)].join('')
}
