/** A change of a text: what stands from `start` to `end` is replaced. */
export interface Edit {
  start: number
  end: number
  replacement: string
}

interface Token {
  text: string
  start: number
  end: number
}

/** Text between two brackets, or at the outermost level, while it is read. */
interface Frame {
  clause: 'condition' | 'assignments' | 'list' | 'other'
  /** First token of the operand, the assignment or the element that is being read. */
  from: number
  /** The word before the operand: `and`, `or`, or what begins the condition. */
  joint: string
  /** Whether the next `and` belongs to `between`. */
  isBetween: boolean
  /** Those assignments or elements that were read: from a token up to another. */
  elements: [from: number, to: number][]
}

const TOKEN = /'(?:[^']|'')*'|"[^"]*"|[\w$]+(?:\.(?:[\w$]+|"[^"]*"))*|<=|>=|<>|!=|<<|>>|<@|@>|::|\|\||->>|->|[^\s\w]/g

const BEGINS_CONDITION = new Set(['where', 'on', 'having', 'when'])
const ENDS_CLAUSE = new Set(
  `select from group order limit for returning union then else end offset join left right cross inner full do set values
  window with insert update delete as except intersect`.split(/\s+/),
)
const LOCK = /\bfor (?:no key )?(?:update|share|key share)(?: of \w+)?/g
const BOUNDARY: Record<string, string> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }
const OPPOSITE: Record<string, string> = {
  least: 'greatest',
  greatest: 'least',
  min: 'max',
  max: 'min',
  '+': '-',
  '-': '+',
}

/**
 * The changes of a statement, or of a part of one, that its tests should notice: a lock that is not taken, a condition that
 * is not asked, a bound that is one off, an assignment or an element of a list that is missing, the opposite of `exists`,
 * `least` and `+`, and an order turned round. Interpolations are blanked by the caller to words. Pure.
 */
export function listStatementEdits(sql: string): Edit[] {
  const tokens = [...sql.matchAll(TOKEN)].map((match) => ({
    text: match[0].toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  }))
  const edits = [...listLocks(sql), ...listWordEdits(tokens), ...listOperands(tokens)]
  return edits.sort((a, b) => a.start - b.start || a.end - b.end)
}

function listLocks(sql: string): Edit[] {
  const drop = (pattern: RegExp) =>
    [...sql.matchAll(pattern)].map(({ index, 0: found }) => ({
      start: index,
      end: index + found.length,
      replacement: '',
    }))
  return [...drop(new RegExp(`${LOCK.source}(?: skip locked| nowait)?`, 'g')), ...drop(/\bskip locked\b/g)]
}

function listWordEdits(tokens: readonly Token[]): Edit[] {
  const edits: Edit[] = []
  for (const [at, { text, start, end }] of tokens.entries()) {
    const [before, after] = [tokens[at - 1]?.text, tokens[at + 1]?.text]
    const change = (replacement: string) => edits.push({ start, end, replacement })
    if (text in BOUNDARY) change(BOUNDARY[text]!)
    else if (text in OPPOSITE && (after === '(' || isSum(text, before, after))) change(OPPOSITE[text]!)
    else if (text === 'exists' && before !== 'not' && before !== 'if') change('not exists')
    else if (text === 'not' && before !== 'is' && after !== 'null' && after !== 'materialized') change('')
    else if (text === 'desc') change('')
    else if (text === 'distinct' && after !== 'from') change('')
  }
  return edits
}

/** A sign between two values, not that of a number or of an operator of several characters. */
function isSum(sign: string, before: string | undefined, after: string | undefined): boolean {
  if (sign !== '+' && sign !== '-') return false
  return /^(?:[\w$."]+|\))$/.test(before ?? '') && /^(?:[\w$."]+|\()$/.test(after ?? '')
}

/** Operands of conditions, assignments, and elements of lists of values. */
function listOperands(tokens: readonly Token[]): Edit[] {
  const edits: Edit[] = []
  const open = (clause: Frame['clause'], from: number): Frame => ({
    clause,
    from,
    joint: '',
    isBetween: false,
    elements: [],
  })
  const frames = [open(startsAsCondition(tokens) ? 'condition' : 'other', 0)]
  for (const [at, { text }] of tokens.entries()) {
    const frame = frames.at(-1)!
    if (text === '(') frames.push(open(findClauseOfBracket(tokens, at), at + 1))
    else if (text === ')') {
      edits.push(...endClause(frame, tokens, at))
      if (frames.length > 1) frames.pop()
    } else if (text === 'and' && frame.isBetween) frame.isBetween = false
    else if ((text === 'and' || text === 'or') && frame.clause === 'condition') {
      edits.push(...endOperand(frame, tokens, { at, next: text }))
      Object.assign(frame, { from: at + 1, joint: text })
    } else if (text === ',' && (frame.clause === 'assignments' || frame.clause === 'list')) {
      frame.elements.push([frame.from, at])
      frame.from = at + 1
    } else if (text === ',' && frame.clause === 'condition') edits.push(...endClause(frame, tokens, at))
    else if (text === 'between') frame.isBetween = true
    else if (frame.clause === 'other' && text === '=') edits.push(replaceToken(tokens[at]!, '<>'))
    else if (frame.clause === 'other' && text === 'is') edits.push(...negate(tokens, at))
    else if (BEGINS_CONDITION.has(text) && tokens[at + 1]?.text !== 'conflict') {
      edits.push(...endClause(frame, tokens, at))
      Object.assign(frame, { clause: 'condition', from: at + 1, joint: text })
    } else if (text === 'on') edits.push(...endClause(frame, tokens, at))
    else if (ENDS_CLAUSE.has(text) && !(text === 'from' && tokens[at - 1]?.text === 'distinct')) {
      edits.push(...endClause(frame, tokens, at))
      if (text === 'set') Object.assign(frame, { clause: 'assignments', from: at + 1 })
    }
  }
  for (const frame of frames.reverse()) edits.push(...endClause(frame, tokens, tokens.length))
  return edits
}

const replaceToken = ({ start, end }: Token, replacement: string): Edit => ({ start, end, replacement })

/** `is null` and its opposite, as a value. */
function negate(tokens: readonly Token[], at: number): Edit[] {
  const [is, next, last] = tokens.slice(at, at + 3)
  if (next?.text === 'null') return [replaceToken(is!, 'is not')]
  return next?.text === 'not' && last?.text === 'null' ? [replaceToken(next, '')] : []
}

/** A part of a statement that is a condition itself: it has an `and` or `or` before any clause begins. */
function startsAsCondition(tokens: readonly Token[]): boolean {
  let depth = 0
  for (const { text } of tokens) {
    if (text === '(') depth += 1
    else if (text === ')') depth -= 1
    else if (depth > 0) continue
    else if (text === 'and' || text === 'or') return true
    else if (text === ',' || ENDS_CLAUSE.has(text) || BEGINS_CONDITION.has(text)) return false
  }
  return false
}

/** Content of a bracket: a group of conditions, a list of values behind `in`, or anything else. */
function findClauseOfBracket(tokens: readonly Token[], at: number): Frame['clause'] {
  const [before, after] = [tokens[at - 1]?.text, tokens[at + 1]?.text]
  if (before === 'in' && after !== 'select') return 'list'
  const isGroup = before === undefined || ['and', 'or', 'not', 'where', 'on', 'when', 'having', '('].includes(before)
  return isGroup && after !== 'select' && after !== 'with' ? 'condition' : 'other'
}

function endClause(frame: Frame, tokens: readonly Token[], at: number): Edit[] {
  const edits = frame.clause === 'condition' ? endOperand(frame, tokens, { at, next: '' }) : []
  if (frame.clause === 'assignments' || frame.clause === 'list')
    edits.push(...dropEach([...frame.elements, [frame.from, at]], tokens))
  Object.assign(frame, { clause: 'other', joint: '', isBetween: false, elements: [] })
  return edits
}

/** One operand is left out: true among those of `and`, false among those of `or`. A group in brackets is left to its operands. */
function endOperand(frame: Frame, tokens: readonly Token[], { at, next }: { at: number; next: string }): Edit[] {
  const [first, last] = [tokens[frame.from], tokens[at - 1]]
  if (!first || !last || frame.from >= at) return []
  const isConstant = frame.from === at - 1 && ['true', 'false'].includes(first.text)
  // A bracket alone, without a joint, is a value.
  if (isConstant || (frame.joint === '' && next === '')) return []
  const isAlternative = frame.joint === 'or' || (frame.joint !== 'and' && next === 'or')
  return [{ start: first.start, end: last.end, replacement: isAlternative ? 'false' : 'true' }]
}

/** Each of several elements with the comma beside it. */
function dropEach(elements: readonly [from: number, to: number][], tokens: readonly Token[]): Edit[] {
  const named = elements.filter(([from, to]) => to > from)
  if (named.length < 2) return []
  return named.map(([from, to], index) => {
    const start = index === 0 ? tokens[from]!.start : tokens[from - 1]!.start
    const end = index === 0 ? tokens[to]!.end : tokens[to - 1]!.end
    return { start, end, replacement: '' }
  })
}
