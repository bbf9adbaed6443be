import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { ROLES, VARIABLES } from '../../src/app/config/config-variables.ts'
import { classifyAddress } from '../../src/outbound/guard/address.ts'
import { ROOT } from '../tidy/source-file.ts'
import { findProgram } from './program.ts'

const CHART = join(ROOT, 'deploy/helm/signalbox')
const read = (path: string) => readFileSync(join(CHART, path), 'utf8')
const helm = findProgram('helm', 'the chart is checked by its values and the form of its templates alone')

interface Workload {
  roles: string[]
  serves: boolean
  replicas: number
  autoscaling: { by: string; min: number; max: number; target: number }
  resources: { requests: Record<string, string>; limits: Record<string, string> }
}
interface Values {
  image: Record<string, string>
  baseUrl: string
  settings: Record<string, string>
  workloads: Record<string, Workload>
  backlogMetric: { name: string }
}

const values = parse(read('values.yaml')) as Values
const given = { ...values, baseUrl: 'https://signalbox.example.com' }
const isValid = new Ajv({ strict: false }).compile(JSON.parse(read('values.schema.json')))

describe('the values', () => {
  test('fit their schema, which refuses a base URL without a scheme and a digest that is none', () => {
    expect(isValid(given)).toBe(true)
    expect(isValid({ ...given, baseUrl: 'signalbox.example.com' })).toBe(false)
    expect(isValid({ ...given, image: { ...values.image, digest: 'sha256:short' } })).toBe(false)
  })

  test('give every role to one workload, and the schema knows the same roles', () => {
    const roles = Object.values(values.workloads).flatMap((workload) => workload.roles)
    expect(roles.sort()).toEqual([...ROLES].sort())
    const withRole = (role: string) => {
      const api = { ...values.workloads.api, roles: [role] }
      return isValid({ ...given, workloads: { api } })
    }
    expect(ROLES.filter((role) => !withRole(role))).toEqual([])
    expect(withRole('router')).toBe(false)
  })

  test('hold settings that exist, and the schema refuses those that the chart sets', () => {
    const names = Object.keys(values.settings)
    expect(names.filter((name) => !(name in VARIABLES))).toEqual([])
    expect(isValid({ ...given, settings: { SIGNALBOX_ROLES: 'api' } })).toBe(false)
    expect(isValid({ ...given, settings: { DATABASE_POOL_SIZE: 10 } })).toBe(false)
    expect(isValid({ ...given, settings: { DATABASE_POOL_SIZE: '10' } })).toBe(true)
  })

  test('take the name of a cluster of CloudNativePG, and its replicas only with one', () => {
    const withCluster = (cloudnativepg: object) => isValid({ ...given, cloudnativepg })
    expect(withCluster({ cluster: 'signalbox-db', readReplicas: true })).toBe(true)
    expect(withCluster({ cluster: '', readReplicas: true })).toBe(false)
    expect(withCluster({ cluster: 'db@evil', readReplicas: false })).toBe(false)
    expect(withCluster({ cluster: 'db', readReplica: true })).toBe(false)
  })

  test('and the chart have the version of the project', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version })
  })

  test('name the external metric as the documentation of its adapter does', () => {
    const text = readFileSync(join(ROOT, 'docs/deployment.md'), 'utf8')
    expect(text).toContain(`as: ${values.backlogMetric.name}`)
    expect(text).toContain('seriesQuery: webhook_out_backlog')
    expect(text).toContain('metricsQuery: max(')
  })
})

describe('the network policy', () => {
  const text = read('templates/network-policy.yaml')
  const excepted = [...text.matchAll(/^ {14}- '?([0-9a-f.:]+\/\d+)'?$/gm)].map(([, network]) => network!)
  const blocked = new BlockList()
  for (const network of excepted) {
    const [address, prefix] = network.split('/') as [string, string]
    blocked.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4')
  }
  const isBlocked = (address: string) => blocked.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
  const formatIpv4 = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
  const formatIpv6 = (parts: readonly number[]) => parts.map((part) => part.toString(16)).join(':')

  test('leaves out the IPv4 addresses that the service refuses to dial, at the edge of each range and between them', () => {
    const edges = excepted
      .filter((network) => !network.includes(':'))
      .flatMap((network) => {
        const [address, prefix] = network.split('/') as [string, string]
        const first = address.split('.').reduce((value, part) => value * 256 + Number(part), 0)
        const last = first + 2 ** (32 - Number(prefix)) - 1
        return [first - 1, first, last, last + 1].filter((value) => value >= 0 && value < 2 ** 32)
      })
    expect(edges.length).toBeGreaterThan(70)
    const check = (value: number) => {
      const address = formatIpv4(value)
      expect([address, isBlocked(address)]).toEqual([address, classifyAddress(address) === 'forbidden'])
    }
    edges.forEach(check)
    fc.assert(fc.property(fc.nat(2 ** 32 - 1), check))
  })

  test('leaves out the IPv6 addresses of 2000::/3 that the service refuses to dial', () => {
    const part = fc.nat(0xffff)
    const first = fc.oneof(
      fc.constantFrom(0x2001, 0x2002, 0x2620, 0x3ffe, 0x3fff),
      fc.integer({ min: 0x2000, max: 0x3fff }),
    )
    const second = fc.oneof(fc.constantFrom(0, 0x1ff, 0x200, 0xdb8, 0x4f, 0xfff, 0x1000), part)
    const third = fc.oneof(fc.constantFrom(0x8000), part)
    fc.assert(
      fc.property(first, second, third, part, (a, b, c, d) => {
        const address = formatIpv6([a, b, c, d, 0, 0, 0, 1])
        expect([address, isBlocked(address)]).toEqual([address, classifyAddress(address) === 'forbidden'])
      }),
    )
  })
})

test('every block of a template is closed, and every named template is defined', () => {
  const templates = readdirSync(join(CHART, 'templates')).map((name) => ({ name, text: read(`templates/${name}`) }))
  const actions = (text: string) => [...text.matchAll(/\{\{-?\s*([\s\S]*?)\s*-?\}\}/g)].map(([, action = '']) => action)
  const open = templates.filter(({ text }) => {
    const words = actions(text).map((action) => /^\w*/.exec(action)?.[0])
    const opened = words.filter((word) => ['if', 'range', 'with', 'define'].includes(word ?? '')).length
    return opened !== words.filter((word) => word === 'end').length
  })
  expect(open).toEqual([])
  const all = templates.map(({ text }) => text).join('\n')
  const defined = [...all.matchAll(/define "([^"]+)"/g)].map(([, name]) => name)
  const used = [...all.matchAll(/include "([^"]+)"/g)].map(([, name]) => name)
  expect(used.filter((name) => !defined.includes(name))).toEqual([])
  expect(defined.filter((name) => !used.includes(name))).toEqual([])
})

interface Container {
  image: string
  args: string[]
  env: { name: string; value: string }[]
  envFrom?: { secretRef: { name: string } }[]
  volumeMounts?: { name: string; mountPath: string; readOnly: boolean }[]
  ports?: { name: string; containerPort: number }[]
  securityContext: Record<string, unknown>
  resources: Workload['resources']
  startupProbe?: { httpGet: { path: string; port: string }; periodSeconds: number; failureThreshold: number }
  livenessProbe?: { httpGet: { path: string; port: string } }
  readinessProbe?: { httpGet: { path: string; port: string } }
}
interface Pod {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> }
  spec: {
    securityContext: Record<string, unknown>
    automountServiceAccountToken: boolean
    terminationGracePeriodSeconds?: number
    containers: [Container]
    volumes?: unknown[]
  }
}
interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; annotations?: Record<string, string>; labels: Record<string, string> }
  spec: Record<string, unknown> & { template: Pod; selector: { matchLabels: Record<string, string> } }
}

function runHelm(given: object): { status: number | null; stdout: string; stderr: string } {
  const args = ['template', 'front', CHART, '--kube-version', '1.31.0', '--namespace', 'signals', '--values', '-']
  return spawnSync(helm!, args, { input: JSON.stringify(given), encoding: 'utf8' })
}

/** The manifests of `helm template` with these values. */
function render(overrides: object = {}): Manifest[] {
  const { status, stdout, stderr } = runHelm({ baseUrl: given.baseUrl, ...overrides })
  if (status !== 0) throw new Error(stderr)
  return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest)
}

const ofKind = (manifests: readonly Manifest[], kind: string) => manifests.filter((manifest) => manifest.kind === kind)
const environmentOf = ({ spec }: Manifest) =>
  Object.fromEntries(spec.template.spec.containers[0].env.map(({ name, value }) => [name, value]))
const selects = (selector: Record<string, string>, { metadata }: Pod) =>
  Object.entries(selector).every(([name, value]) => metadata.labels[name] === value)

if (helm)
  describe('the rendered chart', () => {
    const manifests = render()
    const deployments = ofKind(manifests, 'Deployment')
    const [job] = ofKind(manifests, 'Job') as [Manifest]
    const pods = [...deployments, job].map(({ spec }) => spec.template)

    test('holds one Deployment for each workload, with its roles', () => {
      const roles = deployments.map((deployment) => [
        deployment.metadata.name,
        environmentOf(deployment).SIGNALBOX_ROLES,
      ])
      expect(Object.fromEntries(roles)).toEqual({
        'front-signalbox-api': 'api',
        'front-signalbox-dispatcher': 'dispatcher,realtime',
        'front-signalbox-maintenance': 'maintenance,provisioning',
      })
    })

    test('runs every container without rights, and with a file system that it cannot write', () => {
      for (const { spec } of pods) {
        expect(spec.automountServiceAccountToken).toBe(false)
        expect(spec.securityContext).toEqual({
          runAsNonRoot: true,
          runAsUser: 65532,
          runAsGroup: 65532,
          fsGroup: 65532,
          seccompProfile: { type: 'RuntimeDefault' },
        })
        expect(spec.containers[0].securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        expect(Object.keys(spec.containers[0].resources.requests)).toEqual(['cpu', 'memory'])
      }
    })

    test('restarts a pod that does not live, and routes to it only when it is ready', () => {
      for (const { spec } of deployments) {
        const [container] = spec.template.spec.containers
        expect(container.livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'http' })
        expect(container.startupProbe?.httpGet).toEqual({ path: '/livez', port: 'http' })
        expect(container.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'http' })
        expect(container.ports?.find(({ name }) => name === 'http')?.containerPort).toBe(3000)
      }
    })

    test('gives a pod more time to stop than the announcement and the stop of the service take', () => {
      for (const deployment of [...deployments, ...ofKind(render({ shutdownDelaySeconds: 30 }), 'Deployment')]) {
        const delay = Number(environmentOf(deployment).SHUTDOWN_DELAY_SECONDS)
        expect(delay).toBeGreaterThanOrEqual(5)
        expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(delay + 10)
      }
    })

    test('selects with every selector the pods of one workload, with the Service those that serve', () => {
      for (const kind of ['Deployment', 'PodDisruptionBudget'])
        for (const { metadata, spec } of ofKind(manifests, kind)) {
          const selected = pods.filter((pod) => selects(spec.selector.matchLabels, pod))
          expect(selected).toHaveLength(1)
          const component = metadata.labels['app.kubernetes.io/component']
          expect(selected[0]?.metadata.labels['app.kubernetes.io/component']).toBe(component)
        }
      const [service] = ofKind(manifests, 'Service') as [Manifest]
      const selector = service.spec.selector as unknown as Record<string, string>
      const serving = pods.filter((pod) => selects(selector, pod))
      expect(serving.map(({ metadata }) => metadata.labels['app.kubernetes.io/component'])).toEqual(['api'])
    })

    test('sets settings that exist, none of them secret, and takes the secrets from the Secret', () => {
      for (const manifest of [...deployments, job]) {
        const names = Object.keys(environmentOf(manifest))
        expect(names.filter((name) => !(name in VARIABLES))).toEqual([])
        const secret = VARIABLES as Record<string, { secret?: boolean }>
        expect(names.filter((name) => secret[name]?.secret)).toEqual([])
        expect(manifest.spec.template.spec.containers[0].envFrom).toEqual([{ secretRef: { name: 'signalbox' } }])
      }
    })

    test('mounts secrets as files where their keys are listed, and leaves them out of the environment', () => {
      const secretFiles = ['DATABASE_URL', 'SECRET_KEY', 'SESSION_JWT_SECRET']
      const rendered = render({ secretFiles })
      for (const manifest of [...ofKind(rendered, 'Deployment'), ...ofKind(rendered, 'Job')]) {
        const environment = environmentOf(manifest)
        for (const key of secretFiles) expect(environment[`${key}_FILE`]).toBe(`/run/secrets/signalbox/${key}`)
        const { containers, volumes } = manifest.spec.template.spec
        expect(containers[0].envFrom).toBeUndefined()
        expect(containers[0].volumeMounts).toEqual([
          { name: 'secrets', mountPath: '/run/secrets/signalbox', readOnly: true },
        ])
        const items = secretFiles.map((key) => ({ key, path: key }))
        expect(volumes).toEqual([{ name: 'secrets', secret: { secretName: 'signalbox', defaultMode: 0o440, items } }])
      }
    })

    test('connects to a cluster of CloudNativePG, and reads its standbys where that is wanted', () => {
      const names = ['DATABASE_URL', 'DATABASE_READ_URL']
      for (const manifest of [...deployments, job])
        expect(names.filter((name) => name in environmentOf(manifest))).toEqual([])
      const cluster = 'signalbox-db'
      const variablesOf = (cloudnativepg: object) =>
        ofKind(render({ cloudnativepg }), 'Deployment').map(({ spec }) => spec.template.spec.containers[0].env)
      const key = (name: string) => ({ secretKeyRef: { name: 'signalbox-db-app', key: name } })
      for (const env of variablesOf({ cluster })) {
        expect(env).toContainEqual({ name: 'DATABASE_URL', valueFrom: key('uri') })
        expect(env.map(({ name }) => name)).not.toContain('DATABASE_READ_URL')
      }
      // A variable is replaced only where it stands before its use.
      for (const env of variablesOf({ cluster, readReplicas: true }))
        expect(env.slice(-5)).toEqual([
          { name: 'DATABASE_URL', valueFrom: key('uri') },
          { name: 'CLUSTER_DATABASE', valueFrom: key('dbname') },
          { name: 'CLUSTER_PASSWORD', valueFrom: key('password') },
          { name: 'CLUSTER_USER', valueFrom: key('username') },
          {
            name: 'DATABASE_READ_URL',
            value: 'postgres://$(CLUSTER_USER):$(CLUSTER_PASSWORD)@signalbox-db-ro:5432/$(CLUSTER_DATABASE)',
          },
        ])
      const [policy] = ofKind(render({ cloudnativepg: { cluster }, networkPolicy: { enabled: true } }), 'NetworkPolicy')
      const { egress } = policy!.spec as unknown as { egress: { to?: unknown }[] }
      expect(egress[1]?.to).toEqual([{ podSelector: { matchLabels: { 'cnpg.io/cluster': cluster } } }])
      const both = { baseUrl: given.baseUrl, cloudnativepg: { cluster }, secretFiles: ['DATABASE_URL'] }
      expect(runHelm(both).stderr).toContain('secretFiles must not list DATABASE_URL')
    })

    test('names an image by its digest where one is given, else by its tag', () => {
      const digest = `sha256:${'a'.repeat(64)}`
      const imagesOf = (rendered: readonly Manifest[]) =>
        new Set(ofKind(rendered, 'Deployment').map(({ spec }) => spec.template.spec.containers[0].image))
      expect(imagesOf(render({ image: { digest } }))).toEqual(new Set([`signalbox@${digest}`]))
      expect(imagesOf(render({ image: { tag: '9.9.9' } }))).toEqual(new Set(['signalbox:9.9.9']))
    })

    test('has a network policy where one is wanted, for all pods of the release', () => {
      expect(ofKind(manifests, 'NetworkPolicy')).toEqual([])
      const database = [{ ipBlock: { cidr: '10.0.12.4/32' } }]
      const [policy] = ofKind(render({ networkPolicy: { enabled: true, database } }), 'NetworkPolicy')
      const { podSelector, egress, ingress } = policy!.spec as unknown as {
        podSelector: { matchLabels: Record<string, string> }
        egress: { to?: unknown; ports: { port: number | string }[] }[]
        ingress: { from?: unknown; ports: { port: string }[] }[]
      }
      expect(pods.every((pod) => selects(podSelector.matchLabels, pod))).toBe(true)
      expect(egress.map(({ ports }) => ports[0]?.port)).toEqual([53, 5432, 1])
      expect(egress[1]?.to).toEqual(database)
      expect(ingress).toEqual([
        { ports: [{ protocol: 'TCP', port: 'http' }] },
        { ports: [{ protocol: 'TCP', port: 'metrics' }], from: [{ namespaceSelector: {} }] },
      ])
      expect(runHelm({ baseUrl: given.baseUrl, networkPolicy: { enabled: true } }).stderr).toContain(
        'networkPolicy.database',
      )
    })

    test('passes the lint of Helm with its own values', () => {
      const { status, stdout } = spawnSync(helm, ['lint', CHART], { encoding: 'utf8' })
      expect([status, stdout]).toEqual([0, expect.stringContaining('0 chart(s) failed')])
    })

    test('migrates in a job before an installation and an upgrade', () => {
      expect(job.metadata.annotations?.['helm.sh/hook']).toBe('pre-install,pre-upgrade')
      expect(job.spec.template.spec.containers[0].args).toEqual(['migrate'])
      expect(ofKind(render({ migration: { enabled: false } }), 'Job')).toEqual([])
    })

    test('lets the dispatcher grow with the backlog and the API with its use of the processor', () => {
      const scalers = ofKind(manifests, 'HorizontalPodAutoscaler')
      const metrics = Object.fromEntries(scalers.map(({ metadata, spec }) => [metadata.name, spec.metrics]))
      expect(metrics).toEqual({
        'front-signalbox-api': [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
        ],
        'front-signalbox-dispatcher': [
          {
            type: 'External',
            external: {
              metric: { name: values.backlogMetric.name },
              target: { type: 'AverageValue', averageValue: '2000' },
            },
          },
        ],
      })
      // Otherwise every upgrade would set the number back that the autoscaler chose.
      const counts = deployments.map(({ metadata, spec }) => [metadata.name, spec.replicas])
      expect(counts.filter(([, replicas]) => replicas !== undefined)).toEqual([['front-signalbox-maintenance', 1]])
    })

    test('has a disruption budget for each workload of more than one pod, and none that blocks a drain', () => {
      const budgets = ofKind(manifests, 'PodDisruptionBudget')
      expect(budgets.map(({ metadata }) => metadata.name)).toEqual([
        'front-signalbox-api',
        'front-signalbox-dispatcher',
      ])
      for (const { spec } of budgets) expect(spec.maxUnavailable).toBe(1)
    })

    test('is refused without a base URL, with an unknown setting and without one of the roles', () => {
      expect(runHelm({}).stderr).toMatch(/baseUrl/)
      expect(runHelm({ baseUrl: given.baseUrl, settings: { BASE_URL: 'https://other.example.com' } }).status).not.toBe(
        0,
      )
      const { status, stderr } = runHelm({
        baseUrl: given.baseUrl,
        workloads: { maintenance: { roles: ['maintenance'] } },
      })
      expect(status).not.toBe(0)
      expect(stderr).toContain('No workload has the role provisioning')
    })

    test('publishes the host of the base URL where an ingress is wanted', () => {
      expect(ofKind(manifests, 'Ingress')).toEqual([])
      const [ingress] = ofKind(render({ ingress: { enabled: true, tlsSecret: 'tls' } }), 'Ingress') as [Manifest]
      expect(ingress.spec.rules).toMatchObject([{ host: 'signalbox.example.com' }])
      expect(ingress.spec.tls).toEqual([{ hosts: ['signalbox.example.com'], secretName: 'tls' }])
    })
  })
