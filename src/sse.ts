/** One event of a text/event-stream, as the HTML standard defines it. */
export type SseFrame = { event: string | undefined; data: string }
