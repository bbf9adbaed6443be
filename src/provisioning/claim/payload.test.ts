import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EventId, UserId } from '../../base/id.ts'
import { buildPayload, PROVISIONING_EVENTS, type ProvisioningChange } from './payload.ts'

const ID = '0190a5c0-0000-7000-8000-000000000001'

test('the body has the members of the contract in their order', () => {
  const change: ProvisioningChange = {
    eventId: ID as EventId,
    type: 'user.updated',
    createdAt: new Date(Date.UTC(2026, 8, 11)),
    user: { id: ID as UserId, email: 'ada@example.com', name: 'Ada', status: 'active' },
  }
  expect(buildPayload(change, 2)).toBe(
    `{"id":"${ID}","type":"user.updated","api_version":"2026-09-11","created_at":"2026-09-11T00:00:00.000Z",` +
      `"attempt":2,"data":{"user":{"document_id":"${ID}","email":"ada@example.com","name":"Ada","status":"active"}}}`,
  )
})

test('the body has identity and status only, whatever else the change carries', () => {
  const anything = fc.dictionary(fc.string(), fc.anything())
  fc.assert(
    fc.property(
      anything,
      anything,
      fc.constantFrom(...PROVISIONING_EVENTS),
      fc.emailAddress(),
      fc.option(fc.string(), { nil: null }),
      (moreOfChange, moreOfUser, type, email, name) => {
        const user = { ...moreOfUser, roles: ['administrator'], permissions: ['user:*'], accounts: [ID] }
        const body = JSON.parse(
          buildPayload(
            {
              ...moreOfChange,
              eventId: ID as EventId,
              type,
              createdAt: new Date(0),
              user: { ...user, id: ID as UserId, email, name, status: 'active' },
            },
            1,
          ),
        )
        expect(Object.keys(body)).toEqual(['id', 'type', 'api_version', 'created_at', 'attempt', 'data'])
        expect(Object.keys(body.data)).toEqual(['user'])
        expect(body.data.user).toEqual({ document_id: ID, email, name, status: 'active' })
      },
    ),
  )
})
