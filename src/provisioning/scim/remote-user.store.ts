import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { soleRowStatement } from '../../postgres/statement/statement.ts'
import type { TargetId } from '../target/target.store.ts'
import type { FoundUser } from './scim-user.ts'

/** Whether the user of this `externalId` is another one, or one with open deliveries, or this id is of another user. */
const selectHeld = soleRowStatement<
  { isHeld: boolean },
  { target: TargetId; user: UserId; remoteId: string; externalId: string | null },
  boolean
>(
  `select exists (
      select from "user" u where u.document_id = $externalId::uuid and u.document_id <> $user and u.deleted_at is null
    ) or exists (
      select from provisioning_stream s where s.target = $target and s.user_id = $externalId::uuid
        and s.user_id <> $user and s.waiting > 0
    ) or exists (
      select from provisioning_stream s join provisioning_target t on t.document_id = s.target
      where s.target = $target and s.remote_id = $remoteId and s.user_id <> $user and s.generation = t.generation
    ) as "isHeld"`,
  ({ isHeld }) => isHeld,
)

/** Ids of users of this service. */
const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Whether a found user of a SCIM service belongs to another user, or an open delivery of one may change it. */
export async function isHeldByOther(
  db: Database,
  { target, user, found }: { target: TargetId; user: UserId; found: FoundUser },
): Promise<boolean> {
  const externalId = UUID_PATTERN.test(found.externalId ?? '') ? found.externalId : null
  return selectHeld(db, { target, user, remoteId: found.id, externalId })
}
