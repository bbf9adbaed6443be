import { type CallbackDeps, checkNewUrl, checkUrl } from '../../delivery/post/callback-field.ts'
import { invalidField } from '../../http/problem/problem.ts'
import type { OwnHeaders } from './own-headers.ts'
import type { WebhookMode } from './webhook.schema.ts'

/** Mode and URL of a webhook; the URL of one that pulls is empty (docs/contract/pull.md#mode). */
export interface WebhookTarget {
  mode: WebhookMode
  url: string
}

/** Members of the body of a new webhook that are about its target. */
interface NewTarget {
  mode?: WebhookMode
  url?: string
  headers?: object
  max_per_second?: number | null
}

/** The mode and the URL of a row or an input. */
export const pickTarget = ({ mode, url }: WebhookTarget): WebhookTarget => ({ mode, url })

/** Checks the target of a new webhook: a push has a URL that resolves, a pull has none. Throws a 422 on the member. */
export async function checkNewTarget(
  deps: CallbackDeps,
  { mode = 'push', url, headers, max_per_second: limit }: NewTarget,
): Promise<void> {
  if (mode === 'pull') return checkNothingPosted({ url, headers, maxPerSecond: limit })
  if (url === undefined)
    throw invalidField(
      'url',
      'required',
      'is required. Give the callback URL, or "mode": "pull" for a webhook without one.',
    )
  await checkNewUrl(deps, url)
}

/** Checks the target of a changed webhook, without a look-up of the name. Throws a 422 on the member. */
export function checkKeptTarget(
  deps: Pick<CallbackDeps, 'callbackRules'>,
  before: WebhookTarget,
  change: { url?: string; headers?: OwnHeaders; maxPerSecond?: number | null },
): void {
  if (before.mode === 'pull') checkNothingPosted(change)
  else checkUrl(deps, change.url ?? before.url)
}

function checkNothingPosted({
  url,
  headers,
  maxPerSecond,
}: {
  url?: string | undefined
  headers?: object | undefined
  maxPerSecond?: number | null | undefined
}): void {
  if (url !== undefined)
    throw invalidField('url', 'not_of_mode', 'belongs to the mode push: a webhook that pulls has none. Leave it out.')
  if (headers !== undefined && Object.keys(headers).length > 0)
    throw invalidField('headers', 'not_of_mode', 'go with a POST: a webhook that pulls has none. Leave them out.')
  if (maxPerSecond)
    throw invalidField(
      'max_per_second',
      'not_of_mode',
      'limits POSTs: a webhook that pulls sets its own pace. Leave it out.',
    )
}
