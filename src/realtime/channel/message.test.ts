import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { ROUTE_TREE } from '../../app/feature/route-tree.ts'
import { eventNameOf } from '../../http/route/route.ts'
import { buildEnvelope } from '../../webhook/envelope/envelope.ts'
import { buildMessage, MAX_EVENT_NAME_LENGTH, MAX_MESSAGE_BYTES, type MessageEvent } from './message.ts'

const EVENT: MessageEvent = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  type: 'contract.update',
  createdAt: new Date('2026-09-11T12:00:00.123Z'),
  account: '01890a5d-ac96-774b-bcce-b302099a8058',
  resource: 'contract',
  action: 'update',
  resourceId: '01890a5d-ac96-774b-bcce-b302099a8059',
  url: '/api/v3/contract/contract/01890a5d-ac96-774b-bcce-b302099a8059',
}

test('the message is the envelope of a webhook without the number of the attempt', () => {
  const { attempt: _, ...envelope } = JSON.parse(buildEnvelope({ event: EVENT, attempt: 1 }))
  expect(JSON.parse(buildMessage(EVENT))).toEqual(envelope)
})

test('no message is larger than a provider takes, whatever its event holds', () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: 'grapheme', minLength: 200, maxLength: 5_000 }),
    fc.integer({ min: 1, max: 20_000 }).map((length) => '€'.repeat(length)),
    fc.integer({ min: 1, max: 20_000 }).map((length) => '\u0001'.repeat(length)),
  )
  const event = fc.record({
    id: fc.uuid(),
    type: text,
    createdAt: fc.date({ noInvalidDate: true }),
    account: fc.option(fc.uuid()),
    resource: text,
    action: text,
    resourceId: fc.option(text),
    url: fc.option(text),
  })
  fc.assert(
    fc.property(event, (sample) => {
      const message = buildMessage(sample)
      expect(Buffer.byteLength(message)).toBeLessThan(MAX_MESSAGE_BYTES)
      expect(JSON.parse(message).id).toBe(sample.id)
    }),
  )
})

test('the longest id of a published resource is kept', () => {
  // The limits of `POST /api/v3/event/occurrence`: 255 characters, of six bytes each when they are escaped or not in the BMP.
  for (const resourceId of ['\u0001'.repeat(255), '€'.repeat(255), '"'.repeat(255), 'x'.repeat(255)])
    expect(JSON.parse(buildMessage({ ...EVENT, resourceId })).data.id).toBe(resourceId)
})

test('every event type of the API is a name that a provider takes', () => {
  for (const route of ROUTE_TREE) expect(eventNameOf(route).length).toBeLessThanOrEqual(MAX_EVENT_NAME_LENGTH)
})
