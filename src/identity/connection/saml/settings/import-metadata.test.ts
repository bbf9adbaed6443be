import { describe, expect, test } from 'vitest'
import { certifyKey, inventRsaKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import { GuardedFetchError } from '../../../../outbound/guarded-fetch.ts'
import { OwnFault } from '../../../../outbound/own-fault/own-fault.ts'
import { XML_LIMITS } from '../xml/xml-fault.ts'
import { importMetadata } from './import-metadata.ts'

const NOW = new Date('2026-11-27T12:00:00.000Z')
const URL_OF_METADATA = 'https://idp.example/metadata'

const certificate = (await certifyKey(inventRsaKey())).toString('base64')
const metadata = `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.example"><IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><KeyDescriptor><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>${certificate}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example/sso"/></IDPSSODescriptor></EntityDescriptor>`

/** Reads metadata from a URL that is answered so; the URLs that were asked are kept. */
function openFetch(answer: () => Promise<Response>) {
  const asked: string[] = []
  const fetch = (url: string) => {
    asked.push(url)
    return answer()
  }
  return { asked, fetch, read: () => importMetadata({ fetch }, { metadata_url: URL_OF_METADATA, now: NOW }) }
}
const failing = (error: Error) => openFetch(() => Promise.reject(error)).read()
const answering = (body: string, status = 200) => openFetch(async () => new Response(body, { status })).read()
const refusal = (path: string, code: string, message = '') => ({
  errors: [{ path, code, message: expect.stringContaining(message) }],
})

describe('metadata', () => {
  test('is given as XML, which is fetched from nowhere, or by its URL', async () => {
    const none = openFetch(() => Promise.reject(new Error('fetched')))
    const expected = { entityId: 'https://idp.example', ssoUrl: 'https://idp.example/sso' }
    expect(await importMetadata(none, { metadata, now: NOW })).toMatchObject(expected)
    expect(none.asked).toEqual([])
    const fetched = openFetch(async () => new Response(metadata))
    expect(await fetched.read()).toMatchObject(expected)
    expect(fetched.asked).toEqual([URL_OF_METADATA])
    const required = refusal('metadata', 'required')
    await expect(importMetadata(none, { now: NOW })).rejects.toMatchObject(required)
    const both = importMetadata(none, { metadata, metadata_url: URL_OF_METADATA, now: NOW })
    await expect(both).rejects.toMatchObject(required)
  })

  test('that is wrong is refused at the field that gave it', async () => {
    const pasted = importMetadata(
      openFetch(async () => new Response()),
      { metadata: '<a/>', now: NOW },
    )
    await expect(pasted).rejects.toMatchObject(refusal('metadata', 'not_metadata'))
    await expect(answering('<a/>')).rejects.toMatchObject(refusal('metadata_url', 'not_metadata'))
  })

  test('has 128 KiB at most where it is fetched, to the byte', async () => {
    const sized = (bytes: number) => metadata.padEnd(bytes)
    expect(await answering(sized(XML_LIMITS.bytes))).toHaveProperty('entityId')
    const large = refusal('metadata_url', 'not_read', '128 KiB')
    await expect(answering(sized(XML_LIMITS.bytes + 1))).rejects.toMatchObject(large)
  })

  test('of an address that answers otherwise is not read', async () => {
    await expect(answering(metadata, 404)).rejects.toMatchObject(refusal('metadata_url', 'not_read', '404'))
    const closed = new GuardedFetchError('ECONNREFUSED', 'connect')
    await expect(failing(closed)).rejects.toMatchObject(refusal('metadata_url', 'not_read', '(connect)'))
  })

  test('that this process cannot fetch is no fault of the provider, and an error of the program stays one', async () => {
    const own = new GuardedFetchError('EMFILE', 'connect', new OwnFault('EMFILE'))
    await expect(failing(own)).rejects.toMatchObject({ code: 'dependency_unavailable', cause: own })
    const bug = new TypeError('a fault')
    await expect(failing(bug)).rejects.toBe(bug)
  })
})
