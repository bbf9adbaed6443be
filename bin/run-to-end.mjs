/**
 * Runs a program in the place of this process: its signals reach the program, the end of the program is its end, and the program
 * does not outlive it, also not after `kill -9`. Plain JavaScript that any Node from 20 on runs, without a dependency.
 */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/** Tells the program which descriptor is the pipe to this process (src/command/launcher.ts). */
const PIPE_VARIABLE = 'SIGNALBOX_LAUNCHER_PIPE'
const PIPE_DESCRIPTOR = 3

/**
 * Runs `command` on this terminal until it ends, and gives the exit code to end with: its own, or 128 + n when signal n ended it.
 * `tie` says how the program learns that this process was killed: `pipe`, the program watches a pipe whose other end this process
 * holds; `watchdog`, a shell watches it and sends SIGTERM to a program that is not ours. With `isLast` signals that arrive after
 * the end of the program do not replace its exit code.
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions & { tie?: 'pipe' | 'watchdog', isLast?: boolean }} [options]
 * @returns {Promise<number>}
 */
export function runToEnd(command, args, { tie, isLast = false, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, tie === 'pipe' ? addPipe(options) : { stdio: 'inherit', ...options })
    const stopPassing = passSignals(child, tie === 'pipe' ? openPipe(child) : undefined)
    const stopWatchdog = tie === 'watchdog' ? startWatchdog(child) : () => {}
    const end = () => {
      stopWatchdog()
      if (isLast) ignoreSignals()
      stopPassing()
    }
    child.once('error', (error) => {
      end()
      reject(error)
    })
    child.once('exit', (code, signal) => {
      end()
      resolve(code ?? 128 + (constants.signals[signal] ?? 0))
    })
  })
}

function addPipe(options) {
  const env = { ...(options.env ?? process.env), [PIPE_VARIABLE]: String(PIPE_DESCRIPTOR) }
  return { ...options, env, stdio: ['inherit', 'inherit', 'inherit', 'pipe'] }
}

/** The pipe to the program. `takesInterrupts` is true once the program has written that it reads SIGINT from the pipe. */
function openPipe(child) {
  const pipe = { socket: child.stdio[PIPE_DESCRIPTOR], takesInterrupts: false }
  pipe.socket?.on('error', () => {})
  pipe.socket?.on('data', () => {
    pipe.takesInterrupts = true
  })
  return pipe
}

/**
 * Passes the signals we get on to the child, and keeps us alive until it has ended. The terminal sends Ctrl-C to the whole group, and
 * npm sends it to us once more, so the child may have it already: on its pipe it cannot mistake ours for a second Ctrl-C, however late
 * ours is. As a signal, SIGINT is passed on only where no terminal can have sent it.
 */
function passSignals(child, pipe) {
  const passOn = (signal) => child.kill(signal)
  const passInterrupt = (signal) => {
    // After the poll of this turn of the event loop: what the child wrote before the signal is read by then.
    setImmediate(() => {
      if (pipe?.takesInterrupts) pipe.socket.write(`${signal}\n`)
      else if (!hasTerminal()) child.kill(signal)
    })
  }
  process.on('SIGTERM', passOn).on('SIGHUP', passOn).on('SIGINT', passInterrupt)
  const stopWatching = watchScriptShell(() => child.kill('SIGTERM'))
  return () => {
    process.off('SIGTERM', passOn).off('SIGHUP', passOn).off('SIGINT', passInterrupt)
    pipe?.socket?.destroy()
    stopWatching()
  }
}

function ignoreSignals() {
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, () => {})
}

/**
 * Calls `onGone` when the shell that runs us for npm has died. npm sends a SIGTERM to that shell alone, and a shell that did not replace itself by
 * its command (dash) dies of it without telling us: the service would go on without its terminal. Only a script of npm has such a shell.
 */
function watchScriptShell(onGone) {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return () => {}
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    onGone()
  }, 250)
  return () => clearInterval(timer)
}

/** Starts a shell, in a session of its own, that sends SIGTERM to the child when this process is gone. Returns what ends the shell. */
function startWatchdog(child) {
  if (process.platform === 'win32' || child.pid === undefined) return () => {}
  const script = ['-c', 'read -r _; kill -TERM "$1"', 'signalbox-watchdog', String(child.pid)]
  const shell = spawn('/bin/sh', script, { cwd: '/', env: {}, detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  // Without a shell on the machine there is no watchdog.
  shell.on('error', () => {})
  shell.stdin.on('error', () => {})
  return () => shell.kill('SIGKILL')
}

function hasTerminal() {
  return Boolean(process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY)
}
