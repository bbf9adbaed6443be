import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import nodeArguments from '../../bin/node-arguments.json' with { type: 'json' }
import { ROOT } from '../tidy/source-file.ts'
import { findProgram } from './program.ts'

const text = readFileSync(join(ROOT, 'deploy/systemd/signalbox.service'), 'utf8')
const directory = mkdtempSync(join(tmpdir(), 'signalbox-unit-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** The lines of a section as `[key, value]`. */
function readSection(name: string): [key: string, value: string][] {
  const [, body = ''] = new RegExp(`^\\[${name}\\]\\n([\\s\\S]*?)(?=^\\[|$(?![\\s\\S]))`, 'm').exec(text) ?? []
  return body
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
}

const service = readSection('Service')
const findSetting = (key: string) => service.find(([name]) => name === key)?.[1]

test('the unit starts the service itself, with the flags of the launcher', () => {
  expect(findSetting('ExecStart')).toBe(['/usr/bin/node', ...nodeArguments, 'src/main.js', 'serve'].join(' '))
  expect(Number(findSetting('TimeoutStopSec'))).toBeGreaterThanOrEqual(15)
  expect(findSetting('Restart')).toBe('always')
})

test('the unit runs the service as a user of its own, without rights and without a place to write', () => {
  expect(service.filter(([key]) => key === 'User')).toEqual([])
  expect(Object.fromEntries(service)).toMatchObject({
    DynamicUser: 'yes',
    NoNewPrivileges: 'yes',
    CapabilityBoundingSet: '',
    ProtectSystem: 'strict',
    ProtectHome: 'yes',
  })
  expect(service.filter(([key]) => /^(?:ReadWritePaths|StateDirectory|MemoryDenyWriteExecute)$/.test(key))).toEqual([])
})

test('the unit lets the threads that check passwords lower their own priority', () => {
  const filters = service.filter(([key]) => key === 'SystemCallFilter').map(([, value]) => value)
  // A later line adds to what the lines before it left.
  expect(filters).toEqual(['@system-service', '~@privileged @resources', 'setpriority'])
})

test('systemd finds no fault in the unit, where it is installed; else every line is a setting of a section', () => {
  const sections = [...text.matchAll(/^\[(\w+)\]$/gm)].map(([, name = '']) => name)
  expect(sections).toEqual(['Unit', 'Service', 'Install'])
  expect(text.split('\n').filter((line) => !/^(?:#.*|\[\w+\]|[A-Z]\w+=.*|)$/.test(line))).toEqual([])
  const analyze = findProgram('systemd-analyze', 'the unit is checked by its form alone')
  if (!analyze) return
  const unit = join(directory, 'signalbox.service')
  // The unit names Node's place on a server; systemd wants a program that is there, with spaces escaped.
  const program = process.execPath.replaceAll(' ', '\\x20')
  writeFileSync(unit, text.replace('/usr/bin/node', program))
  const { stdout, stderr } = spawnSync(analyze, ['verify', unit], { encoding: 'utf8' })
  // Other units of the machine may have faults of their own.
  const faults = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('signalbox'))
  expect(faults).toEqual([])
  writeFileSync(unit, text.replace('/usr/bin/node', program).replace('Restart=always', 'Restart=sometimes'))
  expect(spawnSync(analyze, ['verify', unit], { encoding: 'utf8' }).stderr).toContain('signalbox.service')
})

test('systemd counts an exposure of 2.0 of 10 at most, where it can count', () => {
  const switches = service.filter(([key, value]) => /^(?:Protect|Private|Restrict)/.test(key) && value !== 'no')
  expect(switches.length).toBeGreaterThanOrEqual(15)
  const analyze = findProgram('systemd-analyze', 'the number of closed doors is counted instead')
  if (!analyze) return
  const unit = join(directory, 'signalbox.service')
  writeFileSync(unit, text)
  const { status, stdout, stderr } = spawnSync(analyze, ['security', '--offline=true', '--threshold=20', unit], {
    encoding: 'utf8',
  })
  // Releases before 250 know no --offline.
  if (/unrecognized option/.test(stderr)) return
  expect(status, stdout).toBe(0)
  expect(stdout).toMatch(/Overall exposure level for signalbox\.service: [01]\.\d/)
})
