let text = ''
let untilMs = 0

/** The `date` of an answer (RFC 9110 6.6.1). It is in whole seconds, so the text is made once a second. */
export function httpDate(nowMs = Date.now()): string {
  if (nowMs >= untilMs) {
    text = new Date(nowMs).toUTCString()
    untilMs = nowMs - (nowMs % 1_000) + 1_000
  }
  return text
}
