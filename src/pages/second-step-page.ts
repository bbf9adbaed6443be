import type { UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { OpenStep } from '../sign-in/factor-login.ts'
import { askForPasskey } from '../sign-in/passkey.ts'
import type { FactorMethod } from '../sign-in/second-factor.ts'
import type { Visitor } from './browser-session.ts'
import { type FormError, renderErrors, renderField, renderFormToken } from './form.ts'
import { type Html, html } from './html.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'
import { PASSKEY_SCRIPT, renderPasskeyForm } from './passkey-form.ts'
import { type Goal, listFormTargets, renderGoal, type SignInPageDeps } from './sign-in-goal.ts'

/** Where the form of the second step goes. */
export const SECOND_STEP = '/auth/second-step'

/** What a page that asks for a second factor shows. */
export interface ProofFormView {
  action: string
  methods: readonly FactorMethod[]
  /** The options of a passkey; undefined for a person without one. */
  passkeyOptions: object | undefined
  /** The hidden fields, with the token of the form. */
  hidden: Html
  errors: readonly FormError[]
}

/** Renders the forms of a second factor: a code, and a passkey where the person has one. */
export function renderProofForms({ action, methods, passkeyOptions, hidden, errors }: ProofFormView): Html {
  const hasCode = methods.includes('totp') || methods.includes('recovery-code')
  const passkey =
    passkeyOptions &&
    renderPasskeyForm({
      action,
      kind: 'get',
      options: passkeyOptions,
      hidden,
      label: 'Use a passkey',
      isPlain: hasCode,
    })
  return html`${hasCode && renderCodeForm({ action, methods, hidden, errors })}
${hasCode && passkey && html`<div class="or">or</div>`}
${passkey}
${passkey && !hasCode && html`<noscript><p class="notice">A passkey needs scripts. Allow them for this site.</p></noscript>`}`
}

function renderCodeForm({
  action,
  methods,
  hidden,
  errors,
}: Pick<ProofFormView, 'action' | 'methods' | 'hidden' | 'errors'>): Html {
  const hasApp = methods.includes('totp')
  const more = methods.includes('recovery-code') ? ' A recovery code works too.' : ''
  return html`<form method="post" action="${action}" novalidate>
${hidden}
${renderField({
  name: 'code',
  label: hasApp ? 'Code' : 'Recovery code',
  type: 'text',
  autocomplete: 'one-time-code',
  hint: hasApp ? `The six digits that your authenticator app shows.${more}` : 'One of those that you stored.',
  error: errors.find(({ field }) => field === 'code')?.text,
  isFocused: errors.length === 0,
})}
<button type="submit">Continue</button>
</form>`
}

/** An open second step of a sign-in in a browser. */
interface SecondStepView {
  challenge: string
  methods: readonly FactorMethod[]
  passkeyOptions: object | undefined
  goal: Goal
  browserId: string
  errors?: readonly FormError[]
}

/** Builds the page of the second step of a sign-in. */
function buildSecondStepPage(
  deps: Pick<PageDeps, 'browserKeys'>,
  view: SecondStepView,
): Omit<PageParts, 'brand'> & { formTargets?: readonly string[] } {
  const { challenge, methods, passkeyOptions, goal, browserId, errors = [] } = view
  const hidden = html`${renderFormToken(deps, browserId)}
<input type="hidden" name="challenge" value="${challenge}">
${renderGoal(goal)}`
  const content = html`<div class="panel">
<div class="lead">
<h1>Confirm that it is you</h1>
<p class="quiet">Your password is right. One more step protects your account.</p>
</div>
${renderErrors(errors)}
${renderProofForms({ action: SECOND_STEP, methods, passkeyOptions, hidden, errors })}
<p class="small centered"><a href="/auth/sign-in">Start again</a></p>
</div>`
  const title = errors.length > 0 ? 'Error: Confirm that it is you' : 'Confirm that it is you'
  return { title, content, scripts: [PASSKEY_SCRIPT], ...listFormTargets(goal) }
}

/** Builds the page that asks for the second step, with options for a passkey of a person who has one. */
export async function askForSecondStep(
  deps: SignInPageDeps,
  tx: Database,
  step: OpenStep & {
    userId: UserId | null
    goal: Goal
    visitor: Visitor
    errors?: readonly FormError[]
    address: string
    now: Date
  },
): Promise<ReturnType<typeof buildSecondStepPage>> {
  const { challenge, methods, userId, goal, visitor, errors, address, now } = step
  const hasPasskey = userId !== null && methods.includes('passkey')
  const passkeyOptions = hasPasskey
    ? await askForPasskey(deps, tx, { purpose: 'passkey-factor', userId, sessionId: null, address, now })
    : undefined
  const { browserId } = visitor
  return buildSecondStepPage(deps, { challenge, methods, passkeyOptions, goal, browserId, ...(errors && { errors }) })
}
