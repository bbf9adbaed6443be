/**
 * The closed registry of what breaks a field: `errors[].code`, and the members of `errors[].params` that an entry of the
 * code may have (docs/contract/api.md#errors). The table of `docs/errors.md` under `validation_failed` has one line for
 * each; a test compares both in both directions. The console has a sentence for each, in every language.
 */
export const FIELD_ERRORS = {
  // Rules of a schema; named as in JSON Schema, except `unknown_member`.
  const: ['values'],
  enum: ['values'],
  format: ['format'],
  maxItems: ['limit'],
  maxLength: ['limit'],
  maxProperties: ['limit'],
  maximum: ['limit'],
  minItems: ['limit'],
  minLength: ['limit'],
  minProperties: ['limit'],
  minimum: ['limit'],
  pattern: ['pattern', 'least', 'most'],
  required: ['other'],
  type: ['types'],
  uniqueItems: [],
  unknown_member: [],
  // Lists and filters.
  boolean: [],
  cursor: [],
  form: [],
  integer: [],
  range: ['least', 'most'],
  repeated: [],
  several_databases: [],
  text: [],
  timestamp: [],
  too_many: ['limit'],
  unknown_field: ['values'],
  unknown_operator: ['values'],
  uuid: [],
  values: [],
  // Addresses.
  https: [],
  invalid_url: [],
  next_not_a_path: [],
  redirect_uri: [],
  sso_target_not_allowed: [],
  url_has_user_info: [],
  url_host_not_public: ['setting'],
  url_invalid: [],
  url_not_https: [],
  url_port_not_allowed: [],
  url_required: [],
  url_too_long: ['limit'],
  // Names, texts and files.
  blank: [],
  domain_invalid: [],
  duplicate: [],
  name: ['limit'],
  not_an_image: [],
  not_base64: [],
  reserved: [],
  size: ['limit'],
  too_large: ['bytes'],
  too_many_pixels: ['limit'],
  unsafe_character: [],
  // Members that do not go together.
  alone: ['other'],
  empty: [],
  missing: [],
  not_allowed: [],
  not_of_mode: [],
  not_with_events: [],
  one_proof: [],
  unused: [],
  without_all: [],
  without_deep_link: [],
  without_password: [],
  // Rows that a member names.
  unknown_account: [],
  unknown_event: [],
  unknown_permission: [],
  unknown_role: [],
  unknown_user: [],
  unknown_webhook: [],
  // Webhooks, events and accounts.
  account_not_taken: [],
  event_deactivated: [],
  global: [],
  idempotency_key_reused: [],
  inactive_event: [],
  no_member: [],
  own_event: [],
  too_many_matches: ['limit'],
  weak: ['least'],
  // Users, passwords and permissions.
  after_maker: ['instant'],
  common: [],
  domain_not_allowed: [],
  no_effect_in_scope: [],
  not_account_scoped: [],
  not_your_address: [],
  past: [],
  personal: [],
  too_long: ['least', 'most'],
  too_short: ['least', 'most'],
  unchanged: [],
  wrong_code: [],
  wrong_password: [],
  // Sign-in, and the questions of apps.
  answered: [],
  declined: [],
  disabled: [],
  expired: [],
  no_answer: [],
  not_accepted: [],
  not_admitted: [],
  other_browser: [],
  used: [],
  // Apps.
  key: [],
  not_asked: [],
  not_fetched: [],
  public: [],
  registration: [],
  subject: [],
  // Connections.
  comment_not_allowed: [],
  declaration_not_allowed: [],
  item_count: ['least', 'most'],
  key_size: ['least', 'most'],
  no_identity_provider: [],
  no_redirect: [],
  not_a_certificate: [],
  not_metadata: [],
  not_pem: [],
  not_read: [],
  not_rsa: [],
  not_utf8: [],
  not_xml: [],
  several_entities: [],
  too_deep: [],
  too_many_elements: [],
} as const satisfies Record<string, readonly (keyof FieldParams)[]>

/** A code of the registry. */
export type FieldErrorCode = keyof typeof FIELD_ERRORS

/** Numbers and words of a broken rule, for a sentence in another language. Never a value of the request. */
export interface FieldParams {
  /** The bound of a rule with one bound, included. */
  limit?: number
  /** The lower bound of a rule with two, included. */
  least?: number
  /** The upper bound of a rule with two, included. */
  most?: number
  /** The bound of a size, in bytes. */
  bytes?: number
  /** The values or names that are taken, at most 20. */
  values?: readonly string[]
  /** The types that are taken, as JSON Schema names them. */
  types?: readonly string[]
  /** A format of JSON Schema. */
  format?: string
  /** A regular expression. */
  pattern?: string
  /** The member that makes this one required. */
  other?: string
  /** The setting with which an operator allows the value. */
  setting?: string
  /** An instant that is the latest. */
  instant?: string
}

/** One broken rule of a validation problem. `path` is the member in dotted form (`events.0`), or a query parameter's name. */
export interface FieldError {
  path: string
  code: FieldErrorCode
  message: string
  params?: FieldParams
}

/** Maximum number of `values` of an entry, which bounds the size of an answer. */
const VALUES_LIMIT = 20

/** The first of the values that are taken, as texts. */
export const firstValues = (values: readonly unknown[]): string[] => values.slice(0, VALUES_LIMIT).map(String)
