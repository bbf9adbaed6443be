import { FatalError } from '../../app/log/fatal.ts'
import type { ApiClient } from './api-client.ts'
import { EVENTS_PATH, type EventRow } from './event-feed.ts'

const ACCOUNT_PATH = '/api/v3/identity/account'
const CONTRACT_PATH = '/api/v3/contract/contract'

/** The name of the rows that `trigger` creates and reuses. */
const TRIGGER_NAME = 'Signalbox trigger'

type ContractEvent = 'contract.create' | 'contract.update' | 'contract.delete'

interface ContractRow {
  document_id: string
  account: string
  name: string
  status: string
  updated_at: string
}

/** The action and its contract. */
export interface ContractChange {
  event: ContractEvent
  /** The account of the contract; without it, one of our own. */
  account?: string
  /** An existing contract; without it, one of our own. */
  id?: string
}

/** Whether `changeContract` can cause this event. */
export function isContractEvent(event: string): event is ContractEvent {
  return ['contract.create', 'contract.update', 'contract.delete'].includes(event)
}

/**
 * Creates, changes or deletes a contract through the API and returns its event. The created rows stay, so that a receiver
 * can read the resource. An update switches the status, because an update without a difference records no event; the
 * status of a contract given by id is restored, which is a second event.
 */
export async function changeContract(
  deps: { client: ApiClient; print: (line: string) => void },
  change: ContractChange,
): Promise<EventRow> {
  const { client, print } = deps
  const { event } = change
  if (event === 'contract.create') {
    const contract = await createContract(client, change.account)
    print(`contract  ${contract.document_id}  created`)
    return findEventOf(client, event, contract)
  }
  const contract =
    change.id === undefined ? await ensureContract(client, change) : await readContract(client, change.id)
  const path = `${CONTRACT_PATH}/${contract.document_id}`
  if (event === 'contract.delete') {
    const { data } = await client.call<ContractRow>('DELETE', path)
    print(`contract  ${data.document_id}  deleted`)
    return findEventOf(client, event, data)
  }
  const switched = { status: contract.status === 'active' ? 'draft' : 'active' }
  let { data } = await client.call<ContractRow>('PATCH', path, switched)
  if (change.id !== undefined) ({ data } = await client.call<ContractRow>('PATCH', path, { status: contract.status }))
  print(`contract  ${data.document_id}  updated`)
  return findEventOf(client, event, data)
}

async function readContract(client: ApiClient, id: string): Promise<ContractRow> {
  const { data } = await client.call<ContractRow>('GET', `${CONTRACT_PATH}/${id}`)
  return data
}

/** The contract: to change, our own one of the account; to delete, a new one. */
async function ensureContract(client: ApiClient, { event, account }: ContractChange): Promise<ContractRow> {
  if (event === 'contract.delete') return createContract(client, account)
  const owner = account ?? (await ensureAccount(client))
  const filters = [`name|eq|${TRIGGER_NAME}`, `account|eq|${owner}`]
  const { data } = await client.listPage<ContractRow>(CONTRACT_PATH, { filters, pageSize: 1 })
  return data[0] ?? createContract(client, owner)
}

async function createContract(client: ApiClient, account: string | undefined): Promise<ContractRow> {
  const body = { name: TRIGGER_NAME, account: account ?? (await ensureAccount(client)) }
  const { data } = await client.call<ContractRow>('POST', CONTRACT_PATH, body)
  return data
}

async function ensureAccount(client: ApiClient): Promise<string> {
  const request = { filters: [`name|eq|${TRIGGER_NAME}`], sort: 'created_at', pageSize: 1 }
  const { data } = await client.listPage<{ document_id: string }>(ACCOUNT_PATH, request)
  if (data[0]) return data[0].document_id
  const created = await client.call<{ document_id: string }>('POST', ACCOUNT_PATH, { name: TRIGGER_NAME })
  return created.data.document_id
}

/** The event of a change, recorded in its transaction with its time (docs/contract/events.md#atomicity). */
async function findEventOf(client: ApiClient, event: string, contract: ContractRow): Promise<EventRow> {
  const filters = [
    `event|eq|${event}`,
    `resource_id|eq|${contract.document_id}`,
    `created_at|eq|${contract.updated_at}`,
  ]
  const { data } = await client.listPage<EventRow>(EVENTS_PATH, { filters, pageSize: 1 })
  if (data[0]) return data[0]
  throw new FatalError(
    'The contract changed and no event was recorded: ENABLE_API_EVENT_QUEUE of the service is false.',
  )
}
