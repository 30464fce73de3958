import { render } from 'preact'
import { App } from './app.tsx'
import { startTheme } from './theme.ts'
import { startShortcuts } from './ui/shortcuts.tsx'

// Told from where the page was asked for, it would be looked for from every address that comes after.
for (const icon of document.querySelectorAll<HTMLLinkElement>('link[rel=icon]')) icon.setAttribute('href', icon.href)
startTheme()
startShortcuts()
render(<App />, document.getElementById('console')!)
