import type { AccountScope } from '../../http/route/route.ts'

/** Version of the envelope (docs/contract/webhooks.md#envelope), which a test compares with that of deliveries. */
const API_VERSION = '2026-09-11'

/** Ids of examples. */
const EVENT = '01997e2a-6c00-7000-8000-0000000000e1'
const ACCOUNT = '01997e2a-6c00-7000-8000-0000000000ac'
const RESOURCE = '01997e2a-6c00-7000-8000-0000000000a1'

/** The body of a delivery, as an example. */
export type EventExample = {
  id: string
  type: string
  api_version: string
  created_at: string
  attempt: number
  data: { account: string | null; resource: string; action: string; id: string; url: string | null }
}

/** Actions after which the resource is not read any more. */
const ENDING_ACTIONS = ['delete', 'purge']

/** The body that a webhook gets for an event of a type. `readPath`: the path of the resource, with `{id}`. Pure. */
export function buildExample(type: {
  internal: string
  accountScope: AccountScope
  readPath: string | null
}): EventExample {
  const { internal, accountScope, readPath } = type
  const [resource = '', action = ''] = internal.split('.')
  const hasOwner = accountScope === 'account' && action !== 'purge'
  const isGone = ENDING_ACTIONS.includes(action)
  return {
    id: EVENT,
    type: internal,
    api_version: API_VERSION,
    created_at: '2026-09-11T08:00:00.000Z',
    attempt: 1,
    data: {
      account: hasOwner ? ACCOUNT : null,
      resource,
      action,
      id: RESOURCE,
      url: readPath === null || isGone ? null : readPath.replace('{id}', RESOURCE),
    },
  }
}
