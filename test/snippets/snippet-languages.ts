import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const GUIDE_FOLDER = fileURLToPath(new URL('../../docs/guides/verify/', import.meta.url))

type Command = readonly [program: string, ...args: string[]]

/** How one snippet of the guide is found, built and run. */
export type SnippetLanguage = {
  readonly name: string
  /** The snippet, from the guide's folder. */
  readonly file: string
  /** Succeeds when this machine can build and run the snippet without the network. */
  readonly probe: Command
  /** The first number the probe must print, at least. */
  readonly minimumMajor?: number
  /** Builds into the temporary folder `out`; absent for scripts. */
  readonly build?: (source: string, out: string) => Command
  /** The command that takes `<secret> <header> <now>` and the body on its standard input. */
  readonly run: (source: string, out: string) => Command
}

export const SNIPPET_LANGUAGES: readonly SnippetLanguage[] = [
  {
    name: 'node',
    file: 'node/verify.mjs',
    probe: [process.execPath, '--version'],
    run: (source) => [process.execPath, source],
  },
  {
    name: 'python',
    file: 'python/verify.py',
    probe: ['python3', '-c', 'import hashlib, hmac'],
    run: (source) => ['python3', source],
  },
  {
    name: 'go',
    file: 'go/verify.go',
    probe: ['go', 'version'],
    build: (source, out) => ['go', 'build', '-o', `${out}/verify`, source],
    run: (_source, out) => [`${out}/verify`],
  },
  { name: 'ruby', file: 'ruby/verify.rb', probe: ['ruby', '-ropenssl', '-e', ''], run: (source) => ['ruby', source] },
  { name: 'php', file: 'php/verify.php', probe: ['php', '--version'], run: (source) => ['php', source] },
  {
    name: 'java',
    file: 'java/Verify.java',
    // The class the snippet uses that came last, in Java 17.
    probe: ['javac', '--release', '17', '--version'],
    build: (source, out) => ['javac', '--release', '17', '-d', out, source],
    run: (_source, out) => ['java', '-Xshare:auto', '-XX:TieredStopAtLevel=1', '-cp', out, 'Verify'],
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

/** Keeps the tools from reaching out: no toolchain, module or telemetry is fetched. */
export const OFFLINE_ENVIRONMENT = {
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
  const { status, stdout } = spawnSync(program, args, {
    env: { ...process.env, ...OFFLINE_ENVIRONMENT },
    encoding: 'utf8',
  })
  if (status !== 0) return false
  return language.minimumMajor === undefined || Number.parseInt(stdout, 10) >= language.minimumMajor
}
