import { expect, test } from 'vitest'
import type { CallbackRules } from '../../outbound/guard/callback-url.ts'
import { checkNewUrl } from './callback-field.ts'

const inDevelopment: CallbackRules = { allowHttp: true, allowedPrivateTargets: [] }
const elsewhere: CallbackRules = { allowHttp: false, allowedPrivateTargets: [] }

/** The message of the refusal on `url`; every name resolves to a private address. */
async function readRefusal(url: string, callbackRules: CallbackRules): Promise<string> {
  const refused = await checkNewUrl({ callbackRules, lookup: async () => ['10.0.0.7'] }, url).catch((error) => error)
  expect(refused).toMatchObject({ status: 422, errors: [{ path: 'url', code: 'url_host_not_public' }] })
  return refused.errors[0].message
}

test.each([
  ['an address', 'http://127.0.0.1:4000/hook', '127.0.0.1:4000'],
  ['an address in IPv6', 'https://[::1]/hook', '[::1]:443'],
  ['a local name', 'http://localhost/hook', 'localhost:80'],
  ['a name of a private address', 'https://hooks.example.com/', 'hooks.example.com:443'],
])('in development the refusal of %s names the setting that allows it', async (_what, url, target) => {
  expect(await readRefusal(url, inDevelopment)).toContain(`started with WEBHOOK_ALLOWED_PRIVATE_TARGETS=${target}.`)
})

test('elsewhere the refusal of a private target names no setting', async () => {
  expect(await readRefusal('https://127.0.0.1:4000/hook', elsewhere)).not.toContain('WEBHOOK_ALLOWED')
})

test('in development a URL that is refused for another reason names no setting', async () => {
  const lookup = async () => ['10.0.0.7']
  for (const url of ['https://user:secret@127.0.0.1/', 'ftp://127.0.0.1/', 'hook']) {
    const refused = await checkNewUrl({ callbackRules: inDevelopment, lookup }, url).catch((error) => error)
    expect(refused).toMatchObject({ status: 422, errors: [{ path: 'url' }] })
    expect(refused.errors[0].message).not.toContain('WEBHOOK_ALLOWED')
  }
})
