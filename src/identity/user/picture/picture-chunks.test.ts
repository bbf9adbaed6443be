import sharp from 'sharp'
import { expect, test } from 'vitest'
import { dropUnneeded } from './picture-chunks.ts'

const draw = () => sharp({ create: { width: 37, height: 11, channels: 4, background: '#08f8' } })

function chunk(name: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length, 0)
  head.write(name, 4, 'latin1')
  return Buffer.concat([head, data, Buffer.alloc(4)])
}

/** Where the chunk of the head ends. */
const HEAD = 33

test('a PNG keeps what its pixels are made of, and nothing else', async () => {
  const plain = dropUnneeded(await draw().png().toBuffer())
  for (const name of ['iCCP', 'zTXt', 'iTXt', 'tEXt', 'acTL', 'fcTL', 'fdAT', 'sRGB', 'prVt'])
    expect(
      dropUnneeded(Buffer.concat([plain.subarray(0, HEAD), chunk(name, Buffer.alloc(9)), plain.subarray(HEAD)])),
    ).toEqual(plain)
  for (const name of ['PLTE', 'tRNS', 'eXIf']) {
    const bytes = Buffer.concat([plain.subarray(0, HEAD), chunk(name, Buffer.alloc(9)), plain.subarray(HEAD)])
    expect(dropUnneeded(bytes)).toEqual(bytes)
  }
  expect(dropUnneeded(Buffer.concat([plain, Buffer.from('behind its end, as long as a chunk')]))).toEqual(plain)
})

test('a PNG that is cut stays cut, and other bytes stay as they are', async () => {
  const plain = dropUnneeded(await draw().png().toBuffer())
  for (let length = 0; length < plain.length; length += 1)
    expect(dropUnneeded(plain.subarray(0, length)).length).toBeLessThanOrEqual(length)
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('text'),
    await draw().webp().toBuffer(),
    await draw().jpeg().toBuffer(),
  ])
    expect(dropUnneeded(bytes)).toBe(bytes)
})
