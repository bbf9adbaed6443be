import { Problem } from '../../http/problem/problem.ts'
import type { ProviderClient } from './provider-client.ts'

/** Name of a test event on its channel (docs/contract/realtime.md#test-event). No event type of the catalogue has it. */
const TEST_EVENT = 'realtime.test'

/** Publishes a test event once. Throws 503 `dependency_unavailable` when the provider does not accept it. */
export async function publishTestEvent(
  client: Pick<ProviderClient, 'send'>,
  { channel, text, now }: { channel: string; text: string; now: Date },
): Promise<{ event: string; channel: string }> {
  const data = JSON.stringify({ type: TEST_EVENT, created_at: now.toISOString(), data: { text } })
  const body = JSON.stringify({ batch: [{ name: TEST_EVENT, channel, data }] })
  const answer = await client.send({ method: 'POST', path: '/batch_events', body })
  if (answer.kind === 'ok') return { event: TEST_EVENT, channel }
  const reason = answer.kind === 'own_fault' ? 'own_fault' : answer.errorClass
  throw new Problem('dependency_unavailable', `The realtime provider did not take the event: ${reason}.`)
}
