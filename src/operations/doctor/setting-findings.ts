import { type Finding, fail, warn } from './finding.ts'
import { buildGuessable, findRefusedCode, judgeBaseUrl, listGuessable } from './setting-rules.ts'

/** The settings that a start accepts. */
export interface SettingFacts {
  appEnv: string
  baseUrl: string | undefined
  /** Settings accepted without effect, with the reason. */
  idle: readonly { name: string; where: string }[]
}

/** Classifies settings that the start accepts. */
export function classifySettings(facts: SettingFacts): Finding[] {
  const findings = facts.idle.map(({ name, where }) =>
    warn('setting_without_effect', `${name} has no effect ${where}.`, 'Remove it, or look at what it was set for.'),
  )
  for (const { code, detail, remedy } of judgeBaseUrl(facts)) findings.push(fail(code, detail, remedy))
  return findings
}

/** One finding for each sentence of a configuration that the start refuses. */
export function classifyConfigError(message: string): Finding[] {
  return message
    .split('\n')
    .map((line) => fail(findRefusedCode(line), line, 'Correct it: the start is refused. See docs/configuration.md.'))
}

/** The stored secrets under one key. */
export interface KeyUse {
  /** Kind of the encrypted values: `webhook secrets`. */
  kind: string
  /** The key id of the ciphertexts. */
  keyId: string
  count: number
}

/** Classifies SECRET_KEY against the stored secrets. `keyIds`: the ids of its keys, the current one first. */
export function classifyStoredSecrets(uses: readonly KeyUse[], keyIds: readonly string[]): Finding[] {
  const lost = uses.filter(({ keyId }) => !keyIds.includes(keyId))
  const old = uses.filter(({ keyId }) => keyIds.includes(keyId) && keyId !== keyIds[0])
  const list = (these: readonly KeyUse[]) => these.map(({ kind, keyId, count }) => `${count} ${kind} under ${keyId}`)
  const restore = 'Add the old key to SECRET_KEY behind the new one: SECRET_KEY=<new>,<old>'
  const findings: Finding[] = []
  if (lost.length > 0 && lost.length === uses.length)
    findings.push(fail('key_opens_nothing', `SECRET_KEY opens no stored secret: ${list(lost).join(', ')}.`, restore))
  else if (lost.length > 0)
    findings.push(fail('key_missing', `SECRET_KEY does not open ${list(lost).join(', ')}.`, restore))
  if (old.length > 0)
    findings.push(
      warn(
        'key_rotation_unfinished',
        `Stored secrets are under an older key: ${list(old).join(', ')}.`,
        'Keep that key in SECRET_KEY until the sweeps of a process with the role maintenance have encrypted them again.',
      ),
    )
  return findings
}

/** Classifies the secrets themselves, by setting. The findings never hold a value. */
export function classifySecrets(secrets: Readonly<Record<string, readonly string[]>>): Finding[] {
  const all = Object.entries(secrets).flatMap(([name, values]) => values.map((value) => ({ name, value })))
  const findings = listGuessable(secrets)
    .map(buildGuessable)
    .map(({ code, detail, remedy }) => fail(code, detail, remedy))
  const shared = Map.groupBy(all, ({ value }) => value)
  for (const uses of shared.values()) {
    const names = [...new Set(uses.map(({ name }) => name))]
    if (names.length > 1)
      findings.push(
        warn(
          'secret_shared',
          `${names.join(' and ')} hold the same secret: a disclosure of one discloses the other.`,
          'Give each setting a secret of its own: openssl rand -base64 32',
        ),
      )
  }
  return findings
}
