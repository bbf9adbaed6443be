import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseServiceSignature } from '../packages/webhooks/src/service-signature.ts'
import { parseStandardSignature } from '../packages/webhooks/src/standard-signature.ts'
import { html } from '../src/base/html.ts'
import { chooseTexts } from '../src/base/language/texts.ts'
import { decodeCursor } from '../src/http/listing/cursor.ts'
import { parseFilters } from '../src/http/listing/filter.ts'
import { findClientAddress } from '../src/http/request/client-address.ts'
import { parseForm } from '../src/http/server/form-body.ts'
import { REQUEST_FORMATS } from '../src/http/shape/formats.ts'
import { readResponse } from '../src/identity/connection/saml/response/verify-response.ts'
import { readCertificate } from '../src/identity/connection/saml/settings/idp-certificate.ts'
import { readIdpMetadata } from '../src/identity/connection/saml/settings/idp-metadata.ts'
import { cleanProfile } from '../src/identity/engine/embedded/clean-profile.ts'
import { buildBrowserCookies } from '../src/identity/pages/browser/browser-cookie.ts'
import { nameDevice } from '../src/identity/session/device.ts'
import { decodeSegment, parseClaims } from '../src/identity/session/token/compact-jws.ts'
import { verifyHs256 } from '../src/identity/session/token/hs256.ts'
import { hasAmbiguousKeys } from '../src/identity/session/token/json-keys.ts'
import { parseRedirectAllowList } from '../src/identity/sign-in/outcome/redirect-allow-list.ts'
import { classifyRedirectUrl } from '../src/identity/sign-in/outcome/redirect-url.ts'
import { hashRecoveryCode } from '../src/identity/sign-in/second-factor/recovery-code.ts'
import { readPostedName } from '../src/identity/social-login/flow/posted-name.ts'
import { readNextPath } from '../src/identity/sso/next-path.ts'
import { readTarget as readHandshakeTarget } from '../src/identity/sso/target.ts'
import { findRedirectFault } from '../src/oauth/client/redirect-uri.ts'
import { ACCESS_TOKEN_TYPE, readTokenExchange } from '../src/oauth/exchange/token-exchange-form.ts'
import { findHookFault, readHookKeys } from '../src/oauth/hook/hook-signature.ts'
import { parseAddress } from '../src/outbound/guard/address.ts'
import { checkCallbackUrl } from '../src/outbound/guard/callback-url.ts'
import { buildExcerpt, pickResponseHeaders } from '../src/outbound/send/post-result.ts'
import { verifyTimestamped } from '../src/outbound/signature.ts'
import { buildScimService } from '../src/provisioning/scim/scim-service.ts'
import { findMatch, readId } from '../src/provisioning/scim/scim-user.ts'
import { parseChannelName } from '../src/realtime/embedded/frame/channel-name.ts'
import { parseClientFrame, readChannelData } from '../src/realtime/embedded/frame/client-frame.ts'
import { decode, readTarget } from '../src/realtime/embedded/publish/api-request.ts'
import { readBatch, readEvent } from '../src/realtime/embedded/publish/publish-body.ts'
import { parseTraceContext } from '../src/tracing/trace-context.ts'
import { formatCell } from '../src/webhook/export/export-format.ts'
import { DS, SAML, SAMLP } from './harness/fakes/saml-idp/signed-response.ts'
import { expectLinear, listRepeatedTexts, pumpedText } from './harness/run/linear.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const RULES = { allowHttp: true, allowedPrivateTargets: [] }
const cookies = buildBrowserCookies({ isSecure: true, isHostBound: true, domain: undefined })
const hookKeys = readHookKeys([`v1,${SECRET}`])
const allowList = parseRedirectAllowList('https://app.example.com/path,com.example.app:')
const now = new Date('2026-01-01T00:00:00.000Z')

/** Quotes what JSON needs quoted, so that a text becomes a member or a value. */
const inJson = (text: string) => JSON.stringify(text)

/** A SAML response with this inside its assertion. */
const inResponse = (inner: string) =>
  `<samlp:Response xmlns:samlp="${SAMLP}" ID="_1" InResponseTo="_2" Version="2.0"><saml:Assertion xmlns:saml="${SAML}" ID="_3">${inner}</saml:Assertion></samlp:Response>`

const METADATA = 'urn:oasis:names:tc:SAML:2.0:metadata'

/** SAML metadata with this as its certificate. */
const inMetadata = (certificate: string) =>
  `<EntityDescriptor xmlns="${METADATA}" entityID="a"><IDPSSODescriptor protocolSupportEnumeration="${SAMLP}"><KeyDescriptor><KeyInfo xmlns="${DS}"><X509Data><X509Certificate>${certificate}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example"/></IDPSSODescriptor></EntityDescriptor>`

/** A SCIM service that gives this answer. */
async function askScim(text: string): Promise<void> {
  const fetch = async () =>
    new Response(text, { status: 200, headers: { 'retry-after': text.slice(0, 1).trim() || '1' } })
  const parts = { fetch, userAgent: 'test', base: 'https://scim.example.com', token: 'x', headers: {} }
  const service = buildScimService({ ...parts, signal: new AbortController().signal })
  await service('GET', '/Users').catch(() => {})
}

type Parser = (text: string) => unknown

/** Every parser of bytes that strangers send, without the limit on length that stands before it. */
const PARSERS: readonly [name: string, words: readonly string[], parse: Parser][] = [
  ['fields of a form', ['a=b', '&a='], (text) => parseForm(text)],
  [
    'the filters of a list',
    ['id|', '|in|', 'name|eq|', '\\,', '1,'],
    (text) => {
      const fields = { id: { type: 'integer' }, name: { type: 'text' } } as const
      for (const filter of [text, `name|in|${text}`, `id|in|${text}`]) parseFilters([filter], fields)
    },
  ],
  [
    'a cursor',
    ['WyI', 'In0', '-_'],
    (text) => {
      decodeCursor(text, '-created_at', 'timestamp')
      decodeCursor(Buffer.from(JSON.stringify(['name', text, text])).toString('base64url'), 'name', 'text')
    },
  ],
  [
    'the keys of a token',
    ['{"a":', '"a",', '[1,', '},', '"\\"', '{}'],
    (text) => {
      parseClaims(Buffer.from(text))
      parseClaims(Buffer.from(`{"a":${inJson(text)},${inJson(text)}:1}`))
      hasAmbiguousKeys(`{"a":${inJson(text)}}`)
    },
  ],
  [
    'a session token',
    ['eyJ', '..', '.-_'],
    (text) => {
      decodeSegment(text)
      const policy = { secrets: ['s'.repeat(32)], types: ['jwt'], isAudience: () => true, isIssuer: () => true }
      verifyHs256(text, { ...policy, now, leewaySeconds: 0 })
    },
  ],
  ['cookies', ['a=b; ', '__Host-signalbox_session=', '=;'], (text) => cookies.read(text)],
  ['text in a page', ['<b>', '&amp;'], (text) => html`<p title="${text}">${text}</p>`],
  [
    'a callback URL',
    ['https://', 'h.example.com', '@', '[::', '%41', '/..', 'xn--'],
    (text) => {
      checkCallbackUrl(text, RULES)
      checkCallbackUrl(text.slice(0, 2_048), RULES)
    },
  ],
  ['an address', ['1.', '::', 'ffff:', '255'], (text) => parseAddress(text)],
  [
    'X-Forwarded-For',
    ['127.0.0.1, ', '[::1]:1,', '::ffff:', '%eth0'],
    (text) => findClientAddress({ peer: '127.0.0.1', forwardedFor: text, trust: { hops: 10 } }),
  ],
  ['Accept-Language', ['de;q=', 'en-', ';q=0.'], (text) => chooseTexts({ uiLocales: text, acceptLanguage: text })],
  ['User-Agent', ['Mozilla/5.0 ', 'Mac OS', 'Chrome', 'Go-http-'], (text) => nameDevice(text)],
  [
    'traceparent and tracestate',
    ['00-', 'a=b', '@', 'ff-'],
    (text) => {
      const traceparent = `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01`
      parseTraceContext({ traceparent: text, tracestate: text })
      parseTraceContext({ traceparent, tracestate: text })
      parseTraceContext({ traceparent: `01${traceparent.slice(2)}-${text}`, tracestate: text })
    },
  ],
  [
    'formats of a body',
    ['a@b.', 'a.a', '2026-01-01T', '.000', '+01:00', 'https://'],
    (text) => {
      for (const { isValid } of Object.values(REQUEST_FORMATS)) isValid(text)
    },
  ],
  [
    'a redirect URI',
    ['https://', '/.', '%2e', '..', 'com.app:'],
    (text) => {
      findRedirectFault(text, 'native')
      classifyRedirectUrl(text, { allowList, allowLoopback: true })
      classifyRedirectUrl(text.slice(0, 2_048), { allowList, allowLoopback: true })
    },
  ],
  [
    'the target and path of a handshake',
    ['https://', '/a', '..', '%2f'],
    (text) => {
      readNextPath(text)
      readNextPath(`/${text}`.slice(0, 2_048))
      readHandshakeTarget(text, { origins: [], allowLoopback: true })
      readHandshakeTarget(`https://a.${text}`.slice(0, 2_048), { origins: [], allowLoopback: true })
    },
  ],
  [
    'a token exchange',
    ['openid ', 'a ', '  '],
    (text) => {
      const base = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: text }
      readTokenExchange({ ...base, subject_token_type: ACCESS_TOKEN_TYPE, scope: text }, [])
    },
  ],
  [
    'the signature of a hook',
    ['v1,', ' ', 'AAAA'],
    (text) => findHookFault(hookKeys, { id: text, timestamp: '1', signature: text, body: Buffer.from(text), now }),
  ],
  [
    'the signature at the sink',
    ['t=1,', 'v1=', 'ab'.repeat(32)],
    (text) => verifyTimestamped({ secret: SECRET, header: `t=1,${text}`, body: text, nowSeconds: 1 }),
  ],
  [
    'the signatures that receivers read',
    ['t=1,', 'v1=', 'v1,AAAA ', 'a=b,'],
    (text) => {
      const headers = { 'webhook-id': 'a', 'webhook-timestamp': '1', 'webhook-signature': text }
      for (const parse of [() => parseServiceSignature(text), () => parseStandardSignature(headers, 'v1')]) {
        try {
          parse()
        } catch {}
      }
    },
  ],
  [
    'a SAML response',
    ['<a>', '<a b="', '</a>', '&amp;', '&#x41;', 'xmlns:a="b" ', '<saml:Issuer>', '<!--', ']]>', '\u2028'],
    (text) => {
      // Its limit is that of a whole document, so that the largest text is read.
      for (const xml of [text, inResponse(text), inResponse(`<a b="${text}"/>`), inResponse(`<saml:Audience>${text}`)])
        readResponse(Buffer.from(xml).toString('base64'))
      readResponse(text)
    },
  ],
  [
    'the metadata of a SAML provider',
    ['<a>', '<a b="', '</a>', '<!--', '-->', 'xmlns:a="b" ', 'MIIC', '-----BEGIN CERTIFICATE-----', '\n'],
    (text) => {
      for (const xml of [text, inMetadata(text), inMetadata(`-----BEGIN CERTIFICATE-----${text}`)])
        readIdpMetadata(Buffer.from(xml), now)
      for (const pem of [text, `-----BEGIN CERTIFICATE-----${text}`]) readCertificate(pem)
    },
  ],
  ['a recovery code', ['abcd-', '- '], (text) => hashRecoveryCode(text)],
  [
    'the profile of a provider',
    ['a@b.', 'https://', '\u2028'],
    (text) =>
      cleanProfile('x', { subject: 'a', email: text, isEmailVerified: true, name: text, avatarUrl: text }, true),
  ],
  [
    'a posted name',
    ['{"name":', '{"firstName":"a"}'],
    (text) => {
      readPostedName(text)
      readPostedName(`{"name":{"firstName":${inJson(text)}}}`)
    },
  ],
  [
    'the answer of a receiver',
    ['200', 'text/html'],
    (text) => {
      buildExcerpt(Buffer.from(text))
      pickResponseHeaders({ server: text, via: text.split(' ') })
    },
  ],
  [
    'a user of a SCIM service',
    ['{"Resources":[', '{},', '{"userName":"a"},', '[', '"'],
    (text) => {
      findMatch({ Resources: text.split('a') }, 'userName', 'a@example.com'.repeat(15))
      findMatch({ Resources: [...text].map((id) => ({ id, externalId: text, userName: 'B' })) }, 'userName', 'b')
      readId({ id: text })
    },
  ],
  [
    'a frame of a realtime client',
    ['{"event":', '"client-a"', '[{', '"data":'],
    (text) => {
      parseClientFrame(text)
      parseClientFrame(`{"event":"client-a","channel":${inJson(text)},"data":{"a":${inJson(text)}}}`)
      readChannelData(`{"user_id":${inJson(text)}}`)
      parseChannelName(text)
      parseChannelName(`presence-cache-${text}`)
      parseChannelName(`#server-to-user-${text}`)
    },
  ],
  [
    'a request to the realtime API',
    ['a=b&', '?', '/apps/', '%26'],
    (text) => {
      decode(text)
      readTarget(text)
      readTarget(`/apps/1?${text}`)
      readEvent(`{"name":"a","channels":${JSON.stringify(text.split(' '))},"data":${inJson(text)}}`, 1_000_000)
      readBatch(text, 1_000_000)
    },
  ],
  ['a cell of an export', ['=', '"', '\n'], (text) => formatCell(text)],
]

function findError(run: () => void): unknown {
  try {
    run()
    return undefined
  } catch (error) {
    return error
  }
}

describe('what strangers send is read in linear time', () => {
  const quietly = (parse: Parser) => (text: string) => {
    try {
      parse(text)
    } catch {}
  }

  test.each(PARSERS)('%s', (_name, words, parse) => {
    const run = quietly(parse)
    fc.assert(
      fc.property(pumpedText(words), (build) => expectLinear(build, run)),
      { numRuns: 25 },
    )
  })

  test.each(PARSERS)('%s, also two bytes again and again', (_name, words, parse) => {
    for (const build of listRepeatedTexts(words)) expectLinear(build, quietly(parse))
  })

  test('a fixed text that finds what takes quadratic time', () => {
    const isSlow = (parse: Parser) =>
      listRepeatedTexts(['t=1,']).some((build) => findError(() => expectLinear((size) => build(size / 2), parse)))
    expect(isSlow((text) => text.replace(/[ \t]+$/, ''))).toBe(true)
    expect(isSlow((text) => /=+;$/.test(text))).toBe(true)
    expect(isSlow((text) => text.split(','))).toBe(false)
  })

  test('the answer of a SCIM service', async () => {
    await fc.assert(
      fc.asyncProperty(pumpedText(['{"Resources":[', '{},', '[', '"']), async (build) => {
        const answers = ['200', '400'].map(() => build(65_536))
        const before = process.threadCpuUsage()
        for (const answer of answers) await askScim(answer)
        const { user, system } = process.threadCpuUsage(before)
        // Quadratic work is seconds; a collection of garbage may be a tenth of one.
        expect(user + system).toBeLessThan(1_000_000)
      }),
      { numRuns: 10 },
    )
  })

  test('a measure that fails for what takes quadratic time', () => {
    const build = (size: number) => `${'/'.repeat(size / 2)}x`
    expect(() => expectLinear(build, (text) => text.replace(/\/+$/, ''))).toThrow('not linear')
    expect(() => expectLinear(build, (text) => text.replace(/^\/+/, ''))).not.toThrow()
  })
})
