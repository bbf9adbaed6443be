import { expect, test } from 'vitest'
import { buildIdMaker } from '../../src/base/id.ts'
import { systemRandom } from '../../src/base/random.ts'
import { type ApiClient, buildApiClient } from '../../src/command/receiver/api-client.ts'
import { listenByPull } from '../../src/command/receiver/listen-session.ts'
import { type Receiver, startReceiver } from '../harness/fakes/receiver.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { waitFor } from '../harness/run/wait.ts'
import { openCliFixture } from './receiver-cli-fixture.ts'

const PATH = '/api/v3/webhook/webhook'

const fixture = await openForFile(openCliFixture())

async function makePulling(): Promise<string> {
  const body = { mode: 'pull', account: fixture.account, events: ['contract.create'] }
  return (await fixture.service.admin('POST', PATH, body)).body.data.document_id
}

const readRow = async (webhook: string) =>
  (await fixture.service.admin('GET', `/api/v3/webhook/dispatch?filters=webhook|eq|${webhook}`)).body.data[0]

/** Listens by the clock of the service, in this process. `extended` counts the answered extensions. */
function listenHere(webhook: string, target: Receiver) {
  const { clock, adminToken: token } = fixture.service
  const stop = new AbortController()
  const counts = { extended: 0 }
  const notes: string[] = []
  const built = buildApiClient({ url: fixture.url, token, signal: stop.signal })
  const client: ApiClient = {
    ...built,
    call: async (method, path, body) => {
      const answer = await built.call<never>(method, path, body)
      if (path.endsWith('/extend')) counts.extended += 1
      return answer
    },
  }
  const ended = listenByPull(
    {
      ...{ client, clock, ids: buildIdMaker(clock, systemRandom), out: () => {}, note: (line) => notes.push(line) },
      lastClient: buildApiClient({ url: fixture.url, token }),
    },
    { webhook, forwardUrl: `${target.origin}/hook`, printJson: false, signal: stop.signal, givesBack: false },
  )
  return { counts, notes, ended, stop: () => stop.abort() }
}

test('a lease is extended while the receiver works, so that its answer acknowledges the one attempt', async () => {
  await using target = await startReceiver()
  const answer = Promise.withResolvers<void>()
  target.behave({ kind: 'wait', until: answer.promise })
  const id = await makePulling()
  await fixture.createContract()
  const listening = listenHere(id, target)
  await target.waitFor(1)
  // Four steps are longer than a lease of 30 s.
  for (let step = 1; step <= 4; step += 1) {
    fixture.service.clock.advance(10_000)
    await waitFor('the extension', async () => listening.counts.extended === step)
  }
  answer.resolve()
  await waitFor('the acknowledgement', async () => (await readRow(id)).status === 'success')
  expect(await readRow(id)).toMatchObject({ attempts: 1, last_error: null })
  expect(target.requests).toHaveLength(1)
  // A settled delivery is not extended.
  fixture.service.clock.advance(10_000)
  listening.stop()
  await listening.ended
  expect(listening.counts.extended).toBe(4)
})

test('a stop interrupts the receiver and gives the delivery back at once, for another consumer', async () => {
  await using target = await startReceiver()
  target.behave({ kind: 'hang' })
  const id = await makePulling()
  await fixture.createContract()
  const listening = listenHere(id, target)
  await target.waitFor(1)
  listening.stop()
  await listening.ended
  const pulled = await fixture.service.admin('POST', `${PATH}/${id}/pull`, {})
  expect(pulled.body.data.deliveries).toMatchObject([{ attempt: 2 }])
})

test('a slow receiver of one delivery keeps no other one waiting', async () => {
  await using target = await startReceiver()
  target.behaveNext({ kind: 'hang' })
  const id = await makePulling()
  await fixture.createContract()
  const listening = listenHere(id, target)
  await target.waitFor(1)
  await fixture.createContract()
  await target.waitFor(2)
  listening.stop()
  await listening.ended
})

test('a session that the service refuses ends with its refusal', async () => {
  await using target = await startReceiver()
  const answer = Promise.withResolvers<void>()
  target.behave({ kind: 'wait', until: answer.promise })
  const id = await makePulling()
  await fixture.createContract()
  const listening = listenHere(id, target)
  await target.waitFor(1)
  await fixture.service.admin('DELETE', `${PATH}/${id}`)
  const ended = expect(listening.ended).rejects.toThrow('not_found')
  answer.resolve()
  let isOver = false
  listening.ended.catch(() => {
    isOver = true
  })
  // The pull that waits ends by the clock of the service.
  await waitFor('the end', async () => {
    fixture.service.clock.advance(1_000)
    return isOver
  })
  await ended
})
