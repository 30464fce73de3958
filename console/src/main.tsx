import { render } from 'preact'
import { startRecovery } from './api/recover.ts'
import { App } from './app.tsx'
import { startTheme } from './theme.ts'
import { keepFocus } from './ui/focus.ts'
import { startShortcuts } from './ui/shortcuts.tsx'

// A relative address of the icon would be resolved again after each change of the page's address, so it is made
// absolute.
for (const icon of document.querySelectorAll<HTMLLinkElement>('link[rel=icon]')) icon.setAttribute('href', icon.href)
startTheme()
startShortcuts()
keepFocus()
startRecovery()
render(<App />, document.getElementById('console')!)
