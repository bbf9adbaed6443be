import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { VARIABLES } from '../src/app/config/config-variables.ts'
import { isSecretSetting } from '../src/app/config/secret-files.ts'
import { listPages } from '../src/app/feature/pages.ts'
import { ROUTE_TREE } from '../src/app/feature/route-tree.ts'
import { AREAS, type Area, FINDING_AREAS, type FindingCode } from '../src/operations/doctor/finding.ts'
import { NAMES_OF_APPS } from '../src/operations/doctor/unknown-settings.ts'
import { INDEX_PLANS } from '../src/postgres/statement/database.ts'
import { PUBLISH_ROUTES } from '../src/realtime/embedded/publish/publish-api.ts'
import { runCommand } from './harness/process/command-line.ts'
import { listHeadings, slugOf, splitByMark } from './tidy/markdown.ts'
import { ROOT, readRepository, type SourceFile } from './tidy/source-file.ts'

/** The documents match the code: every name in them exists, and every error for operators is documented. */

/** A setting whose name holds the name of a provider. */
const SOCIAL_SETTING = /^SOCIAL_[A-Z0-9_]+_(?:CLIENT_ID|CLIENT_SECRET|ISSUER|TEAM_ID|KEY_ID|TRUST_EMAIL)$/

const repository = readRepository()
const byPath = new Map(repository.map((file) => [file.path, file]))
const documents = repository.filter(({ path }) => path.endsWith('.md'))
const contract = documents.filter(({ path }) => path.startsWith('docs/contract/'))
/** Text of the documents without the rules of the contract that are marked as not built. */
const currentDocuments = documents.map((file) =>
  contract.includes(file) ? { ...file, text: splitByMark(file.text).built } : file,
)
const operations = load('docs/operations.md')
const service = repository.filter(({ path }) => path.startsWith('src/') && !path.endsWith('.test.ts'))

function load(path: string): SourceFile {
  const file = byPath.get(path)
  if (!file) throw new Error(`${path} is missing`)
  return file
}

/** The headings one level below the one named. */
function listSections(text: string, under: string): string[] {
  const headings = listHeadings(text)
  const start = headings.findIndex(({ title }) => title === under)
  const rest = headings.slice(start + 1)
  const end = rest.findIndex(({ level }) => level <= headings[start]!.level)
  return rest.slice(0, end === -1 ? undefined : end).map(({ title }) => title)
}

/** The commands that `signalbox <path> --help` lists. */
async function listCommands(path: string[]): Promise<Set<string>> {
  const { stdout } = await runCommand([...path, '--help'])
  const [, list = ''] = stdout.split('\nCommands:\n')
  return new Set([...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name))
}

/** The members of a union of strings, as the code declares it. */
function listUnion(path: string, name: string): string[] {
  const declaration = new RegExp(`export type ${name} =([\\s\\S]*?)\\n\\n`).exec(load(path).text)?.[1] ?? ''
  return [...declaration.replaceAll(/\/\*[\s\S]*?\*\//g, '').matchAll(/'(\w+)'/g)].map(([, member = '']) => member)
}

describe('docs/operations.md', () => {
  test('has each section that a log line names, and no log-line section that none names', () => {
    const named = service.flatMap(({ text }) =>
      [...text.matchAll(/see docs\/operations\.md, ([\w -]+)/g)].map(([, section = '']) =>
        section.toLowerCase().trim(),
      ),
    )
    const all = listHeadings(operations.text).map(({ title }) => title.toLowerCase())
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((section) => !all.includes(section))).toEqual([])
    const sections = listSections(operations.text, 'Log lines').map((title) => title.toLowerCase())
    expect(sections.filter((section) => !named.includes(section))).toEqual([])
  })

  test('or a guide is named by every log line from warn on, but for those of attempts', () => {
    const calls = service.flatMap(({ path, text }) =>
      [...text.matchAll(/\blog(?:ger)?\s*\.(?:warn|error|fatal)\(/g)].map(({ index }) => {
        // Up to the call's end: a line that begins with its closing bracket, or the end of its own line.
        const rest = text.slice(index)
        const end = /\n\s*\)|[^(,{]\n/.exec(rest)?.index ?? 400
        return { path, call: rest.slice(0, end + 1) }
      }),
    )
    expect(calls.length).toBeGreaterThan(30)
    const isOfAttempt = ({ call }: { call: string }) => /'(?:provisioning )?attempt'/.test(call)
    // The line of a job runner is found where the runner is built.
    const isGiven = ({ call }: { call: string }) => call.includes('deps.failedLine')
    const named = (line: { call: string }) => isGiven(line) || /see docs\/\S+\.md/.test(line.call)
    const nameless = calls.filter((call) => !isOfAttempt(call) && !named(call))
    expect(nameless).toEqual([])
  })

  test('has a section for each class of a failed attempt, and for nothing else', () => {
    const classes = [
      ...listUnion('src/outbound/send/post-result.ts', 'PostErrorClass'),
      ...listUnion('src/delivery/post/attempt-result.ts', 'ErrorClass'),
    ]
    expect(classes).toContain('blocked_address')
    expect(listSections(operations.text, 'Failed attempts').sort()).toEqual(classes.sort())
  })

  test('has a section for each way a schema can be unusable, and for nothing else', () => {
    const codes = listUnion('src/postgres/migration/migration-error.ts', 'MigrationErrorCode')
    expect(codes).toContain('schema_ahead')
    expect(listSections(operations.text, 'Migrations').sort()).toEqual(codes.sort())
  })

  test('has a section for each way the embedded PostgreSQL can fail, and for nothing else', () => {
    const codes = listUnion('src/postgres/embedded/embedded-error.ts', 'EmbeddedPostgresErrorCode')
    expect(codes).toContain('disk_full')
    expect(listSections(operations.text, 'The embedded PostgreSQL').sort()).toEqual(codes.sort())
  })
})

test('docs/guides/doctor.md has a section for each finding under its area, and for nothing else', () => {
  const { text } = load('docs/guides/doctor.md')
  const areas = { names: 'Name service', event_log: 'Event log' } as Partial<Record<Area, string>>
  for (const area of AREAS) {
    const codes = Object.keys(FINDING_AREAS).filter((code) => FINDING_AREAS[code as FindingCode] === area)
    const title = areas[area] ?? `${area[0]!.toUpperCase()}${area.slice(1)}`
    expect(listSections(text, title).sort(), area).toEqual(codes.sort())
  }
  expect(listHeadings(text).filter(({ level }) => level === 2)).toHaveLength(AREAS.length)
})

describe('names in documents exist:', () => {
  test('links and their anchors', () => {
    const broken = documents.flatMap(({ path, text }) =>
      [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
        if (/^(?:https?:|mailto:|\/)/.test(link)) return []
        const [target = '', anchor] = link.split('#')
        const place = target === '' ? path : posix.join(posix.dirname(path), target).replace(/\/$/, '')
        const isImage = /\.(?:png|svg)$/.test(place) && existsSync(posix.join(ROOT, place))
        const isThere = isImage || byPath.has(place) || repository.some((file) => file.path.startsWith(`${place}/`))
        const headings = anchor === undefined ? [] : listHeadings(byPath.get(place)?.text ?? '')
        const isFound = anchor === undefined || headings.some(({ title }) => slugOf(title) === anchor)
        return isThere && isFound ? [] : [`${path}: ${link}`]
      }),
    )
    expect(broken).toEqual([])
  })

  test('paths of the repository', () => {
    const missing = documents.flatMap(({ path, text }) => {
      // The worked example is about files that are not there yet; its own test makes them.
      const prose = path === 'CONTRIBUTING.md' ? text.slice(0, text.indexOf('## Add a resource')) : text
      return (
        [...prose.matchAll(/`((?:src|test|tools|bin|bench|docs|migrations)\/[\w./-]+)`/g)]
          // A release has the sources as JavaScript.
          .map(([, named = '']) => named.replace(/\/$/, '').replace(/^(src\/.*)\.js$/, '$1.ts'))
          .filter((named) => !byPath.has(named) && !repository.some((file) => file.path.startsWith(`${named}/`)))
          .map((named) => `${path}: ${named}`)
      )
    })
    expect(missing).toEqual([])
  })

  test('npm scripts', () => {
    const { scripts } = JSON.parse(load('package.json').text) as { scripts: Record<string, string> }
    const root = documents.filter(({ path }) => !path.startsWith('packages/'))
    const missing = [...root, load('.ci/run')].flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(start|test)\b)/g)]
        .map(([, script = '', short = '']) => script || short)
        .filter((script) => !(script in scripts))
        .map((script) => `${path}: npm run ${script}`),
    )
    expect(missing).toEqual([])
  })

  test('npx signalbox, only on a page that says before it where it is the command of the service', () => {
    // Those of published packages are read beside the published command.
    const isPublished = (path: string) =>
      path === 'tools/release/README.md' || path.startsWith('packages/create/templates/')
    const pages = documents.filter(({ path, text }) => text.includes('npx signalbox') && !isPublished(path))
    expect(pages.length).toBeGreaterThan(2)
    const silent = pages.filter(
      ({ text }) => !/checkout|git clone|\bstart\.md\)/.test(text.slice(0, text.indexOf('npx signalbox'))),
    )
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  test('npx signalbox in every block, since no shell of a reader has the bare command', () => {
    const bare = currentDocuments.flatMap(({ path, text }) =>
      [...text.matchAll(/^ *```[^\n]*\n([\s\S]*?)^ *```$/gm)]
        .flatMap(([, block = '']) => block.split('\n'))
        .filter((line) =>
          /^\s*(?:\$ )?(?:\w+=\S* )*signalbox [a-z-]|[;&|(]\s*signalbox [a-z-]|\bsignalbox\(\)/.test(line),
        )
        .map((line) => `${path}: ${line}`),
    )
    expect(bare).toEqual([])
  })

  test('commands of signalbox', async () => {
    const commands = new Set(
      currentDocuments.flatMap(({ text }) => {
        const code = [...text.matchAll(/`([^`\n]+)`|^```sh\n([\s\S]*?)^```/gm)].map(
          ([, span = '', block = '']) => span + block,
        )
        return code.flatMap((item) =>
          [...item.matchAll(/(?:^|npx |\n)signalbox ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)].map(
            ([, first = '', second]) =>
              second && ['admin', 'catalogue', 'secrets'].includes(first) ? `${first} ${second}` : first,
          ),
        )
      }),
    )
    expect(commands.size).toBeGreaterThan(3)
    const known = new Map<string, Promise<Set<string>>>()
    for (const command of commands) {
      const path = command.split(' ')
      const parent = path.slice(0, -1).join(' ')
      if (!known.has(parent)) known.set(parent, listCommands(path.slice(0, -1)))
      expect(await known.get(parent), command).toContain(path.at(-1))
    }
  })

  test('settings', () => {
    const others = [
      'TEST_DATABASE_URL',
      'NATS_SERVER_PATH',
      'SIMULATION_',
      'CELLS_EVENTS',
      'CHROMIUM_PATH',
      'OTEL_',
      'GOTRUE_',
      'POSTGRES_PASSWORD',
      'SHOW_PLANS',
      'NODE_ENV',
      'SOKETI_',
      // Of psql.
      'FETCH_COUNT',
    ]
    const own = currentDocuments.filter(
      ({ path }) => !path.startsWith('packages/') && !path.startsWith('docs/guides/verify'),
    )
    const unknown = own.flatMap(({ path, text }) =>
      [...text.matchAll(/(?<![\w<-])`?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:`|=)/g)]
        .map(([, name = '']) => name)
        .filter(
          (name) =>
            !(name in VARIABLES) &&
            !NAMES_OF_APPS.includes(name) &&
            !isSecretSetting(name.replace(/_FILE$/, '')) &&
            !SOCIAL_SETTING.test(name) &&
            !others.some((other) => name.startsWith(other)),
        )
        .filter(
          (name) => !service.some(({ text: code }) => code.includes(`const ${name}`)) && !isShellVariable(text, name),
        )
        .map((name) => `${path}: ${name}`),
    )
    expect(unknown).toEqual([])
  })

  test('routes', () => {
    const own = currentDocuments.filter(({ path }) => !['CONTRIBUTING.md', 'docs/errors.md'].includes(path))
    const unknown = own.flatMap(({ path, text }) =>
      listNamedRoutes(text)
        .filter((route) => !SERVED_ROUTES.includes(route))
        .map((route) => `${path}: ${route}`),
    )
    expect(unknown).toEqual([])
  })

  test('metrics', () => {
    const code = service
      .flatMap(({ path, text }) => (path.startsWith('src/operations/metrics/') ? [text] : []))
      .join('')
    const declared = [...code.matchAll(/metrics\.(?:gauge|counter|histogram)\(\s*(?:\[[^\]]*\],\s*)?'(\w+)'/g)].map(
      ([, name = '']) => name,
    )
    const named = documents.flatMap(({ path, text }) =>
      /^docs\/(?:deployment|operations|contract\/\w+)\.md$/.test(path)
        ? [
            ...text.matchAll(
              /(?<![\w.])(?:webhook_out|http|database|signalbox|stored_secrets|provisioning|realtime|clock_skew|maintenance_rows|log_lines|event_log|connection|cells?|account_moves)_\w+/g,
            ),
          ]
        : [],
    )
    const names = new Set(named.map(([name]) => name.replace(/_(?:count|sum|bucket)$/, '')))
    expect(declared.length).toBeGreaterThan(20)
    expect(declared.filter((name) => !names.has(name))).toEqual([])
    const isOfMetric = (name: string) => /_(?:total|seconds|info|up|backlog|unreadable|disabled)$/.test(name)
    expect([...names].filter((name) => isOfMetric(name) && !declared.includes(name))).toEqual([])
  })
})

/** Every route that is served, its path parameters without their names. */
const SERVED_ROUTES = [
  ...[...ROUTE_TREE, ...listPages({ appEnv: 'development' }).flatMap(({ routes }) => routes)].map(
    ({ method, path }) => `${method} ${path}`,
  ),
  'POST /api/v3/webhook/sink',
  'GET /livez',
  'GET /readyz',
  'GET /metrics',
  'GET /docs',
  'GET /openapi.json',
  'GET /app/{key}',
  ...PUBLISH_ROUTES,
].map((route) => route.replaceAll(/\{\w+\}/g, '{}'))

/** The routes in a text, in code spans and calls of curl, in the form of `SERVED_ROUTES`. */
function listNamedRoutes(text: string): string[] {
  const spans = [...text.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^`?\s]*)/g)].map(
    ([, method, route]) => `${method} ${route}`,
  )
  const calls = [...text.matchAll(/curl -s (?:-X (\w+) )?"?\$BASE(\/[^\s"?]+)/g)].map(
    ([, method = 'GET', route]) => `${method} ${route}`,
  )
  return [...spans, ...calls].map((route) => route.replaceAll(/\{\w+\}|<[^>]+>|\$[A-Z]+/g, '{}'))
}

/** Whether the document itself sets the name in a shell block, for the lines after it. */
function isShellVariable(text: string, name: string): boolean {
  return new RegExp(`export ${name}=|^${name}=|process\\.env\\.${name}\\b`, 'm').test(text)
}

test('ARCHITECTURE.md has exactly one line for each folder of src/', () => {
  const { text } = load('ARCHITECTURE.md')
  const rooms = new Set(service.flatMap(({ path }) => /^src\/([a-z-]+\/)/.exec(path)?.[1] ?? []))
  const tree = text.slice(text.indexOf('src/\n'), text.indexOf('migrations/ '))
  const named = new Set([...tree.matchAll(/(?<=^ {2}|\/ )([a-z-]+\/)(?= )/gm)].map(([, room = '']) => room))
  expect([...named].sort()).toEqual([...rooms].sort())
})

test('every part of the API has a description, for the reference and openapi.json', () => {
  const { tags } = JSON.parse(load('openapi.json').text) as { tags: { name: string; description?: string }[] }
  expect(tags.length).toBeGreaterThan(5)
  expect(tags.filter(({ description = '' }) => description === '')).toEqual([])
})

test('README.md begins with the two commands, and shows the output of the demonstration', () => {
  const { text } = load('README.md')
  const [, commands = ''] = /## See it work[\s\S]*?^```sh\n([\s\S]*?)^```/m.exec(text) ?? []
  expect(commands.trim().split('\n')).toEqual(['npm start', 'npm test'])
  const [, shown = ''] = /<!-- output of npm start -->\n```\n([\s\S]*?)^```/m.exec(text) ?? []
  const labels = [...shown.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, label = '']) => label)
  const printed = [...load('src/command/demo/demo.ts').text.matchAll(/print\([`'] {2}([a-z]+) {2,}/g)].map(
    ([, label = '']) => label,
  )
  expect(labels).toEqual(printed)
})

describe('docs/contract', () => {
  test('lists each of its files in its README, and no other', () => {
    const index = load('docs/contract/README.md').text
    const listed = [...index.matchAll(/^\| \[([\w-]+\.md)\]\(\1\) \|/gm)].map(([, name = '']) => name)
    const names = contract.map(({ path }) => posix.basename(path)).filter((name) => name !== 'README.md')
    expect(listed.sort()).toEqual(names.sort())
  })

  test('marks no route as not built that is served', () => {
    const planned = contract.map(({ path, text }) => ({ path, text: splitByMark(text).planned }))
    const served = planned.flatMap(({ path, text }) =>
      listNamedRoutes(text)
        .filter((route) => SERVED_ROUTES.includes(route))
        .map((route) => `${path}: ${route}`),
    )
    expect(served).toEqual([])
    expect(contract.flatMap(({ text }) => listNamedRoutes(text)).length).toBeGreaterThan(0)
  })

  test('a mark covers its section and the subsections, and no more', () => {
    const mark = '*Not built yet.*\n'
    const text = `# A\n\none\n\n## B\n\n${mark}\ntwo\n\n### C\n\nthree\n\n## D\n\nfour\n`
    expect(splitByMark(text)).toEqual({
      built: '# A\n\none\n\n## D\n\nfour\n',
      planned: `## B\n\n${mark}\ntwo\n\n### C\n\nthree\n\n`,
    })
    expect(splitByMark(`# A\n\n${mark}\n## B\n\none\n`).built).toBe('')
  })
})

describe('docs/decisions', () => {
  const pages = documents
    .filter(({ path }) => /^docs\/decisions\/\d/.test(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1))

  test('are numbered without a gap and listed with their titles', () => {
    const index = load('docs/decisions/README.md').text
    pages.forEach(({ path, text }, at) => {
      const number = at + 1
      expect(posix.basename(path).slice(0, 4)).toBe(String(number).padStart(4, '0'))
      const [, title] = new RegExp(`^# ${number}\\. (.+)$`, 'm').exec(text) ?? []
      expect(index).toContain(`| ${number} | [${title}](${posix.basename(path)}) |`)
    })
    expect(pages.length).toBeGreaterThan(10)
  })

  test.each(pages.map((page) => [posix.basename(page.path), page] as const))(
    '%s says context, decision, why and consequences',
    (_name, page) => {
      const sections = listHeadings(page.text).flatMap(({ level, title }) => (level === 2 ? [title] : []))
      expect(sections).toEqual(['Context', 'Decision', 'Why', 'Consequences'])
    },
  )
})

test('prose is wrapped at 120 columns', () => {
  const own = documents.filter(({ path }) =>
    /^(?:[A-Z]+\.md|docs\/(?:comparison|operations|deployment)\.md|docs\/(?:contract|decisions|guides)\/[\w-]+\.md)$/.test(
      path,
    ),
  )
  const long = own.flatMap(({ path, text }) => {
    const lines = text.replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/[^\n]/g, '')).split('\n')
    return lines.flatMap((line, index) =>
      line.length > 120 && !line.startsWith('|') && !/https?:/.test(line) ? [`${path}:${index + 1}`] : [],
    )
  })
  expect(long).toEqual([])
})

test('what PgBouncer does not forward is named as a setting of the role', () => {
  const section = load('docs/deployment.md').text.split('### Through PgBouncer')[1]!.replace(/\s+/g, ' ')
  const settings = INDEX_PLANS.split('-c ')
    .map((setting) => setting.trim().split('='))
    .slice(1)
  expect(settings.length).toBeGreaterThan(3)
  for (const [name, value] of settings) expect(section).toContain(`\`${name} = '${value}'\``)
})
