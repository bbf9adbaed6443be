import { type Html, html } from '../../../base/html.ts'
import type { UserId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { askForPasskey } from '../../sign-in/passkey/passkey.ts'
import type { OpenStep } from '../../sign-in/second-factor/factor-login.ts'
import type { FactorMethod } from '../../sign-in/second-factor/second-factor.ts'
import type { Visitor } from '../browser/browser-session.ts'
import { type FormError, findError, renderField, renderFormToken } from '../frame/form.ts'
import { buildCard, type FormView } from '../frame/layout.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { PASSKEY } from '../script/page-script.ts'
import { renderPasskeyForm } from './passkey-form.ts'
import { type Goal, listFormTargets, renderGoal, type SignInPageDeps } from './sign-in-goal.ts'

/** Action of the form of the second step. */
export const SECOND_STEP = '/auth/second-step'

/** Contents of a page that asks for a second factor. */
export interface ProofFormView {
  action: string
  methods: readonly FactorMethod[]
  /** The options of a passkey; undefined for a user without one. */
  passkeyOptions: object | undefined
  /** The hidden fields, with the token of the form. */
  hidden: Html
  errors: readonly FormError[]
  texts: Texts
}

/** Renders the forms of a second factor: a code, and a passkey where the user has one. */
export function renderProofForms(view: ProofFormView): Html {
  const { action, methods, passkeyOptions, hidden, texts } = view
  const hasCode = methods.includes('totp') || methods.includes('recovery-code')
  const passkey =
    passkeyOptions &&
    renderPasskeyForm(texts, {
      action,
      kind: 'get',
      options: passkeyOptions,
      hidden,
      label: texts.say('passkey.use'),
      isPlain: hasCode,
    })
  return html`${hasCode && renderCodeForm(view)}
${hasCode && passkey && html`<div class="or">${texts.say('proof.or')}</div>`}
${passkey}
${passkey && !hasCode && html`<noscript><p class="notice">${texts.say('passkey.scripts')}</p></noscript>`}`
}

function renderCodeForm({ action, methods, hidden, errors, texts }: ProofFormView): Html {
  const hasApp = methods.includes('totp')
  const hint = methods.includes('recovery-code') ? 'proof.code-hint-more' : 'proof.code-hint'
  return html`<form method="post" action="${action}" novalidate>
${hidden}
${renderField(texts, {
  name: 'code',
  label: texts.say(hasApp ? 'proof.code' : 'proof.recovery'),
  type: 'text',
  autocomplete: 'one-time-code',
  hint: texts.say(hasApp ? hint : 'proof.recovery-hint'),
  error: findError(errors, 'code'),
  isFocused: errors.length === 0,
})}
<button type="submit">${texts.say('proof.continue')}</button>
</form>`
}

interface SecondStepView extends FormView {
  challenge: string
  methods: readonly FactorMethod[]
  passkeyOptions: object | undefined
  goal: Goal
  /** The first step, if it was not the password: a new password by a link, or a mail. */
  first?: 'reset' | 'mail' | undefined
}

function buildSecondStepPage(deps: Pick<PageDeps, 'browserKeys'>, view: SecondStepView): PageBody {
  const { challenge, methods, passkeyOptions, goal, browserId, texts, errors = [] } = view
  const hidden = html`${renderFormToken(deps, browserId)}
<input type="hidden" name="challenge" value="${challenge}">
${renderGoal(goal)}`
  const text = texts.say(view.first ? (`second-step.text-${view.first}` as const) : 'second-step.text')
  const content = html`${renderProofForms({ action: SECOND_STEP, methods, passkeyOptions, hidden, errors, texts })}
<p class="small centered"><a href="/auth/sign-in">${texts.say('second-step.restart')}</a></p>`
  const page = { title: texts.say('proof.title'), text, content, scripts: [PASSKEY] }
  return buildCard(view, { ...page, ...listFormTargets(goal) })
}

/** Builds the page that asks for the second step, with options for a passkey of a user who has one. */
export async function askForSecondStep(
  deps: SignInPageDeps,
  tx: Database,
  step: OpenStep & {
    userId: UserId | null
    goal: Goal
    visitor: Visitor
    first?: 'reset' | 'mail'
    errors?: readonly FormError[]
    address: string
    now: Date
  },
): Promise<PageBody> {
  const { challenge, methods, userId, goal, visitor, first, errors, address, now } = step
  const hasPasskey = userId !== null && methods.includes('passkey')
  const passkeyOptions = hasPasskey
    ? await askForPasskey(deps, tx, { purpose: 'passkey-factor', userId, sessionId: null, address, now })
    : undefined
  const { browserId, texts } = visitor
  const view = { challenge, methods, passkeyOptions, goal, browserId, texts, first }
  return buildSecondStepPage(deps, { ...view, ...(errors && { errors }) })
}
