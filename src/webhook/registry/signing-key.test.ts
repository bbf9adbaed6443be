import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { UserId, WebhookId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { toVerificationJwk } from '../../outbound/asymmetric-signature.ts'
import { buildKeyColumns, findKeyChange, loadKeySet, rotateSigningKey, signingKeyContextOf } from './signing-key.ts'
import { findWebhook, updateWebhook } from './webhook.store.ts'

const keyring = buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], systemRandom)
const deps = { random: systemRandom, keyring }
const DAY_MS = 86_400_000

async function openKeys() {
  const database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const by = ledger.ids.next<'user'>() as UserId
  const at = { created_at: ledger.now(), updated_at: ledger.now() }
  await db
    .insertInto('user')
    .values({ document_id: by, email: 'by@example.test', ...at })
    .execute()
  /** A webhook with a key, and its public key. */
  const addSigned = async (row: Parameters<typeof ledger.addWebhook>[0] = {}) => {
    const id = await ledger.addWebhook(row)
    const columns = buildKeyColumns(deps, id, true)
    await updateWebhook(db, id, columns, ledger.now())
    return { id, publicKey: columns.publicKey as string }
  }
  const rotate = (id: WebhookId | string) => rotateSigningKey(deps, db, id, { by, now: ledger.now() })
  const listKeys = async (id: string) => (await loadKeySet(db, id, ledger.now())).keys
  const read = async (id: WebhookId) =>
    db.selectFrom('webhook').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  const end = () => database[Symbol.asyncDispose]()
  return { db, clock, ledger, by, addSigned, rotate, listKeys, read, [Symbol.asyncDispose]: end }
}

const NOT_FOUND = { code: 'not_found', status: 404 }
const CONFLICT = { code: 'conflict', status: 409 }

test('a key is made when it is switched on, removed when it is switched off, and left alone otherwise', async () => {
  await using t = await openKeys()
  const webhook = (await findWebhook(t.db, (await t.addSigned()).id))!
  const plain = { ...webhook, publicKey: null }
  const off = { publicKey: null, signingKeyEncrypted: null, previousPublicKey: null, previousPublicKeyUntil: null }
  expect(findKeyChange(deps, webhook, false)).toEqual(off)
  const made = findKeyChange(deps, plain, true)
  expect(made).toMatchObject({ publicKey: expect.stringMatching(/^whpk_/), previousPublicKey: null })
  expect(keyring.open(made.signingKeyEncrypted!, signingKeyContextOf(webhook.id))).toMatch(/^whsk_/)
  for (const [row, isOn] of [
    [webhook, true],
    [webhook, undefined],
    [plain, false],
    [plain, undefined],
  ] as const)
    expect(findKeyChange(deps, row, isOn)).toEqual({})
})

test('a rotation replaces the key of one webhook, keeps the public key before for a day, and says who and when', async () => {
  await using t = await openKeys()
  const [webhook, other] = [await t.addSigned(), await t.addSigned()]
  const before = [await t.read(webhook.id), await t.read(other.id)]
  t.clock.advance(1_000)
  const rotated = await t.rotate(webhook.id)
  const after = await t.read(webhook.id)
  expect(rotated).toMatchObject({
    previousPublicKey: webhook.publicKey,
    previousPublicKeyUntil: new Date(t.clock.now() + DAY_MS),
    updatedBy: t.by,
    updatedAt: t.ledger.now(),
  })
  expect(rotated.publicKey).not.toBe(webhook.publicKey)
  expect(after.public_key).toBe(rotated.publicKey)
  expect(after.signing_key_encrypted).not.toBe(before[0]!.signing_key_encrypted)
  expect(await t.read(other.id)).toEqual(before[1])
  expect(await t.listKeys(webhook.id)).toEqual([rotated.publicKey!, webhook.publicKey].map(toVerificationJwk))
  expect(await t.listKeys(other.id)).toEqual([toVerificationJwk(other.publicKey)])
})

test('while a former key is listed another rotation is refused, to the millisecond', async () => {
  await using t = await openKeys()
  const { id } = await t.addSigned()
  const first = await t.rotate(id)
  t.clock.advance(DAY_MS - 1)
  expect(await t.listKeys(id)).toHaveLength(2)
  await expect(t.rotate(id)).rejects.toMatchObject({ ...CONFLICT, message: expect.stringContaining('listed until') })
  expect((await t.read(id)).public_key).toBe(first.publicKey)
  t.clock.advance(1)
  expect(await t.listKeys(id)).toEqual([toVerificationJwk(first.publicKey!)])
  expect((await t.rotate(id)).previousPublicKey).toBe(first.publicKey)
})

test('a webhook without a key is not rotated, and one that is deleted or unknown is not found', async () => {
  await using t = await openKeys()
  const plain = await t.ledger.addWebhook()
  const { id: deleted } = await t.addSigned({ isDeleted: true })
  const unknown = t.ledger.ids.next<'webhook'>()
  const text = expect.stringContaining('no asymmetric signature')
  await expect(t.rotate(plain)).rejects.toMatchObject({ ...CONFLICT, message: text })
  for (const id of [deleted, unknown]) await expect(t.rotate(id)).rejects.toMatchObject(NOT_FOUND)
})

test('a key set that there is not looks the same whatever the reason', async () => {
  await using t = await openKeys()
  const ids = [
    await t.ledger.addWebhook(),
    (await t.addSigned({ isDeleted: true })).id,
    (await t.addSigned({ isActived: false })).id,
    t.ledger.ids.next<'webhook'>(),
  ]
  await t.addSigned()
  for (const id of ids)
    await expect(t.listKeys(id)).rejects.toMatchObject({
      ...NOT_FOUND,
      message: 'There is no key set with this id, or it was deleted.',
    })
})
