import { buildFieldProblem, invalidField } from '../../../../http/problem/problem.ts'
import { CERTIFICATE_LIMIT, readCertificate } from './idp-certificate.ts'

/** The part of a SAML provider in a request, in the words of the wire. */
export interface SamlInput {
  idp_entity_id?: string
  sso_url?: string
  certificates?: readonly string[]
  email_attribute?: string | null
  name_attribute?: string | null
  groups_attribute?: string | null
}

/** The same as columns of the connection. */
export interface SamlColumns {
  issuer: string
  ssoUrl: string
  certificates: string[]
  /** The end of the last of them. */
  certificatesEndAt: Date
  emailAttribute: string | null
  nameAttribute: string | null
  groupsClaim: string | null
}

/** The columns of a new connection. Throws a 422. Pure. */
export function readNewSaml(input: SamlInput | undefined, rules: { allowHttp: boolean }): SamlColumns {
  if (!input) throw invalidField('saml', 'required', 'is required when kind is saml')
  const read = readSamlChange(input, rules)
  const { issuer, ssoUrl, certificates, certificatesEndAt } = read
  if (issuer === undefined || ssoUrl === undefined || certificates === undefined || !certificatesEndAt)
    throw invalidField('saml', 'required', 'must have idp_entity_id, sso_url and certificates')
  const names = { emailAttribute: null, nameAttribute: null, groupsClaim: null }
  return { ...names, ...read, issuer, ssoUrl, certificates, certificatesEndAt }
}

/** The columns that a request names. Throws a 422. Pure. */
export function readSamlChange(input: SamlInput, rules: { allowHttp: boolean }): Partial<SamlColumns> {
  const { idp_entity_id: issuer, sso_url: ssoUrl, certificates } = input
  if (ssoUrl !== undefined) checkSsoUrl(ssoUrl, rules)
  return {
    ...(issuer !== undefined && { issuer }),
    ...(ssoUrl !== undefined && { ssoUrl }),
    ...(certificates !== undefined && readCertificates(certificates)),
    ...(input.email_attribute !== undefined && { emailAttribute: input.email_attribute }),
    ...(input.name_attribute !== undefined && { nameAttribute: input.name_attribute }),
    ...(input.groups_attribute !== undefined && { groupsClaim: input.groups_attribute }),
  }
}

/** Only browsers open it, so that it may be a host of an inner network. Throws a 422. */
function checkSsoUrl(text: string, { allowHttp }: { allowHttp: boolean }): void {
  const url = URL.parse(text)
  if (!url) throw invalidField('saml.sso_url', 'url_invalid', 'must be an absolute URL')
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:'))
    throw invalidField('saml.sso_url', 'url_not_https', 'must begin with https://')
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw invalidField('saml.sso_url', 'url_invalid', 'must have no user info and no fragment')
}

/** In one form each, and each once. Throws a 422. */
function readCertificates(texts: readonly string[]): Pick<SamlColumns, 'certificates' | 'certificatesEndAt'> {
  if (texts.length === 0 || texts.length > CERTIFICATE_LIMIT)
    throw buildFieldProblem({
      path: 'saml.certificates',
      code: 'item_count',
      message: `must be 1 to ${CERTIFICATE_LIMIT} certificates`,
      params: { least: 1, most: CERTIFICATE_LIMIT },
    })
  const read = texts.map((text, at) => {
    const found = readCertificate(text)
    if ('code' in found)
      throw buildFieldProblem({
        path: `saml.certificates.${at}`,
        code: found.code,
        message: found.message,
        params: found.params,
      })
    return found
  })
  return {
    certificates: [...new Set(read.map(({ pem }) => pem))],
    certificatesEndAt: new Date(Math.max(...read.map(({ notAfter }) => notAfter.getTime()))),
  }
}
