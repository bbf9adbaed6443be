/** The answers of the bare routes, as Fastify serializes them. */

const text = { type: 'string' }
const time = { type: 'string', format: 'date-time' }
const textOrNull = { type: ['string', 'null'] }
const timeOrNull = { type: ['string', 'null'], format: 'date-time' }

const shape = (properties: Record<string, object>) => ({ type: 'object', properties })

const contract = shape({
  document_id: text,
  account: text,
  name: text,
  status: text,
  created_by: textOrNull,
  updated_by: textOrNull,
  created_at: time,
  updated_at: time,
  deleted_at: timeOrNull,
})

const account = shape({ document_id: text, name: text })

const session = shape({
  session: shape({
    document_id: text,
    parent: textOrNull,
    address: textOrNull,
    user_agent: textOrNull,
    expires_at: time,
    created_at: time,
    updated_at: time,
  }),
  api_key: textOrNull,
  user: shape({ document_id: text, email: text, name: textOrNull, avatar_url: textOrNull }),
  account: { ...account, type: ['object', 'null'] },
  accounts: { type: 'array', items: account },
  permissions: { type: 'array', items: text },
  account_permissions: { type: 'array', items: text },
  key_permissions: { type: ['array', 'null'], items: text },
})

const publication = shape({
  accepted: { type: 'integer' },
  events: { type: 'array', items: shape({ event_id: text }) },
})

const pagination = shape({ page_size: { type: 'integer' }, next_cursor: textOrNull })

export const CONTRACT_ANSWER = { response: { 200: shape({ data: contract, message: text }) } }
export const CONTRACTS_ANSWER = {
  response: { 200: shape({ data: { type: 'array', items: contract }, message: text, pagination }) },
}
export const SESSION_ANSWER = { response: { 200: shape({ data: session, message: text }) } }
export const PUBLISH_ANSWER = { response: { 202: shape({ data: publication, message: text }) } }
