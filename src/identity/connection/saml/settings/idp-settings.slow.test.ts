import { inflateRawSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { certifyKey, createSamlKey, inventRsaKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import { measureThread } from '../../../../../test/harness/run/linear.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { childrenOf, textOf } from '../xml/xml-document.ts'
import { buildAuthnRequestUrl } from './authn-request.ts'
import { readCertificate } from './idp-certificate.ts'
import { readIdpMetadata } from './idp-metadata.ts'
import { buildServiceMetadata } from './service-metadata.ts'

const NOW = new Date('2026-11-27T12:00:00.000Z')
const readXml = (text: string) => {
  const document = parseXml(Buffer.from(text), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  return document.root
}

describe('a request', () => {
  const facts = {
    id: '_1',
    issuedAt: NOW,
    entityId: 'https://app.example/?a=1&b="2"',
    acsUrl: 'https://app.example/acs',
    ssoUrl: 'https://idp.example/sso?tenant=7',
  }
  test('is in the query of a redirect, beside what the URL of the provider has', () => {
    const url = new URL(buildAuthnRequestUrl(facts))
    expect(`${url.origin}${url.pathname}`).toBe('https://idp.example/sso')
    expect(url.searchParams.get('tenant')).toBe('7')
    const request = readXml(inflateRawSync(Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64')).toString())
    expect(Object.fromEntries(request.attributes)).toEqual({
      ID: '_1',
      Version: '2.0',
      IssueInstant: '2026-11-27T12:00:00.000Z',
      Destination: facts.ssoUrl,
      ProtocolBinding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST',
      AssertionConsumerServiceURL: facts.acsUrl,
    })
    expect(childrenOf(request, 'assertion', 'Issuer').map(textOf)).toEqual([facts.entityId])
  })

  test('replaces a request in the URL of the provider', () => {
    const url = new URL(buildAuthnRequestUrl({ ...facts, ssoUrl: 'https://idp.example/?SAMLRequest=x' }))
    expect(url.searchParams.getAll('SAMLRequest')).toEqual([expect.not.stringMatching(/^x$/)])
  })
})

test('the metadata of the service names its audience and where answers go', () => {
  const metadata = readXml(
    buildServiceMetadata({ entityId: 'https://app.example/"&<', acsUrl: 'https://app.example/acs' }),
  )
  expect(metadata.attributes.get('entityID')).toBe('https://app.example/"&<')
  const [service] = childrenOf(metadata, 'metadata', 'SPSSODescriptor')
  expect(service?.attributes.get('WantAssertionsSigned')).toBe('true')
  const [acs] = service ? childrenOf(service, 'metadata', 'AssertionConsumerService') : []
  expect(acs?.attributes.get('Location')).toBe('https://app.example/acs')
})

describe('a certificate', () => {
  test('is read from PEM and from the base64 of metadata, as the same', async () => {
    const notAfter = new Date('2027-01-01T00:00:00Z')
    const { certificate } = await createSamlKey({ notAfter })
    const read = readCertificate(certificate)
    expect(read).toMatchObject({ notAfter, fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(readCertificate(certificate.replaceAll('\n', '\r\n'))).toEqual(read)
    expect(readCertificate(certificate.replace(/-----[A-Z ]+-----/g, ''))).toEqual(read)
    expect('pem' in read && readCertificate(read.pem)).toEqual(read)
  })

  test('has an RSA key of 2,048 bits or more', async () => {
    const small = await createSamlKey({ bits: 1024 })
    expect(readCertificate(small.certificate)).toMatchObject({ code: 'key_size' })
    const curve = await createSamlKey({ curve: 'P-256' })
    expect(readCertificate(curve.certificate)).toMatchObject({ code: 'not_rsa' })
  })

  test('is one, and whole', async () => {
    const { certificate } = await createSamlKey()
    const base64 = certificate.replace(/-----[A-Z ]+-----|\n/g, '')
    const more = Buffer.concat([Buffer.from(base64, 'base64'), Buffer.from('more')]).toString('base64')
    for (const [code, text] of [
      ['not_pem', certificate + certificate],
      ['not_pem', certificate.replaceAll('CERTIFICATE', 'PRIVATE KEY')],
      ['not_pem', ''],
      ['not_pem', '-----BEGIN CERTIFICATE-----'],
      ['not_a_certificate', 'QUJD'],
      ['not_a_certificate', base64.slice(0, 400)],
      ['not_a_certificate', more],
    ] as const)
      expect(readCertificate(text), text.slice(0, 60)).toMatchObject({ code })
  })

  test('of a mebibyte is refused at once', () => {
    const tookMs = measureThread(() => {
      for (const piece of ['-----BEGIN CERTIFICATE-----', 'A', ' ', '=', '\n', '-----BEGIN CERTIFICATE-----A '])
        expect(readCertificate(piece.repeat(1_048_576 / piece.length))).toHaveProperty('code')
    })
    expect(tookMs).toBeLessThan(2_000)
  })
})

describe('the metadata of an identity provider', () => {
  const MD = 'urn:oasis:names:tc:SAML:2.0:metadata'
  const keyOf = (certificate: string, use = ' use="signing"') =>
    `<KeyDescriptor${use}><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>${certificate.replace(/-----[A-Z ]+-----/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></KeyDescriptor>`
  const metadataOf = (keys: string, { attributes = '', services = '', outer = '' } = {}) =>
    `<?xml version="1.0"?><!-- from the console of the provider --><EntityDescriptor xmlns="${MD}" entityID="https://idp.example"${outer}><IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"${attributes}>${keys}${services || '<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://idp.example/post"/><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example/sso?a=1&amp;b=2"/>'}</IDPSSODescriptor></EntityDescriptor>`
  const read = (text: string) => readIdpMetadata(Buffer.from(text), NOW)

  test('has its entity id, the URL of its redirect and its certificates', async () => {
    const [key, other] = [await createSamlKey(), await createSamlKey()]
    const keys = keyOf(key.certificate) + keyOf(other.certificate, '') + keyOf(key.certificate)
    const wants = ' WantAuthnRequestsSigned="true"'
    expect(read(metadataOf(keys + keyOf('none', ' use="encryption"'), { attributes: wants }))).toEqual({
      entityId: 'https://idp.example',
      ssoUrl: 'https://idp.example/sso?a=1&b=2',
      certificates: [key, other].map(({ certificate }) => {
        const found = readCertificate(certificate)
        return 'pem' in found ? found.pem : found
      }),
      wantsSignedRequests: true,
    })
    const until = (validUntil: string) => read(metadataOf(keys, { outer: ` validUntil="${validUntil}"` }))
    expect(until('2026-11-27T12:00:00.001Z')).toHaveProperty('entityId')
    expect(until('2026-11-27T12:00:00Z')).toMatchObject({ code: 'not_metadata' })
    expect(until('never')).toMatchObject({ code: 'not_metadata' })
  })

  test('may have an entity id of 1,024 characters and four certificates', async () => {
    const made = await Promise.all(Array.from({ length: 4 }, () => certifyKey(inventRsaKey())))
    const keys = made.map((der) => keyOf(der.toString('base64'))).join('')
    const text = metadataOf(keys).replace('https://idp.example"', `${'x'.repeat(1_024)}"`)
    expect(read(text)).toMatchObject({ entityId: 'x'.repeat(1_024), certificates: { length: 4 } })
  })

  test('is refused with what is wrong with it', async () => {
    const { certificate } = await createSamlKey()
    const small = await createSamlKey({ bits: 1024 })
    const post = '<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://x"/>'
    const many = await Promise.all(Array.from({ length: 5 }, () => createSamlKey()))
    expect(read('https://idp.example/metadata')).toMatchObject({ message: expect.stringContaining('well-formed') })
    expect(read('<!DOCTYPE a><a/>')).toMatchObject({ message: expect.stringContaining('without a document type') })
    expect(read(' '.repeat(131_073))).toMatchObject({ message: 'must have 128 KiB at most' })
    for (const [code, text] of [
      ['not_xml', 'https://idp.example/metadata'],
      ['declaration_not_allowed', `<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><a>&a;</a>`],
      ['too_large', ' '.repeat(1_048_576)],
      ['several_entities', `<EntitiesDescriptor xmlns="${MD}"/>`],
      ['not_metadata', `<EntityDescriptor xmlns="${MD}"/>`],
      ['not_metadata', '<EntityDescriptor entityID="https://idp.example"/>'],
      ['not_metadata', `<EntityDescriptor xmlns="${MD}" entityID="${'x'.repeat(1_025)}"/>`],
      ['no_identity_provider', `<EntityDescriptor xmlns="${MD}" entityID="x"><SPSSODescriptor/></EntityDescriptor>`],
      ['no_redirect', metadataOf(keyOf(certificate), { services: post })],
      ['not_metadata', metadataOf('')],
      ['not_metadata', metadataOf(many.map((key) => keyOf(key.certificate)).join(''))],
      ['key_size', metadataOf(keyOf(small.certificate))],
      ['not_a_certificate', metadataOf(keyOf('QUJD'))],
    ] as const)
      expect(read(text), text.slice(0, 200)).toMatchObject({ code, message: expect.stringMatching(/must/) })
  })
})
