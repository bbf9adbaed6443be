import { describe, expect, test } from 'vitest'
import { findCertificateAge } from '../src/screens/connections/certificate-age.ts'
import { EMPTY, fieldsOf, splitCertificates, toCreateBody, toUpdateBody } from '../src/screens/connections/draft.ts'

const NOW_MS = Date.UTC(2026, 8, 11, 12)
const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----'

describe('the form of a connection', () => {
  test('makes a connection of the chosen kind, without the part of the other', () => {
    const fields = {
      ...EMPTY,
      name: ' Corp ',
      issuer: ' https://login.corp.example ',
      clientId: 'a',
      clientSecret: 's',
    }
    expect(toCreateBody('oidc', fields)).toEqual({
      ...{ kind: 'oidc', name: 'Corp', is_jit: false, default_role: null, group_roles: [], session_hours: 24 },
      oidc: {
        ...{ issuer: 'https://login.corp.example', client_id: 'a', client_secret: 's' },
        ...{ scopes: ['openid', 'email', 'profile'], groups_claim: null, is_email_trusted: false },
      },
    })
    const saml = toCreateBody('saml', { ...EMPTY, name: 'Corp', certificates: `${PEM}\n${PEM}`, nameAttribute: 'cn' })
    expect(saml).not.toHaveProperty('oidc')
    expect(saml.saml).toMatchObject({ certificates: [PEM, PEM], name_attribute: 'cn', email_attribute: null })
  })

  test('changes what was changed alone, and never sends an empty secret', () => {
    expect(toUpdateBody({ name: 'Corp' })).toEqual({ name: 'Corp' })
    expect(toUpdateBody({ clientSecret: '' })).toEqual({})
    expect(toUpdateBody({ groupsClaim: '' })).toEqual({ oidc: { groups_claim: null } })
    expect(toUpdateBody({ certificates: PEM })).toEqual({ saml: { certificates: [PEM] } })
    expect(toUpdateBody({ defaultRole: '' })).toEqual({ default_role: null })
  })

  test('shows a row without the part of the other kind, and no secret', () => {
    const row = {
      ...{ name: 'Corp', is_jit: true, default_role: null, group_roles: [], session_hours: 8, oidc: null },
      saml: { idp_entity_id: 'e', sso_url: 's', certificates: [{ pem: `${PEM}\n` }], email_attribute: 'mail' },
    }
    expect(fieldsOf(row as never)).toEqual({
      ...EMPTY,
      ...{ name: 'Corp', isJit: true, sessionHours: 8, entityId: 'e', ssoUrl: 's', certificates: PEM },
      emailAttribute: 'mail',
    })
  })

  test.each([
    ['', []],
    [PEM, [PEM]],
    [`${PEM}\n\n${PEM}\n`, [PEM, PEM]],
    ['no certificate', ['no certificate']],
    [`${PEM} rest`, [PEM, 'rest']],
  ])('the certificates of %j are split, and the rest is left to be refused', (text, wanted) => {
    expect(splitCertificates(text)).toEqual(wanted)
  })
})

test.each([
  ['2026-09-11T12:00:00.000Z', 'ended'],
  ['2026-09-11T12:00:00.001Z', 'ending'],
  ['2026-10-11T12:00:00.000Z', 'ending'],
  ['2026-10-11T12:00:00.001Z', 'valid'],
])('a certificate that ends at %s is %s', (notAfter, age) => {
  expect(findCertificateAge(notAfter, NOW_MS)).toBe(age)
})
