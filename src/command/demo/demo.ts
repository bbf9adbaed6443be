import { FatalError } from '../../app/log/fatal.ts'
import type { Clock } from '../../base/clock.ts'
import { SINK_PATH } from '../../webhook/sink/sink.ts'
import { buildDemoClient, type DemoClient } from './demo-client.ts'
import { keepDemoToken } from './demo-token.ts'

export interface DemoOptions {
  baseUrl: string
  /** The URL of the service's own receiver. Default: its path at `baseUrl`. */
  sinkUrl?: string
  /** A session JWT of an administrator. */
  jwt: string
  dataDir: string
  /** The file of the token for the commands to try. Default: it is made. */
  tokenFile?: string
  /** ENABLE_API_EVENT_QUEUE: whether the change is recorded as an event, and so delivered. */
  isQueueEnabled: boolean
  clock: Clock
  print: (line: string) => void
}

/** Time limit for the delivery of the demonstration. The first attempt is immediate, so more is a fault. */
const DELIVERY_LIMIT_MS = 15_000

/** Time limit for its realtime message, which is shown when it is there. */
const PUBLICATION_LIMIT_MS = 1_000

const WEBHOOK_NAME = 'Demo webhook'
const DEMO_NAME = 'Demo'
const DEMO_EVENTS = ['contract.create', 'contract.update']

type Row = { document_id: string } & Record<string, unknown>

/** The names of the demonstration's rows; the next start reuses them. */
interface DemoRows {
  contract: Row
  webhook: Row
}

/**
 * Demonstrates a delivery: ensures that one account, one contract and one webhook on the service's own sink exist, changes
 * the contract through the API, and prints each step until the ledger row is `success`; with the event queue off, prints
 * why nothing is sent. Returns commands to try, quoted for a shell.
 */
export async function runDemo(options: DemoOptions): Promise<string[]> {
  const { baseUrl, print } = options
  const client = buildDemoClient(baseUrl, options.jwt)
  const rows = await ensureDemoRows(client, options.sinkUrl ?? `${baseUrl}${SINK_PATH}`)
  print('')
  print('A change through the API becomes a signed webhook:')
  print('')
  const status = rows.contract.status === 'active' ? 'draft' : 'active'
  const changedAt = new Date(options.clock.now()).toISOString()
  await client.call('PATCH', `/api/v3/contract/contract/${rows.contract.document_id}`, { status })
  print(`  change    PATCH /api/v3/contract/contract/${rows.contract.document_id}  status = ${status}`)
  const dispatch = options.isQueueEnabled ? await showDelivery(client, rows, { ...options, changedAt }) : undefined
  if (!dispatch) {
    print('')
    print(
      'Nothing is sent: ENABLE_API_EVENT_QUEUE is false, so no event is recorded. Set it to true to see the delivery.',
    )
  }
  const tokenFile = options.tokenFile ?? (await keepDemoToken(options))
  print('')
  return buildCommands({ baseUrl, rows, dispatch, tokenFile })
}

async function ensureDemoRows(client: DemoClient, sinkUrl: string): Promise<DemoRows> {
  const account = await findOrCreate(client, {
    path: '/api/v3/identity/account',
    by: 'name',
    body: { name: `${DEMO_NAME} account` },
  })
  const webhook = await ensureDemoWebhook(client, sinkUrl)
  // Found by its account, because the first suggested command changes its name.
  const contract = await findOrCreate(client, {
    path: '/api/v3/contract/contract',
    by: 'account',
    body: { name: `${DEMO_NAME} contract`, account: account.document_id },
  })
  return { contract, webhook }
}

function encodeFilter(field: string, value: string): string {
  return `filters=${encodeURIComponent(`${field}|eq|${value}`)}`
}

/** The oldest row whose field `by` is that of `body`, or a new one. */
async function findOrCreate(
  client: DemoClient,
  wanted: { path: string; by: string; body: Record<string, string> },
): Promise<Row> {
  const { path, by, body } = wanted
  const query = `${encodeFilter(by, body[by] ?? '')}&sort=created_at&page_size=1`
  const [found] = await client.call<Row[]>('GET', `${path}?${query}`)
  return found ?? client.call<Row>('POST', path, body)
}

/** The webhook on the sink. Its URL is updated, because the port may have changed since the last start. */
async function ensureDemoWebhook(client: DemoClient, url: string): Promise<Row> {
  const path = '/api/v3/webhook/webhook'
  const [found] = await client.call<Row[]>(
    'GET',
    `${path}?${encodeFilter('name', WEBHOOK_NAME)}&sort=created_at&page_size=1`,
  )
  const webhook =
    found ??
    (await client.call<Row>('POST', path, {
      url,
      is_global: true,
      name: WEBHOOK_NAME,
      description: "Made by npm start; delivers to the service's own sink.",
    }))
  if (webhook.url !== url) await client.call('PATCH', `${path}/${webhook.document_id}`, { url })
  if (webhook.is_actived === false)
    await client.call('PATCH', `${path}/${webhook.document_id}/active`, { is_actived: true })
  const set = await client.call<{ events: Row[] }>('GET', `${path}/${webhook.document_id}/events`)
  const names = new Set(set.events.map((event) => event.internal))
  if (!DEMO_EVENTS.every((name) => names.has(name))) {
    const filter = encodeURIComponent(`internal|in|${DEMO_EVENTS.join(',')}`)
    const added = await client.call<Row[]>('GET', `/api/v3/webhook/event?filters=${filter}`)
    const events = [...set.events, ...added].map((event) => event.document_id)
    await client.call('PUT', `${path}/${webhook.document_id}/events`, { events: [...new Set(events)] })
  }
  return webhook
}

interface DispatchDetail extends Row {
  event: string
  status: string
  attempts: number
  attempts_log: {
    attempt: number
    status_code: number | null
    duration_ms: number
    error_class: string | null
    response_excerpt: string | null
  }[]
}

/** The event of the change just made, found by its time: it was recorded in the transaction of the change. */
async function loadEvent(client: DemoClient, rows: DemoRows, changedAt: string): Promise<Row> {
  const filters = [
    encodeFilter('event', 'contract.update'),
    encodeFilter('resource_id', rows.contract.document_id),
    `filters=${encodeURIComponent(`created_at|gte|${changedAt}`)}`,
  ]
  const [event] = await client.call<Row[]>('GET', `/api/v3/webhook/event-occurrence?${filters.join('&')}&page_size=1`)
  if (!event) throw new FatalError('The demonstration change recorded no event.')
  return event
}

/** Follows the delivery of the change to the demo webhook until it ends, and prints each step. */
async function showDelivery(
  client: DemoClient,
  rows: DemoRows,
  options: DemoOptions & { changedAt: string },
): Promise<DispatchDetail> {
  const { clock, print, changedAt } = options
  const event = await loadEvent(client, rows, changedAt)
  print(`  event     ${event.event}  ${event.document_id}`)
  const list = `/api/v3/webhook/dispatch?${encodeFilter('webhook', rows.webhook.document_id)}&${encodeFilter('event_id', event.document_id)}&page_size=1`
  const deadline = clock.now() + DELIVERY_LIMIT_MS
  let printedAttempts = 0
  while (clock.now() < deadline) {
    const [newest] = await client.call<Row[]>('GET', list)
    if (newest) {
      const dispatch = await client.call<DispatchDetail>('GET', `/api/v3/webhook/dispatch/${newest.document_id}`)
      for (const attempt of dispatch.attempts_log.slice(printedAttempts)) {
        const outcome = attempt.status_code ?? attempt.error_class
        print(`  attempt   ${attempt.attempt}  ${outcome}  ${attempt.duration_ms} ms`)
        if (attempt.status_code === 200) print(`  sink      ${attempt.response_excerpt?.trim()}`)
      }
      printedAttempts = dispatch.attempts_log.length
      if (dispatch.status === 'success') {
        print(`  ledger    ${dispatch.document_id}  ${dispatch.status}  attempts = ${dispatch.attempts}`)
        await showPublication(client, event, options)
        return dispatch
      }
      // Row and attempts are read one after the other: an attempt may exist before the row has its outcome.
      if (dispatch.status !== 'pending')
        throw new FatalError('The demonstration delivery was not accepted by the sink; the attempt above says why.')
    }
    await clock.sleep(25)
  }
  throw new FatalError(
    'The demonstration delivery was not posted within 15 s. Does SIGNALBOX_ROLES hold api and dispatcher?',
  )
}

/** Prints the channels of the change, where it is published in realtime within a second. */
async function showPublication(client: DemoClient, event: Row, { clock, print }: DemoOptions): Promise<void> {
  const list = `/api/v3/realtime/message?${encodeFilter('document_id', event.document_id)}&page_size=1`
  const deadline = clock.now() + PUBLICATION_LIMIT_MS
  while (clock.now() < deadline) {
    const [message] = await client.call<Row[]>('GET', list)
    if (message?.status === 'published')
      return print(`  realtime  published on ${(message.channels as string[]).join(', ')}`)
    if (message?.status !== 'pending') return
    await clock.sleep(25)
  }
}

function buildCommands(input: {
  baseUrl: string
  rows: DemoRows
  dispatch: DispatchDetail | undefined
  tokenFile: string
}): string[] {
  const { baseUrl, rows, dispatch, tokenFile } = input
  const authorize = `-H "Authorization: Bearer $(cat ${quoteForShell(tokenFile)})"`
  const contract = `${baseUrl}/api/v3/contract/contract/${rows.contract.document_id}`
  const change = `curl -s -X PATCH ${contract} ${authorize} -H 'Content-Type: application/json' -d '{"name":"Changed by hand"}'`
  if (!dispatch) return [change]
  return [
    change,
    `curl -s -X POST ${baseUrl}/api/v3/webhook/webhook/${rows.webhook.document_id}/test ${authorize}`,
    `curl -s ${baseUrl}/api/v3/webhook/dispatch/${dispatch.document_id} ${authorize}`,
  ]
}

function quoteForShell(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}
