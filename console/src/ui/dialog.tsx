import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { holdPage } from '../location.ts'
import { Icon } from './icons.tsx'

type Props = {
  title: string
  close(): void
  children: ComponentChildren
  wide?: boolean
  /** Whether only its own button closes the dialog, because its content is never shown again. */
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
  // Another kind of effect would end after the dialog has left the page, too late to return the focus.
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
    // The focused button was removed with the previous content.
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
        // Browsers close any dialog on a second Escape in a row, so it is opened again.
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
