import { describe, expect, test } from 'vitest'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const LEDGER = '/api/v3/webhook/dispatch'

const d = await openForFile(openDelivery())
const { id } = await d.makeWebhook()
d.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
await d.emit(3)
await d.sendTest(id)
await d.pass(0)
const rows = await d.listRows()
const ended = String(rows[0]?.document_id)
const waiting = String(rows[1]?.document_id)
await d.replay(ended)
await d.pass(0)
await d.setActive(id, true)
await d.replay(waiting)

describe('the ledger by is_replay', () => {
  const list = async (filter: string): Promise<{ document_id: string; is_replay: boolean }[]> =>
    (await d.call('GET', `${LEDGER}?filters=is_replay|${filter}`)).body.data

  test('tells replays, ended and waiting, from what the schedule and tests posted', async () => {
    const replays = await list('eq|true')
    expect(replays.map(({ document_id }) => document_id).sort()).toEqual([ended, waiting].sort())
    expect(replays.every(({ is_replay }) => is_replay)).toBe(true)
    const others = await list('eq|false')
    expect(others.map(({ is_replay }) => is_replay)).toEqual([false, false])
    expect(await list('in|true,false')).toHaveLength(4)
  })

  test('takes no other operator, and no other value', async () => {
    for (const operator of ['ne', 'nin', 'null']) {
      const refused = await d.t.admin('GET', `${LEDGER}?filters=is_replay|${operator}|true`)
      expect([refused.status, refused.body.detail]).toEqual([422, expect.stringContaining('allowed are eq, in.')])
    }
    expect((await d.t.admin('GET', `${LEDGER}?filters=is_replay|eq|maybe`)).status).toBe(422)
  })
})
