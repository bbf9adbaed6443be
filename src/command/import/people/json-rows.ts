import { FatalError } from '../../../app/log/fatal.ts'

/** A value of an export file: a row, or a member of the document that is no list. */
export interface JsonRow {
  /** The member of the document that it is, or whose list it is in; null for a row of its own. */
  member: string | null
  value: unknown
}

/** Form of an export file: rows one after the other or in one list, or one document whose lists have the rows. */
export type ExportForm = 'rows' | 'document'

/** Longest row, in characters. A user has some 2 KB; a page of an API comes as one row. */
const MAX_ROW = 4 * 1024 * 1024

/** Deepest nesting within a row. */
const MAX_DEPTH = 64

type Place = 'top' | 'list' | 'object' | 'colon' | 'member' | 'end'

const SPACES = new Set([' ', '\n', '\r', '\t'])
const SCALAR_ENDS = new Set([',', ']', '}', ' ', '\n', '\r', '\t'])

/** Rows of an export file, one in memory at a time. Throws a `FatalError` that has no part of the file. */
export async function* readJsonRows(chunks: AsyncIterable<string>, form: ExportForm): AsyncGenerator<JsonRow> {
  const reader = buildReader(form)
  for await (const chunk of chunks) yield* reader.push(chunk)
  reader.end()
}

interface Reader {
  push(chunk: string): Generator<JsonRow>
  /** Throws for a file that ends in the middle. */
  end(): void
}

/** Collects one value of unknown length. */
interface Capture {
  /** Takes characters of `chunk` from `at`. Returns where the value ended, or the length of the chunk. */
  take(chunk: string, at: number): number
  isDone(): boolean
  read(): unknown
}

function buildReader(form: ExportForm): Reader {
  let place: Place = 'top'
  let member: string | null = null
  let capture: Capture | undefined
  let rows = 0

  const fail = (what: string): never => {
    throw new FatalError(
      `The export file ${what} after ${rows} rows. Check that --from is the export of the source named.`,
    )
  }

  function* finish(): Generator<JsonRow> {
    const value = capture?.read()
    capture = undefined
    if (place === 'object') {
      member = value as string
      place = 'colon'
      return
    }
    rows += 1
    const row = { member, value }
    if (place === 'member') place = 'object'
    yield row
  }

  function begin(first: string): void {
    capture = buildCapture(first, fail)
  }

  /** One character outside of a value. */
  function step(char: string): void {
    if (SPACES.has(char) || (char === '\ufeff' && rows === 0)) return
    switch (place) {
      case 'top':
        if (form === 'document') {
          if (char !== '{') fail('is not a JSON object')
          place = 'object'
        } else if (char === '[' && rows === 0) place = 'list'
        else if (char === '{') begin(char)
        else fail('is not a JSON object, nor a list or lines of them,')
        return
      case 'list':
        if (char === ']') place = member === null ? 'end' : 'object'
        else if (char !== ',') begin(char)
        return
      case 'object':
        if (char === '}') place = 'end'
        else if (char === '"') begin(char)
        else if (char !== ',') fail('is not JSON')
        return
      case 'colon':
        if (char !== ':') fail('is not JSON')
        place = 'member'
        return
      case 'member':
        if (char === '[') place = 'list'
        else begin(char)
        return
      case 'end':
        fail('continues after its end')
    }
  }

  function* push(chunk: string): Generator<JsonRow> {
    let at = 0
    while (at < chunk.length) {
      if (capture) {
        at = capture.take(chunk, at)
        if (capture.isDone()) yield* finish()
      } else {
        step(chunk[at] as string)
        // The first character of a value belongs to it.
        if (!capture) at += 1
      }
    }
  }

  function end(): void {
    if (capture || (place !== 'end' && !(form === 'rows' && place === 'top'))) fail('ends in the middle')
    if (rows === 0 && place !== 'end') fail('is empty')
  }

  return { push, end }
}

function buildCapture(first: string, fail: (what: string) => never): Capture {
  const isScalar = first !== '{' && first !== '[' && first !== '"'
  let parts = ''
  let depth = 0
  let isInText = false
  let isEscaped = false
  let isDone = false

  /** Whether the value ends with this character. */
  function isLast(char: string): boolean {
    if (isInText) {
      if (isEscaped) isEscaped = false
      else if (char === '\\') isEscaped = true
      else if (char === '"') {
        isInText = false
        return depth === 0
      }
      return false
    }
    if (char === '"') isInText = true
    else if (char === '{' || char === '[') {
      depth += 1
      if (depth > MAX_DEPTH) fail(`has a row nested deeper than ${MAX_DEPTH}`)
    } else if (char === '}' || char === ']') {
      depth -= 1
      return depth === 0
    }
    return false
  }

  function take(chunk: string, from: number): number {
    let at = from
    while (at < chunk.length && !isDone) {
      const char = chunk[at] as string
      if (isScalar && SCALAR_ENDS.has(char)) {
        isDone = true
        break
      }
      at += 1
      if (!isScalar && isLast(char)) isDone = true
    }
    parts += chunk.slice(from, at)
    if (parts.length > MAX_ROW) fail(`has a row of more than ${MAX_ROW / 1024 / 1024} Mi characters`)
    return at
  }

  function read(): unknown {
    try {
      return JSON.parse(parts)
    } catch {
      return fail('has a row that is not JSON')
    }
  }

  return { take, isDone: () => isDone, read }
}
