import { writeFile } from 'node:fs/promises'

/**
 * `npm run connect` makes the webhook of this receiver at Signalbox and keeps its secret in `.env`; `npm run try` lets
 * Signalbox send a test delivery and prints what this receiver has answered. SIGNALBOX_TOKEN is an API key.
 */
const {
  SIGNALBOX_URL = 'http://localhost:3000',
  SIGNALBOX_TOKEN = '',
  SIGNALBOX_WEBHOOK = '',
  PORT = '4000',
} = process.env

async function call<Data>(method: string, path: string, body?: object): Promise<Data> {
  const response = await fetch(`${SIGNALBOX_URL}/api/v3/webhook/${path}`, {
    method,
    headers: { authorization: `Bearer ${SIGNALBOX_TOKEN}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as { data: Data; detail?: string }
  if (!response.ok) throw new Error(`Signalbox answered ${response.status}: ${answer.detail}`)
  return answer.data
}

async function connect(): Promise<void> {
  const url = `http://127.0.0.1:${PORT}/webhooks/signalbox`
  const webhook = await call<{ document_id: string; secret: string }>('POST', 'webhook', {
    url,
    is_global: true,
    name: 'My receiver',
    events: ['contract.update'],
  })
  const lines = [
    `SIGNALBOX_WEBHOOK=${webhook.document_id}`,
    `SIGNALBOX_WEBHOOK_SECRET=${webhook.secret}`,
    `PORT=${PORT}`,
  ]
  await writeFile('.env', `${lines.join('\n')}\n`, { mode: 0o600 })
  console.log(`The webhook ${webhook.document_id} posts to ${url}. Its secret is in .env: start the receiver now.`)
}

async function sendTest(): Promise<void> {
  const { dispatch_id: id } = await call<{ dispatch_id: string }>('POST', `webhook/${SIGNALBOX_WEBHOOK}/test`)
  for (let left = 60; left > 0; left -= 1) {
    const { status, attempts } = await call<{ status: string; attempts: number }>('GET', `dispatch/${id}`)
    if (attempts > 0 && status !== 'pending')
      return console.log(`The test delivery is ${status} after ${attempts} attempt(s).`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  throw new Error('The test delivery was not sent within 15 s: see the log of Signalbox.')
}

if (process.argv[2] === 'try') await sendTest()
else await connect()
