import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeAudit, judgeAudit, runAudit } from './audit-report.ts'

/**
 * `npm run audit`: the advisories of the registry for the packages of a release, by the policy of
 * docs/contract/versioning.md#dependencies. Exit codes: 0 no open one, 1 at least one, 2 not checked.
 */
const ROOT = join(import.meta.dirname, '..', '..')
const result = judgeAudit(runAudit(ROOT, process.env), readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'))
const { lines, code } = describeAudit(result)
for (const line of lines) console.log(line)
process.exitCode = code
