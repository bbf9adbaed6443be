import { describe, expect, test } from 'vitest'
import { type CallbackRules, checkCallbackUrl, parseAllowedTargets } from './callback-url.ts'
import { buildUrlCheck } from './url-check.ts'

const rules = (change: Partial<CallbackRules> = {}): CallbackRules => ({
  allowHttp: false,
  allowedPrivateTargets: [],
  sinkUrl: undefined,
  ...change,
})

describe('the check of URLs that are posted to again', () => {
  test('decides as checkCallbackUrl does, the first time and later', () => {
    const check = buildUrlCheck(rules())
    const urls = [
      'https://hook.example.com/a',
      'http://hook.example.com/',
      'https://127.0.0.1/',
      'https://9.9.9.9:8443/x',
    ]
    for (const text of [...urls, ...urls]) {
      const expected = checkCallbackUrl(text, rules())
      const { ok } = check(text)
      expect(ok).toBe(expected.ok)
      expect(check(text)).toMatchObject(expected.ok ? { url: expected.url } : expected)
    }
  })

  test('resolves a literal, and leaves a name to the look-up', () => {
    const check = buildUrlCheck(rules({ allowedPrivateTargets: parseAllowedTargets('127.0.0.1') }))
    const literal = {
      literal: '9.9.9.9',
      literalResolution: { ok: true, addresses: [{ address: '9.9.9.9', family: 4 }] },
    }
    expect(check('https://9.9.9.9/')).toMatchObject(literal)
    expect(check('https://127.0.0.1/')).toMatchObject({ literalResolution: { ok: true } })
    expect(check('https://hook.example.com/')).toMatchObject({ literal: undefined, literalResolution: undefined })
  })

  test('follows the rules when the URL of the sink becomes known', () => {
    const changing = { ...rules(), sinkUrl: undefined as string | undefined }
    const check = buildUrlCheck(changing)
    expect(check('http://localhost:3000/sink').ok).toBe(false)
    changing.sinkUrl = 'http://localhost:3000/sink'
    expect(check('http://localhost:3000/sink').ok).toBe(true)
    // It keeps what it found by the same rules.
    expect(check('http://localhost:3000/sink')).toBe(check('http://localhost:3000/sink'))
  })
})
