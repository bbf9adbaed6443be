import { describe, expect, test } from 'vitest'
import { classifyClock, classifyDatabase, classifySchema, type DatabaseFacts } from './database-findings.ts'
import { AREAS, buildReport, type Finding, fail, warn } from './finding.ts'
import { classifyDisk, classifyEgress, classifyNames, classifyPort, type PortFacts } from './machine-findings.ts'
import { classifyReplica, type ReplicaFacts } from './replica-findings.ts'
import { classifyRuntime, isSupportedNode } from './runtime-findings.ts'
import {
  classifyConfigError,
  classifySecrets,
  classifySettings,
  classifyStoredSecrets,
  type SettingFacts,
} from './setting-findings.ts'
import { classifyStorage, describeStorage } from './storage-findings.ts'

/** The codes and severities of findings: `failure database_too_old`. */
const list = (findings: readonly Finding[]) => findings.map(({ code, severity }) => `${severity} ${code}`)

const GOOD_DATABASE: DatabaseFacts = {
  versionNumber: 150_000,
  encoding: 'UTF8',
  isReadOnly: false,
  mayCreate: true,
  foreignTables: 0,
  fsync: true,
  fullPageWrites: true,
  synchronousCommit: 'on',
  synchronousStandbyNames: '',
  standbys: 0,
  synchronousStandbys: 0,
  systemId: '1',
  maxConnections: 100,
  reservedConnections: 3,
  usedConnections: 71,
  now: 0,
}
const NEEDS = { poolSize: 10, readPoolSize: 5, workerPoolSize: 5 }
const classify = (facts: Partial<DatabaseFacts>) => list(classifyDatabase({ ...GOOD_DATABASE, ...facts }, NEEDS))

describe('the database', () => {
  test('is in order at the oldest version, with exactly as many free connections as a process opens', () => {
    expect(classify({})).toEqual([])
  })

  test.each<[string, Partial<DatabaseFacts>, string]>([
    ['the version before', { versionNumber: 149_999 }, 'failure database_too_old'],
    ['a standby', { isReadOnly: true }, 'failure database_read_only'],
    ['no CREATE on the schema', { mayCreate: false }, 'failure database_without_privilege'],
    ['one table of another owner', { foreignTables: 1 }, 'failure database_without_privilege'],
    ['another encoding', { encoding: 'SQL_ASCII' }, 'failure database_encoding'],
    ['fsync off', { fsync: false }, 'failure database_not_durable'],
    ['full_page_writes off', { fullPageWrites: false }, 'failure database_not_durable'],
    ['synchronous_commit off', { synchronousCommit: 'off' }, 'warning database_loses_commits'],
    ['a standby that no commit waits for', { standbys: 1 }, 'warning database_standby_asynchronous'],
    [
      'commits that do not wait for their synchronous standby',
      { standbys: 1, synchronousStandbyNames: '*', synchronousCommit: 'local' },
      'warning database_standby_asynchronous',
    ],
    [
      'commits that wait for a standby that is not there',
      { standbys: 1, synchronousStandbyNames: 'standby' },
      'failure database_commits_wait',
    ],
    ['one connection more in use', { usedConnections: 72 }, 'warning database_connections_used'],
    ['one connection too few in all', { maxConnections: 28 }, 'failure database_connections_short'],
  ])('with %s is a finding', (_fact, facts, finding) => {
    expect(classify(facts)).toEqual([finding])
  })

  test('has enough connections when it has as many as a process opens and none is in use', () => {
    expect(classify({ maxConnections: 29, usedConnections: 0 })).toEqual([])
  })

  test('names every durability setting that is off, and accepts weaker synchronous commits that are still durable', () => {
    const [finding] = classifyDatabase({ ...GOOD_DATABASE, fsync: false, fullPageWrites: false }, NEEDS)
    expect(finding?.remedy).toBe('Set fsync and full_page_writes to on in postgresql.conf.')
    expect(classify({ synchronousCommit: 'local' })).toEqual([])
  })
})

describe('the replica', () => {
  const good: ReplicaFacts = { isStandby: true, systemId: '1', maySeeReceiver: true, isReceiving: true }

  test('is in order when it is a standby that provably receives the changes of the primary', () => {
    expect(classifyReplica(good, { systemId: '1' })).toEqual([])
    const waited = { standbys: 1, synchronousStandbys: 1, synchronousStandbyNames: 'ANY 1 (a, b)' }
    expect(classify(waited)).toEqual([])
    // The synchronous standby that is named is the server itself.
    expect(classify({ ...waited, synchronousStandbys: 0, isReadOnly: true })).toEqual(['failure database_read_only'])
  })

  test.each<[string, ReplicaFacts | { error: string }, string, RegExp]>([
    ['does not answer', { error: 'It cannot be reached.' }, 'replica_unreachable', /start the replica/],
    ['is of another database', { ...good, systemId: '2' }, 'replica_unproven', /a streaming standby of the server/],
    ['is no standby', { ...good, isStandby: false }, 'replica_is_primary', /or remove it/],
    ['hides its receiver', { ...good, maySeeReceiver: false }, 'replica_unproven', /grant pg_read_all_stats/],
    ['receives nothing', { ...good, isReceiving: false }, 'replica_unproven', /primary_conninfo/],
  ])('that %s is a warning with its remedy', (_what, facts, code, remedy) => {
    const findings = classifyReplica(facts, { systemId: '1' })
    expect(list(findings)).toEqual([`warning ${code}`])
    expect(findings[0]!.remedy).toMatch(remedy)
  })
})

describe('the schema', () => {
  test('is in order when nothing is pending and nothing is ahead', () => {
    expect(classifySchema({ pending: [], ahead: [] })).toEqual([])
  })

  test('behind is a warning that says how to migrate, with a stop only where a migration is not additive', () => {
    const additive = { name: '0021_a', isAdditive: true }
    const [harmless] = classifySchema({ pending: [additive], ahead: [] })
    expect(harmless).toMatchObject({
      code: 'schema_behind',
      severity: 'warning',
      detail: expect.stringMatching(/^1 migrations .*0 of them/),
    })
    expect(harmless?.remedy).not.toContain('Stop')
    const [breaking] = classifySchema({ pending: [additive, { name: '0022_b', isAdditive: false }], ahead: [] })
    expect(breaking?.remedy).toMatch(/^Stop the processes/)
  })

  test('of a newer release is a warning when it is usable and a failure when it is not', () => {
    expect(list(classifySchema({ pending: [], ahead: ['0021_a'] }))).toEqual(['warning schema_newer'])
    const [unusable] = classifySchema({ error: 'schema_ahead', message: 'The database has migration 0021_a.' })
    expect(unusable).toMatchObject({
      code: 'schema_unusable',
      severity: 'failure',
      remedy: expect.stringMatching(/schema_ahead/),
    })
  })
})

describe('the clock', () => {
  test.each([
    [0, []],
    [2_000, []],
    [2_001, ['warning clock_differs']],
    [10_000, ['warning clock_differs']],
    [10_001, ['failure clock_differs']],
  ])('%i ms beside the database, before or behind, gives %j', (difference, findings) => {
    expect(list(classifyClock({ here: 100_000 + difference, database: 100_000 }))).toEqual(findings)
    expect(list(classifyClock({ here: 100_000, database: 100_000 + difference }))).toEqual(findings)
  })

  test('that differs is reported with its direction', () => {
    expect(classifyClock({ here: 3_500, database: 1_000 })[0]?.detail).toContain('2.5 s ahead of')
    expect(classifyClock({ here: 1_000, database: 3_500 })[0]?.detail).toContain('2.5 s behind')
  })
})

describe('the settings', () => {
  const facts: SettingFacts = {
    appEnv: 'production',
    baseUrl: 'https://signalbox.example.com',
    idle: [],
  }
  const classifyGiven = (more: Partial<SettingFacts>) => list(classifySettings({ ...facts, ...more }))

  test('in order give no finding', () => {
    expect(classifySettings(facts)).toEqual([])
  })

  test('each one without effect is a warning that names it and where it has none', () => {
    const idle = [{ name: 'METRICS_TOKEN', where: 'in development' }]
    expect(classifySettings({ ...facts, idle })).toMatchObject([
      { code: 'setting_without_effect', severity: 'warning', detail: 'METRICS_TOKEN has no effect in development.' },
    ])
  })

  test('BASE_URL must be an https address in production, and only there', () => {
    expect(classifyGiven({ baseUrl: undefined })).toEqual(['failure base_url_missing'])
    expect(classifyGiven({ baseUrl: 'http://signalbox.example.com' })).toEqual(['failure base_url_missing'])
    expect(classifyGiven({ baseUrl: undefined, appEnv: 'development' })).toEqual([])
  })

  test('each sentence of a refused configuration is a failure', () => {
    expect(classifyConfigError('PORT must be a number.\nHOST is wrong.').map(({ detail }) => detail)).toEqual([
      'PORT must be a number.',
      'HOST is wrong.',
    ])
    expect(list(classifyConfigError('PORT must be a number.'))).toEqual(['failure setting_invalid'])
    expect(list(classifyConfigError('SIGNALBOX_FOO is not a setting of Signalbox. Remove it.'))).toEqual([
      'failure setting_unknown',
    ])
  })
})

describe('the keys', () => {
  const use = (keyId: string, kind = 'webhook secrets') => ({ kind, keyId, count: 2 })

  test('are in order when every stored secret is under the current key, and when none is stored', () => {
    expect(classifyStoredSecrets([use('new')], ['new', 'old'])).toEqual([])
    expect(classifyStoredSecrets([], ['new'])).toEqual([])
  })

  test('that open nothing, and that open only some, are failures of their own', () => {
    expect(list(classifyStoredSecrets([use('lost'), use('gone')], ['new']))).toEqual(['failure key_opens_nothing'])
    expect(list(classifyStoredSecrets([use('new'), use('lost')], ['new']))).toEqual(['failure key_missing'])
  })

  test('under an older key that is listed show an unfinished rotation', () => {
    expect(list(classifyStoredSecrets([use('old'), use('new')], ['new', 'old']))).toEqual([
      'warning key_rotation_unfinished',
    ])
    expect(list(classifyStoredSecrets([use('old'), use('lost')], ['new', 'old']))).toEqual([
      'failure key_missing',
      'warning key_rotation_unfinished',
    ])
  })

  test('a secret with too few different characters is a failure that does not show it', () => {
    const guessable = 'abcdefghijk'.repeat(3)
    const [finding] = classifySecrets({ SECRET_KEY: [guessable] })
    expect(finding).toMatchObject({ code: 'secret_guessable', severity: 'failure' })
    expect(JSON.stringify(finding)).not.toContain(guessable)
    expect(classifySecrets({ SECRET_KEY: ['Xk29vQbT7mZp4RwL'.repeat(2)] })).toEqual([])
  })

  test('a secret that two settings share is a warning, and one that a setting repeats is not', () => {
    const [first, second] = ['Xk29vQbT7mZp4RwL1', 'Hd83nYcJ6sFg5TqM2']
    expect(list(classifySecrets({ SECRET_KEY: [first], OAUTH_HOOK_SECRET: [second, first] }))).toEqual([
      'warning secret_shared',
    ])
    expect(classifySecrets({ SECRET_KEY: [first, first], OAUTH_HOOK_SECRET: [second] })).toEqual([])
  })
})

describe('the name service', () => {
  const name = { setting: 'SMTP_URL', host: 'mail.example.com' }

  test('is in order with one server and names that have an address', () => {
    expect(classifyNames({ servers: 1, names: [{ ...name, error: undefined }] })).toEqual([])
  })

  test('without a server, and a name without an address, are failures', () => {
    expect(list(classifyNames({ servers: 0, names: [] }))).toEqual(['failure name_servers_missing'])
    const [finding] = classifyNames({ servers: 1, names: [{ ...name, error: 'ENOTFOUND' }] })
    expect(finding).toMatchObject({
      code: 'name_unresolved',
      severity: 'failure',
      detail: expect.stringMatching(/SMTP_URL .*ENOTFOUND/),
    })
  })
})

describe('the disk', () => {
  const MIB = 1024 * 1024
  test.each([
    [1024 * MIB, []],
    [1024 * MIB - 1, ['warning disk_low']],
    [100 * MIB, ['warning disk_low']],
    [100 * MIB - 1, ['failure disk_full']],
  ])('with %i bytes left gives %j', (freeBytes, findings) => {
    expect(list(classifyDisk({ directory: 'data', error: undefined, freeBytes }))).toEqual(findings)
  })

  test('that cannot be written is one failure, whatever its space', () => {
    expect(list(classifyDisk({ directory: 'data', error: 'EACCES', freeBytes: 0 }))).toEqual([
      'failure data_dir_unwritable',
    ])
  })
})

describe('the version of Node', () => {
  const enough = { limit: 3_000, needed: 3_000 }

  test.each([
    ['24.18.0', false],
    ['24.18.1', true],
    ['24.30.0', true],
    ['25.9.0', false],
    ['26.12.0', false],
    ['26.12.1', true],
    ['26.13.0', true],
    ['28.0.0', true],
    ['9.99.99', false],
  ])('%s is in ^24.18.1 || >=26.12.1: %s', (version, isSupported) => {
    expect(isSupportedNode(version, '^24.18.1 || >=26.12.1')).toBe(isSupported)
  })

  test('with known vulnerabilities is a warning that names what is safe', () => {
    expect(list(classifyRuntime('26.10.0', enough))).toEqual(['warning node_outdated'])
    expect(classifyRuntime('26.10.0', enough)[0]?.detail).toMatch(/26\.10\.0.*>=26\.12\.1/)
    expect(classifyRuntime('99.0.0', enough)).toEqual([])
  })

  test('may open fewer files than the settings need: a warning with both figures, and none without a limit', () => {
    expect(classifyRuntime('99.0.0', { limit: undefined, needed: 3_000 })).toEqual([])
    expect(classifyRuntime('99.0.0', { limit: 3_000, needed: 3_000 })).toEqual([])
    const low = classifyRuntime('99.0.0', { limit: 2_999, needed: 3_000 })
    expect(list(low)).toEqual(['warning open_files_low'])
    expect(low[0]?.detail).toMatch(/2999.*3000/)
  })
})

describe('a port', () => {
  const facts: PortFacts = { setting: 'PORT', port: 80, host: '127.0.0.1', error: undefined, holder: undefined }
  const classifyFacts = (more: Partial<PortFacts>) => list(classifyPort({ ...facts, ...more }))

  test('that is free is in order', () => {
    expect(classifyPort(facts)).toEqual([])
  })

  test('that another program holds is a failure that names it where it is known', () => {
    const holder = { pid: 7, command: 'python -m http.server' }
    expect(classifyFacts({ error: 'EADDRINUSE' })).toEqual(['failure port_in_use'])
    expect(classifyPort({ ...facts, error: 'EADDRINUSE', holder })[0]).toMatchObject({
      code: 'port_in_use',
      detail: expect.stringMatching(/process 7 \(python -m http\.server\)/),
    })
  })

  test('that a running Signalbox holds is a warning, and a command of it that serves nothing is not taken for one', () => {
    const holder = (command: string) => ({ error: 'EADDRINUSE', holder: { pid: 7, command } })
    for (const command of ['node src/main.ts serve', 'node src/main.js serve', 'node bin/signalbox.mjs start'])
      expect(classifyFacts(holder(command))).toEqual(['warning port_of_running_service'])
    expect(classifyFacts(holder('node src/main.ts server'))).toEqual(['failure port_in_use'])
    // A process of another user, which the system does not name.
    expect(classifyFacts({ error: 'EADDRINUSE', isOurs: true })).toEqual(['warning port_of_running_service'])
    expect(classifyFacts({ error: 'EADDRINUSE', isOurs: false })).toEqual(['failure port_in_use'])
  })

  test('without the permission, and an unknown host, are failures', () => {
    expect(classifyFacts({ error: 'EACCES' })).toEqual(['failure port_not_permitted'])
    expect(classifyFacts({ error: 'EADDRNOTAVAIL' })).toEqual(['failure host_unknown'])
  })
})

describe('connections to the outside', () => {
  const facts = { appEnv: 'production', proxyVariables: [], privateTargets: 0, servers: [] }
  const server = { setting: 'SMTP_URL', host: 'mail.example.com', port: 587 }

  test('are in order without a proxy, private targets and unreachable servers', () => {
    expect(classifyEgress({ ...facts, servers: [{ ...server, error: undefined }] })).toEqual([])
  })

  test('through a proxy of the environment are a warning', () => {
    expect(list(classifyEgress({ ...facts, proxyVariables: ['HTTPS_PROXY'] }))).toEqual(['warning proxy_ignored'])
  })

  test('to private targets are a warning where customers may be, and none in development', () => {
    expect(list(classifyEgress({ ...facts, appEnv: 'certification', privateTargets: 1 }))).toEqual([
      'warning private_targets_allowed',
    ])
    expect(classifyEgress({ ...facts, appEnv: 'development', privateTargets: 1 })).toEqual([])
  })

  test('to a configured server that refuses are a warning with its setting', () => {
    const [finding] = classifyEgress({ ...facts, servers: [{ ...server, error: 'ECONNREFUSED' }] })
    expect(finding).toMatchObject({
      code: 'server_unreachable',
      severity: 'warning',
      detail: expect.stringMatching(/587 of SMTP_URL/),
    })
  })
})

describe('the disk of the database', () => {
  const now = Date.parse('2026-11-20T12:00:00Z')
  const forecast = { databaseBytes: 90e9, freeBytes: 43.7e9, bytesPerEvent: 1_000, growthPerDay: 8.74e9 }

  test.each([
    [2.9, ['failure disk_full_before_retention']],
    [3, ['warning disk_full_before_retention']],
    [25, ['warning disk_full_before_retention']],
    [null, []],
    [undefined, []],
  ])('that is full in %s days gives %j', (fullInDays, findings) => {
    expect(list(classifyStorage({ ...forecast, fullInDays }, now))).toEqual(findings)
  })

  test('is described with its figures, and with the day on which it is full', () => {
    const figures =
      'the database takes 90.0 GB, 43.7 GB are left, an event keeps 1.0 kB, the last days brought 8.7 GB each'
    expect(describeStorage({ ...forecast, fullInDays: 5 }, now)).toBe(`${figures}, full on 2026-11-25`)
    expect(describeStorage({ ...forecast, fullInDays: null }, now)).toBe(`${figures}, retention keeps up with it`)
    const [finding] = classifyStorage({ ...forecast, fullInDays: 5 }, now)
    expect(finding!.detail).toMatch(
      /2026-11-25, in 5\.0 days, .*43\.7 GB are left, 8\.7 GB come each day, 1\.0 kB an event/,
    )
  })

  test('of a cell is named', () => {
    expect(describeStorage({ ...forecast, freeBytes: undefined, fullInDays: undefined }, now, 'c1')).toMatch(
      /^the cell c1 takes 90\.0 GB, free disk space unknown \(CELL_DISK_BYTES\)/,
    )
    const [finding] = classifyStorage({ ...forecast, fullInDays: 2 }, now, 'c1')
    expect(finding).toMatchObject({
      severity: 'failure',
      detail: expect.stringMatching(/^The disk of the cell c1 is full/),
    })
    expect(finding?.remedy).toMatch(/^Give the cell a larger disk, move accounts away, or/)
  })

  test('that nobody knows, and events that are too few, are said', () => {
    const unknown = { freeBytes: undefined, bytesPerEvent: undefined, growthPerDay: undefined, fullInDays: undefined }
    expect(describeStorage({ databaseBytes: 12_345_678, ...unknown }, now)).toBe(
      'the database takes 12.3 MB, free disk space unknown (DATABASE_DISK_BYTES), too few events for a forecast',
    )
  })
})

test('a report has every area in order, with the worst of its findings as status', () => {
  const areas = buildReport(
    [warn('disk_low', '', ''), fail('disk_full', '', ''), warn('proxy_ignored', '', '')],
    ['clock'],
  )
  expect(areas.map(({ area }) => area)).toEqual(AREAS)
  const statuses = Object.fromEntries(areas.map(({ area, status }) => [area, status]))
  expect(statuses).toMatchObject({ disk: 'failure', egress: 'warning', clock: 'skipped', ports: 'ok' })
})
