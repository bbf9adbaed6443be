import { writeFile } from 'node:fs/promises'

/** `npm run connect` registers this app at Signalbox and keeps its id and secret in `.env`. SIGNALBOX_TOKEN is an API key. */
const { SIGNALBOX_URL = 'http://localhost:3000', SIGNALBOX_TOKEN = '', PORT = '4711' } = process.env
const origin = `http://127.0.0.1:${PORT}`

const response = await fetch(`${SIGNALBOX_URL}/api/v3/oauth/client`, {
  method: 'POST',
  headers: { authorization: `Bearer ${SIGNALBOX_TOKEN}`, 'content-type': 'application/json' },
  body: JSON.stringify({
    name: 'My app',
    publisher: 'Me',
    type: 'confidential',
    redirect_uris: [`${origin}/callback`],
    post_logout_redirect_uris: [`${origin}/`],
    scopes: ['openid', 'profile', 'email'],
  }),
})
const answer = (await response.json()) as { data: { client_id: string; client_secret: string }; detail?: string }
if (!response.ok) throw new Error(`Signalbox answered ${response.status}: ${answer.detail}`)
const { client_id, client_secret } = answer.data
const lines = [
  `SIGNALBOX_URL=${SIGNALBOX_URL}`,
  `OAUTH_CLIENT_ID=${client_id}`,
  `OAUTH_CLIENT_SECRET=${client_secret}`,
  `PORT=${PORT}`,
]
await writeFile('.env', `${lines.join('\n')}\n`, { mode: 0o600 })
console.log(`The app ${client_id} is registered. Its secret is in .env: start the app now.`)
