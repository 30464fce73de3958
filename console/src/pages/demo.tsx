import { useEffect, useState } from 'preact/hooks'
import { ask, Refusal } from '../api/ask.ts'
import { useLoad } from '../api/load.ts'
import { isDemo, showDemo } from '../demo.ts'
import { me } from '../session.ts'
import type { DemoState } from '../shapes.ts'

/** Shows on each page that it is the demo, with a button to leave it. An admin who leaves the demo removes its file. */
export function DemoBar() {
  const demo = useLoad<DemoState>(isDemo.value ? '/demo' : undefined)
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    // Someone else has removed the demo.
    if (demo.data && !demo.data.made) showDemo(false)
  }, [demo.data])
  if (!isDemo.value) return null
  const mayRemove = me.value?.role === 'admin'
  return (
    <div class="demo-bar" role="status">
      <p>
        <strong>Demo.</strong> 30 days of made-up data: nothing here is real, and nothing can be changed.
      </p>
      <button
        type="button"
        aria-disabled={isBusy}
        onClick={async () => {
          if (isBusy) return
          setBusy(true)
          if (mayRemove) await ask('/demo', { method: 'DELETE' }).catch(() => {})
          showDemo(false)
        }}
      >
        Leave the demo
      </button>
    </div>
  )
}

/** Offers the demo while no request was billed. */
export function DemoOffer() {
  const { data } = useLoad<DemoState>('/demo')
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<string | undefined>(undefined)
  if (!data?.offered || (!data.made && me.value?.role !== 'admin')) return null
  return (
    <>
      <button
        type="button"
        aria-disabled={isBusy}
        onClick={async () => {
          if (isBusy) return
          setBusy(true)
          try {
            if (!data.made) await ask('/demo', { method: 'POST', body: {} })
            showDemo(true)
          } catch (error) {
            if (!(error instanceof Refusal)) throw error
            setRefusal(error.message)
            setBusy(false)
          }
        }}
      >
        {isBusy ? 'Making 30 days of data' : 'Look around in a demo'}
      </button>
      {refusal && (
        <p class="bad" role="alert">
          {refusal}
        </p>
      )}
    </>
  )
}
