import type { FindOwner, RowOwner } from '../../http/route/cell-key.ts'
import { rowStatement } from '../../postgres/statement/statement.ts'

const one = (text: string): FindOwner => {
  const find = rowStatement<RowOwner, { id: string }>(text)
  return (db, id) => find(db, { id })
}

/** The owner of a webhook, deleted or not; a global one has none. */
export const findWebhookOwner = one('select account from webhook where document_id = $id')

/** The owner of a subscription: that of its webhook. */
export const findSubscriptionOwner = one('select account from webhook_event where document_id = $id')

/** The owner of a ledger row: that of its webhook. */
export const findDispatchOwner = one(`
  select w.account from webhook_dispatch d left join webhook w on w.document_id = d.webhook
  where d.document_id = $id`)

/** The owner of a bulk replay of one account; one of several has none. */
export const findJobOwner = one(`
  select case when cardinality(accounts) = 1 then accounts[1] end as account from replay_job where document_id = $id`)
