import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type CommandEnd, runCommand } from './command-line.ts'
import type { GuideShell } from './guide-shell.ts'

/** Commands that a process of their own runs: those that go on until a signal ends them, and one that looks at what this process holds. */
const OF_A_PROCESS = 'listen|serve|start|doctor'

/**
 * Makes `npx signalbox <command>` of a shell run in the process of the tests, with the arguments, the folder and the exported
 * variables of the shell: to start the command and its launcher takes most of the work of a guide. Their processes are tested
 * in test/command. Ends with its scope; the shell may end before.
 */
export async function lendCommand(shell: GuideShell): Promise<AsyncDisposable> {
  const server = createServer(async (request, response) => {
    const [folder = '', count = '', ...rest] = (await buffer(request)).toString().split('\0')
    const args = rest.slice(0, Number(count))
    const env = Object.fromEntries(
      rest.slice(args.length, -1).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    const ended = await runCommand(args, { cwd: folder, env }).catch(
      (error: unknown): CommandEnd => ({ code: 70, signal: null, stdout: '', stderr: String(error) }),
    )
    response.end(renderEnd(ended))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  await shell.run(`npx() {
  shift
  case $1 in (${OF_A_PROCESS}) node bin/signalbox.mjs "$@"; return;; esac
  eval "$({ printf '%s\\0' "$PWD" "$#" "$@"; env -0; } | curl -fsS --data-binary @- ${url} || echo 'return 70')"
}`)
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** What a shell evaluates to print what a command printed, and to end as it ended. */
function renderEnd({ code, stdout, stderr }: CommandEnd): string {
  return `printf %s ${quote(stdout)}\nprintf %s ${quote(stderr)} >&2\nreturn ${code}\n`
}
