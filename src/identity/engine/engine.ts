/** The OIDC engine (docs/contract/social-login.md#engine). State, browser, linking and sessions are outside of it. */
export interface Engine {
  /** The enabled providers, in the order in which a sign-in page shows them. */
  listProviders(): readonly EngineProvider[]
  /** Begins a sign-in. Throws an `EngineUnavailable` when the endpoints of the provider cannot be read. */
  start(input: EngineStart): Promise<StartedFlow>
  /** Completes a sign-in from the parameters of the callback. Never throws: a fault is a refusal. */
  complete(input: EngineCompletion): Promise<EngineResult>
}

/** A provider that users can sign in with. */
export interface EngineProvider {
  /** As in the path: `google`. */
  name: string
  /** As users read it: `Google`. */
  label: string
  /** Whether a sign-in with it can return a token of a managed engine, for a decision there. */
  leavesToken: boolean
}

/** A sign-in to start. */
export interface EngineStart {
  provider: string
  /** Opaque; comes back at the callback. */
  state: string
  callbackUrl: string
  now: Date
}

/** A started sign-in. */
export interface StartedFlow {
  redirectUrl: string
  /** State that `complete` needs and the browser must not see: the PKCE verifier, the nonce. Stored encrypted. */
  secret: Record<string, string>
}

/** The parameters of a callback: of the query, or of the fragment. */
export interface CallbackParameters {
  code?: string | undefined
  /** The issuer (RFC 9207). */
  iss?: string | undefined
  /** The token of an implicit answer. */
  accessToken?: string | undefined
  /** The error of the provider (RFC 6749 section 4.1.2.1). */
  error?: string | undefined
  /** The more exact error of a managed engine, and its text, which is compared and never shown. */
  errorCode?: string | undefined
  errorDescription?: string | undefined
}

/** A sign-in at the callback. */
export interface EngineCompletion {
  provider: string
  state: string
  secret: Record<string, string>
  callbackUrl: string
  callback: CallbackParameters
  /** The name that the provider posted beside its answer; it does so at the first sign-in only. */
  postedName: string | null
  /** Answer that the provider posted instead of one in the query; verified at the route that received it. */
  postedAnswer?: string | null
  /** Whether the caller needs the session of the user at a managed engine; otherwise it is revoked. Default false. */
  keepsSession?: boolean
  now: Date
}

/** Identity of a user at a provider. */
export interface ProviderIdentity {
  provider: string
  /** The provider's own id of the user: stable, never reused. */
  subject: string
  /** Null when the provider shares none. */
  email: string | null
  /** Whether the provider has verified the address, by the rules of that provider. */
  isEmailVerified: boolean
  name: string | null
  avatarUrl: string | null
  /** The user's id at a managed engine, which is the subject of its tokens. */
  engineSubject?: string
}

/** Reason of a failed sign-in. For the log and the audit log only. */
export type EngineRefusal =
  /** The user or the provider declined. */
  | 'denied'
  /** The callback has neither code nor tokens that this engine takes. */
  | 'callback_incomplete'
  /** The answer is not from the requested provider (RFC 9207, RFC 9700 section 4.4). */
  | 'issuer_mismatch'
  /** The posted answer of the provider is not a valid proof (docs/contract/saml.md#refusals). */
  | 'answer_refused'
  /** The provider refused the code. */
  | 'code_refused'
  /** The ID token breaks a rule: signature, issuer, audience, nonce, lifetime. */
  | 'id_token_invalid'
  /** The provider's facts about the user are missing or contradict each other. */
  | 'profile_invalid'
  /** The managed engine declines the user: a ban, no sign-ups, its hook. */
  | 'engine_refused'
  /** The managed engine requires an address. */
  | 'email_missing'
  /** The managed engine requires an address verified by the provider. */
  | 'email_unverified'
  /** The provider did not answer, or not in its protocol. */
  | 'provider_fault'
  /** This process could not ask the provider, for a fault of its own (docs/contract/delivery.md#whose-fault). */
  | 'own_fault'

/** The result of a completed sign-in. `detail` names the broken rule, without tokens or personal data. */
export type EngineResult =
  | {
      kind: 'identity'
      identity: ProviderIdentity
      /** The names of the groups of the user, where the provider is asked for them. */
      groups?: readonly string[]
      /** The access token of the user at a managed engine, if the caller requested its session. */
      token?: string
    }
  | { kind: 'refused'; reason: EngineRefusal; detail: string }

/** The provider cannot be reached, so no sign-in can start. `message` is for the log. */
export class EngineUnavailable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'EngineUnavailable'
  }
}
