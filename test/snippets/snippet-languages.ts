import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const GUIDE_FOLDER = fileURLToPath(new URL('../../docs/guides/verify/', import.meta.url))

type Command = readonly [program: string, ...args: string[]]

/** How one snippet of the guide is found, built and run. */
export type SnippetLanguage = {
  readonly name: string
  /** The snippet, from the guide's folder. */
  readonly file: string
  /** A whole receiver with the snippet, and the command that starts it with `WEBHOOK_SECRET` and `PORT` in its environment. */
  readonly receiver?: {
    readonly file: string
    readonly start: (folder: string, out: string) => Command
    readonly build?: (folder: string, out: string) => Command
  }
  /** Succeeds when this machine can build and run the snippet without the network. */
  readonly probe: Command
  /** The first number the probe must print, at least. */
  readonly minimumMajor?: number
  /** Builds into the temporary folder `out`; absent for scripts. */
  readonly build?: (source: string, out: string) => Command
  /** The command that takes `<secret> <header> <now>` and the body on its standard input. */
  readonly run: (source: string, out: string) => Command
  /**
   * A command that calls the function of the snippet for each line of its standard input (`encodeVector`) and prints its
   * answer on a line: for languages whose start takes a tenth of a second of a processor. `build` has built it too.
   */
  readonly runAll?: (source: string, out: string) => Command
}

/** A line of the input of `runAll`: secret, header and body in Base64, and the time, each behind a tab. */
export function encodeVector(vector: { secret: string; header: string; body: string; now: number }): string {
  const texts = [vector.secret, vector.header, vector.body].map((text) => Buffer.from(text).toString('base64'))
  return `${[...texts, vector.now].join('\t')}\n`
}

const NODE_CALLER = `
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
const { verify } = await import(pathToFileURL(process.argv[2]).href)
for await (const line of createInterface({ input: process.stdin })) {
  const [secret, header, body, now] = line.split('\\t')
  const decode = (text) => Buffer.from(text, 'base64')
  console.log(verify(decode(secret).toString(), decode(header).toString(), decode(body), Number(now)))
}`

const PYTHON_CALLER = `
import base64, importlib.util, sys
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("verify", sys.argv[1])
snippet = importlib.util.module_from_spec(spec)
spec.loader.exec_module(snippet)
for line in sys.stdin:
    secret, header, body, now = line.rstrip("\\n").split("\\t")
    decode = base64.b64decode
    print(snippet.verify(decode(secret).decode(), decode(header).decode(), decode(body), int(now)))
`

/** The class that calls the Java snippet. */
const JAVA_CALLER = fileURLToPath(new URL('java/VerifyAll.java', import.meta.url))

/** For processes that end after a moment. */
const JAVA_FLAGS = ['-Xshare:auto', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']
const JAVAC_FLAGS = ['-J-XX:TieredStopAtLevel=1', '-J-XX:+UseSerialGC', '-proc:none']

export const SNIPPET_LANGUAGES: readonly SnippetLanguage[] = [
  {
    name: 'node',
    file: 'node/verify.mjs',
    probe: [process.execPath, '--version'],
    run: (source) => [process.execPath, source],
    // The snippet is a command where it is the first argument of Node.
    runAll: (source) => [process.execPath, '--input-type=module', '--eval', NODE_CALLER, '.', source],
  },
  {
    name: 'python',
    file: 'python/verify.py',
    probe: ['python3', '-c', 'import hashlib, hmac'],
    run: (source) => ['python3', source],
    runAll: (source) => ['python3', '-c', PYTHON_CALLER, source],
    receiver: { file: 'python/receiver.py', start: (folder) => ['python3', '-B', `${folder}python/receiver.py`] },
  },
  {
    name: 'go',
    file: 'go/verify.go',
    probe: ['go', 'version'],
    build: (source, out) => ['go', 'build', '-o', `${out}/verify`, source, source.replace('verify.go', 'command.go')],
    run: (_source, out) => [`${out}/verify`],
    receiver: {
      file: 'go/receiver.go',
      build: (folder, out) => [
        'go',
        'build',
        '-o',
        `${out}/receiver`,
        `${folder}go/receiver.go`,
        `${folder}go/verify.go`,
      ],
      start: (_folder, out) => [`${out}/receiver`],
    },
  },
  { name: 'ruby', file: 'ruby/verify.rb', probe: ['ruby', '-ropenssl', '-e', ''], run: (source) => ['ruby', source] },
  { name: 'php', file: 'php/verify.php', probe: ['php', '--version'], run: (source) => ['php', source] },
  {
    name: 'java',
    file: 'java/Verify.java',
    // The class the snippet uses that came last, in Java 17.
    probe: ['javac', '--release', '17', '--version'],
    build: (source, out) => ['javac', ...JAVAC_FLAGS, '--release', '17', '-d', out, source, JAVA_CALLER],
    run: (_source, out) => ['java', ...JAVA_FLAGS, '-cp', out, 'Verify'],
    runAll: (_source, out) => ['java', ...JAVA_FLAGS, '-cp', out, 'VerifyAll'],
  },
  {
    name: 'csharp',
    file: 'csharp/Verify.cs',
    // Programs of one file came with .NET 10.
    probe: ['dotnet', '--version'],
    minimumMajor: 10,
    // Ahead-of-time compilation, the default for such programs, would fetch a package.
    build: (source, out) => ['dotnet', 'build', source, '-p:PublishAot=false', '--output', out],
    run: (_source, out) => ['dotnet', `${out}/Verify.dll`],
  },
  {
    name: 'rust',
    file: 'rust/verify.rs',
    // Two crates are needed, so it runs where cargo has them already: a test downloads nothing.
    probe: ['cargo', 'tree', '--offline', '--locked', '--manifest-path', `${GUIDE_FOLDER}rust/Cargo.toml`],
    build: (_source, out) => buildCargo(out),
    run: (_source, out) => [`${out}/debug/verify`],
  },
]

function buildCargo(out: string): Command {
  const manifest = `${GUIDE_FOLDER}rust/Cargo.toml`
  return ['cargo', 'build', '--quiet', '--offline', '--locked', '--manifest-path', manifest, '--target-dir', out]
}

/**
 * All that a snippet and the tools of its language get (`env -i`), because the page names no variable: where programs and
 * the home of the user are, and what keeps the tools from reaching out for a toolchain, a module or telemetry.
 */
export const SNIPPET_ENVIRONMENT = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  GOTOOLCHAIN: 'local',
  GOPROXY: 'off',
  GOTELEMETRY: 'off',
  CARGO_NET_OFFLINE: 'true',
  DOTNET_CLI_TELEMETRY_OPTOUT: '1',
  DOTNET_NOLOGO: '1',
}

/** Whether this machine has what the snippet needs. */
export function isRunnable(language: SnippetLanguage): boolean {
  const [program, ...args] = language.probe
  const { status, stdout } = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8' })
  if (status !== 0) return false
  return language.minimumMajor === undefined || Number.parseInt(stdout, 10) >= language.minimumMajor
}
