import fc from 'fast-check'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { readPixels } from './picture-size.ts'

const draw = (width: number, height: number) => sharp({ create: { width, height, channels: 4, background: '#08f8' } })

test.each([
  ['PNG', () => draw(37, 11).png().toBuffer()],
  ['JPEG', () => draw(37, 11).jpeg().toBuffer()],
  ['progressive JPEG', () => draw(37, 11).jpeg({ progressive: true }).toBuffer()],
  ['JPEG with metadata', () => draw(37, 11).withMetadata({ orientation: 6 }).jpeg().toBuffer()],
  ['WebP', () => draw(37, 11).webp().toBuffer()],
  ['WebP without loss', () => draw(37, 11).webp({ lossless: true }).toBuffer()],
  ['WebP without transparency', () => draw(37, 11).removeAlpha().webp().toBuffer()],
])('the pixels of a %s are read, and none of one that is cut in its head', async (_name, make) => {
  const bytes = await make()
  expect(readPixels(bytes)).toBe(37 * 11)
  for (let length = 0; length < 20; length += 1) expect(readPixels(bytes.subarray(0, length))).toBeUndefined()
})

test('a picture has the marks of its format in their places', async () => {
  const [png, webp] = [await draw(37, 11).png().toBuffer(), await draw(37, 11).webp().toBuffer()]
  const change = (bytes: Buffer, at: number) =>
    Buffer.from(bytes.map((byte, index) => (index === at ? byte ^ 1 : byte)))
  for (let at = 0; at < 8; at += 1) expect(readPixels(change(png, at))).toBeUndefined()
  for (let at = 12; at < 16; at += 1) expect(readPixels(change(png, at))).toBeUndefined()
  for (const at of [0, 1, 2, 3, 8, 9, 10, 11]) expect(readPixels(change(webp, at))).toBeUndefined()
})

test('a JPEG has no other marker before its frame than those with a length', async () => {
  const jpeg = await draw(37, 11).jpeg().toBuffer()
  const withMarker = (marker: number) =>
    Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, marker, 0, 2]), jpeg.subarray(2)])
  const markers = Array.from({ length: 255 }, (_, marker) => marker)
  const taken = markers.filter((marker) => readPixels(withMarker(marker)) === 37 * 11)
  const applications = Array.from({ length: 16 }, (_, number) => 0xe0 + number)
  expect(taken).toEqual([0xc4, 0xcc, 0xdb, 0xdd, ...applications, 0xfe])
})

test('any bytes have a number of pixels or none, and never an error', () => {
  const heads = ['\x89PNG\r\n\x1a\n\0\0\0\rIHDR', '\xff\xd8\xff', 'RIFF\0\0\0\0WEBPVP8 ', 'RIFF\0\0\0\0WEBPVP8X', '']
  fc.assert(
    fc.property(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 200 }), (head, rest) => {
      const pixels = readPixels(Buffer.concat([Buffer.from(head, 'latin1'), rest]))
      expect(pixels === undefined || pixels >= 0).toBe(true)
    }),
  )
})
