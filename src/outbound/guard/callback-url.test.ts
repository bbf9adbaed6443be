import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { type CallbackRules, checkCallbackUrl, parseAllowedTargets } from './callback-url.ts'

const PRODUCTION: CallbackRules = { allowHttp: false, allowedPrivateTargets: [] }
const DEVELOPMENT: CallbackRules = { allowHttp: true, allowedPrivateTargets: [] }

const NOT_PUBLIC = [
  'https://localhost/',
  'https://localhost./',
  'https://LOCALHOST/',
  'https://app.localhost/',
  'https://localhost.localdomain/',
  'https://localhost6.localdomain6/',
  'https://127.0.0.1:8443/',
  'https://127.0.1/',
  'https://127.0.0.1./',
  'https://2130706433/',
  'https://0x7f.0.0.1/',
  'https://017700000001/',
  'https://0177.0x0.0.01/',
  'https://①②⑦.⓪.⓪.①/',
  'https://%31%32%37.0.0.1/',
  'https://0/',
  'https://10.0.0.1/',
  'https://012.0.0.1/',
  'https://172.31.255.254/',
  'https://192.168.257/',
  'https://100.64.0.1/',
  'https://100.100.100.200/latest/meta-data/',
  'https://100.127.255.255/',
  'https://168.63.129.16/metadata',
  'https://169.254.170.2/v2/credentials',
  'https://0xA9FEA9FE/',
  'https://0251.0376.0251.0376/',
  'https://192.0.0.192/',
  'https://198.19.255.255/',
  'https://198.51.100.7/',
  'https://224.0.0.1/',
  'https://240.0.0.1/',
  'https://4294967295/',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:169.254.169.254]/',
  'https://[::127.0.0.1]/',
  'https://[::ffff:0:127.0.0.1]/',
  'https://[64:ff9b::127.0.0.1]/',
  'https://[64:ff9b::10.0.0.1]/',
  'https://[64:ff9b::8.8.8.8]/',
  'https://[2002:7f00:1::1]/',
  'https://[2002:c0a8:1::1]/',
  'https://[2001:0:7f00:1::]/',
  'https://[3fff::1]/',
  'https://[fd00:ec2::254]/',
  'https://[fe80::1]/',
  'https://[febf::1]/',
  'https://[ff02::1]/',
  'https://[100::1]/',
  'https://[4000::1]/',
  'https://metadata.google.internal/computeMetadata/v1/',
  'https://METADATA.Google.Internal./',
  'https://metadata.goog/',
  'https://metadata/',
  'https://instance-data/',
  'https://foo.bar.internal./',
  'https://printer.local/',
  'https://nas.lan/',
  'https://api.default.svc/',
  'https://api.default.svc.cluster.local/',
  'https://1.0.0.127.in-addr.arpa/',
  'https://router.home.arpa/',
  'https://intranet/',
  'https://com./',
  'https://loc\u00adalhost/',
  'https://ⓛocalhost/',
  'https://127.0.0.1#@example.com/',
  'https://127。0。0。1/',
  'https://127.1.2.3/',
  'https://a.localhost/',
  'https://172.16.0.1/',
  'https://172.31.255.255/',
  'https://192.168.1.1/',
  'https://[fc00::1]/',
  'https://nas.local/',
  'https://100.100.100.200/',
  'https://a.b.internal/',
  'https://db.internal./',
  'https://DB.INTERNAL/',
  'https://0x7f000001/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://0x7f.1/',
  'https://[::ffff:a00:1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/',
  'https://255.255.255.255/',
  'https://192.0.2.1/',
  'https://198.18.0.1/',
  'https://[2001:db8::1]/',
]

const REFUSED: [string, string][] = [
  ...NOT_PUBLIC.map((url): [string, string] => [url, 'url_host_not_public']),
  ['', 'url_required'],
  ['http://example.com/hook', 'url_not_https'],
  ['file:///etc/passwd', 'url_not_https'],
  ['javascript:alert(1)', 'url_not_https'],
  ['ws://example.com/h', 'url_not_https'],
  ['ftp://example.com/h', 'url_not_https'],
  ['example.com/hook', 'url_invalid'],
  ['//example.com/hook', 'url_invalid'],
  ['https:example.com/hook', 'url_invalid'],
  ['https:/example.com/hook', 'url_invalid'],
  ['https:///example.com/hook', 'url_invalid'],
  ['https:\\\\example.com\\hook', 'url_invalid'],
  ['https://example.com\\@127.0.0.1/', 'url_invalid'],
  [' https://example.com/', 'url_invalid'],
  ['https://example.com/\n', 'url_invalid'],
  ['https://exa\tmple.com/', 'url_invalid'],
  ['https://exam ple.com/', 'url_invalid'],
  ['https://example.com/a b', 'url_invalid'],
  ['https://example.com/\u0000', 'url_invalid'],
  ['https://example.com/\u007f', 'url_invalid'],
  ['https://[::1%25lo]/', 'url_invalid'],
  ['https://::1/', 'url_invalid'],
  ['https://example.com:99999/', 'url_invalid'],
  ['https://.../', 'url_invalid'],
  ['https://example.com../', 'url_invalid'],
  ['https://a..example.com/', 'url_invalid'],
  ['https://*.example.com/', 'url_invalid'],
  ['https://-a.example.com/', 'url_invalid'],
  ['https://a-.example.com/', 'url_invalid'],
  ['https://example.com./hook', 'url_invalid'],
  ['https://example.com.:8443/hook', 'url_invalid'],
  ['https://example.com\u3002/', 'url_invalid'],
  ['https://example.com\uff0e/', 'url_invalid'],
  ['https://example.com\uff61/', 'url_invalid'],
  ['https://8.8.8.8./', 'url_invalid'],
  ['https://134744072/', 'url_invalid'],
  ['https://0x08080808:8443/', 'url_invalid'],
  ['https://010.010.010.010/', 'url_invalid'],
  ['https://8.8.2056/', 'url_invalid'],
  ['https://\uff18.8.8.8/', 'url_invalid'],
  ['https://%38.8.8.8/', 'url_invalid'],
  ['https://1.1.1.1.1/', 'url_invalid'],
  ['https://1.2.3.4.5.6/', 'url_invalid'],
  [`https://${'a'.repeat(64)}.com/`, 'url_invalid'],
  [`https://${'a.'.repeat(126)}com/`, 'url_invalid'],
  [`https://${'a.'.repeat(125)}info/`, 'url_invalid'],
  ['https://@example.com/', 'url_has_user_info'],
  ['https://:@example.com/', 'url_has_user_info'],
  ['https://user@example.com/', 'url_has_user_info'],
  ['https://user:pass@example.com/', 'url_has_user_info'],
  ['https://example.com@127.0.0.1/', 'url_has_user_info'],
  ['https://example.com:0/', 'url_port_not_allowed'],
  ['https://example.com:22/', 'url_port_not_allowed'],
  ['https://example.com:25/', 'url_port_not_allowed'],
  ['https://example.com:1080/', 'url_port_not_allowed'],
  ['https://example.com:5222/', 'url_port_not_allowed'],
  ['https://example.com:5432/', 'url_port_not_allowed'],
  ['https://example.com:26379/', 'url_port_not_allowed'],
  ['https://8.8.8.8:6379/', 'url_port_not_allowed'],
]

const TAKEN = [
  'https://example.com/hook',
  'HTTPS://EXAMPLE.COM/hook',
  'https://example.com',
  'https://hooks.example.com:8443/a/b?c=d',
  'https://xn--bcher-kva.example.com/h',
  'https://bücher.example.com/h',
  'https://internal.example.com/hook',
  'https://localhost.example.com/hook',
  'https://metadata.example.com/hook',
  'https://my_app.example.com/hook',
  'https://example.com/a@b?c=@d#e@f',
  'https://8.8.8.8/hook',
  'https://100.63.255.255/h',
  'https://172.15.255.255/h',
  'https://192.167.255.255/h',
  'https://198.17.255.255/h',
  'https://10.example.com/h',
  'https://[2606:4700:4700::1111]/hook',
  'https://[2a00:1450:4001:81b::200e]/hook',
  'https://hooks.nobody.invalid/h',
  'https://example.com:8080/',
  `https://${'a'.repeat(63)}.com/`,
  `https://${'a.'.repeat(125)}com/`,
]

describe('checkCallbackUrl', () => {
  test.each(REFUSED)('refuses %j in production: %s', (url, code) => {
    expect(checkCallbackUrl(url, PRODUCTION)).toMatchObject({ ok: false, code })
  })

  test.each(TAKEN)('accepts %s in production', (url) => {
    expect(checkCallbackUrl(url, PRODUCTION)).toMatchObject({ ok: true, isExempt: false })
  })

  test('where the environment allows http, the other rules still apply', () => {
    expect(checkCallbackUrl('http://example.com/hook', DEVELOPMENT).ok).toBe(true)
    expect(checkCallbackUrl('http://example.com/hook', PRODUCTION).ok).toBe(false)
    for (const url of NOT_PUBLIC) {
      const plain = url.replace('https:', 'http:')
      expect(checkCallbackUrl(plain, DEVELOPMENT), plain).toMatchObject({ ok: false, code: 'url_host_not_public' })
    }
  })

  test('the limit is 2048 characters, of the text and of its normal form', () => {
    const prefix = 'https://example.com/'
    expect(checkCallbackUrl(prefix + 'a'.repeat(2048 - prefix.length), PRODUCTION).ok).toBe(true)
    expect(checkCallbackUrl(prefix + 'a'.repeat(2049 - prefix.length), PRODUCTION)).toMatchObject({
      code: 'url_too_long',
    })
    // One character that becomes six when it is percent-encoded.
    expect(checkCallbackUrl(prefix + 'é'.repeat(338), PRODUCTION).ok).toBe(true)
    expect(checkCallbackUrl(prefix + 'é'.repeat(339), PRODUCTION)).toMatchObject({ code: 'url_too_long' })
    // Longer as text than in normal form.
    const slack = `${prefix}${'./'.repeat(1100)}`
    expect(new URL(slack).href.length).toBeLessThan(2048)
    expect(checkCallbackUrl(slack, PRODUCTION)).toMatchObject({ code: 'url_too_long' })
  })

  test('an exempt target has the host without its root dot, so that SNI, Host and the certificate agree', () => {
    const rules = { ...PRODUCTION, allowedPrivateTargets: parseAllowedTargets('hooks.local') }
    const checked = checkCallbackUrl('https://Hooks.local.:8443/a?b', rules)
    expect(checked.ok && checked.url.href).toBe('https://hooks.local:8443/a?b')
  })

  test('every refusal names a remedy', () => {
    for (const [url] of REFUSED) {
      const checked = checkCallbackUrl(url, PRODUCTION)
      expect(!checked.ok && checked.message).toMatch(/^(is|must|holds|has|uses) .+\.$/)
    }
  })

  test('every spelling of a forbidden IPv4 address that the URL parser accepts is refused', () => {
    const forbidden = fc.tuple(
      fc.constantFrom([127], [10], [0], [169, 254], [192, 168], [172, 16], [100, 64], [198, 18], [224], [255]),
      fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }),
    )
    const spelling = fc.record({
      bases: fc.array(fc.constantFrom(8, 10, 16), { minLength: 4, maxLength: 4 }),
      parts: fc.integer({ min: 1, max: 4 }),
      isUpper: fc.boolean(),
      hasDot: fc.boolean(),
    })
    fc.assert(
      fc.property(forbidden, spelling, ([head, tail], how) => {
        const bytes = [...head, ...tail].slice(0, 4)
        const host = spell(bytes, how)
        expect(new URL(`https://${host}/`).hostname).toBe(bytes.join('.'))
        expect(checkCallbackUrl(`https://${host}/`, PRODUCTION)).toMatchObject({
          ok: false,
          code: 'url_host_not_public',
        })
      }),
      { numRuns: 2_000 },
    )
  })

  test('does not throw, and accepts only https to a host of letters, digits and hyphens or to a public address', () => {
    const piece = fc.constantFrom(
      'https://',
      'http://',
      'example.com',
      '127.0.0.1',
      'localhost',
      '@',
      ':',
      '/',
      '\\',
      '?',
      '#',
      '[',
      ']',
      '.',
      '..',
      '%00',
      '%2e',
      '\t',
      ' ',
      '::1',
      '443',
      '0x7f.1',
      'é',
      '。',
    )
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.webUrl(),
      fc.array(piece, { maxLength: 9 }).map((pieces) => pieces.join('')),
    )
    fc.assert(
      fc.property(text, (url) => {
        const checked = checkCallbackUrl(url, PRODUCTION)
        if (!checked.ok) return
        expect(checked.url.protocol).toBe('https:')
        expect(checked.url.username + checked.url.password).toBe('')
        expect(checked.url.hostname).toMatch(/^(?:[a-z0-9_-]+\.)+[a-z0-9_-]+$|^\[[0-9a-f:]+\]$/)
        expect(['localhost', '127.0.0.1', '[::1]']).not.toContain(checked.url.hostname)
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('exemptions', () => {
  const sinkUrl = 'http://localhost:3000/api/v3/webhook/sink'
  const withSink: CallbackRules = { allowHttp: false, sinkUrl, allowedPrivateTargets: [] }

  test('the sink is exempt from the host, port and https rules by its exact origin and path', () => {
    expect(checkCallbackUrl(sinkUrl, withSink)).toMatchObject({ ok: true, isExempt: true })
    for (const other of [
      'http://localhost:3000/api/v3/webhook/sink/',
      'http://localhost:3000/api/v3/webhook/webhook',
      'http://localhost:3001/api/v3/webhook/sink',
      'http://127.0.0.1:3000/api/v3/webhook/sink',
      'https://localhost:3000/api/v3/webhook/sink',
      'http://localhost:3000/api/v3/webhook/sink/../../',
    ]) {
      expect(checkCallbackUrl(other, withSink).ok, other).toBe(false)
    }
  })

  test('without a sink URL the address of the sink is refused as loopback', () => {
    expect(checkCallbackUrl(sinkUrl, DEVELOPMENT)).toMatchObject({ ok: false, code: 'url_host_not_public' })
  })

  test.each<[string, string, boolean]>([
    ['127.0.0.1:9000', 'http://127.0.0.1:9000/x', true],
    ['127.0.0.1:9000', 'http://2130706433:9000/x', true],
    ['127.0.0.1:9000', 'http://127.0.0.1:9001/x', false],
    ['127.0.0.1:9000', 'http://127.0.0.2:9000/x', false],
    ['127.0.0.1', 'http://127.0.0.1:5432/x', true],
    ['127.0.0.1:443', 'https://127.0.0.1/x', true],
    ['127.0.0.1:80', 'http://127.0.0.1/x', true],
    ['10.0.0.0/8', 'https://10.255.0.1:6443/x', true],
    ['10.0.0.0/8', 'https://11.0.0.1:22/x', false],
    ['10.0.0.0/8', 'https://[::ffff:10.0.0.1]/x', false],
    ['10.0.0.0/8:8443', 'https://10.1.2.3:8443/x', true],
    ['10.0.0.0/8:8443', 'https://10.1.2.3/x', false],
    ['[fd00::/8]:8443', 'https://[fd00::5]:8443/x', true],
    ['[fd00::]/8', 'https://[fd00::5]:8443/x', true],
    ['[fd00::/8]', 'https://[fe80::5]/x', false],
    ['receiver', 'http://receiver:8080/x', true],
    ['Receiver.:8080', 'http://RECEIVER.:8080/x', true],
    ['receiver', 'http://receiver.internal/x', false],
    ['receiver:8080', 'http://receiver:8081/x', false],
    ['other, receiver', 'http://receiver:8080/x', true],
    ['receiver, 10.0.0.0/8, 127.0.0.1', 'http://127.0.0.1/x', true],
    ['hooks.internal:443', 'https://hooks.internal/x', true],
    ['hooks.internal:443', 'https://a.hooks.internal/x', false],
  ])('with %s listed, %s is exempt: %s', (listed, url, isExempt) => {
    const rules = { allowHttp: false, allowedPrivateTargets: parseAllowedTargets(listed) }
    expect(checkCallbackUrl(url, rules)).toMatchObject(isExempt ? { ok: true, isExempt: true } : { ok: false })
  })

  test('the rules on form apply to an exempt target', () => {
    const rules = { allowHttp: false, sinkUrl, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') }
    expect(checkCallbackUrl('http://user@127.0.0.1/', rules)).toMatchObject({ code: 'url_has_user_info' })
    expect(checkCallbackUrl('http://127.0.0.1/a b', rules)).toMatchObject({ code: 'url_invalid' })
    expect(checkCallbackUrl(`http://127.0.0.1/${'a'.repeat(2048)}`, rules)).toMatchObject({ code: 'url_too_long' })
    expect(checkCallbackUrl('ftp://127.0.0.1/', rules)).toMatchObject({ code: 'url_not_https' })
  })
})

describe('parseAllowedTargets', () => {
  test('parses the empty text to no targets, and a list with spaces', () => {
    expect(parseAllowedTargets('')).toEqual([])
    expect(parseAllowedTargets('  ')).toEqual([])
    expect(parseAllowedTargets('a:1 , 10.0.0.0/8')).toHaveLength(2)
    const longest = `${'a.'.repeat(125)}com`
    expect(parseAllowedTargets(`${longest}:65535`)).toEqual([{ kind: 'host', host: longest, port: 65_535 }])
  })

  test.each([
    'a,',
    ',',
    '10.0.0.5/8',
    '10.0.0.0/33',
    '127.1',
    'a:0',
    'a:65536',
    'a:port',
    'a:',
    'http://a',
    'a/b',
    '*.internal',
    '::1',
    'fd00::/8',
    '[10.0.0.1]:80',
    '[::1',
    '[fd00::/8]/8',
    'a b',
    `${'a'.repeat(64)}`,
    `${'a.'.repeat(125)}info`,
    'a,smtp://user:the-password@host',
  ])('names the position of the bad entry of %j, and repeats nothing of it', (text) => {
    const bad = text.split(',').findIndex((entry) => entry.trim() !== 'a')
    const message = new RegExp(`^must list private targets: .*; entry ${bad + 1} is none of these$`)
    expect(() => parseAllowedTargets(text)).toThrow(message)
    expect(() => parseAllowedTargets(text)).not.toThrow('the-password')
  })
})

/** Writes an IPv4 address with `parts` numbers, the last one taking the rest, each in its own base. */
function spell(bytes: number[], how: { bases: number[]; parts: number; isUpper: boolean; hasDot: boolean }): string {
  const numbers = bytes.slice(0, how.parts - 1)
  numbers.push(bytes.slice(how.parts - 1).reduce((value, byte) => value * 256 + byte, 0))
  const texts = numbers.map((number, index) => {
    const base = how.bases[index]
    if (base === 8) return `0${number.toString(8)}`
    if (base === 16) return `0x${number.toString(16)}`
    return String(number)
  })
  const text = texts.join('.') + (how.hasDot ? '.' : '')
  return how.isUpper ? text.toUpperCase() : text
}
