import type { EventId } from '../../base/id.ts'
import { BUSY_TYPES, RARE_TYPES } from './event-types.ts'
import { buildTimedIds, DAY_MS, FILLED_DAYS, HOUR_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import type { SampleAccount, SampleUser } from './users.ts'

/** An event of the sample. */
export interface SampleEvent {
  id: EventId
  type: string
  at: Date
  account: SampleAccount | undefined
  contract: string | undefined
  /** The user that made it over the API; undefined for one that a backend published. */
  user: SampleUser | undefined
  resourceId: string
  url: string | null
}

/** Events of an account and a working day, before its size. */
const EVENTS_OF_DAY = 36

/** Contracts of an account before the month. */
const FIRST_CONTRACTS = 6

/** Deliveries to hosts that do not exist end before `now`: five attempts take 2 h 37 min. */
const RARE_REST_MS = 3 * HOUR_MS

/** Weight of each hour of a day, in UTC: offices in Europe. */
const HOURS = [2, 1, 1, 1, 2, 3, 6, 10, 14, 16, 16, 15, 12, 15, 16, 15, 13, 10, 8, 6, 5, 4, 3, 3]

/** An event before it has an id and a resource. */
interface Draft {
  at: Date
  type: string
  account: SampleAccount
}

/** Builds a month of events with the contracts that they are about. */
export function buildEvents(
  plan: SamplePlan,
  accounts: readonly SampleAccount[],
): { rows: SampleRows; events: SampleEvent[] } {
  const drafts = accounts
    .flatMap((account, number) => draftEvents(plan, account, number))
    .sort((a, b) => a.at.getTime() - b.at.getTime())
  const contracts = new ContractBook(plan, accounts)
  const idsAt = buildTimedIds(plan.dice)
  const events = drafts.map((draft, number): SampleEvent => {
    const id = idsAt(draft.at).next<'event'>()
    if (!draft.type.startsWith('contract.')) return { ...draft, id, ...describePublished(draft.type, number) }
    const user = plan.dice.pick(draft.account.members.filter(({ isActived }) => isActived))
    const contract = contracts.change(draft, user)
    return { ...draft, id, contract, user, resourceId: contract, url: `/api/v3/contract/contract/${contract}` }
  })
  return { rows: { contract: contracts.rows }, events }
}

/** Builds the rows of events, which were routed when they were recorded. */
export function buildEventRows(plan: SamplePlan, events: readonly SampleEvent[]): SampleRows {
  const event_occurrence = events.map(({ id, type, at, account, user, resourceId, url }, number) => {
    const [resource = '', action = ''] = type.split('.')
    const isPublished = account !== undefined && user === undefined
    return {
      ...{ document_id: id, event: type, account: account?.id ?? null, resource, action, resource_id: resourceId, url },
      ...{ is_purge: false, excluded_webhook: account ? null : findNoticed(resourceId, resource) },
      ...{ routed_at: at, created_at: at },
      published_by: isPublished ? (account.members[0]?.id ?? null) : null,
      publish_api_key: isPublished ? account.apiKey : null,
      publish_request: isPublished ? plan.idOf('request', number) : null,
      publish_address: isPublished ? '198.51.100.20' : null,
    }
  })
  return { event_occurrence }
}

/** A notice about a webhook does not reach it. */
const findNoticed = (resourceId: string, resource: string) => (resource === 'webhook' ? resourceId : null)

function draftEvents(plan: SamplePlan, account: SampleAccount, number: number): Draft[] {
  const { dice } = plan
  // From a third of the usual to the double of it.
  const size = 0.35 + ((number * 5) % 12) * 0.15
  return Array.from({ length: FILLED_DAYS }, (_, day) => day).flatMap((day) => {
    const begin = plan.before((FILLED_DAYS - day) * DAY_MS)
    const isWeekend = [0, 6].includes(begin.getUTCDay())
    // The platform grows by a third over the month.
    const count = Math.round(
      EVENTS_OF_DAY * size * (isWeekend ? 0.3 : 1) * (0.75 + day / 115) * (0.85 + dice.next() * 0.3),
    )
    const busy = Array.from({ length: count }, () => ({ account, type: pickBusy(plan), at: pickTime(plan, begin) }))
    const rare = Array.from({ length: 2 }, () => ({ account, type: dice.pick(RARE_TYPES), at: pickTime(plan, begin) }))
    return [...busy, ...rare.filter(({ at }) => at <= plan.before(RARE_REST_MS))]
  })
}

function pickBusy({ dice }: SamplePlan): string {
  let left = dice.between(1, 100)
  for (const [type, share] of BUSY_TYPES) {
    left -= share
    if (left <= 0) return type
  }
  return BUSY_TYPES[0][0]
}

const TOTAL = HOURS.reduce((sum, weight) => sum + weight, 0)

/** An instant of the day starting at `begin`, more likely at hours with more traffic. */
function pickTime({ dice }: SamplePlan, begin: Date): Date {
  let left = dice.next() * TOTAL
  const first = begin.getUTCHours()
  for (let passed = 0; passed < 24; passed++) {
    left -= HOURS[(first + passed) % 24]!
    if (left <= 0) return new Date(begin.getTime() + Math.floor((passed + dice.next()) * HOUR_MS))
  }
  return begin
}

/** Resource of a published event: a row of the publisher, which the service does not have. */
function describePublished(type: string, number: number) {
  const [resource = ''] = type.split('.')
  return { contract: undefined, user: undefined, resourceId: `${resource}_${10_000 + number}`, url: null }
}

const CONTRACT_NAMES = [
  'Framework',
  'Maintenance',
  'Hosting',
  'Delivery',
  'Support',
  'Licence',
  'Lease',
  'Service level',
]

/** The contracts of accounts, as their events change them. */
class ContractBook {
  readonly rows: NonNullable<SampleRows['contract']> = []
  readonly #plan: SamplePlan
  readonly #byAccount = new Map<string, NonNullable<SampleRows['contract']>>()

  constructor(plan: SamplePlan, accounts: readonly SampleAccount[]) {
    this.#plan = plan
    for (const account of accounts)
      for (let number = 0; number < FIRST_CONTRACTS; number++)
        this.#add(account, plan.before((32 + 3 * number) * DAY_MS), account.members[0]!)
  }

  /** Creates a contract, or changes the status of one. Returns its id. */
  change({ type, account, at }: Draft, user: SampleUser): string {
    if (type === 'contract.create') return this.#add(account, at, user).document_id
    const row = this.#plan.dice.pick(this.#byAccount.get(account.id) ?? [])
    row.status = this.#plan.dice.pick(['draft', 'active', 'active', 'active', 'ended'])
    row.updated_by = user.id
    row.updated_at = at
    return row.document_id
  }

  #add(account: SampleAccount, at: Date, user: SampleUser) {
    const number = this.rows.length
    const name = `${CONTRACT_NAMES[number % CONTRACT_NAMES.length]} ${1_000 + number}`
    const row = {
      ...{ document_id: this.#plan.idOf('contract', number), account: account.id, name, status: 'active' },
      ...{ created_by: user.id, updated_by: user.id, created_at: at, updated_at: at },
    }
    this.rows.push(row)
    const own = this.#byAccount.get(account.id) ?? []
    this.#byAccount.set(account.id, [...own, row])
    return row
  }
}
