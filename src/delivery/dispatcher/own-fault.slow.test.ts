import { describe, expect, test } from 'vitest'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'

const fail = (code: string) => Object.assign(new Error(code), { code })

describe('an attempt that this process could not make', () => {
  test('is none: its claim is given back, waits ever longer, counts for nothing, and is made when it can be', async () => {
    let isLacking = true
    await using d = await openDelivery({
      env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: '127.0.0.0/8' },
      lookup: async () => {
        if (isLacking) throw fail('EMFILE')
        return ['127.0.0.1']
      },
    })
    const { id } = await d.makeWebhook({ url: `http://hooks.example.com:${d.receiver.port}/hook` })
    await d.emit()
    await d.t.settle()
    const now = () => d.t.clock.now()
    const dueIn = async () => (await d.listRows())[0]!.next_attempt_at!.getTime() - now()
    expect(await d.listRows()).toMatchObject([
      { status: 'pending', attempts: 0, last_attempt_at: null, lease_owner: null },
    ])
    for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      expect(await dueIn()).toBe(waitMs)
      // The process claims nothing before, whatever else is due.
      expect(d.t.app.dispatcher.measureRoom()).toMatchObject({ fastSlots: 0, slowSlots: 0 })
      await d.pass(waitMs - 1)
      expect(await dueIn()).toBe(1)
      await d.pass(1)
    }
    expect(await d.listRows()).toMatchObject([{ status: 'pending', attempts: 0 }])
    expect(await d.readWebhook(id)).toMatchObject({ consecutive_failures: 0, is_actived: true })

    isLacking = false
    await d.pass(30_000)
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'success', attempts: 1 })
    expect(await d.listOutcomes(row!.document_id)).toEqual([200])
    expect(d.receiver.requests[0]!.headers['x-service-attempt']).toBe('1')
    const metrics = (await d.t.scrape()).body
    expect(metrics).toMatch(/signalbox_own_faults_total\{code="EMFILE"\} 8/)
    expect(metrics).toMatch(/signalbox_own_faults_total\{code="STALLED"\} 0/)
  })
})
