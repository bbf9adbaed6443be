import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemRandom } from '../../src/base/random.ts'
import { createSecret } from '../../src/outbound/signature.ts'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import { type ConsoleBrowser, follow, startConsoleBrowser, takePicture } from './console-browser.ts'

let c: ConsoleBrowser
let d: DeliveryApp

beforeAll(async () => {
  c = await startConsoleBrowser()
  d = c.d
  // The browser has the time of the machine.
  d.t.clock.set(Date.now())
  await d.call('POST', '/api/v3/identity/account', { name: 'Acme' })
})
afterAll(() => c?.[Symbol.asyncDispose]())

test('a webhook without a URL is made, shows what waits to be pulled, and the delivery that was acknowledged', async () => {
  await using opened = await c.open('/console/webhooks/new')
  const { page, complaints } = opened
  await page.getByRole('radio', { name: 'Pull' }).check()
  expect(await page.getByLabel('Callback URL').count()).toBe(0)
  await page.getByLabel('Name', { exact: true }).fill('Fetched')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('radio', { name: 'Global' }).check()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByLabel('contract.delete').check()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('Nothing waits to be pulled.').waitFor()
  const id = new URL(page.url()).pathname.split('/').at(-1)
  const path = `/api/v3/webhook/webhook/${id}`
  await d.call('POST', `${path}/test`)
  await page.getByText('1 delivery waits to be pulled').waitFor()
  const { body } = await d.call('POST', `${path}/pull`, {})
  await d.call('POST', `${path}/ack`, { receipts: [body.data.deliveries[0].receipt] })
  await page.getByText('Nothing waits to be pulled.').waitFor()
  await follow(page, `webhooks/${id}?tab=deliveries`)
  await page.getByRole('table').getByText('acknowledged').waitFor()
  await follow(page, `webhooks/${id}?tab=settings`)
  await page.getByRole('heading', { name: 'Fetched' }).waitFor()
  expect(await page.getByLabel('Callback URL').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('a webhook is made step by step, and its test arrives', async () => {
  await using opened = await c.open('/console/webhooks/new')
  const { page, complaints } = opened
  const rule = page.getByRole('listitem').filter({ hasText: 'public host' })
  await page.getByLabel('Callback URL').fill('https://example.com/made')
  await rule.waitFor()
  // Of a private host only the service knows: it may be one that it allows.
  await page.getByLabel('Callback URL').fill(`${d.receiver.origin}/made`)
  await rule.waitFor({ state: 'detached' })
  await page.getByText('or a private target that WEBHOOK_ALLOWED_PRIVATE_TARGETS names').waitFor()
  await takePicture(page, 'wizard-endpoint')
  await page.getByRole('button', { name: 'Add a header' }).click()
  await page.getByLabel('Name of header 1').fill('Authorization')
  await page.getByLabel('Value of header 1').fill('Bearer of-the-receiver')
  await page.getByLabel('Deliveries a second').fill('1001')
  await page.getByText('A whole number from 1 to 1,000.').waitFor()
  expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
  await page.getByLabel('Deliveries a second').fill('50')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('radio', { name: 'One account' }).check()
  expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
  await page.getByRole('combobox', { name: 'Account' }).click()
  await page.getByRole('option', { name: 'Acme' }).click()
  await page.getByLabel('Resources').fill('S-1042\n\nS-1043\nS-1042')
  await takePicture(page, 'wizard-scope')
  await page.getByRole('button', { name: 'Next' }).click()
  expect(new URL(page.url()).search).toBe('?step=events')
  await page.getByLabel('contract.update').check()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText('One account: Acme', { exact: true }).waitFor()
  await takePicture(page, 'wizard-review')
  await page.goBack()
  expect(await page.getByLabel('contract.update').isChecked()).toBe(true)
  await page.goForward()
  await page.getByText('S-1042, S-1043', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'API call' }).click()
  const call = page.getByRole('dialog')
  await call.getByText('"Authorization":"…"').waitFor()
  expect(await call.innerText()).not.toContain('of-the-receiver')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  const first = page.getByText('Show, copy or download the secret first.')
  await first.waitFor()
  expect(await page.getByLabel('I have stored it').isDisabled()).toBe(true)
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await first.waitFor({ state: 'detached' })
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Send the test' }).click()
  await page.getByText('Success', { exact: true }).waitFor()
  expect(d.receiver.requests.at(-1)).toMatchObject({
    path: '/made',
    headers: { authorization: 'Bearer of-the-receiver' },
  })
  const made = (await d.call('GET', '/api/v3/webhook/webhook?sort=-created_at')).body.data[0]
  const chosen = { resource_ids: ['S-1042', 'S-1043'], header_names: ['authorization'], max_per_second: 50 }
  expect(made).toMatchObject(chosen)
  // Every header by which a receiver verifies, as the one that came has them.
  const request = await page.getByText('x-service-event: webhook.test').innerText()
  for (const name of Object.keys(d.receiver.requests.at(-1)?.headers ?? {}).filter((each) =>
    /^(x-service|webhook)-/.test(each),
  ))
    expect(request).toContain(`\n${name}: `)
  await page.goto(`${new URL(page.url()).pathname}?tab=settings`)
  await page
    .getByRole('row', { name: /^Scope/ })
    .getByRole('link', { name: 'Acme' })
    .waitFor()
  expect(complaints).toEqual([])
})

test('a webhook moves here with its secret, and its asymmetric signature is switched, rotated and examined', async () => {
  const secret = createSecret(systemRandom)
  await using opened = await c.open('/console/webhooks/new')
  const { page, complaints } = opened
  await page.getByLabel('Callback URL').fill(`${d.receiver.origin}/moved`)
  await page.getByLabel('Asymmetric signature').check()
  await page.getByLabel('Secret of another system').fill(secret)
  await takePicture(page, 'wizard-import')
  for (const _ of ['endpoint', 'scope']) await page.getByRole('button', { name: 'Next' }).click()
  await page.getByLabel('contract.update').check()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText('Given, not shown again').waitFor()
  await page.getByRole('button', { name: 'API call' }).click()
  const call = page.getByRole('dialog')
  await call.getByText('"secret":"…"').waitFor()
  expect(await call.innerText()).not.toContain(secret)
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  await page.getByRole('button', { name: 'Send the test' }).click()
  await page.getByText('Success', { exact: true }).waitFor()
  const { headers, body } = d.receiver.requests.at(-1)!
  expect(() => new Webhook(secret).verify(String(body), headers as Record<string, string>)).not.toThrow()

  await page.getByRole('radiogroup', { name: 'What verifies the signature' }).getByText('Public key').click()
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    await page.getByRole('textbox', { name }).fill(String(headers[name]))
  await page.getByLabel('Raw body').fill(String(body))
  await page.getByRole('button', { name: 'Examine' }).click()
  await page.getByText('The signature is valid').waitFor()
  await page.getByRole('textbox', { name: 'webhook-id' }).fill('another')
  await page.getByRole('button', { name: 'Examine' }).click()
  await page.getByText('The key, the id, the time or the body is another one').waitFor()
  await takePicture(page, 'signature-key')

  await page.getByRole('tab', { name: 'Verify' }).click()
  await page.getByRole('radiogroup', { name: 'What verifies the signature' }).getByText('Public key').click()
  await page.getByText('createPublicKey').first().waitFor()
  await page.getByText('Python', { exact: true }).click()
  await page.getByText('Ed25519PublicKey').first().waitFor()

  const key = page.getByTestId('asymmetric-key')
  const [{ document_id: id, public_key: first }] = (await d.call('GET', '/api/v3/webhook/webhook?sort=-created_at'))
    .body.data
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await key.getByText(first).waitFor()
  await key.getByText(`/api/v3/webhook/webhook/${id}/jwks`).waitFor()
  const confirm = async (name: string) => {
    await key.getByRole('button', { name }).click()
    await page.getByRole('dialog').getByRole('button', { name }).click()
  }
  await confirm('Rotate the key')
  await key.getByText('Former public key').waitFor()
  await confirm('Rotate the key')
  await page.getByRole('dialog').getByText('The key before the last rotation is listed until').waitFor()
  await page.keyboard.press('Escape')
  await takePicture(page, 'webhook-key')
  await confirm('Switch off')
  await key.getByText('Deliveries are signed with the secret alone.').waitFor()
  await key.getByRole('button', { name: 'Switch on' }).click()
  await key.getByText('Public key', { exact: true }).waitFor()
  expect((await d.readWebhook(id)).public_key).not.toBe(first)
  await d.call('DELETE', `/api/v3/webhook/webhook/${id}/purge`)
  // The browser reports the answer that refuses the second rotation.
  expect(complaints.filter((text) => !text.includes('409'))).toEqual([])
})
