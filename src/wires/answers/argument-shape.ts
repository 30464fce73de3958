/** Whether argument text is one whole object, followed character by character so that long arguments stay linear. */
export type ArgumentShape = { push(text: string): void; isWhole(): boolean; isBlank(): boolean }

export function createArgumentShape(): ArgumentShape {
  let state: 'blank' | 'inside' | 'string' | 'whole' | 'other' = 'blank'
  let depth = 0
  let isEscaped = false
  return {
    isWhole: () => state === 'whole',
    isBlank: () => state === 'blank',
    push(text) {
      for (let i = 0; i < text.length && state !== 'other'; i++) read(text.charCodeAt(i))
    },
  }

  function read(code: number) {
    if (state === 'string') {
      if (isEscaped) isEscaped = false
      else if (code === 0x5c) isEscaped = true
      else if (code === 0x22) state = 'inside'
    } else if (state === 'inside') {
      if (code === 0x22) state = 'string'
      else if (code === 0x7b || code === 0x5b) depth++
      else if ((code === 0x7d || code === 0x5d) && --depth === 0) state = 'whole'
    } else if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) return
    else if (state === 'blank' && code === 0x7b) {
      state = 'inside'
      depth = 1
    } else state = 'other'
  }
}
