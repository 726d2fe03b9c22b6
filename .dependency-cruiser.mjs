// The import rules of src. `npm run check:architecture` applies them, and test/architecture.test.ts tests that each of them can fail.

/** A rule over an empty folder never fails, so each of these must contain a file. Add the folder of a new adapter here. */
export const requiredPaths = [
  'src/core/',
  'src/core/ports/',
  'src/core/use-cases/',
  'src/adapters/cli/',
  'src/adapters/http/',
  'src/adapters/memory/',
  'src/adapters/mongo/',
  'src/adapters/node/',
  'src/adapters/opentelemetry/',
  'src/adapters/redis/',
  'src/wiring/',
  'src/config.ts',
  'src/main.ts',
]

/** main.ts runs the command line, commands.ts loads what a command needs, service.ts is `petstore serve`, and tracing.ts is preloaded. */
const ENTRY_POINTS = '^src/(main|service|commands|tracing)[.]ts$'

const packages = (...names) => `(^|/)node_modules/(@types/)?(${names.join('|')})(/|$)|^(${names.join('|')})(/|$)`

const rules = [
  {
    name: 'core-imports-only-core',
    comment: 'The core is plain TypeScript: no node: module, no package and no adapter, not even for a type.',
    from: { path: '^src/core/' },
    to: { pathNot: '^src/core/' },
  },
  {
    name: 'adapters-import-only-core-and-their-own-folder',
    comment: 'HTTP must not know which store it uses, and adapters receive their settings as arguments.',
    from: { path: '^src/adapters/([^/]+)/' },
    to: { path: '^src/', pathNot: ['^src/core/', '^src/adapters/$1/'] },
  },
  {
    name: 'only-entry-points-and-wiring-import-the-command-line',
    comment: 'The command line is an entry point. No other part depends on it.',
    from: { pathNot: [ENTRY_POINTS, '^src/wiring/', '^src/adapters/cli/'] },
    to: { path: '^src/adapters/cli/' },
  },
  {
    name: 'only-entry-points-import-the-wiring',
    comment: 'A part that can access the container can access everything.',
    from: { pathNot: [ENTRY_POINTS, '^src/wiring/'] },
    to: { path: ['^src/wiring/', ENTRY_POINTS] },
  },
  {
    name: 'wiring-imports-no-entry-point',
    comment: 'The entry points use the wiring, not the other way around.',
    from: { path: '^src/wiring/' },
    to: { path: ENTRY_POINTS },
  },
  {
    name: 'only-entry-points-and-wiring-import-the-settings',
    comment: 'Core and adapters receive the values that they need as arguments, so that tests can pass other values.',
    from: { pathNot: ['^src/wiring/', ENTRY_POINTS] },
    to: { path: '^src/config[.]ts$' },
  },
  {
    name: 'koa-stays-in-http',
    comment: 'Koa is a detail of the HTTP adapter.',
    from: { pathNot: '^src/adapters/http/' },
    to: { path: packages('koa', 'koa-[^/]+', '@koa/[^/]+') },
  },
  {
    name: 'inversify-stays-in-wiring',
    comment: 'Core and adapters are plain classes and functions, without decorators.',
    from: { pathNot: '^src/wiring/' },
    to: { path: packages('inversify', '@inversifyjs/[^/]+', 'reflect-metadata') },
  },
  {
    name: 'mongodb-stays-in-its-adapter',
    comment: 'Ports do not contain types of the driver.',
    from: { pathNot: '^src/adapters/mongo/' },
    to: { path: packages('mongodb', 'bson') },
  },
  {
    name: 'ioredis-stays-in-its-adapter',
    comment: 'Ports do not contain types of the client.',
    from: { pathNot: '^src/adapters/redis/' },
    to: { path: packages('ioredis', '@ioredis/[^/]+') },
  },
  {
    name: 'opentelemetry-stays-in-its-adapter',
    comment: 'It is loaded only if an OTLP endpoint is set.',
    from: { pathNot: '^src/adapters/opentelemetry/' },
    to: { path: packages('@opentelemetry/[^/]+') },
  },
  {
    name: 'only-settings-import-process',
    comment: 'An import of node:process would bypass the check that only config.ts reads process.env.',
    from: { pathNot: '^src/config[.]ts$' },
    to: { path: '^(node:)?process$' },
  },
  {
    name: 'source-imports-only-what-ships',
    comment: 'Development packages and undeclared packages are not installed in production.',
    from: { path: '^src/' },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
  },
  {
    name: 'source-imports-no-tests',
    from: { path: '^src/' },
    to: { path: '^(test|bench|scripts|dist)/' },
  },
  {
    name: 'imports-resolve',
    comment: 'An import that cannot be resolved escapes all other rules.',
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: 'no-cycles',
    comment: 'Type-only imports count: files in a cycle cannot be understood one after the other.',
    from: {},
    to: { circular: true },
  },
]

export default {
  forbidden: rules.map((rule) => ({ severity: 'error', ...rule })),
  options: {
    // TypeScript 7 has no JavaScript API, and swc sees type-only imports as well.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
