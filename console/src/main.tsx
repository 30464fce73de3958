import { render } from 'preact'
import { startRecovery } from './api/recover.ts'
import { App } from './app.tsx'
import { startTheme } from './theme.ts'
import { keepFocus } from './ui/focus.ts'
import { startShortcuts } from './ui/shortcuts.tsx'

// The address of the icon is made absolute: a relative one would be resolved again after each change of the page.
for (const icon of document.querySelectorAll<HTMLLinkElement>('link[rel=icon]')) icon.setAttribute('href', icon.href)
startTheme()
startShortcuts()
keepFocus()
startRecovery()
render(<App />, document.getElementById('console')!)
