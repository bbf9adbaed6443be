import { describe, expect, test } from 'vitest'
import { buildDeliveryHeaders } from '../../delivery/post/delivery-headers.ts'
import { verifyTimestamped } from '../../outbound/signature.ts'
import { buildEnvelope, type EnvelopeEvent } from './envelope.ts'

const EVENT: EnvelopeEvent = {
  id: '0190a5c0-0000-7000-8000-000000000001',
  type: 'contract.update',
  createdAt: new Date('2026-09-11T10:00:00.123Z'),
  account: '0190a5c0-0000-7000-8000-000000000002',
  resource: 'contract',
  action: 'update',
  resourceId: '0190a5c0-0000-7000-8000-000000000003',
  url: '/api/v3/contract/contract/0190a5c0-0000-7000-8000-000000000003',
}

describe('buildEnvelope', () => {
  test('has the members of the contract in their order, and nothing else', () => {
    expect(buildEnvelope({ event: EVENT, attempt: 2 })).toBe(
      '{"id":"0190a5c0-0000-7000-8000-000000000001","type":"contract.update","api_version":"2026-09-11",' +
        '"created_at":"2026-09-11T10:00:00.123Z","attempt":2,"data":{"account":"0190a5c0-0000-7000-8000-000000000002",' +
        '"resource":"contract","action":"update","id":"0190a5c0-0000-7000-8000-000000000003",' +
        '"url":"/api/v3/contract/contract/0190a5c0-0000-7000-8000-000000000003"}}',
    )
  })

  test('writes null for what an event does not have', () => {
    const event = { ...EVENT, account: null, resourceId: null, url: null }
    expect(JSON.parse(buildEnvelope({ event, attempt: 1 })).data).toEqual({
      account: null,
      resource: 'contract',
      action: 'update',
      id: null,
      url: null,
    })
  })

  test('never carries more of the resource than its id', () => {
    const event = { ...EVENT, email: 'a@example.com' } as EnvelopeEvent
    expect(buildEnvelope({ event, attempt: 1 })).not.toContain('a@example.com')
  })
})

describe('buildDeliveryHeaders', () => {
  test('are the headers of the contract, signed over this very body', () => {
    const body = buildEnvelope({ event: EVENT, attempt: 3 })
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const headers = buildDeliveryHeaders({
      userAgent: 'Signalbox-Webhooks/1.2.3',
      secret,
      eventId: EVENT.id,
      eventType: EVENT.type,
      deliveryId: 'd-1',
      attempt: 3,
      timestampSeconds: 1_789_000_000,
      body,
    })
    expect(headers).toEqual({
      'content-type': 'application/json',
      'user-agent': 'Signalbox-Webhooks/1.2.3',
      'x-service-event': 'contract.update',
      'x-service-delivery': 'd-1',
      'x-service-attempt': '3',
      'x-service-signature': expect.stringMatching(/^t=1789000000,v1=[0-9a-f]{64}$/),
      'webhook-id': EVENT.id,
      'webhook-timestamp': '1789000000',
      'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
    })
    const header = headers['x-service-signature']
    expect(verifyTimestamped({ secret, header, body, nowSeconds: 1_789_000_000 }).ok).toBe(true)
  })
})
