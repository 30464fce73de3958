import { useEffect, useState } from 'preact/hooks'

/** Returns the typed text when typing has paused. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), 160)
    return () => window.clearTimeout(timer)
  }, [text])
  return settled
}
