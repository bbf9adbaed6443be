import { sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createSamlKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import { DS } from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { listElements } from '../xml/xml-document.ts'
import { findSigners, isSignatureMethod } from './signed-info.ts'

const SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256'
const SHA512 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512'
const METHOD = `<ds:SignatureMethod Algorithm="${SHA256}"></ds:SignatureMethod>`

const idp = await createSamlKey()
const other = await createSamlKey()

/** A signature whose list is written in one way, and signed in another: its canonical form. */
const signatureOf = (written: string, canonical: string, { by = idp, hash = 'sha256' } = {}) =>
  `<ds:Signature xmlns:ds="${DS}">${written}<ds:SignatureValue>${sign(hash, Buffer.from(canonical), by.key).toString('base64')}</ds:SignatureValue></ds:Signature>`

const canonicalOf = (content: string) => `<ds:SignedInfo xmlns:ds="${DS}">${content}</ds:SignedInfo>`
const plain = (by = idp) => signatureOf(`<ds:SignedInfo>${METHOD}</ds:SignedInfo>`, canonicalOf(METHOD), { by })

/** The signers of all signatures of a document. */
function find(xml: string, certificates: readonly string[] = [idp.certificate]) {
  const document = parseXml(Buffer.from(`<x>${xml}</x>`), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  const signatures = listElements(document.root).filter(({ name }) => name === 'Signature')
  return findSigners(certificates, { text: document.text, signatures })
}

describe('the signers', () => {
  test('are the certificates that have signed, each once', () => {
    const both = [idp.certificate, other.certificate]
    expect(find(plain(), both)).toEqual([idp.certificate])
    expect(find(plain() + plain(), both)).toEqual([idp.certificate])
    expect(find(plain(other) + plain(), both)).toEqual([other.certificate, idp.certificate])
  })

  test('are none when one signature is by none of them, or there is no signature', () => {
    expect(find(plain(other))).toBeUndefined()
    expect(find(plain() + plain(other))).toBeUndefined()
    expect(find(plain(other) + plain())).toBeUndefined()
    expect(find('')).toBeUndefined()
    expect(find(plain(), [])).toBeUndefined()
  })

  test('are none of a signature without a list, a method that is known, or a value', () => {
    const list = `<ds:SignedInfo>${METHOD}</ds:SignedInfo>`
    expect(find(plain().replace(list, ''))).toBeUndefined()
    expect(find(plain().replace(/<ds:SignatureValue>.*<\/ds:SignatureValue>/, ''))).toBeUndefined()
    expect(find(plain().replace(/(<ds:SignatureValue>)(.*<\/ds:SignatureValue>)/, '$1<x/>$2'))).toBeUndefined()
    for (const method of ['', '<ds:SignatureMethod/>', METHOD.replace(SHA256, 'urn:x'), METHOD.replace(SHA256, SHA512)])
      expect(find(signatureOf(`<ds:SignedInfo>${method}</ds:SignedInfo>`, canonicalOf(method)))).toBeUndefined()
  })
})

describe('a list is signed in its canonical form', () => {
  test.each([
    ['elements without content', METHOD.replace('></ds:SignatureMethod>', '/>'), METHOD],
    [
      'attributes in another order',
      `${METHOD}<ds:R b="2" a="1" c="3"></ds:R>`,
      `${METHOD}<ds:R a="1" b="2" c="3"></ds:R>`,
    ],
    [
      'characters that are escaped',
      `${METHOD}<ds:R a="&amp;&lt;&gt;&quot;&#9;&#10;&#13;'"></ds:R>`,
      `${METHOD}<ds:R a="&amp;&lt;>&quot;&#x9;&#xA;&#xD;'"></ds:R>`,
    ],
    ['greater signs in a text', `${METHOD}<ds:R>a>b>c</ds:R>`, `${METHOD}<ds:R>a&gt;b&gt;c</ds:R>`],
    [
      'a namespace that is declared outside',
      `${METHOD}<ds:R xmlns:ds="${DS}"><ds:S></ds:S></ds:R>`,
      `${METHOD}<ds:R><ds:S></ds:S></ds:R>`,
    ],
    ['a declaration that nothing uses', `${METHOD}<ds:R xmlns:y="urn:y"></ds:R>`, `${METHOD}<ds:R></ds:R>`],
    [
      'a default namespace, where it changes',
      `${METHOD}<Ra xmlns="urn:r"><Sa></Sa><Ta xmlns="urn:&amp;t"><Sa></Sa></Ta><Sa xmlns="urn:r"></Sa></Ra>`,
      `${METHOD}<Ra xmlns="urn:r"><Sa></Sa><Ta xmlns="urn:&amp;t"><Sa></Sa></Ta><Sa></Sa></Ra>`,
    ],
    [
      'another prefix, declared again beside its first element',
      `${METHOD}<y:R xmlns:y="urn:y"></y:R><y:R xmlns:y="urn:y"></y:R>`,
      `${METHOD}<y:R xmlns:y="urn:y"></y:R><y:R xmlns:y="urn:y"></y:R>`,
    ],
  ])('with %s', (_what, written, canonical) => {
    const list = `<ds:SignedInfo>${written}</ds:SignedInfo>`
    expect(find(signatureOf(list, canonicalOf(canonical)))).toEqual([idp.certificate])
    if (written !== canonical) expect(find(signatureOf(list, canonicalOf(written)))).toBeUndefined()
  })

  test('by SHA-512 where it says so', () => {
    const method = METHOD.replace(SHA256, SHA512)
    const list = `<ds:SignedInfo>${method}</ds:SignedInfo>`
    expect(find(signatureOf(list, canonicalOf(method), { hash: 'sha512' }))).toEqual([idp.certificate])
  })
})

test('only RSA with SHA-256 or SHA-512 signs', () => {
  expect([SHA256, SHA512].map(isSignatureMethod)).toEqual([true, true])
  const others = ['', 'toString', '__proto__', `${DS}rsa-sha1`, `${DS}hmac-sha1`, SHA256.replace('rsa', 'ecdsa')]
  expect(others.filter(isSignatureMethod)).toEqual([])
})
