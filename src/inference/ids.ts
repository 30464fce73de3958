import { sha256Base62 } from '../ids/digest.ts'

/**
 * Makes an id from the request id, so that stream and JSON agree and encoding twice gives the same id (R-ID). An
 * upstream's own ids are never shown. They reveal the hosting, have other prefixes, and may be blank or repeat.
 * @param prefix the beginning of such ids on the client's wire
 * @param part distinguishes the ids of one answer: a block's index, or '' for the answer itself
 */
export function mintId(prefix: string, requestId: string, part: number | ''): string {
  // `join` gives a flat string. With a concatenated string, JSON.stringify would take a slower path for the whole
  // answer.
  return [prefix, sha256Base62(`${requestId}/${prefix}${part}`, 24)].join('')
}
