import { expect, test } from 'vitest'
import { fetchLogo, LOGO_LIMIT_BYTES } from './client-logo.ts'

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

/** Fetches an image of this size. */
const fetchOf = (bytes: number) => {
  const body = Buffer.concat([PNG, Buffer.alloc(bytes - PNG.length)])
  return fetchLogo(async () => new Response(body), 'https://app.example.com/logo.png')
}

test('a logo has at most 128 KiB', async () => {
  expect((await fetchOf(LOGO_LIMIT_BYTES)).body).toHaveLength(131_072)
  const errors = [{ path: 'logo_uri', code: 'too_large', message: 'must be an image of at most 128 KiB' }]
  await expect(fetchOf(LOGO_LIMIT_BYTES + 1)).rejects.toMatchObject({ status: 422, errors })
})
