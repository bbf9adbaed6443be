import { sql } from 'kysely'
import { buildIdMaker, type UserId } from '../../../src/base/id.ts'
import type { Keyring } from '../../../src/base/keyring.ts'
import { systemRandom } from '../../../src/base/random.ts'
import type { Database } from '../../../src/postgres/statement/database.ts'
import type { DeliveryId } from '../../../src/provisioning/claim/claimed-delivery.ts'
import type { TargetId } from '../../../src/provisioning/target/target.store.ts'
import { targetSecretContextOf } from '../../../src/provisioning/target/target.ts'
import type { ManualClock } from '../run/manual-clock.ts'

/** Fields of a target that a test writes straight into the table. */
interface TargetRow {
  url?: string
  protocol?: 'webhook' | 'scim'
  isActived?: boolean
  /** The secret or token, and the keyring that seals it; else the target has one that does not open. */
  secret?: { text: string; keyring: Keyring }
}

/** Writes targets and users for the tests of the queue of provisioning. Times are the clock's. */
export function buildProvisioningLedger(db: Database, clock: ManualClock) {
  const ids = buildIdMaker(clock, systemRandom)
  const now = () => new Date(clock.now())

  async function addTarget(row: TargetRow = {}): Promise<TargetId> {
    const id = ids.next<'provisioning target'>()
    const { secret } = row
    await db
      .insertInto('provisioning_target')
      .values({
        document_id: id,
        protocol: row.protocol ?? 'webhook',
        url: row.url ?? 'https://target.example.com/users',
        is_actived: row.isActived ?? true,
        secret_encrypted: secret ? secret.keyring.seal(secret.text, targetSecretContextOf(id)) : 'not sealed',
        created_at: now(),
        updated_at: now(),
      })
      .execute()
    return id
  }

  /** Inserts a user, which queues it for every living target. */
  async function addUser(change: { name?: string | null; isActived?: boolean } = {}): Promise<UserId> {
    const id = ids.next<'user'>() as UserId
    await db
      .insertInto('user')
      .values({
        document_id: id,
        email: `${id}@example.com`,
        name: change.name ?? null,
        is_actived: change.isActived ?? true,
        created_at: now(),
        updated_at: now(),
      })
      .execute()
    return id
  }

  /** Changes a user as an operation does. */
  async function changeUser(
    id: UserId,
    change: { name?: string; email?: string; is_actived?: boolean; deleted_at?: Date },
  ): Promise<void> {
    await db
      .updateTable('user')
      .set({ ...change, updated_at: now() })
      .where('document_id', '=', id)
      .execute()
  }

  /** The deliveries of a user, in order. */
  async function listDeliveries(user?: UserId) {
    const rows = db.selectFrom('provisioning_delivery').selectAll().orderBy('target').orderBy('user_id')
    return (user ? rows.where('user_id', '=', user) : rows).orderBy('position').execute()
  }

  async function readDelivery(id: DeliveryId) {
    return db.selectFrom('provisioning_delivery').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  }

  async function readStream(target: TargetId, user: UserId) {
    const rows = db.selectFrom('provisioning_stream').selectAll().where('target', '=', target)
    return rows.where('user_id', '=', user).executeTakeFirstOrThrow()
  }

  /** Queues a delivery of the present state of a user for one target, due at an instant. */
  async function queue(target: TargetId, user: UserId, dueAt = now()): Promise<DeliveryId> {
    await sql`select queue_provisioning(array[${target}]::uuid[], array[${user}]::uuid[], array['user.updated'], ${now()}, null)`.execute(
      db,
    )
    await sql`update provisioning_stream set due_at = ${dueAt} where target = ${target} and user_id = ${user} and due_at is not null`.execute(
      db,
    )
    const rows = await listDeliveries(user)
    return rows.filter((row) => row.target === target).at(-1)?.document_id as DeliveryId
  }

  /** Queues a delivery for one target of each of `count` new users, whose creation itself queues nothing. */
  async function queueNewUsers(target: TargetId, count: number, dueAt = now()) {
    const users = Array.from({ length: count }, () => ids.next<'user'>())
    await sql`with switched as materialized (select set_config('signalbox.event_queue', 'off', true))
      insert into "user" (document_id, email, is_actived, created_at, updated_at)
      select id, id || '@example.com', true, ${now()}, ${now()} from switched, unnest(${users}::uuid[]) as x (id)`.execute(
      db,
    )
    const types = users.map(() => 'user.updated')
    await sql`select queue_provisioning(array[${target}]::uuid[], ${users}::uuid[], ${types}::text[], ${now()}, null)`.execute(
      db,
    )
    await sql`update provisioning_stream set due_at = ${dueAt} where target = ${target} and user_id = any(${users}::uuid[])`.execute(
      db,
    )
    const rows = await db
      .selectFrom('provisioning_delivery')
      .select(['document_id', 'user_id'])
      .where('user_id', 'in', users)
      .execute()
    const byUser = new Map(rows.map((row) => [row.user_id, row.document_id as DeliveryId]))
    return users.map((user) => byUser.get(user) as DeliveryId)
  }

  return { ids, now, addTarget, addUser, changeUser, listDeliveries, readDelivery, readStream, queue, queueNewUsers }
}

export type ProvisioningLedger = ReturnType<typeof buildProvisioningLedger>
