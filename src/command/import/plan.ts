import { Problem } from '../../http/problem/problem.ts'
import { readHeaders } from '../../webhook/registry/own-headers.ts'
import { type EventMap, isLeftOut, type Resolution, resolveEvents } from './event-map.ts'
import { toSecretForm } from './secret-form.ts'
import { toLine } from './source/foreign.ts'
import type { Endpoint, Hindrance } from './source/source.ts'

/** The members of a webhook to create, except its account. */
export interface WebhookDraft {
  url: string
  name: string | null
  description: string | null
  headers?: Record<string, string>
  max_per_second?: number
  secret: string
  events: string[]
}

/** Reason for which an endpoint is not imported: a stable word, its meaning and the remedy. */
export interface Skip {
  reason: Hindrance['code'] | 'unknown_event_types' | 'no_event_types' | 'secret_unusable' | 'header_refused'
  detail: string
  remedy: string
}

/** The decision about an endpoint. */
export type Plan =
  | { kind: 'create'; draft: WebhookDraft; isDisabled: boolean; notes: string[] }
  | { kind: 'leave_out'; why: string }
  | ({ kind: 'skip' } & Skip)

/** Choices of the operator and facts of this service. */
export interface PlanRules {
  map: EventMap
  /** The active event types. */
  known: ReadonlySet<string>
  /** Ids of endpoints that the operator leaves out. */
  leftOut: ReadonlySet<string>
  /** Whether a webhook may receive more than its endpoint did. */
  ignoreFilters: boolean
}

/** Longest list of event types of a new webhook. */
const MAX_EVENTS = 1000

const REMEDIES: Readonly<Record<Hindrance['code'], string>> = {
  narrower_filter:
    'It would receive every event of its types in the account. Accept that with --ignore-filters, or create it by hand with resource_ids.',
  authentication: 'Have the receiver accept a header, and create the webhook by hand with headers.',
  method: 'Deliveries are POST requests. Have the receiver accept them, and change the method at the source.',
  content_type: 'Deliveries are application/json. Have the receiver accept it, and change the type at the source.',
  malformed: 'The source does not describe it as its API is documented. Create it by hand.',
  header_unreadable: 'The source hides the value. Import an export file that has it, or create the webhook by hand.',
  not_http: 'Only endpoints of HTTP become webhooks.',
}

/** Decides about an endpoint that is not imported yet. No text of the answer has its secret or the value of a header. Pure. */
export function planEndpoint(endpoint: Endpoint, rules: PlanRules): Plan {
  if (rules.leftOut.has(endpoint.id)) return { kind: 'leave_out', why: 'named by --leave-out' }
  if (isLeftOut(endpoint.eventTypes, rules.map))
    return { kind: 'leave_out', why: 'each of its event types is null in --events' }
  const hindrance = endpoint.hindrances.find(({ code }) => code !== 'narrower_filter' || !rules.ignoreFilters)
  if (hindrance)
    return { kind: 'skip', reason: hindrance.code, detail: hindrance.detail, remedy: REMEDIES[hindrance.code] }
  const resolved = resolveEvents(endpoint.eventTypes, rules.map, rules.known)
  const events = resolved.ok ? resolved.events : []
  const skip = findEventSkip(resolved) ?? findHeaderSkip(endpoint.headers)
  if (skip) return { kind: 'skip', ...skip }
  const form = toSecretForm(endpoint.secret)
  if (!form.ok) return { kind: 'skip', ...skipForSecret(form.why) }
  const draft: WebhookDraft = {
    url: endpoint.url,
    name: toLine(endpoint.name, 100) ?? null,
    description: toLine(endpoint.description, 500) ?? null,
    ...(endpoint.headers.size > 0 && { headers: Object.fromEntries(endpoint.headers) }),
    ...(endpoint.maxPerSecond !== null && { max_per_second: endpoint.maxPerSecond }),
    secret: form.secret,
    events,
  }
  return { kind: 'create', draft, isDisabled: endpoint.isDisabled, notes: listNotes(endpoint, form.isKept) }
}

function findEventSkip(resolved: Resolution): Skip | undefined {
  if (!resolved.ok && resolved.unknown.includes('*'))
    return {
      reason: 'unknown_event_types',
      detail: 'it has no filter and receives all types',
      remedy: 'Say with --events which types that is here: {"*": ["contract.create", "contract.update"]}.',
    }
  if (!resolved.ok)
    return {
      reason: 'unknown_event_types',
      detail: resolved.unknown.join(', '),
      remedy: 'Say with --events what stands for each here: {"<type>": "contract.update"}, or null to leave it out.',
    }
  if (resolved.events.length > 0 && resolved.events.length <= MAX_EVENTS) return undefined
  return {
    reason: 'no_event_types',
    detail: resolved.events.length === 0 ? 'no event type is left' : 'more event types than a webhook takes',
    remedy: `A webhook has 1 to ${MAX_EVENTS} event types. Change the endpoint at the source, or --events.`,
  }
}

/** Judges headers by the rules of a webhook: a refusal names the header and never its value. */
function findHeaderSkip(headers: ReadonlyMap<string, string>): Skip | undefined {
  const remedy = 'Remove the header at the source, or create the webhook by hand without it.'
  if (headers.size > MAX_HEADERS)
    return { reason: 'header_refused', detail: `${headers.size} headers, of ${MAX_HEADERS} at most`, remedy }
  const odd = [...headers].find(([, value]) => !HEADER_VALUE.test(value))
  if (odd) return { reason: 'header_refused', detail: `the value of ${odd[0].slice(0, 100)}`, remedy }
  try {
    readHeaders(Object.fromEntries(headers))
    return undefined
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const [fault] = error.errors ?? []
    return { reason: 'header_refused', detail: `${fault?.path} ${fault?.message}`, remedy }
  }
}

/** The limits of `headers` (docs/contract/webhooks.md#headers-of-the-subscriber). */
const MAX_HEADERS = 10
const HEADER_VALUE = /^(?=.{1,1024}$)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

const skipForSecret = (why: string): Skip => ({
  reason: 'secret_unusable',
  detail: why,
  remedy:
    'Rotate the secret at the source to a random one of 24 to 64 bytes, give it to the receiver, and run the command again.',
})

function listNotes({ notes, hindrances }: Endpoint, isSecretKept: boolean): string[] {
  return [
    ...notes,
    ...hindrances.map(({ detail }) => `left out, so that it receives more: ${detail}`),
    ...(isSecretKept ? [] : ['the secret here is whsec_<base64 of the text of the present one>']),
  ]
}
