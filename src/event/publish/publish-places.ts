import type { AccountId, EventId } from '../../base/id.ts'
import { prepare, type Served } from '../../http/pipeline/perform.ts'
import type { Place, Places } from '../../http/pipeline/pipeline-deps.ts'
import { moveTo, throwNamed } from '../../http/pipeline/serve-placed.ts'
import { type Answer, buildAnswer } from '../../http/route/answer.ts'
import { includesAccount } from '../../http/shape/caller.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { readRefusedAccounts } from '../../postgres/cell/account-fence.ts'
import type { PublishAnswer, PublishBody } from '../occurrence/event.schema.ts'
import { buildAccepted, readPublications } from './publication-form.ts'
import { checkPublications, type PublishDeps } from './publish.ts'

interface Publishing {
  places: Places
  /** Records the publications of a request in its database. */
  perform: (served: Served<PublishDeps>) => Promise<Answer>
}

/**
 * Publishes where the accounts are (docs/contract/events.md#publishing-from-outside): checked as a whole, recorded database
 * by database, each all or nothing.
 */
export async function publishInPlaces(served: Served<PublishDeps>, publishing: Publishing): Promise<Answer> {
  const { publications } = readPublications(served.context.body as Static<typeof PublishBody>)
  const accounts = publications.map(({ account }) => account as AccountId | null)
  const parts = await splitByPlace(served, publishing.places, {
    accounts,
    of: accounts.map((_account, index) => index),
  })
  const [first] = parts
  if (first && parts.length === 1) {
    try {
      return await performAt(served, publishing, first)
    } catch (error) {
      if (!forgetRefused(publishing.places, error)) throw error
      const again = await splitByPlace(served, publishing.places, { accounts, of: first.of })
      if (again.length === 1 && again[0]?.place === first.place) throw error
    }
  }
  return publishParts(served, publishing, accounts)
}

/** The publications of one database, by their numbers in the request. */
interface Part {
  place: Place
  of: readonly number[]
}

/** Records the parts, each once more where its accounts have moved meanwhile. */
async function publishParts(
  served: Served<PublishDeps>,
  publishing: Publishing,
  accounts: readonly (AccountId | null)[],
): Promise<Answer> {
  const { places } = publishing
  const body = served.context.body as Static<typeof PublishBody>
  await prepare(served)
  await checkPublications(served.context.db, { ...readPublications(body), scope: served.context.scope })
  // The preparation holds for all parts.
  const { prepare: _prepare, ...route } = served.route
  const ids: EventId[] = []

  async function record(part: Part): Promise<void> {
    const context = body.events
      ? served.context.withBody({ events: part.of.map((index) => body.events?.[index]) })
      : served.context
    const answer = await performAt({ ...served, route, context }, publishing, part)
    const { data } = JSON.parse(String(answer.payload)) as { data: Static<typeof PublishAnswer> }
    data.events.forEach((event, index) => {
      ids[part.of[index] as number] = event.event_id as EventId
    })
  }

  async function recordOrFollow(part: Part): Promise<void> {
    try {
      await record(part)
    } catch (error) {
      if (!forgetRefused(places, error)) throw error
      const again = await splitByPlace(served, places, { accounts, of: part.of })
      if (again.length === 1 && again[0]?.place === part.place) throw error
      for (const one of again) await record(one)
    }
  }

  const parts = await splitByPlace(served, places, { accounts, of: accounts.map((_account, index) => index) })
  for (const part of parts) await recordOrFollow(part)
  return buildAnswer(route, buildAccepted(ids), served.reply)
}

function forgetRefused(places: Places, error: unknown): boolean {
  const refused = readRefusedAccounts(error)
  for (const account of refused) places.forget(account)
  return refused.length > 0
}

async function performAt(served: Served<PublishDeps>, { perform }: Publishing, part: Part): Promise<Answer> {
  return perform(moveTo(served, part.place)).catch((error: unknown) => throwNamed(error, part))
}

/** The databases of publications. Without an account, or for one that the caller may not name, it is home. */
async function splitByPlace(
  { context: { scope } }: Served<PublishDeps>,
  places: Places,
  { accounts, of }: { accounts: readonly (AccountId | null)[]; of: readonly number[] },
): Promise<Part[]> {
  const placed = of.flatMap((index) => {
    const account = accounts[index] ?? null
    return account !== null && includesAccount(scope, account) ? [account] : []
  })
  const found = await places.findAll(placed)
  const placeOf = (index: number) => found.get(accounts[index] as AccountId) ?? places.home
  return [...Map.groupBy(of, placeOf)].map(([place, items]) => ({ place, of: items }))
}
