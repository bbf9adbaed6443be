/** Length and SHA-256 (hex) of a stored file. */
export interface Digest {
  bytes: number
  sha256: string
}

/** Files by name (`events/home/none/2026-09-01/0.parquet`), each there whole or not at all. Throws `ArchiveError`s. */
export interface Storage {
  /** The place, for messages; without credentials. */
  readonly place: string
  /** A local folder for unfinished files. */
  readonly workDir: string
  /** Stores the local file `path`, and takes it away from there. Replaces a file of the same name. */
  put(name: string, path: string, digest: Digest): Promise<void>
  putText(name: string, text: string): Promise<void>
  /** The text of a file of at most `limit` bytes; undefined for a missing one. */
  readText(name: string, limit: number): Promise<string | undefined>
  /** The bytes of a file from `start` to before `end`. */
  readRange(name: string, start: number, end: number): Promise<ArrayBuffer>
  digest(name: string): Promise<Digest>
  /** The names that begin with `prefix`, which ends with a slash, in any order. */
  list(prefix: string): AsyncIterable<string>
  remove(name: string): Promise<void>
  /** Removes what is unfinished. */
  close(): Promise<void>
}
