import { expect, test } from 'vitest'
import { html } from '../../../base/html.ts'
import { ENGLISH } from '../../../base/language/texts.ts'
import { renderProofForms } from './second-step-page.ts'

test.each([
  [['totp'], 'proof.code', 'proof.code-hint'],
  [['totp', 'recovery-code'], 'proof.code', 'proof.code-hint-more'],
  [['recovery-code'], 'proof.recovery', 'proof.recovery-hint'],
] as const)('the form of a second step by %j asks for what the user has', (methods, label, hint) => {
  const view = { action: '/auth/step', methods, passkeyOptions: undefined, hidden: html``, errors: [], texts: ENGLISH }
  const { text } = renderProofForms(view)
  expect(text).toContain(`>${ENGLISH.say(label)}</label>`)
  expect(text).toContain(`<p class="hint" id="code-hint">${ENGLISH.say(hint)}</p>`)
})

test('without a code and a passkey there is no form', () => {
  const view = {
    action: '/auth/step',
    methods: [],
    passkeyOptions: undefined,
    hidden: html``,
    errors: [],
    texts: ENGLISH,
  }
  expect(renderProofForms(view).text.trim()).toBe('')
})
