let text = ''
let untilMs = 0

/** The time of an answer (RFC 9110 6.6.1): it has whole seconds, and is written once in each. */
export function httpDate(nowMs = Date.now()): string {
  if (nowMs >= untilMs) {
    text = new Date(nowMs).toUTCString()
    untilMs = nowMs - (nowMs % 1_000) + 1_000
  }
  return text
}
