import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { describeAudit, judgeAudit } from '../../tools/release/audit-report.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

const ADVISORY = {
  ...{
    id: 1,
    title: 'Anything can happen',
    severity: 'critical',
    vulnerable_versions: '*',
    cwe: [],
    cvss: { score: 9.8 },
  },
  url: 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc',
}

/** `npm run audit` against a registry that answers each audit with `status` and `advisories`. */
async function auditAt(status: number, advisories: object): Promise<{ code: number; printed: string }> {
  const server = createServer((request, response) => {
    const isAudit = request.method === 'POST'
    request
      .resume()
      .on('end', () => response.writeHead(isAudit ? status : 404).end(isAudit ? JSON.stringify(advisories) : '{}'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const env = { ...process.env, NPM_CONFIG_REGISTRY: registry, npm_config_registry: registry }
  const tool = spawn(process.execPath, [join(PROJECT_ROOT, 'tools/release/audit.ts')], { env, stdio: 'pipe' })
  let printed = ''
  tool.stdout.on('data', (chunk) => {
    printed += chunk
  })
  const [code] = (await once(tool, 'close')) as [number]
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return { code, printed }
}

describe('npm run audit', () => {
  test('says that nothing was checked where the registry answers no audit, and does not pass', async () => {
    const { code, printed } = await auditAt(405, {})
    expect(code).toBe(2)
    expect(printed).toMatch(
      /^audit: not checked, because the registry gave no report \(405 .*\)\. Run it before a release\.\n$/,
    )
  })

  test('fails with the advisories of severity high or critical', async () => {
    const { code, printed } = await auditAt(200, { pg: [ADVISORY], ws: [{ ...ADVISORY, severity: 'low' }] })
    expect(code).toBe(1)
    expect(printed).toMatch(/^critical {2}pg {2}GHSA-aaaa-bbbb-cccc {2}Anything can happen\naudit: 1 open: /)
  })

  test('passes without one', async () => {
    expect(await auditAt(200, {})).toEqual({
      code: 0,
      printed: 'audit: no open advisory of severity high or critical.\n',
    })
  })
})

describe('the judgement of an audit', () => {
  const report = JSON.stringify({
    auditReportVersion: 2,
    vulnerabilities: {
      pg: { via: [{ ...ADVISORY, name: 'pg' }] },
      kysely: {
        via: ['pg', { ...ADVISORY, name: 'pg' }, { ...ADVISORY, name: 'kysely', url: 'https://example.com/1' }],
      },
    },
  })
  const changelog = (entry: string) =>
    `# Changelog\n\n## [Unreleased]\n\n### Security\n\n- ${entry}\n\n## [0.1.0] - 2026-11-27\n\n`

  test('takes an advisory as settled once the section of the next version names it', () => {
    const result = judgeAudit(report, changelog('GHSA-aaaa-bbbb-cccc needs a server that we do not run.'))
    expect(result).toMatchObject({ open: [{ id: 'https://example.com/1' }], named: [{ id: 'GHSA-aaaa-bbbb-cccc' }] })
    expect(describeAudit(result).code).toBe(1)
  })

  test('does not take the section of an older version for that', () => {
    const older = `${changelog('Something.')}- GHSA-aaaa-bbbb-cccc and https://example.com/1 do not apply.\n`
    expect(judgeAudit(report, older)).toMatchObject({ open: [{ package: 'pg' }, { package: 'kysely' }], named: [] })
  })

  test.each(['', 'null', '[]', '{}', 'not JSON', '{"error":{"code":"ENOLOCK","summary":"no lock"}}'])(
    'passes nothing that is no report: %j',
    (printed) => {
      expect(describeAudit(judgeAudit(printed, changelog('Something.'))).code).toBe(2)
    },
  )
})
