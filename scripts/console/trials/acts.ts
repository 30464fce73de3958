import assert from 'node:assert/strict'
import { findBarriers, forgive, openPage, settle, signedIn, signIn, visit } from '../browser.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

const focused = 'document.activeElement.textContent.trim()'

export const actTrials: readonly Trial[] = [
  {
    name: 'acts: Y20 limits and the monthly grant of an account are set, shown and changed on its page',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      const { id } = await rig.makeAccount('acme')
      const save = async () => {
        await page.click('dialog .form-foot >> text=Save')
        await page.waitForSelector('dialog', { state: 'detached' })
        return (await rig.books.findAccount(id)).bounds
      }
      await visit(view, rig, `accounts/${id}`)
      await page.click('.page-head >> text=Limits')
      const said = { budget: '500,50/month', rpm: '60', warn: '50,10', grant: '7,50/month' }
      for (const [name, text] of Object.entries(said)) await page.fill(`dialog [name=${name}]`, text)
      await page.selectOption('dialog select', 'lapses')
      assert.deepEqual(await findBarriers(view), [])
      const { budget, requestsPerMinute, warnNanos, grant } = await save()
      assert.deepEqual([budget?.per, requestsPerMinute, warnNanos?.length], ['month', 60, 2])
      assert.equal(budget?.nanos, 500_500_000_000n)
      assert.deepEqual(grant, { nanos: 7_500_000_000n, lapses: true })
      await page.waitForSelector('.facts >> text=unspent credit expires with the next grant')
      await page.click('.page-head >> text=Limits')
      await page.fill('dialog [name=budget]', 'much')
      await page.fill('dialog [name=grant]', '')
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog [name=budget][aria-invalid=true]')
      await page.fill('dialog [name=budget]', '')
      const after = await save()
      assert.deepEqual([after.budget, after.grant, after.requestsPerMinute], [undefined, undefined, 60])
      forgive(faults, /status of 400/)
    }),
  },
  {
    name: 'acts: CON-18 an amount that is a thousand times more in another country is refused, with both forms',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { id } = await rig.makeAccount('acme', '1')
      await visit(view, rig, `accounts/${id}`)
      for (const [open, fields, name, text, forms] of [
        ['Credit', { reference: 'one' }, 'credits', '1.000', '1000 or 1.00'],
        ['Limits', {}, 'budget', '1,250/day', '1250/day or 1.25/day'],
        ['Limits', {}, 'grant', '2.500/month', '2500/month or 2.50/month'],
        ['Limits', {}, 'warn', '1.500,10', '1500 or 1.50'],
        ['New key', {}, 'budget', '1.000', '1000 or 1.00'],
      ] as const) {
        await page.click(`main >> text=${open}`)
        for (const [other, value] of Object.entries(fields)) await page.fill(`dialog [name=${other}]`, value)
        await page.fill(`dialog [name=${name}]`, text)
        await page.keyboard.press('Enter')
        await page.waitForSelector(
          `dialog .field:has([name=${name}][aria-invalid]) >> text=has two meanings: write ${forms}`,
        )
        assert.deepEqual(await findBarriers(view), [])
        await page.click('dialog >> text=Cancel')
        await page.waitForSelector('dialog', { state: 'detached' })
      }
      const { balanceNanos, bounds } = await rig.books.findAccount(id)
      assert.deepEqual(
        [balanceNanos, bounds.budget, bounds.grant, bounds.warnNanos],
        [10n ** 9n, undefined, undefined, undefined],
      )
      assert.equal((await rig.books.listKeys(id)).length, 1)
    }),
  },
  {
    name: 'acts: CON-2 an edit of a key that somebody else has changed shows their value, and undoes nothing',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      const { id, key } = await rig.makeAccount('acme')
      const { id: keyId } = (await rig.books.listKeys(id))[0]!
      await rig.books.updateKey(keyId, { requestsPerMinute: 60 })
      const value = (name: string) => page.inputValue(`dialog [name=${name}]`)
      const limitsOf = async () => {
        const { label, bounds } = (await rig.books.listKeys(id))[0]!
        return [label, bounds.requestsPerMinute]
      }
      await visit(view, rig, `keys/${keyId}`)
      await page.waitForSelector('.live.live')
      await page.click('.page-head >> text=Edit')
      await page.fill('dialog [name=label]', 'hers')
      await rig.books.updateKey(keyId, { requestsPerMinute: 77 })
      // After a request, the page that has the dialog loads the key again. The form keeps the values read at first.
      await rig.ask(key, 'reasoner')
      await page.waitForSelector('.facts >> text=77')
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog [role=alert] >> text=Requests per minute: 77, was 60')
      assert.deepEqual([await value('label'), await value('rpm')], ['hers', '77'])
      assert.deepEqual(await findBarriers(view), [])
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog', { state: 'detached' })
      assert.deepEqual(await limitsOf(), ['hers', 77])
      // If both people change the same field, the form shows the other value. Only a second Save replaces it.
      await page.click('.page-head >> text=Edit')
      await page.fill('dialog [name=rpm]', '5')
      await rig.books.updateKey(keyId, { requestsPerMinute: null, label: 'his' })
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog [role=alert] >> text=Requests per minute: empty, was 77')
      await page.waitForSelector('dialog [role=alert] >> text=Label: his, was hers')
      assert.deepEqual([await value('label'), await value('rpm')], ['his', '5'])
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog', { state: 'detached' })
      assert.deepEqual(await limitsOf(), ['his', 5])
      // The other person changes a value that has no field in the form.
      await page.click('.page-head >> text=Edit')
      await page.fill('dialog [name=label]', 'last')
      await rig.books.updateKey(keyId, { metadata: { cost: 'red' } })
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog [role=alert] >> text=Someone else has changed this meanwhile')
      assert.equal(await page.locator('dialog .meanwhile li').count(), 0)
      await page.click('dialog .form-foot >> text=Save')
      await page.waitForSelector('dialog', { state: 'detached' })
      assert.deepEqual(await limitsOf(), ['last', 5])
      forgive(faults, /status of 412/)
    }),
  },
  {
    name: 'acts: CON-2 a name and a state of an account that somebody else has changed are shown before they are changed again',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      const { id } = await rig.makeAccount('acme')
      await visit(view, rig, `accounts/${id}`)
      await page.click('.page-head >> text=Rename')
      await page.fill('dialog [name=name]', 'hers')
      await rig.books.updateAccount(id, { name: 'his' })
      await page.click('dialog .form-foot >> text=Rename')
      await page.waitForSelector('dialog [role=alert] >> text=Name: his, was acme')
      await page.click('dialog >> text=Cancel')
      await page.waitForSelector('h2:text("his")')
      await page.click('.page-head >> text=Suspend')
      await rig.books.updateAccount(id, { state: 'suspended' })
      await page.click('dialog .form-foot >> text=Suspend')
      await page.waitForSelector('dialog [role=alert] >> text=State: suspended, was active')
      // The state is the one that was asked for, so nothing is left to do.
      await page.waitForSelector('dialog .form-foot button[type=submit]:disabled')
      forgive(faults, /status of 412/)
    }),
  },
  {
    name: 'acts: CON-7 the focus returns to what opened a dialog, goes to a new page, and stays in the page if its place is gone',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      const { id } = await rig.makeAccount('acme')
      const { id: keyId } = (await rig.books.listKeys(id))[0]!
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      const isClosed = () => page.waitForSelector('dialog', { state: 'detached' })
      let tried = 0
      for (const [path, open] of [
        [`accounts/${id}`, ['Credit', 'Limits', 'Rename', 'Suspend', 'New key']],
        [`keys/${keyId}`, ['Edit', 'Rotate', 'Revoke']],
        ['keys', ['New key']],
        ['operators', ['New operator', 'Revoke']],
        ['', ['Find', 'Days']],
      ] as const)
        for (const text of open) {
          await visit(view, rig, path)
          const button = page.locator(`main button:has-text("${text}"), header button:has-text("${text}")`).first()
          for (const close of ['Escape', 'Cancel', 'cross']) {
            await button.focus()
            const before = await page.evaluate(focused)
            await press('Enter')
            await page.waitForSelector('dialog[open]')
            if (close === 'Escape') await press('Escape')
            else if (close === 'cross') await page.click('dialog [aria-label=Close]')
            else if ((await page.locator('dialog >> text=Cancel').count()) > 0)
              await page.click('dialog >> text=Cancel')
            else await press('Escape')
            await isClosed()
            assert.equal(await page.evaluate(focused), before, `${path} ${text} ${close}`)
            tried++
          }
        }
      // If a form has a mistake, the focus moves to the field with the mistake.
      await visit(view, rig, `accounts/${id}`)
      await page.click('.page-head >> text=Credit')
      await page.fill('dialog [name=credits]', 'much')
      await page.fill('dialog [name=reference]', 'one')
      await press('Enter')
      await page.waitForSelector('dialog [name=credits][aria-invalid]')
      assert.equal(await page.evaluate('document.activeElement.name'), 'credits')
      await press('Escape')
      await isClosed()
      // A new page gets the focus, and a screen reader reads the name of its object and not the id.
      await press('g', 'a')
      await page.waitForSelector('h1:text("Accounts")')
      await settle(page)
      assert.equal(await page.evaluate('document.activeElement.id'), 'main')
      await press('j', 'Enter')
      await page.waitForSelector('h2:text("acme")')
      await page.waitForSelector('main:focus')
      assert.match(await page.title(), /^acme · Accounts/)
      assert.equal(await page.getAttribute('main', 'aria-label'), 'acme · Accounts')
      await visit(view, rig, `keys/${keyId}`)
      await page.waitForSelector('.page-head >> text=Revoke')
      assert.match(await page.title(), /^laptop · Keys/)
      // Revoking removes the button that opened the dialog.
      await page.focus('.page-head button:text-is("Revoke")')
      await press('Enter')
      await page.fill('dialog [name=confirm]', 'laptop')
      await press('Enter')
      await page.waitForSelector('.page-head >> text=Revoke', { state: 'detached' })
      await page.waitForSelector('main:focus')
      forgive(faults, /status of 400/)
      return [`${tried} dialogs closed`]
    }),
  },
  {
    name: 'acts: CON-15 a key or token that is shown once survives Esc, the cross, Back and a click beside it',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { id } = await rig.makeAccount('acme')
      const { id: keyId } = (await rig.books.listKeys(id))[0]!
      for (const [path, open, fields, make] of [
        [`accounts/${id}`, 'main >> text=New key', {}, 'Make key'],
        ['keys', 'main >> text=New key', { account: 'acme' }, 'Make key'],
        ['accounts', 'main >> text=New account', { name: 'other' }, 'Make account and key'],
        [`keys/${keyId}`, '.page-head >> text=Rotate', {}, 'Rotate'],
        ['operators', 'main >> text=New operator', { name: 'bob' }, 'Make token'],
      ] as const) {
        await visit(view, rig, path)
        await page.evaluate('history.pushState(null, "", location.href)')
        const here = new URL(page.url()).pathname
        await page.click(open)
        for (const [name, value] of Object.entries(fields)) await page.fill(`dialog [name=${name}]`, value)
        await page.click(`dialog .form-foot button:text-is("${make}")`)
        const shown = await page.textContent('[data-secret]')
        // Browsers let a second Escape in a row close any dialog.
        for (let i = 0; i < 4; i++) await page.keyboard.press('Escape')
        await page.waitForSelector('dialog [role=alert] >> text=It cannot be shown again')
        await page.goBack()
        assert.equal(new URL(page.url()).pathname, here, 'Back would lose it')
        await page.mouse.click(3, 3)
        assert.equal(await page.locator('dialog [aria-label=Close]').count(), 0, 'the cross would lose it')
        assert.equal(await page.textContent('dialog[open] [data-secret]'), shown, path)
        assert.deepEqual(await findBarriers(view), [])
        // Only the event is sent. After a real reload that the page has stopped, the next visit may be aborted.
        const leave = 'dispatchEvent(new Event("beforeunload", { cancelable: true }))'
        assert.equal(await page.evaluate(leave), false, 'a reload would lose it')
        assert.equal(await page.textContent('dialog[open] [data-secret]'), shown, path)
        await page.click('dialog >> text=I have it')
        await page.waitForSelector('dialog', { state: 'detached' })
        assert.equal(await page.locator('[data-secret]').count(), 0)
        while (!(await page.evaluate(leave))) await page.waitForTimeout(10)
      }
    }),
  },
  {
    name: 'acts: CON-15 revoking asks for the name, and suspending, which can be undone, does not',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { id } = await rig.makeAccount('acme')
      const { id: keyId } = (await rig.books.listKeys(id))[0]!
      // A browser shows two blanks as one, and a combining accent as a part of its letter.
      await rig.books.updateKey(keyId, { label: 'laptop  of Zoe\u0301' })
      for (const [path, open, name] of [
        [`keys/${keyId}`, '.page-head >> text=Revoke', 'laptop of Zo\u00e9'],
        ['operators', 'main >> [aria-label="Revoke vic"]', 'vic'],
      ] as const) {
        await visit(view, rig, path)
        await page.click(open)
        const revoke = 'dialog .form-foot button[type=submit]'
        assert.ok(await page.isDisabled(revoke), path)
        await page.fill('dialog [name=confirm]', 'another')
        assert.ok(await page.isDisabled(revoke), path)
        await page.fill('dialog [name=confirm]', name)
        await page.click(revoke)
        await page.waitForSelector('dialog', { state: 'detached' })
        await page.waitForSelector('main .state:has-text("revoked")')
      }
      for (const [verb, state] of [
        ['Suspend', 'suspended'],
        ['Activate', 'active'],
      ] as const) {
        await visit(view, rig, `accounts/${id}`)
        await page.click(`.page-head >> text=${verb}`)
        await page.click('dialog .form-foot button[type=submit]')
        await page.waitForSelector(`.page-head .state:has-text("${state}")`)
      }
    }),
  },
  {
    name: 'acts: CON-3 Set up prints where clients reach the gateway, and a key that works in a shell',
    async run() {
      for (const [apiUrl, printed, said] of [
        ['https://llm.example/v1', 'https://llm.example', 'as its configuration says'],
        [undefined, undefined, 'set api_url in its configuration'],
      ] as const) {
        const rig = await startRig(apiUrl === undefined ? {} : { apiUrl })
        const { key } = await rig.makeAccount('acme')
        for (const token of [rig.viewer, key]) {
          const view = await openPage(rig)
          const { page } = view
          await signIn(view, rig, token)
          await visit(view, rig, 'setup/claude-code')
          const text = (await page.textContent('.setup-texts'))!
          assert.ok(text.includes(said), text)
          if (printed) assert.match(text, /"ANTHROPIC_BASE_URL": "https:\/\/llm\.example"/)
          assert.match(text, /export ANTHROPIC_AUTH_TOKEN="\$TRIWIRE_API_KEY"/)
          await page.fill('[aria-label="Another address"]', 'http://10.0.0.7:8080')
          await page.waitForSelector('.setup-texts >> text="http://10.0.0.7:8080"')
          assert.match((await page.textContent('.setup-texts'))!, /"ANTHROPIC_BASE_URL": "http:\/\/10\.0\.0\.7:8080"/)
          await view.close()
        }
        await rig.close()
      }
    },
  },
]
