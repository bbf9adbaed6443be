import { ARCHIVE_KINDS, type ArchiveKind } from './archive-kind.ts'
import {
  accountOfManifest,
  dayOfFile,
  MANIFEST_BYTES,
  type ManifestKey,
  manifestFolder,
  manifestName,
  ownerFolder,
  parseManifest,
} from './manifest.ts'
import type { Storage } from './storage/storage.ts'

/** Files to remove: all that an account, or none (null), has; or the days of all before a day; or both. */
export interface Removal {
  account?: string | null
  /** A day of UTC, such as `2026-09-01`. */
  before?: string
}

/** After every day: the account is not exported again. */
const ALWAYS = '9999-12-31'

/** Removes files of an archive, from the manifest first, so that nobody meets them again. Returns their number. */
export async function removeArchive(
  storage: Storage,
  { account, before = ALWAYS }: Removal,
  { databases, onFile }: { databases: readonly string[]; onFile: (file: string) => void },
): Promise<number> {
  let count = 0
  for (const kind of ARCHIVE_KINDS) {
    for (const key of await listKeys(storage, kind, { account, databases })) {
      await shorten(storage, key, before)
      const files: string[] = []
      for await (const file of storage.list(ownerFolder(key)))
        if ((dayOfFile(file) ?? ALWAYS) < before) files.push(file)
      for (const file of files) {
        await storage.remove(file)
        onFile(file)
      }
      count += files.length
    }
  }
  return count
}

/** The manifests that there are, and those that an account would have. */
async function listKeys(
  storage: Storage,
  kind: ArchiveKind,
  { account, databases }: { account: string | null | undefined; databases: readonly string[] },
): Promise<ManifestKey[]> {
  const keys = new Map<string, ManifestKey>()
  const add = (key: ManifestKey) => void keys.set(manifestName(key), key)
  if (account !== undefined) for (const database of databases) add({ database, kind, account })
  for await (const name of storage.list(manifestFolder(kind))) {
    const owner = accountOfManifest(name)
    const database = name.split('/').at(-2)
    if (database !== undefined && owner !== undefined && (account === undefined || owner === account))
      add({ database, kind, account: owner })
  }
  return [...keys.values()]
}

async function shorten(storage: Storage, key: ManifestKey, before: string): Promise<void> {
  const name = manifestName(key)
  const text = await storage.readText(name, MANIFEST_BYTES)
  const known = text === undefined ? undefined : parseManifest(text, name)
  const removedBefore = [known?.removed_before ?? '', before].toSorted().at(-1) as string
  const days = (known?.days ?? []).filter(({ day }) => day >= removedBefore)
  if (removedBefore === known?.removed_before && days.length === known.days.length) return
  await storage.putText(name, `${JSON.stringify({ format: 1, ...key, removed_before: removedBefore, days })}\n`)
}
