import { expect, test } from 'vitest'
import { GuardedFetchError } from '../../outbound/guarded-fetch.ts'
import { fetchLogo, LOGO_LIMIT_BYTES } from './client-logo.ts'

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

/** Fetches an image of this size. */
const fetchOf = (bytes: number) => {
  const body = Buffer.concat([PNG, Buffer.alloc(bytes - PNG.length)])
  return fetchLogo(async () => new Response(body), 'https://app.example.com/logo.png')
}

const mediaTypeOf = (body: Buffer) =>
  fetchLogo(async () => new Response(new Uint8Array(body)), 'https://app.example.com/logo').then(
    ({ mediaType }) => mediaType,
    ({ errors: [{ code }] }) => code,
  )

test.each([
  ['89504e470d0a1a0a00', 'image/png'],
  ['89504e470d0a1a0b00', 'not_an_image'],
  ['ffd8ffe0', 'image/jpeg'],
  ['ffd8fee0', 'not_an_image'],
  [Buffer.from('GIF87a..').toString('hex'), 'image/gif'],
  [Buffer.from('GIF89a..').toString('hex'), 'image/gif'],
  [Buffer.from('GIF88a..').toString('hex'), 'not_an_image'],
  [Buffer.from('RIFF1234WEBPVP8 ').toString('hex'), 'image/webp'],
  [Buffer.from('RIFF1234WAVEfmt ').toString('hex'), 'not_an_image'],
  [Buffer.from('RIFX1234WEBPVP8 ').toString('hex'), 'not_an_image'],
  ['', 'not_an_image'],
])('an image that begins with %s is told by its first bytes: %s', async (hex, told) => {
  expect(await mediaTypeOf(Buffer.from(hex, 'hex'))).toBe(told)
})

test.each([
  ['ANSWER_TOO_LARGE', 'too_large'],
  ['URL_NOT_HTTPS', 'https'],
  ['CONNECTION_REFUSED', 'not_fetched'],
])('an image that is not fetched for %s is refused as %s', async (fault, code) => {
  const fail = () => Promise.reject(new GuardedFetchError(fault, 'protocol'))
  await expect(fetchLogo(fail, 'https://app.example.com/logo')).rejects.toMatchObject({ errors: [{ code }] })
})

test('an image with another status than 200 is not fetched, and a fault of our own is handed on', async () => {
  const answer = async () => new Response(PNG, { status: 203 })
  await expect(fetchLogo(answer, 'https://app.example.com/logo')).rejects.toMatchObject({
    errors: [{ code: 'not_fetched' }],
  })
  const fault = new Error('a fault')
  await expect(fetchLogo(() => Promise.reject(fault), 'https://app.example.com/logo')).rejects.toBe(fault)
})

test('a logo has at most 128 KiB', async () => {
  expect((await fetchOf(LOGO_LIMIT_BYTES)).body).toHaveLength(131_072)
  const errors = [{ path: 'logo_uri', code: 'too_large', message: 'must be an image of at most 128 KiB' }]
  await expect(fetchOf(LOGO_LIMIT_BYTES + 1)).rejects.toMatchObject({ status: 422, errors })
})
