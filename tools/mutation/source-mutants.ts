import ts from 'typescript'
import type { Mutant } from './mutant.ts'
import { type Edit, listStatementEdits } from './statement-mutants.ts'

const BOUNDARY = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
])
const EQUALITY = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, '==='],
])
const ARITHMETIC = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.PlusToken, '-'],
  [ts.SyntaxKind.MinusToken, '+'],
  [ts.SyntaxKind.AsteriskToken, '/'],
  [ts.SyntaxKind.SlashToken, '*'],
  [ts.SyntaxKind.PlusEqualsToken, '-='],
  [ts.SyntaxKind.MinusEqualsToken, '+='],
])
const OTHER_METHOD = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['some', 'every'],
  ['every', 'some'],
])
/** Calls without which the value they are made on is left as it is: of arrays, and of the query builder. */
const DROPPED_CALLS = new Set([
  'filter',
  'sort',
  'toSorted',
  'reverse',
  'where',
  'having',
  'forUpdate',
  'forNoKeyUpdate',
])
/** Calls whose objects are columns: one that is missing is a mutant. */
const COLUMN_CALLS = new Set(['set', 'values'])
const STATEMENT_CALLS = new Set([
  'statement',
  'rowStatement',
  'soleRowStatement',
  'closingStatement',
  'aheadStatement',
  'sweepStatement',
])
/** Log calls, and the points at which crash tests stop a process. */
const UNJUDGED_CALL = /(?:^|\.)(?:logger\.\w+|on\w*Point)$/
const SQL_WORD =
  /\b(?:select|insert|update|delete|from|where|and|or|not|null|exists|coalesce|least|greatest|set|order by|limit|for share)\b/

/**
 * The changes of a file that its tests should notice: those of its statements, and of the decisions of the program around
 * them. What is only logged, types, and texts of errors are left out. In the order of the file. Pure.
 */
export function listMutants(path: string, text: string): Mutant[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const edits: Edit[] = []
  const visit = (node: ts.Node): void => {
    if (isLeftOut(node)) return
    if (isStatementText(node, path)) edits.push(...listEditsOfTemplate(node, file))
    edits.push(...listEditsOfNode(node, file))
    ts.forEachChild(node, visit)
  }
  visit(file)
  const findRuns = buildRunFinder(file)
  const seen = new Set<string>()
  return edits
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .filter((edit) => {
      const key = JSON.stringify(edit)
      const isNew = !seen.has(key) && text.slice(edit.start, edit.end) !== edit.replacement
      seen.add(key)
      return isNew
    })
    .map((edit) => ({ path, ...edit, ...findRuns(edit.start) }))
}

function isLeftOut(node: ts.Node): boolean {
  if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return true
  if (ts.isImportDeclaration(node)) return true
  const call = ts.isCallExpression(node) ? node.expression.getText() : ''
  return UNJUDGED_CALL.test(call) || (ts.isNewExpression(node) && node.expression.getText() === 'Error')
}

type TextNode = ts.TemplateExpression | ts.NoSubstitutionTemplateLiteral | ts.StringLiteral

/** A text of SQL: what a statement is built of, a template with the tag `sql`, and in stores each text with its words. */
function isStatementText(node: ts.Node, path: string): node is TextNode {
  const isText = ts.isTemplateExpression(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isStringLiteral(node)
  if (!isText) return false
  const { parent } = node
  const isTagged = ts.isTaggedTemplateExpression(parent) && /^sql\b/.test(parent.tag.getText())
  const isArgument = ts.isCallExpression(parent) && STATEMENT_CALLS.has(parent.expression.getText())
  return (
    isTagged || isArgument || (path.endsWith('.store.ts') && SQL_WORD.test(node.getText()) && /\s/.test(node.getText()))
  )
}

/** The edits of a text, whose interpolations are read as one word each. */
function listEditsOfTemplate(node: TextNode, file: ts.SourceFile): Edit[] {
  const start = node.getStart(file) + 1
  let sql = file.text.slice(start, node.getEnd() - 1)
  if (ts.isTemplateExpression(node))
    for (const { expression } of node.templateSpans) {
      const from = file.text.lastIndexOf('${', expression.getStart(file)) - start
      const to = file.text.indexOf('}', expression.getEnd()) + 1 - start
      sql = sql.slice(0, from) + 'x'.repeat(to - from) + sql.slice(to)
    }
  return listStatementEdits(sql).map((edit) => ({ ...edit, start: edit.start + start, end: edit.end + start }))
}

function listEditsOfNode(node: ts.Node, file: ts.SourceFile): Edit[] {
  const replace = (node: ts.Node, ...replacements: string[]) =>
    replacements.map((replacement) => ({ start: node.getStart(file), end: node.getEnd(), replacement }))
  if (ts.isBinaryExpression(node)) return listEditsOfBinary(node, replace)
  if (ts.isIfStatement(node)) return listEditsOfCondition(node.expression, replace)
  if (ts.isConditionalExpression(node)) return listEditsOfCondition(node.condition, replace)
  if (ts.isWhileStatement(node)) return replace(node.expression, 'false')
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken && !isOperand(node))
    return replace(node, node.operand.getText(file))
  if (node.kind === ts.SyntaxKind.TrueKeyword && !isOperand(node)) return replace(node, 'false')
  if (node.kind === ts.SyntaxKind.FalseKeyword && !isOperand(node)) return replace(node, 'true')
  if (ts.isExpressionStatement(node) && isEffect(node.expression)) return replace(node, ';')
  if (ts.isCallExpression(node)) return listEditsOfCall(node, file)
  return []
}

type Replace = (node: ts.Node, ...replacements: string[]) => Edit[]

function listEditsOfBinary(node: ts.BinaryExpression, replace: Replace): Edit[] {
  const { left, right, operatorToken: operator } = node
  const own = (operand: ts.Node, value: string) => (isLogical(strip(operand)) ? [] : replace(operand, value))
  switch (operator.kind) {
    case ts.SyntaxKind.AmpersandAmpersandToken:
      return [...(isGiven(left) ? [] : own(left, 'true')), ...(isValue(left, right) ? [] : own(right, 'true'))]
    case ts.SyntaxKind.BarBarToken:
      return [...own(left, 'false'), ...own(right, 'false')]
    case ts.SyntaxKind.QuestionQuestionToken:
      return replace(node, `(${right.getText()})`, ...(isEmpty(right) ? [] : [`(${left.getText()})`]))
  }
  const boundary = BOUNDARY.get(operator.kind)
  if (boundary) return replace(operator, boundary)
  const equality = EQUALITY.get(operator.kind)
  if (equality) return isOperand(node) ? [] : replace(operator, equality)
  const arithmetic = ARITHMETIC.get(operator.kind)
  return arithmetic && !isText(left) && !isText(right) ? replace(operator, arithmetic) : []
}

/** The condition of `...(x !== undefined && { x })`: readers treat an undefined member as absent. */
function isGiven(left: ts.Node): boolean {
  const { parent: outer } = left.parent
  const isSpread = ts.isParenthesizedExpression(outer) && ts.isSpreadAssignment(outer.parent)
  return isSpread && / !== undefined$/.test(left.getText())
}

/** The value of `x && f(x)` is no condition, and every reader of it would notice another. */
function isValue(left: ts.Node, right: ts.Node): boolean {
  const logical = left.parent
  const outer = ts.isParenthesizedExpression(logical.parent) ? logical.parent.parent : logical.parent
  if (ts.isSpreadAssignment(outer) || ts.isSpreadElement(outer)) return false
  return (
    ts.isObjectLiteralExpression(right) ||
    (ts.isCallExpression(right) && ts.isIdentifier(left) && listIdentifiers(right).has(left.text))
  )
}

/** A default that stands for nothing: most of its readers take `undefined` for the same. */
const isEmpty = (node: ts.Node) => /^(?:null|undefined|0|false|''|\[\]|\{\})$/.test(node.getText())

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) ||
  ts.isTemplateExpression(node) ||
  (ts.isBinaryExpression(node) && (isText(node.left) || isText(node.right)))

function listEditsOfCondition(condition: ts.Expression, replace: Replace): Edit[] {
  const inner = strip(condition)
  if (!isLogical(inner)) return replace(condition, 'true', 'false')
  return replace(condition, inner.operatorToken.kind === ts.SyntaxKind.BarBarToken ? 'true' : 'false')
}

function strip(node: ts.Node): ts.Node {
  return ts.isParenthesizedExpression(node) ? strip(node.expression) : node
}

function isLogical(node: ts.Node): node is ts.BinaryExpression {
  if (!ts.isBinaryExpression(node)) return false
  const { kind } = node.operatorToken
  return kind === ts.SyntaxKind.AmpersandAmpersandToken || kind === ts.SyntaxKind.BarBarToken
}

/** Whether the node is a condition, or an operand of one, which is replaced as a whole. */
function isOperand(node: ts.Node): boolean {
  const { parent } = node
  if (ts.isParenthesizedExpression(parent)) return isOperand(parent)
  if (isLogical(parent)) return true
  if (ts.isIfStatement(parent) || ts.isWhileStatement(parent)) return true
  return ts.isConditionalExpression(parent) && parent.condition === node
}

/** A statement that does something: a call, an assignment, a deletion. */
function isEffect(node: ts.Expression): boolean {
  if (ts.isAwaitExpression(node) || ts.isVoidExpression(node)) return isEffect(node.expression)
  if (ts.isCallExpression(node)) return !UNJUDGED_CALL.test(node.expression.getText())
  return ts.isBinaryExpression(node) || ts.isDeleteExpression(node) || ts.isPostfixUnaryExpression(node)
}

function listEditsOfCall(node: ts.CallExpression, file: ts.SourceFile): Edit[] {
  const { expression: called } = node
  if (!ts.isPropertyAccessExpression(called)) return []
  const name = called.name.text
  const edits: Edit[] = []
  const other = OTHER_METHOD.get(name)
  if (other) edits.push({ start: called.name.getStart(file), end: called.name.getEnd(), replacement: other })
  if (DROPPED_CALLS.has(name)) edits.push({ start: called.expression.getEnd(), end: node.getEnd(), replacement: '' })
  const [columns] = node.arguments
  if (COLUMN_CALLS.has(name) && columns && ts.isObjectLiteralExpression(columns) && columns.properties.length > 1)
    for (const property of columns.properties.filter((property) => !ts.isSpreadAssignment(property))) {
      const comma = /^\s*,/.exec(file.text.slice(property.getEnd()))?.[0] ?? ''
      edits.push({ start: property.getStart(file), end: property.getEnd() + comma.length, replacement: '' })
    }
  return edits
}

/**
 * Finds where the code around a position runs. Inside of a function that is the position itself; outside of all, the
 * functions of the file that use what is declared there, by way of other declarations too, and other files that use one of
 * those that is no function.
 */
function buildRunFinder(file: ts.SourceFile): (position: number) => Pick<Mutant, 'runsAt' | 'isUsedElsewhere'> {
  const declared = file.statements.map((statement) => ({
    statement,
    names: listDeclaredNames(statement),
    used: listIdentifiers(statement),
  }))
  const functionsOf = (statement: ts.Node): number[] => {
    const found: number[] = []
    const visit = (node: ts.Node): void => {
      if (ts.isFunctionLike(node) && 'body' in node && node.body) found.push((node.body as ts.Node).getStart(file) + 1)
      else ts.forEachChild(node, visit)
    }
    visit(statement)
    return found
  }
  return (position) => {
    const own = declared.find(({ statement }) => statement.getStart(file) <= position && position < statement.getEnd())
    if (!own || isInFunction(own.statement, position, file)) return { runsAt: [position] }
    const reached = new Set([own])
    for (const node of reached)
      for (const other of declared) if (node.names.some((name) => other.used.has(name))) reached.add(other)
    const runs = [...reached].map(({ statement }) => ({ statement, functions: functionsOf(statement) }))
    const isUsedElsewhere = runs.some(({ statement, functions }) => functions.length === 0 && isExported(statement))
    return { runsAt: runs.flatMap(({ functions }) => functions), isUsedElsewhere }
  }
}

function isInFunction(statement: ts.Node, position: number, file: ts.SourceFile): boolean {
  let isInside = false
  const visit = (node: ts.Node): void => {
    if (position < node.getStart(file) || position >= node.getEnd()) return
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const body = node.body as ts.Node
      isInside ||= body.getStart(file) <= position && position < body.getEnd()
    }
    ts.forEachChild(node, visit)
  }
  visit(statement)
  return isInside
}

const isExported = (statement: ts.Statement): boolean =>
  ts.isVariableStatement(statement) &&
  (statement.modifiers ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)

function listDeclaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations
      .map(({ name }) => name.getText())
      .flatMap((name) => name.match(/\w+/g) ?? [])
  return ts.isFunctionDeclaration(statement) && statement.name ? [statement.name.text] : []
}

function listIdentifiers(node: ts.Node): Set<string> {
  const found = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) found.add(node.text)
    ts.forEachChild(node, visit)
  }
  visit(node)
  return found
}
