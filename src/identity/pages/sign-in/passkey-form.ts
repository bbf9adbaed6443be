import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { compileValidator } from '../../../http/route/validation.ts'
import type { Static, TSchema } from '../../../http/shape/schema-type.ts'
import { CredentialProof, NewCredential } from '../../sign-in/passkey/passkey.schema.ts'

/** Longest answer of a browser, in characters: the sum of the limits of its members, with room. */
export const CREDENTIAL_LIMIT = 40_000

/** A form whose answer comes from a passkey. */
export interface PasskeyForm {
  action: string
  /** `get` proves a passkey, `create` makes one, `sign-in` proves any one and offers it in the field of the address too. */
  kind: 'get' | 'create' | 'sign-in'
  /** The options for the browser; for `sign-in` the script asks for them. */
  options?: object
  /** The hidden fields, with the token of the form. */
  hidden: Html
  fields?: Html
  label: string
  isPlain?: boolean
}

/** Renders a form of a passkey. The script shows it where the browser knows passkeys. */
export function renderPasskeyForm(texts: Texts, form: PasskeyForm): Html {
  const { action, kind, options, hidden, fields, label, isPlain = true } = form
  return html`<form method="post" action="${action}" data-passkey="${kind}"${kind === 'create' && html` class="narrow"`}${
    options && html` data-options="${JSON.stringify(options)}"`
  } data-known="${texts.say('passkey.known')}" data-cancelled="${texts.say('passkey.cancelled')}" data-blocked="${texts.say('passkey.blocked')}" hidden>
${hidden}
<input type="hidden" name="credential" value="">
${fields}
<button${isPlain && html` class="plain"`} type="submit">${KEY}${label}</button>
<p class="error small" role="alert" hidden></p>
</form>`
}

const KEY = html`<svg class="glyph" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><circle cx="8" cy="12" r="4.5"/><path d="M12.5 12H21v4M17 12v3"/></svg>`

const validators = new Map<TSchema, ReturnType<typeof compileValidator>>()

function parse<Schema extends TSchema>(schema: Schema, text: string): Static<Schema> | undefined {
  let validate = validators.get(schema)
  if (!validate) {
    validate = compileValidator({ schema, method: 'POST', url: '', httpPart: 'body' })
    validators.set(schema, validate)
  }
  try {
    const value: unknown = JSON.parse(text)
    return validate(value) === true ? (value as Static<Schema>) : undefined
  } catch {
    return undefined
  }
}

function checkCredential<Credential>(credential: Credential | undefined): Credential {
  if (credential !== undefined) return credential
  throw new Problem('malformed_request', 'The answer of the browser is damaged.', { reason: 'credential_malformed' })
}

/** The proof by a passkey in the field of a form. Throws a 400. */
export function readProof(text: string): Static<typeof CredentialProof> {
  return checkCredential(parse(CredentialProof, text))
}

/** The new passkey in the field of a form. Throws a 400. */
export function readNewCredential(text: string): Static<typeof NewCredential> {
  return checkCredential(parse(NewCredential, text))
}
