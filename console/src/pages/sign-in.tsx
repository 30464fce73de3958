import { useEffect, useRef, useState } from 'preact/hooks'
import { consoleBase, hasSignIn, isForOwners } from '../base.ts'
import { signIn, signInNote } from '../session.ts'
import { useForm } from '../ui/form.tsx'
import { Logo } from '../ui/icons.tsx'

/** The sign-in page. It has one field, for the token of an operator or a key of an account. */
export function SignIn() {
  const [token, setToken] = useState('')
  const field = useRef<HTMLInputElement>(null)
  // Signing out removes the button that had the focus (CON-7).
  useEffect(() => field.current?.focus(), [])
  const { refusal, isBusy, send } = useForm()
  return (
    <main class="alone">
      <form
        class="panel sign-in"
        onSubmit={(event) => {
          event.preventDefault()
          void send(() => signIn(token.trim()))
        }}
      >
        <p class="brand">
          <Logo />
          <span>triwire</span>
        </p>
        <h1>Sign in</h1>
        {signInNote.value && <p role="status">{signInNote.value}</p>}
        {hasSignIn && (
          <>
            {/* Because of `target`, the console does not handle the click, and the browser loads the server's page. */}
            <a class="button primary" href={`${consoleBase}sign-in`} target="_self">
              Sign in with your organisation
            </a>
            <p class="small">Or, without it:</p>
          </>
        )}
        <div class="field">
          <label for="token">{isForOwners ? 'API key' : 'Operator token or API key'}</label>
          <input
            id="token"
            name="token"
            type="password"
            required
            maxLength={300}
            ref={field}
            autocomplete="current-password"
            spellcheck={false}
            value={token}
            aria-invalid={refusal ? true : undefined}
            aria-describedby="token-hint token-refusal"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
          <p id="token-hint" class="small">
            {!isForOwners && (
              <>
                An operator has one from <code>triwire operator create NAME --role admin</code>.{' '}
              </>
            )}
            With an API key you see your own requests, what they cost, and the settings of your agent.
          </p>
          <p id="token-refusal" class="bad" role="alert">
            {refusal?.message}
          </p>
        </div>
        <button type="submit" class={hasSignIn ? undefined : 'primary'} aria-disabled={isBusy}>
          {isBusy ? 'Signing in' : 'Sign in'}
        </button>
      </form>
    </main>
  )
}
