import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { holdPage } from '../location.ts'
import { Icon } from './icons.tsx'

type Props = {
  title: string
  close(): void
  children: ComponentChildren
  wide?: boolean
  /** The dialog has something that is never shown again: only its own button closes it. */
  keeps?: boolean
}

/** A modal dialog. Escape and the cross close it, and the focus returns to what opened it (CON-7). */
export function Dialog({ title, close, children, wide, keeps = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [opener] = useState(() => document.activeElement as HTMLElement | null)
  const [isWarned, setWarned] = useState(false)
  const isOver = useRef(false)
  const id = useId()
  const warn = () => setWarned(true)
  // An effect that is not of the layout would end after the dialog has left the page, when nothing can return the focus.
  useLayoutEffect(() => {
    const shown = dialog.current!
    shown.showModal()
    return () => {
      isOver.current = true
      shown.close()
      if (document.activeElement === document.body) opener?.focus()
    }
  }, [])
  useEffect(() => {
    // The button that had the focus went with the previous content.
    if (!dialog.current!.contains(document.activeElement)) document.getElementById(id)?.focus()
  }, [title])
  useEffect(() => {
    if (!keeps) return undefined
    const release = holdPage(warn)
    window.addEventListener('beforeunload', refuse)
    return () => {
      release()
      window.removeEventListener('beforeunload', refuse)
    }
  }, [keeps])
  return (
    <dialog
      ref={dialog}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onClose={() => {
        if (isOver.current) return
        if (!keeps) return close()
        // Browsers let a second Escape in a row close any dialog.
        dialog.current?.showModal()
        warn()
      }}
      onCancel={(event) => {
        event.preventDefault()
        if (keeps) warn()
        else close()
      }}
    >
      <div class="dialog-head">
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {!keeps && (
          <button type="button" class="quiet" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        )}
      </div>
      {children}
      {keeps && isWarned && (
        <p class="bad" role="alert">
          It cannot be shown again: copy it, then press “I have it”.
        </p>
      )}
    </dialog>
  )
}

/** Makes the browser ask before the page is left. */
function refuse(event: BeforeUnloadEvent): void {
  event.preventDefault()
}
