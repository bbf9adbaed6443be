import * as openid from 'openid-client'

/** A command line that signs in without a browser of its own: the user confirms a code on any other device. */
const { OAUTH_CLIENT_ID = '', SIGNALBOX_URL = 'http://localhost:3000' } = process.env
// Only a service on this machine is reached without TLS.
const execute = SIGNALBOX_URL.startsWith('http://localhost:') ? [openid.allowInsecureRequests] : []
const issuer = new URL(`${SIGNALBOX_URL}/api/v3/oauth`)
const config = await openid.discovery(issuer, OAUTH_CLIENT_ID, undefined, openid.None(), { execute })

const device = await openid.initiateDeviceAuthorization(config, { scope: 'openid email offline_access' })
process.stdout.write(`Open ${device.verification_uri} and enter ${device.user_code}\n`)

try {
  const tokens = await openid.pollDeviceAuthorizationGrant(config, device)
  const subject = tokens.claims()?.sub ?? ''
  const { email } = await openid.fetchUserInfo(config, tokens.access_token, subject)
  process.stdout.write(`Signed in as ${email}\n`)
} catch (error) {
  const reason = error instanceof openid.ResponseBodyError ? error.error : String(error)
  process.stderr.write(`Not signed in: ${reason}\n`)
  process.exitCode = 1
}
