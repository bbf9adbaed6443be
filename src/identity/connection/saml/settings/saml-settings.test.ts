import { describe, expect, test } from 'vitest'
import { certifyKey, inventRsaKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import { readNewSaml, readSamlChange, type SamlInput } from './saml-settings.ts'

const STRICT = { allowHttp: false }
const ENDS = ['2030-01-01T00:00:00.000Z', '2031-01-01T00:00:00.000Z', '2032-01-01T00:00:00.000Z'].map(
  (text) => new Date(text),
)

const made = await Promise.all(ENDS.map((end) => certifyKey(inventRsaKey(), end)))
const pems = made.map((der) => der.toString('base64'))
const whole = (change: Partial<SamlInput> = {}): SamlInput => ({
  idp_entity_id: 'https://idp.example/saml',
  sso_url: 'https://idp.example/sso?a=1',
  certificates: [pems[1]!, pems[2]!, pems[1]!, pems[0]!],
  ...change,
})
const refusalOf = (act: () => unknown) => {
  try {
    return { read: act() }
  } catch (error) {
    return (error as { errors?: { path: string; code: string }[] }).errors?.map(({ path, code }) => `${path} ${code}`)
  }
}

describe('the settings of a new connection', () => {
  test('are columns, with each certificate once and the last of their ends', () => {
    const { certificates, ...read } = readNewSaml(whole(), STRICT)
    expect(read).toEqual({
      ...{ issuer: 'https://idp.example/saml', ssoUrl: 'https://idp.example/sso?a=1', certificatesEndAt: ENDS[2] },
      ...{ emailAttribute: null, nameAttribute: null, groupsClaim: null },
    })
    expect(certificates).toHaveLength(3)
    const names = { email_attribute: 'mail', name_attribute: 'cn', groups_attribute: null }
    expect(readNewSaml(whole(names), STRICT)).toMatchObject({
      ...{ emailAttribute: 'mail', nameAttribute: 'cn', groupsClaim: null },
    })
  })

  test('need the provider, its URL and a certificate', () => {
    expect(refusalOf(() => readNewSaml(undefined, STRICT))).toEqual(['saml required'])
    for (const name of ['idp_entity_id', 'sso_url', 'certificates'] as const) {
      const { [name]: _left, ...rest } = whole()
      expect(
        refusalOf(() => readNewSaml(rest, STRICT)),
        name,
      ).toEqual(['saml required'])
    }
  })
})

describe('a change of the settings', () => {
  test('has what it names, and nothing else', () => {
    expect(readSamlChange({}, STRICT)).toEqual({})
    expect(readSamlChange({ idp_entity_id: 'a' }, STRICT)).toEqual({ issuer: 'a' })
    expect(readSamlChange({ email_attribute: null, name_attribute: 'cn' }, STRICT)).toEqual({
      ...{ emailAttribute: null, nameAttribute: 'cn' },
    })
    expect(readSamlChange({ groups_attribute: 'memberOf' }, STRICT)).toEqual({ groupsClaim: 'memberOf' })
    const one = readSamlChange({ certificates: [pems[0]!] }, STRICT)
    expect(one).toEqual({ certificates: [expect.stringContaining('CERTIFICATE')], certificatesEndAt: ENDS[0] })
  })

  test('has one to four certificates, each of which can be read', () => {
    const change = (certificates: string[]) => refusalOf(() => readSamlChange({ certificates }, STRICT))
    expect(change([])).toEqual(['saml.certificates item_count'])
    expect(change(Array(5).fill(pems[0]))).toEqual(['saml.certificates item_count'])
    expect(change([pems[0]!, 'x!'])).toEqual(['saml.certificates.1 not_pem'])
    expect(change(Array(4).fill(pems[0]))).toHaveProperty('read')
  })

  test.each([
    ['idp.example', 'url_invalid'],
    ['http://idp.example', 'url_not_https'],
    ['javascript:alert(1)', 'url_not_https'],
    ['https://user@idp.example', 'url_invalid'],
    ['https://:password@idp.example', 'url_invalid'],
    ['https://idp.example/#fragment', 'url_invalid'],
  ])('sends no browser to %s', (url, code) => {
    expect(refusalOf(() => readSamlChange({ sso_url: url }, STRICT))).toEqual([`saml.sso_url ${code}`])
  })

  test('may name plain HTTP where that is allowed, and no other scheme', () => {
    const change = (url: string) => refusalOf(() => readSamlChange({ sso_url: url }, { allowHttp: true }))
    expect(change('http://10.0.0.1/sso')).toEqual({ read: { ssoUrl: 'http://10.0.0.1/sso' } })
    expect(change('https://10.0.0.1/sso')).toHaveProperty('read')
    expect(change('javascript:alert(1)')).toEqual(['saml.sso_url url_not_https'])
  })
})
