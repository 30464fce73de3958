import { useState } from 'preact/hooks'
import type { Setup } from '../shapes.ts'
import { Code } from '../ui/copy.tsx'

const shellNames: Readonly<Record<string, string>> = { posix: 'bash, zsh', fish: 'fish', powershell: 'PowerShell' }

/** Shows the settings of an agent. @param secret replaces the placeholder for a key in them */
export function SetupTexts({ setup, secret }: { setup: Setup; secret?: string }) {
  const { files, lines, notes, steps = [] } = setup
  const [shell, setShell] = useState(lines[0]?.shell)
  const fill = (text: string) => (secret === undefined ? text : text.replaceAll('$TRIWIRE_API_KEY', secret))
  const shown = lines.filter((line) => line.shell === shell)
  return (
    <div class="setup-texts">
      {files.map(({ path, text }, at) => (
        <div key={at}>
          <h3>{path ?? 'In your source'}</h3>
          <Code label={path ?? 'source'} text={fill(text)} />
        </div>
      ))}
      {lines.length > 0 && (
        <div>
          <h3>
            In a shell
            {lines.length > 1 && (
              <span class="segments small-segments">
                {lines.map((line) => (
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
            <Code key={shell} label={`lines for ${shellNames[shell] ?? shell}`} text={fill(text)} />
          ))}
        </div>
      )}
      {steps.length > 0 && (
        <ol class="steps">
          {steps.map((step) => (
            <li key={step}>{fill(step)}</li>
          ))}
        </ol>
      )}
      {notes.map((note) => (
        <p class="note" key={note}>
          {note}
        </p>
      ))}
    </div>
  )
}
