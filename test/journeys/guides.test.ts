import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SOURCE_TOKEN, type SourceSimulator, startSvix } from '../command/import-simulators.ts'
import {
  keycloakClient,
  keycloakRealm,
  keycloakUser,
  logtoApplication,
  logtoUser,
  makeSecret,
  supabaseClient,
  supabaseUser,
} from '../command/people-exports.ts'
import { TINY_IMAGE } from '../harness/app/tiny-image.ts'
import { walk } from '../harness/browser/oauth-service.ts'
import { buildVisitor } from '../harness/browser/visitor.ts'
import { type Receiver, startReceiver } from '../harness/fakes/receiver.ts'
import { buildFakeIdp } from '../harness/fakes/saml-idp/fake-idp.ts'
import { type GuideShell, listBlocks, openGuideShell, startGuideService } from '../harness/process/guide-shell.ts'
import type { LocalStart } from '../harness/process/local-start.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { waitFor } from '../harness/run/wait.ts'

/**
 * The commands of the guides as they stand but for the ports and the hosts of receivers, pasted into a shell in the checkout
 * whose environment is empty. The guides of `OWN_TEST` have tests of their own.
 */

/** Output of a block, by a text that only it has. Each runs in the order of its guide. */
const RUN: Readonly<Record<string, readonly (readonly [block: string, printed: RegExp])[]>> = {
  'let-another-app-sign-in.md': [
    ['export TOKEN', /^/],
    ['export CLIENT', /^/],
    ['export ACCESS_TOKEN', /^Open http:/m],
    ['/rotate-secret', /"client_secret":"/],
    ['/oauth/exchange', /"data":\[[^\n]*"pagination"/],
    ['private_key_jwt', /"client_id":"/],
    ['openid-configuration', /"issuer":"http:/],
  ],
  'provisioning.md': [
    ['export SIGNALBOX_URL', /^/],
    ['export TARGET', /^/],
    ['node target.mjs', /^/],
    ['$TARGET/sync', /"data":\{"document_id"/],
    ['/reconcile', /"data":\{"document_id"/],
    ['scim/v2', /"data":\{"document_id"/],
  ],
  'second-factors.md': [
    ['requires_second_factor', /"requires_second_factor":true/],
    ['/remove-factors', /"message":"/],
  ],
  'portal.md': [
    ['"permissions":', /"key":"sbx_/],
    ['ACCOUNT="', /"url":"http:[^"]+\/portal#token=sbl_/],
    ['$SESSION', /"status":"ended"/],
  ],
  'enterprise-sign-in.md': [
    ['ACCOUNT="', /"redirect_path":"\/api\/v3\/auth\/login\/oauth\//],
    ['/domain"', /"record_name":"_signalbox-challenge\.corp\.example"/],
    ['/login/connection', /"connection":null/],
    ['/auth/session', /"closed_accounts":\[\]/],
  ],
  'sign-up.md': [
    ['picture.json', /"name":"Ada King"[\s\S]*\/auth\/picture\/[\s\S]*A mail with a link is on its way to each/],
  ],
  'tenants.md': [
    ['export BASE', /^/],
    ['"internal"', /"internal":"shipment\.arrive"/],
    ['export ACCOUNT', /^/],
    ['/invitation"', /"message":"Invitation sent\."/],
    ['export INVITATION', /"email":"dev@acme\.example","name":"Dev"/],
    ['export KEY', /^/],
    ['export WEBHOOK', /^/],
    ['/events"', /"message":"Event set replaced\."/],
    ['/publish"', /"accepted":1[\s\S]*"data":\[/],
  ],
  'doctor.md': [['npx signalbox doctor', /^settings +ok$/m]],
  'manage.md': [
    ['user create', /^User vera@example\.com enabled\.$/m],
    ['account create', /^[0-9a-f-]{36} {2}Acme$/m],
    ['client create', /^secret {2}sbcs_/m],
  ],
  'pull.md': [
    ['export BASE', /^/],
    ['export WEBHOOK', /"dispatch_id":"/],
    ['/pull"', /"receipt":"[0-9a-f-]{36}:1"/],
    ['/extend"', /"status":"extended"/],
    ['/ack"', /"status":"acknowledged"/],
    ['"permissions":', /"key":"sbx_/],
    ['listen --pull', /^/],
  ],
  'move-from-svix.md': [
    ['cat > events.json', /^/],
    [
      'import svix --from https://api.svix.com --token-file svix-token.txt --events events.json\n',
      /accounts: 1 would create; webhooks: 2 would create/,
    ],
    ['events.json --apply', /accounts: 1 created; webhooks: 2 created/],
  ],
  'move-from-supabase-auth.md': [
    ['cat > people.sql', /^/],
    ['--from people.jsonl\n', /^people: 2 would create; OAuth clients: 1 would create$/m],
    ['--from people.jsonl --apply', /^people: 2 created; OAuth clients: 1 created$/m],
  ],
  'move-from-keycloak.md': [
    ['--from realm\n', /^people: 1 would create; OAuth clients: 1 would create$/m],
    ['--from realm --apply', /^people: 1 created; OAuth clients: 1 created$/m],
  ],
  'move-from-logto.md': [
    ['cat > people.sql', /^/],
    ['--from people.jsonl\n', /^people: 1 would create; OAuth clients: 1 would create$/m],
    ['--from people.jsonl --apply', /^people: 1 created; OAuth clients: 1 created$/m],
  ],
  'realtime.md': [
    ['export BASE', /^/],
    ['cat > .signalbox/watch.mjs', /^/],
    ['created.json', /^contract\.create [0-9a-f-]{36}$/m],
  ],
  'saml.md': [
    ['export CONNECTIONS', /^/],
    ['metadata_url', /^/],
    ['export CONNECTION=', /^/],
    ['login/saml/', /<md:EntityDescriptor /],
    ['export DOMAIN', /"record_name":"/],
    ['/approve', /"message":"Domain proven\."/],
    ['-X PATCH', /"message":"Connection unchanged\."/],
  ],
  'cli.md': [['signalbox trigger', /^contract +[0-9a-f-]{36}/m]],
}

/** Blocks that are not pasted, by a text that only they have, with the reason. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'cli.md': {
    'signalbox listen': 'it runs until Ctrl-C; pasted in webhooks.md',
    'signalbox verify': 'it needs a capture; test/command/receiver-cli-verify.test.ts',
    'signalbox replay': 'it needs a dispatch; pasted in webhooks.md',
  },
  'pull.md': {
    '/nack"': 'instead of the acknowledgement before it; src/webhook/pull/receipt.test.ts',
  },
  'console.md': { 'npm start': 'the command of the README; pasted below' },
  'let-another-app-sign-in.md': { 'npm install': 'a package of the registry, which this repository has' },
  'provisioning.md': { 'npm start': 'the command of the README with a setting, which the service of this file has' },
  'move-from-svix.md': {
    'import convoy': 'services of others; test/command/import-sources.test.ts',
    '--from export.json': 'it needs an export; test/command/import-svix.test.ts',
  },
  'move-from-supabase-auth.md': { psql: 'a database of others; test/command/import-exports.test.ts' },
  'move-from-keycloak.md': { 'kc.sh': 'a server of others; its export is in test/command/people-exports.ts' },
  'move-from-logto.md': { psql: 'a database of others; test/command/import-exports.test.ts' },
  'second-factors.md': {
    '/session/step-up': 'it needs a code of the moment; src/identity/sign-in/step-up/step-up.test.ts',
    '/login/factor': 'it needs a code of the moment; src/identity/sign-in/second-factor/factor-login.slow.test.ts',
  },
  'saml.md': { '/verify"': 'it needs a record of DNS; src/identity/connection/entry/entry.test.ts' },
  'sign-up.md': {
    'npm start': 'a start with settings; src/identity/sign-up/sign-up.test.ts',
    '/sign-up/confirm': 'it needs the token of a mail; src/identity/sign-up/sign-up.test.ts',
    '/login/mail/confirm': 'it needs the code of a mail; src/identity/sign-in/by-mail/mail-login.test.ts',
  },
  'social-login.md': {
    '/login/code': 'it needs a code that a provider gave an app; src/identity/social-login/flow/login-code.test.ts',
  },
  'start.md': {
    'npm install': 'tools/release/try.ts installs a release by npm',
    'npm start': 'the command of the README; pasted below',
    'admin password': 'it changes the password of the other guides; test/command/beside-service.test.ts',
    SIGNALBOX_PID: 'a second service; test/command/launcher.test.ts',
  },
  'tracing.md': { OTEL_: 'a start with a collector; src/tracing/tracing.slow.test.ts' },
}

/** What a program in the background prints after a block, by a text of the block. */
const PRINTED_LATER: readonly (readonly [block: string, printed: RegExp])[] = [
  ['node target.mjs', /^listening$/m],
  ['listen --pull', /^Pulling the deliveries of the webhook [0-9a-f-]{36} from /m],
  ['$TARGET/sync', /^admin@signalbox\.localhost active$/m],
]

/** Sets the variables that the text of a guide names, and saves its programs. */
const PREPARE: Readonly<Record<string, () => Promise<unknown>>> = {
  'move-from-svix.md': async () => {
    await writeFile(join(shell.checkout, 'svix-token.txt'), SOURCE_TOKEN)
    await shell.run(`export SIGNALBOX_URL=http://localhost:${port}`)
  },
  'let-another-app-sign-in.md': async () =>
    writeFile(join(shell.checkout, 'sign-in.mjs'), usePorts(await readProgram('let-another-app-sign-in.md'))),
  'provisioning.md': async () => {
    const program = await readProgram('provisioning.md')
    // The package is built by packages/webhooks/test/built-package.slow.test.ts.
    const source = join(PROJECT_ROOT, 'packages/webhooks/src/provisioning.ts')
    const text = program.replace('@signalbox/webhooks/provisioning', source).replace('4100', String(guideTargetPort))
    await writeFile(join(shell.checkout, 'target.mjs'), text)
  },
  // What the exports of the guides give.
  'move-from-supabase-auth.md': () => writeRows([supabaseUser(), supabaseUser(), supabaseClient(makeSecret())]),
  'move-from-logto.md': () => writeRows([logtoUser(), logtoApplication()]),
  'move-from-keycloak.md': async () => {
    await mkdir(join(shell.checkout, 'realm'))
    const realm = JSON.stringify(keycloakRealm([keycloakUser()], [keycloakClient()]))
    await writeFile(join(shell.checkout, 'realm', 'acme-realm.json'), realm)
  },
  'cli.md': () => shell.run(`export SIGNALBOX_URL=http://localhost:${port}`),
  'enterprise-sign-in.md': () =>
    shell.run(`export BASE=http://localhost:${port} AUTH="Authorization: Bearer $(cat .signalbox/demo-token)"`),
  'portal.md': () =>
    shell.run(`export BASE=http://localhost:${port} AUTH="Authorization: Bearer $(cat .signalbox/demo-token)"`),
  'saml.md': async () => {
    const idp = await buildFakeIdp({ origin: 'https://hr.example.com', now: () => new Date() })
    receiver.behaveNext({ kind: 'status', status: 200, headers: {}, body: idp.metadata })
    await shell.run(`export ACCOUNT=${await makeRow('account', { name: 'Acme' })}`)
  },
  'sign-up.md': async () => {
    const [email, password] = ['ada@people.example', 'correct horse battery']
    await makeRow('user', { email, password })
    const answer = await fetch(`http://localhost:${port}/api/v3/auth/login/local`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    })
    const { data } = (await answer.json()) as { data: { jwt: string } }
    await writeFile(join(shell.checkout, 'me.png'), Buffer.from(TINY_IMAGE, 'base64'))
    await shell.run(`export BASE=http://localhost:${port} AUTH="Authorization: Bearer ${data.jwt}"`)
  },
  'second-factors.md': async () => {
    const role = await makeRow('role', { name: 'careful', permissions: ['contract:find-all'] })
    const user = await makeRow('user', { email: 'ada@example.com' })
    await shell.run(`export BASE=http://localhost:${port} AUTH="Authorization: Bearer $(cat .signalbox/demo-token)"`)
    await shell.run(`export ROLE=${role} USER=${user}`)
  },
}

const writeRows = (rows: readonly unknown[]) =>
  writeFile(join(shell.checkout, 'people.jsonl'), rows.map((row) => JSON.stringify(row)).join('\n'))

const readToken = async () => (await readFile(join(shell.dataDir, 'demo-token'), 'utf8')).trim()

async function makeRow(kind: string, body: object): Promise<string> {
  const answer = await fetch(`http://localhost:${port}/api/v3/identity/${kind}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await readToken()}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { data } = (await answer.json()) as { data: { document_id: string } }
  return data.document_id
}

const OWN_TEST = ['webhooks.md', 'generate-a-client.md', 'sso.md', 'event-log.md', 'move-from-pusher.md']

let shell: GuideShell
let receiver: Receiver
/** The system that a guide moves from. */
let svix: SourceSimulator
let service: LocalStart
let port: number
/** Of the example that takes users. */
let targetPort: number
/** Of the program of the guide that signs a user in. */
let appPort: number
/** Of the program of the guide that takes users. */
let guideTargetPort: number

beforeAll(async () => {
  port = await findFreePort()
  targetPort = await findFreePort()
  guideTargetPort = await findFreePort()
  appPort = await findFreePort()
  receiver = await startReceiver()
  svix = await startSvix([{ app: { id: 'app_2Xy', name: 'Acme' }, endpoints: [makeEndpoint(), makeEndpoint()] }])
  shell = await openGuideShell()
  const target = [receiver.port, targetPort, guideTargetPort].map((allowed) => `127.0.0.1:${allowed}`).join(',')
  service = await startGuideService(shell, { PORT: String(port), WEBHOOK_ALLOWED_PRIVATE_TARGETS: target })
  // A variable that a guide forgot ends its command.
  await shell.run('set -u')
  await shell.install()
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await shell?.[Symbol.asyncDispose]()
  await receiver?.close()
  await svix?.[Symbol.asyncDispose]()
})

function makeEndpoint() {
  const id = `ep_${randomBytes(4).toString('hex')}`
  const endpoint = {
    id,
    url: `http://127.0.0.1:${receiver.port}/${id}`,
    eventTypes: ['invoice.paid', 'invoice.voided'],
  }
  return { endpoint, key: `whsec_${randomBytes(24).toString('base64')}` }
}

const usePorts = (text: string) =>
  text
    .replaceAll('localhost:3000', `localhost:${port}`)
    .replaceAll('127.0.0.1:4100', `127.0.0.1:${guideTargetPort}`)
    .replaceAll(/(127\.0\.0\.1:|listen\()4711\b/g, `$1${appPort}`)
    .replaceAll('https://api.svix.com', svix.origin)
    .replaceAll(/https:\/\/(?:hr|hooks)\.example\.com/g, `http://127.0.0.1:${receiver.port}`)

const readGuide = (guide: string) => readFile(join(PROJECT_ROOT, 'docs/guides', guide), 'utf8')

/** The program of a guide, in its only block of JavaScript. */
async function readProgram(guide: string): Promise<string> {
  const [program, ...others] = listBlocks(await readGuide(guide)).filter(({ language }) => language === 'js')
  if (!program || others.length > 0) throw new Error(`${guide} has not one program`)
  return program.text
}

const readBlocks = async (guide: string) =>
  listBlocks(await readGuide(guide)).filter(({ language }) => language === 'sh')

/** Signs the administrator in at the address that the program of the guide prints, and goes back to the program. */
async function signInAtApp(): Promise<void> {
  const [, url = ''] = await shell.waitForOutput(/^Open (http:\S+)$/m)
  const [, password = ''] = /with the password (\S+)/.exec(service.stdout()) ?? []
  const answers = { user: { email: 'admin@signalbox.localhost', password } }
  const { location = '' } = await walk(`http://localhost:${port}`, buildVisitor(), { url, answers })
  expect(await (await fetch(location)).text()).toBe('Signed in.')
}

/** A block as a shell without a terminal runs it. */
function wrap(text: string): string {
  // The service holds the embedded database and the port: doctor says so.
  if (text.startsWith('npx signalbox doctor')) return `${text.trim()} || true`
  // In place of a terminal of its own, and Ctrl-C.
  if (text.includes('listen --pull')) return `${text.trim()} 2>&1 &`
  return text.includes('node sign-in.mjs') ? `{ ${text.trim()}\n} 2>&1` : text
}

const hasInvitation = async () =>
  (await (await fetch(`http://localhost:${port}/auth/mail`)).text()).includes('invitation?token=')

/** A target has one job at a time, which the reader of the guide waits for. */
async function hasNoJob(): Promise<boolean> {
  const token = await readToken()
  const jobs = await fetch(`http://localhost:${port}/api/v3/provisioning/job`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const { data } = (await jobs.json()) as { data: { status: string }[] }
  return data.length > 0 && data.every(({ status }) => !['pending', 'running'].includes(status))
}

describe('the commands of a guide run as they stand', () => {
  test.each(Object.entries(RUN))('%s', async (guide, blocks) => {
    const left = new Map(blocks)
    /** The row of the block before, which the text of a guide names. */
    let lastId = ''
    await PREPARE[guide]?.()
    for (const { text } of await readBlocks(guide)) {
      const known = blocks.find(([part]) => text.includes(part))
      if (!known) continue
      left.delete(known[0])
      if (text.includes('$SESSION')) await shell.run(`export SESSION=${lastId}`)
      if (text.includes('export INVITATION')) await waitFor('the mail, for which a reader waits', hasInvitation)
      if (text.includes('/reconcile')) await waitFor('the end of the job before', hasNoJob)
      const [printed] = await Promise.all([
        shell.run(wrap(usePorts(text))),
        text.includes('node sign-in.mjs') && signInAtApp(),
      ])
      expect(printed, text).toMatch(known[1])
      const later = PRINTED_LATER.find(([part]) => text.includes(part))
      if (later) await shell.waitForOutput(later[1])
      lastId = /"document_id":"([^"]+)"/.exec(printed)?.[1] ?? lastId
      expect(printed, text).not.toMatch(/"code":"unauthorized"|"status":40[0134]/)
    }
    expect([...left.keys()]).toEqual([])
  })
})

/** A printed demonstration without what differs from run to run. */
const blurRun = (text: string) =>
  text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
    .replaceAll(/\d+ ms/g, '<time>')
    .trim()

test('the first command of the README prints what it shows, in a checkout where nothing was set', async () => {
  const readme = await readFile(join(PROJECT_ROOT, 'README.md'), 'utf8')
  const [first] = listBlocks(readme).filter(({ language }) => language === 'sh')
  // The second one runs the tests, of which this is one.
  expect(first?.text).toBe('npm start\nnpm test\n')
  const [, shown = ''] = /<!-- output of npm start -->\n```\n([\s\S]*?)^```/m.exec(readme) ?? []
  await using own = await openGuideShell({ PORT: String(await findFreePort()) })
  await own.run(`${first?.text.split('\n')[0]} &`)
  await own.waitForOutput(/Stop with Ctrl-C\./)
  const [printed] = await own.waitForOutput(/A change through the API[\s\S]*?realtime .*$/m)
  expect(blurRun(printed)).toBe(blurRun(shown))
})

test('the commands of examples/provisioning-target run as they stand, and the target has the users', async () => {
  const text = await readFile(join(PROJECT_ROOT, 'examples/provisioning-target/README.md'), 'utf8')
  const [start, create, sync, look, ...more] = listBlocks(text).filter(({ language }) => language === 'sh')
  expect([start?.text.includes('npm start'), more]).toEqual([true, []])
  const here = (block: typeof start) =>
    (block?.text ?? '')
      .replaceAll('localhost:3000', `localhost:${port}`)
      .replaceAll('127.0.0.1:4100', `127.0.0.1:${targetPort}`)
  // The port of the program is that of its URL in the text.
  await shell.run(`export PORT=${targetPort}`)
  await shell.run(here(create))
  await shell.waitForOutput(/Target platform\. Its users:/)
  expect(await shell.run(here(sync))).toMatch(/"data":\{"document_id"/)
  await waitFor('the users of the target', async () => (await shell.run(here(look))).includes('@'))
})

test('the key of portal.md is enough for its program, and a company whose first try failed is served by the next', async () => {
  const [create] = (await readBlocks('portal.md')).filter(({ text }) => text.includes('"permissions":'))
  await PREPARE['portal.md']?.()
  const [, key = ''] = /"key":"(sbx_[^"]+)"/.exec(await shell.run(usePorts(create?.text ?? ''))) ?? []
  // The network fails once, as at a restart of the service.
  await writeFile(
    join(shell.checkout, 'open-portal.ts'),
    `import { openPortalFor } from './packages/create/templates/portal/portal-link.ts'
    const { fetch } = globalThis
    globalThis.fetch = async () => { throw new TypeError('fetch failed') }
    const open = () => openPortalFor({ company: 'Initech', email: 'ada@initech.example' })
    console.log(await open().then(() => 'opened', () => 'failed'))
    globalThis.fetch = fetch
    console.log(await open())`,
  )
  const program = 'node --import ./examples/sources.ts open-portal.ts'
  const printed = await shell.run(`SIGNALBOX_URL=http://localhost:${port} SIGNALBOX_KEY=${key} ${program}`)
  expect(printed).toMatch(/^failed\nhttp:[^\n]+\/portal#token=sbl_/m)
}, 120_000)

test('the administrator and the first API key of a production are made as deployment.md says', async () => {
  const page = await readFile(join(PROJECT_ROOT, 'docs/deployment.md'), 'utf8')
  const findOnly = (part: string) => {
    const [block = '', ...others] = listBlocks(page)
      .map(({ text }) => text)
      .filter((text) => text.includes(part))
    expect([block.includes(part), others]).toEqual([true, []])
    return block
  }
  // The settings before it are those of this service.
  const [create = ''] =
    /^.*SIGNALBOX_ADMIN_PASSWORD=[\s\S]*?admin create .*$/m.exec(findOnly('npx signalbox serve')) ?? []
  await shell.run(create.replace('PASSWORD=...', "PASSWORD='correct horse battery'"))
  const makeKey = findOnly('/identity/api-key').replace('https://signalbox.example.com', `http://localhost:${port}`)
  expect(await shell.run(makeKey)).toMatch(/"key":"sbx_/)
  await shell.run('unset SIGNALBOX_ADMIN_PASSWORD')
})

test('the first steps of the start page run as they stand, the steps after a new password too', async () => {
  const page = await (await fetch(`http://localhost:${port}/`, { headers: { accept: 'text/html' } })).text()
  const [, steps = ''] = /<ol class="steps">([\s\S]*?)<\/ol>/.exec(page) ?? []
  const [, password = '', , trigger = ''] = [...steps.matchAll(/<code>(.*?)<\/code>/g)].map(([, text = '']) => text)
  // In place of the prompt of a terminal.
  const given = "SIGNALBOX_ADMIN_PASSWORD='correct horse battery'"
  expect(await shell.run(`(export ${given}; ${password})`)).toMatch(/Password of \S+ set/)
  // The page names the port that is not the usual one.
  expect(await shell.run(`(unset SIGNALBOX_URL; ${trigger})`)).toMatch(/^contract +[0-9a-f-]{36}/m)
  // Without `npx`, no shell of a newcomer has the command.
  expect([password, trigger]).toEqual([
    expect.stringMatching(/^npx signalbox /),
    expect.stringMatching(/^npx signalbox /),
  ])
})

test('each block of each guide is run, or listed with its reason', async () => {
  const guides = (await readdir(join(PROJECT_ROOT, 'docs/guides'))).filter((name) => name.endsWith('.md'))
  const missing: string[] = []
  for (const guide of guides.filter((name) => !OWN_TEST.includes(name)))
    for (const { text } of await readBlocks(guide)) {
      const isRun = (RUN[guide] ?? []).some(([part]) => text.includes(part))
      const isListed = Object.keys(NOT_RUN[guide] ?? {}).some((part) => text.includes(part))
      if (!isRun && !isListed) missing.push(`${guide}: ${text}`)
    }
  expect(missing).toEqual([])
})
