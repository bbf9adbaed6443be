import { SITE_PATH } from '../../http/reference/docs-page.ts'
import type { FindingCode } from '../../operations/doctor/finding.ts'
import { readSiteBuild, SITE_FOLDER } from '../../operations/site/site-build.ts'
import { type Environment, parseValues, withDotEnv } from '../config/config.ts'

/** Gives the address of a finding's section where this installation serves the site (`siteFolder`), else its file. */
export function findPages(options: {
  environment?: Environment
  directory: string
  siteFolder?: string
}): (code: FindingCode) => string {
  const { environment, directory, siteFolder = SITE_FOLDER } = options
  const base = readSiteBuild(siteFolder)?.files.has('guides/doctor/index.html')
    ? findBaseUrl(environment, directory)
    : undefined
  return (code) => (base === undefined ? `docs/guides/doctor.md#${code}` : `${base}${SITE_PATH}/guides/doctor/#${code}`)
}

/** Undefined for a port that the start chooses, and for settings that it refuses. */
function findBaseUrl(environment: Environment | undefined, directory: string): string | undefined {
  try {
    const { BASE_URL: baseUrl, PORT: port = 3000 } = parseValues(withDotEnv(environment, directory)).values
    return baseUrl ?? (port === 0 ? undefined : `http://localhost:${port}`)
  } catch {
    return undefined
  }
}
