import { useState } from 'preact/hooks'
import type { Setup } from '../shapes.ts'
import { Code } from '../ui/copy.tsx'
import { Words } from '../ui/words.tsx'
import { noteSetUp } from './first-steps.tsx'

const shellNames: Readonly<Record<string, string>> = { posix: 'bash, zsh', fish: 'fish', powershell: 'PowerShell' }

/** A line in any shell that sets the variable of the key to itself. */
const selfAssignment = /^.*\bTRIWIRE_API_KEY(?: = |=| )"\$(?:env:)?TRIWIRE_API_KEY"(?:\n|$)/gm

const addressWords: Readonly<Record<Setup['base_url_from'], string>> = {
  api_url: 'as its configuration says (api_url).',
  listen: 'where it listens. Other machines may not reach that: set api_url in its configuration.',
  asked: 'as said here.',
}

/** Shows the settings of an agent. @param secret replaces the placeholder for a key in them */
export function SetupTexts({ setup, secret }: { setup: Setup; secret?: string }) {
  const { files, lines, notes, steps = [] } = setup
  const [shell, setShell] = useState(lines[0]?.shell)
  const fill = (text: string) => (secret === undefined ? text : text.replaceAll(/\$(?:env:)?TRIWIRE_API_KEY/g, secret))
  // Without a key, a line that sets the variable to itself would do nothing.
  const textOf = (text: string) => (secret === undefined ? text.replaceAll(selfAssignment, '') : fill(text))
  const told = lines.filter(({ text }) => textOf(text) !== '')
  const shown = told.filter((line) => line.shell === shell)
  return (
    <div class="setup-texts">
      <p class="small">
        Clients reach the gateway at <code>{setup.base_url}</code>, {addressWords[setup.base_url_from]}
      </p>
      {files.map(({ path, text }, at) => (
        <div key={at}>
          <h3>{path ?? 'In your source'}</h3>
          <Code label={path ?? 'source'} text={fill(text)} onCopied={noteSetUp} />
        </div>
      ))}
      {told.length > 0 && (
        <div>
          <h3>
            In a shell
            {told.length > 1 && (
              <span class="segments small-segments">
                {told.map((line) => (
                  <button
                    type="button"
                    key={line.shell}
                    aria-pressed={line.shell === shell}
                    onClick={() => setShell(line.shell)}
                  >
                    {shellNames[line.shell] ?? line.shell}
                  </button>
                ))}
              </span>
            )}
          </h3>
          {shown.map(({ shell, text }) => (
            <Code
              key={shell}
              label={`lines for ${shellNames[shell] ?? shell}`}
              text={textOf(text)}
              onCopied={noteSetUp}
            />
          ))}
        </div>
      )}
      {steps.length > 0 && (
        <ol class="steps">
          {steps.map((step) => (
            <li key={step}>
              <Words text={fill(step)} />
            </li>
          ))}
        </ol>
      )}
      {notes.map((note) => (
        <p class="note" key={note}>
          <Words text={note} />
        </p>
      ))}
    </div>
  )
}
