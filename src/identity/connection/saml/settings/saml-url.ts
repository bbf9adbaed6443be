/** The path of a connection's SAML routes. */
export const SAML_PATH = '/api/v3/auth/login/saml'

/** The URLs of the service for one connection (docs/contract/saml.md#service-urls). Pure. */
export function buildSamlUrls(baseUrl: string, connection: string): { entityId: string; acsUrl: string } {
  const base = `${baseUrl}${SAML_PATH}/${connection}`
  return { entityId: `${base}/metadata`, acsUrl: `${base}/acs` }
}
