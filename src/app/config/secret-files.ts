import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { VARIABLES } from './config-variables.ts'
import { SOCIAL_VARIABLES } from './social-settings.ts'

type Environment = Record<string, string | undefined>

/** Suffix of a setting that names the file of a secret: `<NAME>_FILE`. */
const FILE_SUFFIX = '_FILE'

/** Limit of a file of a secret, in bytes: several keys and a certificate fit. */
const FILE_LIMIT_BYTES = 64 * 1024

/** The secret settings: a name, or a pattern of the names of all providers. */
const SECRET_PATTERNS = Object.entries({ ...VARIABLES, ...SOCIAL_VARIABLES } as Record<string, { secret?: boolean }>)
  .filter(([, { secret }]) => secret)
  .map(([name]) => new RegExp(`^${name.replace('<PROVIDER>', '[A-Z][A-Z0-9_]{0,30}')}$`))

/** Whether a setting may be given as a file: every secret one. */
export function isSecretSetting(name: string): boolean {
  return SECRET_PATTERNS.some((pattern) => pattern.test(name))
}

/**
 * Replaces each `<NAME>_FILE` of a secret setting by `<NAME>` with the text of the file, without a line break at its end
 * (docs/contract/configuration.md#secrets-in-files). Orchestrators mount secrets as files, which no child process inherits and
 * no listing of processes shows. Returns a sentence for each file that cannot be read, is empty or too large, or whose
 * setting is given twice. Relative paths are below `directory`.
 */
export function readSecretFiles(
  environment: Environment,
  directory: string,
): { environment: Environment; faults: string[] } {
  const faults: string[] = []
  const replaced = { ...environment }
  for (const [variable, path] of Object.entries(environment)) {
    const name = variable.slice(0, -FILE_SUFFIX.length)
    if (!variable.endsWith(FILE_SUFFIX) || !isSecretSetting(name)) continue
    delete replaced[variable]
    if (path === undefined || path === '') continue
    const given = replaced[name]
    if (given !== undefined && given !== '') faults.push(`${variable} and ${name} are both set. Remove one of them.`)
    else {
      const read = readSecretFile(resolve(directory, path))
      if ('fault' in read) faults.push(`${variable} ${read.fault}.`)
      else replaced[name] = read.text
    }
  }
  return { environment: replaced, faults }
}

function readSecretFile(path: string): { text: string } | { fault: string } {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    return { fault: `names a file that cannot be read (${(error as NodeJS.ErrnoException).code})` }
  }
  if (bytes.length > FILE_LIMIT_BYTES) return { fault: `names a file of over ${FILE_LIMIT_BYTES / 1024} KiB` }
  const text = bytes.toString('utf8').replace(/\r?\n$/, '')
  return text === '' ? { fault: 'names an empty file' } : { text }
}
