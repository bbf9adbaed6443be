/** A request of the API as a reader would send it. */
export interface Request {
  method: string
  /** Path with its parameters filled in, and its query. */
  path: string
  hasToken: boolean
  body?: unknown
}

/** The same request in four languages, each runnable with `BASE` and `TOKEN` in the environment. */
export const LANGUAGES = [
  { name: 'curl', fence: 'sh', render: renderCurl },
  { name: 'TypeScript', fence: 'ts', render: renderTypeScript },
  { name: 'Python', fence: 'py', render: renderPython },
  { name: 'Go', fence: 'go', render: renderGo },
] as const

const indent = (text: string, by: string) => text.replaceAll('\n', `\n${by}`)

function renderCurl({ method, path, hasToken, body }: Request): string {
  const lines = [
    `curl -X ${method} "$BASE${path}"`,
    ...(hasToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d '${quoteShell(JSON.stringify(body))}'`]),
  ]
  return lines.join(' \\\n  ')
}

/** Text inside single quotes of a POSIX shell. Pure. */
const quoteShell = (text: string) => text.replaceAll("'", `'\\''`)

function renderTypeScript({ method, path, hasToken, body }: Request): string {
  const headers = [
    ...(hasToken ? [`Authorization: \`Bearer \${process.env.TOKEN}\``] : []),
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
  ]
  const options = [
    `method: '${method}'`,
    ...(headers.length > 0 ? [`headers: { ${headers.join(', ')} }`] : []),
    ...(body === undefined ? [] : [`body: JSON.stringify(${indent(JSON.stringify(body, null, 2), '  ')})`]),
  ]
  return [
    `const response = await fetch(\`\${process.env.BASE}${path}\`, {`,
    ...options.map((option) => `  ${option},`),
    '})',
    'const answer = await response.json()',
    'if (!response.ok) throw new Error(answer.detail)',
  ].join('\n')
}

function renderPython({ method, path, hasToken, body }: Request): string {
  const headers = [
    ...(hasToken ? [`"Authorization": f"Bearer {os.environ['TOKEN']}"`] : []),
    ...(body === undefined ? [] : ['"Content-Type": "application/json"']),
  ]
  const data = body === undefined ? [] : [`    data=json.dumps(${indent(toPython(body), '    ')}).encode(),`]
  return [
    'import json, os, urllib.request',
    '',
    'request = urllib.request.Request(',
    `    os.environ["BASE"] + ${JSON.stringify(path)},`,
    `    method="${method}",`,
    ...(headers.length > 0 ? [`    headers={${headers.join(', ')}},`] : []),
    ...data,
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    answer = json.load(response)',
  ].join('\n')
}

/** A JSON value as a literal of Python. Pure. */
function toPython(value: unknown): string {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value as object).map(
    ([name, member]) => `${JSON.stringify(name)}: ${toPython(member)}`,
  )
  return members.length === 0 ? '{}' : `{${members.join(', ')}}`
}

function renderGo({ method, path, hasToken, body }: Request): string {
  const reader = body === undefined ? 'nil' : `strings.NewReader(\`${JSON.stringify(body, null, 2)}\`)`
  return [
    `request, err := http.NewRequest("${method}", os.Getenv("BASE")+${JSON.stringify(path)}, ${reader})`,
    'if err != nil {',
    '\tlog.Fatal(err)',
    '}',
    ...(hasToken ? ['request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))'] : []),
    ...(body === undefined ? [] : ['request.Header.Set("Content-Type", "application/json")']),
    'response, err := http.DefaultClient.Do(request)',
    'if err != nil {',
    '\tlog.Fatal(err)',
    '}',
    'defer response.Body.Close()',
  ].join('\n')
}
