import { writeFile } from 'node:fs/promises'

/**
 * `npm run connect` makes the key of this platform at Signalbox and keeps it in `.env`. SIGNALBOX_TOKEN is an API key that may
 * create keys.
 */
const { SIGNALBOX_URL = 'http://localhost:3000', SIGNALBOX_TOKEN = '', PORT = '4004' } = process.env

const response = await fetch(`${SIGNALBOX_URL}/api/v3/identity/api-key`, {
  method: 'POST',
  headers: { authorization: `Bearer ${SIGNALBOX_TOKEN}`, 'content-type': 'application/json' },
  body: JSON.stringify({
    name: 'portal',
    // To create the accounts of customers, to open the portal, and what the role account-developer holds.
    permissions: [
      ...['account:create', 'portal-session:*', 'account-limit:find-one', 'contract:*', 'webhook:*', 'webhook-event:*'],
      ...['webhook-dispatch:*', 'replay-job:*', 'event:find-all', 'event:find-one', 'event-occurrence:*'],
    ],
  }),
})
const answer = (await response.json()) as { data: { key: string }; detail?: string }
if (!response.ok) throw new Error(`Signalbox answered ${response.status}: ${answer.detail}`)
const lines = [`SIGNALBOX_URL=${SIGNALBOX_URL}`, `SIGNALBOX_KEY=${answer.data.key}`, `PORT=${PORT}`]
await writeFile('.env', `${lines.join('\n')}\n`, { mode: 0o600 })
console.log('The key of the platform is in .env: start the platform now.')
