import { FatalError } from '../../app/log/fatal.ts'
import type { Clock } from '../../base/clock.ts'
import type { ApiClient } from './api-client.ts'
import { changeContract, isContractEvent } from './contract-event.ts'
import { describeDispatch, followEvent, hasCells } from './dispatch-progress.ts'

/** Time limit for the deliveries of the event. */
const FOLLOW_LIMIT_MS = 15_000

/** Time in which other databases take the event in by the event log (docs/operations/cells.md#intake); usually 0.1 s. */
const INTAKE_MS = 3_000

const EVENT_TYPE_PATH = '/api/v3/webhook/event'

export interface TriggerDeps {
  client: ApiClient
  clock: Clock
  print: (line: string) => void
}

export interface TriggerInput {
  event: string
  account?: string
  id?: string
  /** The webhook to test, for `webhook.test`. */
  webhook?: string
}

interface EventTypeRow {
  internal: string
  account_scope: 'account' | 'none'
  method: string | null
  route: string | null
  source: 'route' | 'synthetic' | 'external'
}

/** Causes a real event of a type, and prints it with its dispatches. Throws a `FatalError` for a type it cannot. */
export async function triggerEvent(deps: TriggerDeps, input: TriggerInput): Promise<void> {
  const eventId = await makeHappen(deps, input)
  deps.print(`event     ${eventId}  ${input.event}`)
  const isOneOfSeveral = await hasCells(deps.client)
  const limits = { limitMs: FOLLOW_LIMIT_MS, othersMs: isOneOfSeveral ? INTAKE_MS : 0 }
  const { isRouted, dispatches, hasMore } = await followEvent(deps, eventId, limits)
  for (const dispatch of dispatches) deps.print(describeDispatch(dispatch))
  if (hasMore) deps.print('The event has more than these 200 dispatches; the list of dispatches has all.')
  if (!isRouted) deps.print('It is not routed yet: does a process of the service have the role dispatcher?')
  else if (dispatches.length === 0) deps.print(describeNone(isOneOfSeveral))
}

function describeNone(isOneOfSeveral: boolean): string {
  if (!isOneOfSeveral) return 'No active webhook in its scope subscribes to it.'
  return `No active webhook in its scope subscribes to it, or the database of one has not taken it in within ${INTAKE_MS / 1_000} s: signalbox cell status.`
}

async function makeHappen(deps: TriggerDeps, input: TriggerInput): Promise<string> {
  const { event } = input
  if (event === 'webhook.test') return testWebhook(deps.client, input)
  if (isContractEvent(event)) {
    checkUnused(input, event === 'contract.create' ? ['webhook', 'id'] : ['webhook'])
    if (input.id !== undefined) checkUnused(input, ['account'])
    const row = await changeContract(deps, {
      event,
      ...(input.account !== undefined && { account: input.account }),
      ...(input.id !== undefined && { id: input.id }),
    })
    return row.document_id
  }
  return publish(deps.client, input)
}

function checkUnused(input: TriggerInput, names: readonly ('account' | 'id' | 'webhook')[]): void {
  const given = names.find((name) => input[name] !== undefined)
  if (given !== undefined) throw new FatalError(`--${given} does not apply to ${input.event} here. Leave it out.`)
}

async function testWebhook(client: ApiClient, input: TriggerInput): Promise<string> {
  checkUnused(input, ['account', 'id'])
  if (input.webhook === undefined) throw new FatalError('webhook.test needs a webhook: --webhook <document_id>')
  const { data } = await client.call<{ event_id: string }>('POST', `/api/v3/webhook/webhook/${input.webhook}/test`)
  return data.event_id
}

async function publish(client: ApiClient, input: TriggerInput): Promise<string> {
  const { event, account, id } = input
  await checkPublishable(client, event)
  checkUnused(input, ['webhook'])
  const body = { event, id: id ?? 'signalbox-trigger', ...(account !== undefined && { account }) }
  const { data } = await client.call<{ events: { event_id: string }[] }>('POST', '/api/v3/webhook/publish', body)
  const [published] = data.events
  if (!published) throw new FatalError('The service accepted the event without an id. Is it an older version?')
  return published.event_id
}

/** Throws a `FatalError` that names the cause of this event type, unless it may be published. */
async function checkPublishable(client: ApiClient, event: string): Promise<void> {
  const request = { filters: [`internal|eq|${event}`], sort: 'internal', pageSize: 1 }
  const { data } = await client.listPage<EventTypeRow>(EVENT_TYPE_PATH, request)
  const [eventType] = data
  if (!eventType) throw new FatalError(await describeUnknown(client, event))
  if (eventType.source === 'external') return
  const cause =
    eventType.method !== null && eventType.route !== null
      ? `when ${eventType.method} ${eventType.route} succeeds`
      : 'by itself, inside the service'
  const read = eventType.method === 'GET' ? ' while some active webhook subscribes to it' : ''
  throw new FatalError(
    `${event} happens ${cause}${read}. Make that call; trigger itself makes contract.create, contract.update, contract.delete, webhook.test and event types registered by other services.`,
  )
}

async function describeUnknown(client: ApiClient, event: string): Promise<string> {
  const resource = event.split('.')[0] ?? event
  // `like` takes three characters.
  const filters = resource.length > 1 ? [`internal|like|${resource}.`] : []
  const near = await client.listPage<EventTypeRow>(EVENT_TYPE_PATH, { filters, sort: 'internal', pageSize: 20 })
  const names = near.data.map((row) => row.internal).filter((name) => name.startsWith(`${resource}.`))
  const hint =
    names.length > 0
      ? `Of ${resource} there are ${names.join(', ')}.`
      : 'Register it with POST /api/v3/webhook/event, or look at the list of GET /api/v3/webhook/event.'
  return `There is no event type ${event}. ${hint}`
}
