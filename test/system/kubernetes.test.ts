import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import type { Config } from '../../src/config.js'
import { readConfig } from '../../src/config.js'
import { getSetting, SETTING_NAMES } from '../../src/settings.js'

const BASE = 'config/kubernetes/base'
const OVERLAYS = ['config/kubernetes/overlays/production', 'config/kubernetes/overlays/staging']

interface Resource {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

interface Generator {
  readonly name: string
  readonly literals?: readonly string[]
  readonly files?: readonly string[]
}

interface Kustomization {
  readonly resources: readonly string[]
  readonly configMapGenerator: readonly Generator[]
  readonly secretGenerator?: readonly Generator[]
  readonly patches?: readonly { readonly target: { readonly kind: string; readonly name: string }; readonly patch: string }[]
}

interface Pod {
  readonly topologySpreadConstraints: readonly { readonly labelSelector: Selector }[]
  readonly terminationGracePeriodSeconds: number
  readonly containers: readonly [Container]
  readonly volumes: readonly { readonly configMap?: { readonly name: string }; readonly secret?: { readonly secretName: string } }[]
}

interface Container {
  readonly image: string
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[]
}

interface Selector {
  readonly matchLabels: object
}

type Specified<Spec> = Resource & { readonly spec: Spec }

describe('the Kubernetes manifests', () => {
  const base = readYaml<Kustomization>(join(BASE, 'kustomization.yaml'))
  const resources = base.resources.map((file) => readYaml<Resource>(join(BASE, file)))
  const deployment = find<Specified<{ template: { metadata: { labels: object; annotations: object }; spec: Pod } }>>('Deployment')
  const { spec: pod, metadata: podMetadata } = deployment.spec.template
  const [container] = pod.containers
  const portNames = container.ports.map(({ name }) => name)

  for (const folder of [BASE, ...OVERLAYS]) {
    it(`are all listed in the kustomization of ${folder}`, () => {
      const { resources: listed } = readYaml<Kustomization>(join(folder, 'kustomization.yaml'))
      const files = readdirSync(folder).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml')
      expect(listed.filter((file) => file !== '../../base')).to.have.members(files)
    })
  }

  it('match the schemas of the Kubernetes API', async () => {
    for (const manifest of OVERLAYS.flatMap(render)) await validate(manifest)
  })

  it('contain no field that the Kubernetes API does not have', function () {
    this.timeout(60_000)
    expect(findTypeErrors(OVERLAYS.flatMap(render))).to.equal('')
  })

  for (const overlay of OVERLAYS) {
    it(`set only settings that exist, to valid values: ${overlay}`, () => {
      const names = [...Object.keys(readLiterals(overlay)), ...container.env.map(({ name }) => name)]
      const known = SETTING_NAMES.flatMap((name) => (getSetting(name).isSecret ? [name, `${name}_FILE`] : [name]))
      expect(known).to.include.members(names)
      expect(() => toConfig(overlay)).to.not.throw()
    })

    it(`give a replica enough time to stop: ${overlay}`, () => {
      const { drainDelayMs, shutdownTimeoutMs } = toConfig(overlay)
      expect(drainDelayMs).to.be.greaterThan(0)
      expect(pod.terminationGracePeriodSeconds * 1000).to.be.at.least(drainDelayMs + shutdownTimeoutMs)
    })

    it(`name the ports that the service listens on: ${overlay}`, () => {
      const { port, adminPort, adminHost } = toConfig(overlay)
      expect(container.ports).to.deep.equal([
        { name: 'api', containerPort: port },
        { name: 'admin', containerPort: adminPort },
      ])
      expect(podMetadata.annotations).to.include({ 'prometheus.io/port': `${adminPort}` })
      expect(adminHost).to.equal('0.0.0.0')
    })

    it(`generate the Secret with the files that the pod reads: ${overlay}`, () => {
      const secret = readYaml<Kustomization>(join(overlay, 'kustomization.yaml')).secretGenerator?.[0]
      const read = container.env.filter(({ name }) => name.endsWith('_FILE') && name !== 'PLANS_FILE').map(({ value }) => basename(value))
      expect(secret?.files?.map((file) => basename(file))).to.have.members(read)
      expect(pod.volumes.map((volume) => volume.secret?.secretName)).to.include(secret?.name)
    })
  }

  it('refer only to ports and ConfigMaps that exist', () => {
    const ports = [...JSON.stringify(resources).matchAll(/"(?:port|targetPort)":"(\w+)"/g)].map(([, name]) => name)
    expect(ports).to.have.lengthOf(6)
    expect(portNames).to.include.members(ports)
    const configMaps = [
      ...container.envFrom.map(({ configMapRef }) => configMapRef.name),
      ...pod.volumes.flatMap((each) => each.configMap?.name ?? []),
    ]
    expect(base.configMapGenerator.map(({ name }) => name)).to.have.members(configMaps)
  })

  it('select the pods of the deployment', () => {
    const service = find<Specified<{ selector: object }>>('Service').spec.selector
    const selectors = ['Deployment', 'PodDisruptionBudget'].map((kind) => find<Specified<{ selector: Selector }>>(kind).spec.selector)
    const { podSelector } = find<Specified<{ podSelector: Selector }>>('NetworkPolicy').spec
    const spread = pod.topologySpreadConstraints.map(({ labelSelector }) => labelSelector)
    for (const labels of [service, ...[...selectors, podSelector, ...spread].map(({ matchLabels }) => matchLabels)])
      expect(labels).to.deep.equal(podMetadata.labels)
    const { scaleTargetRef } = find<Specified<{ scaleTargetRef: object }>>('HorizontalPodAutoscaler').spec
    const { apiVersion, kind, metadata } = deployment
    expect(scaleTargetRef).to.deep.equal({ apiVersion, kind, name: metadata.name })
  })

  it('start with the plans of config/plans.json', () => {
    expect(readFileSync(join(BASE, 'plans.json'), 'utf8')).to.equal(readFileSync('config/plans.json', 'utf8'))
  })

  function find<Kind extends Resource>(kind: string): Kind {
    return resources.find((resource) => resource.kind === kind) as Kind
  }

  /** Does what `kustomize build` does with the parts that can make a manifest invalid: files and patches. */
  function render(overlay: string): Resource[] {
    const { resources: files, patches = [] } = readYaml<Kustomization>(join(overlay, 'kustomization.yaml'))
    const own = files.filter((file) => file !== '../../base').map((file) => readYaml<Resource>(join(overlay, file)))
    const rendered = structuredClone([...resources, ...own])
    for (const { target, patch } of patches) {
      const resource = rendered.find(({ kind, metadata }) => kind === target.kind && metadata.name === target.name)
      if (!resource) throw new Error(`${overlay} patches a resource that does not exist: ${target.kind} ${target.name}`)
      for (const { op, path, value } of parse(patch) as { op: string; path: string; value: unknown }[]) {
        const keys = path.split('/').slice(1)
        const last = keys.pop() ?? ''
        const parent = keys.reduce((object, key) => object[key] as Record<string, unknown>, resource as unknown as Record<string, unknown>)
        if (op !== 'replace' || !(last in parent)) throw new Error(`${overlay}: ${op} ${path} is not a replacement of a field that exists`)
        parent[last] = value
      }
    }
    return rendered
  }

  function readLiterals(overlay: string): Record<string, string> {
    const generators = [base, readYaml<Kustomization>(join(overlay, 'kustomization.yaml'))].flatMap((each) => each.configMapGenerator)
    const literals = generators.filter(({ name }) => name === 'petstore-settings').flatMap((generator) => generator.literals ?? [])
    return Object.fromEntries(literals.map((literal) => literal.split(/=(.*)/s, 2)))
  }

  function toConfig(overlay: string): Config {
    const secrets = { MONGODB_URL: 'mongodb://a/petstore', REDIS_URL: 'redis://a', CURSOR_SECRET: 'x'.repeat(32) }
    return readConfig({
      NODE_ENV: 'production',
      HOST: '0.0.0.0',
      PLANS_FILE: join(BASE, 'plans.json'),
      ...secrets,
      ...readLiterals(overlay),
    })
  }
})

function readYaml<Content>(file: string): Content {
  return parse(readFileSync(file, 'utf8')) as Content
}

async function validate(resource: Resource): Promise<void> {
  type Model = new (data: Resource) => { validate(): void }
  const models = (await import(`kubernetes-models/${resource.apiVersion}`)) as Record<string, Model>
  const Kind = models[resource.kind]
  if (!Kind) throw new Error(`${resource.apiVersion} has no ${resource.kind}`)
  new Kind(resource).validate()
}

/** Returns the errors of the compiler. The schemas allow unknown fields, but the types of the same package do not. */
function findTypeErrors(manifests: readonly Resource[]): string {
  const folder = mkdtempSync('dist/kubernetes-')
  const declarations = manifests.map((manifest, index) => {
    const type = `import('kubernetes-models/${manifest.apiVersion}').I${manifest.kind}`
    return `export const manifest${index}: ${type} = ${JSON.stringify(manifest)}\n`
  })
  try {
    writeFileSync(join(folder, 'manifests.mts'), declarations.join(''))
    const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--pretty', 'false', '--types', '']
    execFileSync('node_modules/.bin/tsc', [...options, join(folder, 'manifests.mts')], { encoding: 'utf8', stdio: 'pipe' })
    return ''
  } catch (error) {
    return (error as { stdout: string }).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}
