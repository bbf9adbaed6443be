import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../../test/harness/app/app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { makePicture } from './picture-image.ts'

const PICTURE = '/api/v3/auth/user/picture'

const app = await openForFile(
  createTestApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000', BASE_URL: 'https://id.example.test' } }),
)

const draw = (width = 40, height = 20) => sharp({ create: { width, height, channels: 3, background: '#c00' } })
const upload = async (bytes: Buffer, caller?: Awaited<ReturnType<TestApp['signInMember']>>) => {
  const user = caller ?? (await app.signInMember())
  const answer = await user.call('PUT', PICTURE, { image: bytes.toString('base64') })
  return { ...user, answer, path: answer.body.data?.avatar_url?.replace('https://id.example.test', '') as string }
}
const read = async (path: string) => app.app.server.inject({ method: 'GET', url: path })
const fault = ({ answer }: { answer: { status: number; body: { errors?: { path: string; code: string }[] } } }) => [
  answer.status,
  answer.body.errors?.[0]?.path,
  answer.body.errors?.[0]?.code,
]

/** A chunk of a PNG. */
function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/** A PNG whose head says this size, with hardly any data. */
function buildBomb(width: number, height: number): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 0, 0, 0, 0], 8)
  const start = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([
    start,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.alloc(200_000))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A WebP of a canvas of one pixel around a frame of 268 million. */
function buildHiddenFrame(): Buffer {
  const bytes = Buffer.alloc(60)
  bytes.write('RIFF', 0, 'latin1')
  bytes.writeUInt32LE(52, 4)
  bytes.write('WEBPVP8X', 8, 'latin1')
  bytes.writeUInt32LE(10, 16)
  bytes.write('VP8L', 30, 'latin1')
  bytes.writeUInt32LE(16, 34)
  bytes.writeUInt8(0x2f, 38)
  bytes.writeUInt32LE(0x0fffffff, 39)
  return bytes
}

/** A JPEG of a few pixels beside a marker that decoders pass over, before a frame with a pixel too many. */
async function buildHiddenJpegFrame(marker: number): Promise<Buffer> {
  const jpeg = await draw(16, 16).jpeg().toBuffer()
  const at = jpeg.indexOf(Buffer.from([0xff, 0xc0]))
  const shown = Buffer.from(jpeg.subarray(at, at + 19))
  jpeg.writeUInt16BE(4096, at + 5)
  jpeg.writeUInt16BE(4097, at + 7)
  const comment = (content: Buffer) => {
    const head = Buffer.from([0xff, 0xfe, 0, 0])
    head.writeUInt16BE(content.length + 2, 2)
    return Buffer.concat([head, content])
  }
  // Who reads a length behind the marker finds that of the comment, and then the frame of a few pixels.
  const first = comment(Buffer.alloc(65_000))
  const second = Buffer.alloc(2_000)
  shown.copy(second, 0xfffe - first.length - 4)
  return Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, marker]), first, comment(second), jpeg.subarray(2)])
}

describe('an own picture', () => {
  test.each([
    ['PNG', () => draw().png().toBuffer()],
    ['JPEG', () => draw().jpeg().toBuffer()],
    ['WebP', () => draw().webp().toBuffer()],
  ])(
    'of a %s is served as a square without metadata, by an address that anybody may read and cache',
    async (_name, make) => {
      const { answer, path } = await upload(await make())
      expect(answer.status).toBe(200)
      expect(path).toMatch(/^\/api\/v3\/auth\/picture\/[\w-]{22}$/)
      const served = await read(path)
      expect(served.headers).toMatchObject({
        'content-type': 'image/webp',
        'cache-control': 'public, max-age=300',
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
      })
      const facts = await sharp(served.rawPayload).metadata()
      expect(facts).toMatchObject({ format: 'webp', width: 256, height: 256 })
      expect([facts.exif, facts.icc, facts.xmp]).toEqual([undefined, undefined, undefined])
    },
  )

  test('loses where it was taken, and is turned upright', async () => {
    const exif = { IFD0: { Copyright: 'SECRET PLACE' }, IFD3: { GPSLatitude: '51/1 30/1 3/1' } }
    const photo = await draw(20, 60).withMetadata({ exif, orientation: 6 }).jpeg().toBuffer()
    expect(photo.includes('SECRET PLACE')).toBe(true)
    const { path } = await upload(photo)
    const served = (await read(path)).rawPayload
    expect(served.includes('SECRET')).toBe(false)
    expect((await sharp(served).metadata()).orientation).toBeUndefined()
  })

  test('is a user.update with the addresses in the audit log, gets a new address each time, and ends the old one', async () => {
    const bytes = await draw().png().toBuffer()
    const first = await upload(bytes)
    const second = await upload(bytes, first)
    expect(second.path).not.toBe(first.path)
    expect((await read(first.path)).statusCode).toBe(404)
    expect((await read(second.path)).statusCode).toBe(200)
    const { rows } = await app.database.pool.query('select event from event_occurrence where resource_id = $1', [
      first.userId,
    ])
    expect(rows.filter(({ event }) => event === 'user.update')).toHaveLength(2)
  })

  test('ends with its removal, which is repeatable, and with its user', async () => {
    const bytes = await draw().png().toBuffer()
    const removed = await upload(bytes)
    expect((await removed.call('DELETE', PICTURE)).body.data.avatar_url).toBeNull()
    expect((await removed.call('DELETE', PICTURE)).body.message).toBe('There was no picture.')
    expect((await read(removed.path)).statusCode).toBe(404)
    const deleted = await upload(bytes)
    await app.admin('DELETE', `/api/v3/identity/user/${deleted.userId}`)
    expect((await read(deleted.path)).statusCode).toBe(404)
    const { rows } = await app.database.pool.query('select from user_picture where "user" = any($1)', [
      [removed.userId, deleted.userId],
    ])
    expect(rows).toEqual([])
  })

  test('uploaded many times at once is one of them, and has one row', async () => {
    const user = await app.signInMember()
    const bytes = await draw().png().toBuffer()
    const answers = await Promise.all(Array.from({ length: 6 }, () => upload(bytes, user)))
    expect(answers.map(({ answer }) => answer.status)).toEqual(Array(6).fill(200))
    const statuses = (await Promise.all(answers.map(({ path }) => read(path)))).map(({ statusCode }) => statusCode)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  })
})

test('a profile in a PNG is not unpacked: half a MiB of it may be half a GiB', async () => {
  const packed = deflateSync(Buffer.alloc(450_000_000), { level: 9 })
  const png = await draw().png().toBuffer()
  const behindHead = 33
  const bomb = Buffer.concat([
    png.subarray(0, behindHead),
    chunk('iCCP', Buffer.concat([Buffer.from('p\0\0', 'latin1'), packed])),
    png.subarray(behindHead),
  ])
  expect(bomb.length).toBeLessThan(512 * 1024)
  // The library is loaded, and its buffers are there.
  const plain = await makePicture(png)
  const before = process.resourceUsage().maxRSS
  expect(await makePicture(bomb)).toEqual(plain)
  expect(process.resourceUsage().maxRSS - before).toBeLessThan(200_000)
})

describe('a refused picture', () => {
  test.each([
    ['text', Buffer.from('hello'), 'not_an_image'],
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'), 'not_an_image'],
    ['GIF', Buffer.from('R0lGODlhAQABAAAAACw=', 'base64'), 'not_an_image'],
    ['PNG with a head only', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'not_an_image'],
    ['JPEG with a head only', Buffer.from('\xff\xd8\xff\xe0', 'latin1'), 'not_an_image'],
    ['WebP with a head only', Buffer.from('RIFF\0\0\0\0WEBP', 'latin1'), 'not_an_image'],
    ['SVG behind the head of a PNG', Buffer.from('\x89PNG\r\n\x1a\n<svg/>', 'latin1'), 'not_an_image'],
    ['decompression bomb of 900 million pixels', buildBomb(30_000, 30_000), 'too_many_pixels'],
    ['PNG with a pixel too many', buildBomb(4096, 4097), 'too_many_pixels'],
    ['PNG whose data ends early', buildBomb(4000, 4000), 'not_an_image'],
    ['PNG of no width', buildBomb(0, 1), 'not_an_image'],
    ['WebP whose small canvas holds a large frame', buildHiddenFrame(), 'too_many_pixels'],
    [
      'JPEG with a frame behind garbage',
      Buffer.from('\xff\xd8\xff\xe0\x00\x02garbage\xff\xc0', 'latin1'),
      'not_an_image',
    ],
  ])('is a %s', async (_name, bytes, code) => {
    expect(fault(await upload(bytes))).toEqual([422, 'image', code])
  })

  test.each([0x00, 0x01, 0x02, 0xbf, 0xd0, 0xd7, 0xd8, 0xd9, 0xdc, 0xf0, 0xfd])(
    'is a JPEG whose large frame is hidden by the marker %i',
    async (marker) => {
      expect(fault(await upload(await buildHiddenJpegFrame(marker)))).toEqual([422, 'image', 'not_an_image'])
    },
  )

  test('is a JPEG of many scans, each of which would be a pass over all pixels', async () => {
    const photo = await draw(200, 100).jpeg({ progressive: true }).toBuffer()
    expect((await upload(photo)).answer.status).toBe(200)
    const scan = photo.subarray(photo.lastIndexOf(Buffer.from([0xff, 0xda])), -2)
    const many = Buffer.concat([photo.subarray(0, -2), ...Array(40).fill(scan), photo.subarray(-2)])
    expect(fault(await upload(many))).toEqual([422, 'image', 'not_an_image'])
  })

  test('is over 512 KiB', async () => {
    const head = await draw().png().toBuffer()
    const padded = (size: number) => Buffer.concat([head, Buffer.alloc(size - head.length)])
    expect((await upload(padded(512 * 1024))).answer.status).toBe(200)
    expect(fault(await upload(padded(512 * 1024 + 1)))).toEqual([422, 'image', 'too_large'])
    expect(fault(await upload(padded(512 * 1024 + 3)))[0]).toBe(422)
    expect((await upload(padded(1_048_576))).answer.status).toBe(413)
  })

  test.each(['', '!', 'A', 'AAAA AAAA', 'data:image/png;base64,AAAA', '\u00e9'])('is no base64: %j', async (image) => {
    const { call } = await app.signInMember()
    expect((await call('PUT', PICTURE, { image })).status).toBe(422)
  })

  test('comes without a token, or by an API key', async () => {
    const image = (await draw().png().toBuffer()).toString('base64')
    expect((await app.anonymous('PUT', PICTURE, { image })).status).toBe(401)
    const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'all', permissions: ['*:*'] })
    const asKey = app.callAs(key.body.data.key)
    expect((await asKey('PUT', PICTURE, { image })).status).toBe(409)
    expect((await asKey('DELETE', PICTURE)).status).toBe(409)
  })
})

test('more pictures than may wait are refused, and each other one is made', async () => {
  const bytes = await draw(300, 300).png().toBuffer()
  const made = await Promise.allSettled(Array.from({ length: 19 }, () => makePicture(bytes)))
  const refused = made.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  expect(refused.map(({ reason }) => reason.code)).toEqual(['overloaded', 'overloaded'])
  expect((await makePicture(bytes)).length).toBeGreaterThan(0)
})

test.each(['x', `${'A'.repeat(22)}`, `${'A'.repeat(23)}`, '..%2F..%2Fetc'])('no picture is at %s', async (key) => {
  expect((await read(`/api/v3/auth/picture/${key}`)).statusCode).toBeOneOf([404, 422])
})
