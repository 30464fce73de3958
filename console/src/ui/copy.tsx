import { useState } from 'preact/hooks'
import { Icon } from './icons.tsx'
import { say } from './toasts.tsx'

/** Copies a text, and confirms that in the page and to screen readers. */
export function Copy({
  text,
  label = 'Copy',
  quiet = false,
  onCopied,
}: {
  text: string | (() => string)
  label?: string
  quiet?: boolean
  onCopied?: (() => void) | undefined
}) {
  const [isDone, setDone] = useState(false)
  return (
    <button
      type="button"
      class={quiet ? 'quiet' : ''}
      aria-label={quiet ? label : undefined}
      title={quiet ? label : undefined}
      onClick={async () => {
        if (!(await copy(typeof text === 'string' ? text : text()))) {
          say('The browser has copied nothing: select the text and copy it.', true)
          return
        }
        say('Copied.')
        setDone(true)
        onCopied?.()
        window.setTimeout(() => setDone(false), 1_600)
      }}
    >
      <Icon name={isDone ? 'check' : 'copy'} />
      {!quiet && <span>{isDone ? 'Copied' : label}</span>}
    </button>
  )
}

/**
 * Copies a text. Without TLS, only pages from loopback have the clipboard API. Other pages select the text in a hidden
 * field and copy the selection.
 * @returns whether the browser has copied the text
 */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = document.createElement('textarea')
    field.value = text
    field.className = 'offscreen'
    ;(document.querySelector('dialog[open]') ?? document.body).append(field)
    field.select()
    const isCopied = document.execCommand('copy')
    field.remove()
    return isCopied
  }
}

/** Code with a button that copies it. */
export function Code({ text, label, onCopied }: { text: string; label: string; onCopied?: () => void }) {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable without a mouse */}
      <section tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
      <Copy text={text} label={`Copy ${label}`} quiet onCopied={onCopied} />
    </div>
  )
}

/** Lets the browser save a file. */
export function download(name: string, content: Blob | string, type = 'text/csv;charset=utf-8'): void {
  const url = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type }) : content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
