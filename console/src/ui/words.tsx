import { Fragment } from 'preact'

/** Shows a text of the gateway. Names of fields in backticks are shown as code. */
export function Words({ text }: { text: string }) {
  return <>{text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>
}

/** A name that may break into lines after its separators, and nowhere else. */
export function Breakable({ text }: { text: string }) {
  return (
    <>
      {text.split(/(?<=[.\]/])/).map((part, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  )
}
