import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openTexts, SEAL_BYTES, sealTexts } from './bus-seal.ts'

const [KEY, OTHER] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

test('texts come out of their packets in their order, and a packet keeps the limit where its texts do', () => {
  const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 40 }), { maxLength: 30 })
  fc.assert(
    fc.property(texts, fc.integer({ min: SEAL_BYTES, max: 400 }), (given, limit) => {
      const packets = sealTexts(KEY, given, limit)
      expect(packets.flatMap((packet) => openTexts([OTHER, KEY], packet))).toEqual(given)
      for (const packet of packets) if (packet.length > limit) expect(openTexts([KEY], packet)).toHaveLength(1)
    }),
  )
})

test('a packet under another key, cut, changed or foreign has no text', () => {
  const [packet = Buffer.alloc(0)] = sealTexts(KEY, ['a', 'b'], 1_000)
  expect(openTexts([OTHER], packet)).toEqual([])
  for (let length = 0; length < packet.length; length += 1)
    expect(openTexts([KEY], packet.subarray(0, length))).toEqual([])
  for (let at = 0; at < packet.length; at += 1) {
    const changed = Buffer.from(packet)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(openTexts([KEY], changed)).toEqual([])
  }
  expect(openTexts([KEY], randomBytes(1_048_576))).toEqual([])
})
